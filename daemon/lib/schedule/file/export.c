#include "daemon/lib/schedule/file/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* Prints the header up to its last keys. */
static void begin_header(FILE *out, const struct torus *t, const char *name,
                         enum schedule_operation operation, const char *ports, bool streaming,
                         uint32_t segments)
{
    char dims[TORUS_TEXT_SIZE];

    (void)fprintf(out,
                  "{\"schedule\":%d,\"dims\":\"%s\",\"name\":\"%s\",\"operation\":\"%s\","
                  "\"ports\":\"%s\",\"mode\":\"%s\",\"segments\":%" PRIu32,
                  IMPORTED_VERSION, torus_format(t, dims), name, schedule_operation_name(operation),
                  ports, streaming ? "streaming" : "stepped", segments);
}

void schedule_export_header(FILE *out, const struct torus *t, const char *name,
                            enum schedule_operation operation, bool streaming, uint32_t segments)
{
    begin_header(out, t, name, operation, port_model_name(PORT_MODEL_ALL), streaming, segments);
    (void)fputs("}\n", out);
}

static void print_header(FILE *out, const struct torus *t, const struct algorithm *a,
                         const uint32_t *period)
{
    begin_header(out, t, a->imported != NULL ? imported_name(a->imported) : a->name, a->operation,
                 a->single_hops && a->port_model == PORT_MODEL_ONE ? "one-port, single hops"
                                                                   : port_model_name(a->port_model),
                 a->streaming, a->segments);
    if (period != NULL) {
        (void)fputs(",\"period\":[", out);
        for (unsigned i = 0; i < t->dims; i++)
            (void)fprintf(out, "%s%" PRIu32, i > 0 ? "," : "", period[i]);
        (void)fputc(']', out);
    }
    (void)fputs("}\n", out);
}

/* Routes have numbers only, and there may be millions: no JSON values are needed to print them. */
void schedule_export_route(FILE *out, uint32_t source, uint32_t destination, uint32_t segment,
                           const struct leg *legs, uint32_t count)
{
    (void)fprintf(out,
                  "{\"src\":%" PRIu32 ",\"dst\":%" PRIu32 ",\"segment\":%" PRIu32 ",\"legs\":[",
                  source, destination, segment);
    for (uint32_t i = 0; i < count; i++)
        (void)fprintf(out, "%s[%" PRIu32 ",%u,%d,%u]", i > 0 ? "," : "", legs[i].step,
                      (unsigned)legs[i].dim, (int)legs[i].direction, (unsigned)legs[i].hops);
    (void)fputs("]}\n", out);
}

static bool is_in_first_box(const struct torus *t, const uint32_t *period, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (at[i] >= period[i])
            return false;
    return true;
}

static int print_routes(FILE *out, const struct torus *t, const struct algorithm *a,
                        const uint32_t *period, struct error *e)
{
    uint32_t most = algorithm_max_legs(a, t);
    struct leg *legs = calloc((size_t)most + 1, sizeof *legs); /* never 0 bytes */
    uint64_t printed = 0, all = (uint64_t)t->nodes * a->segments;

    for (unsigned i = 0; i < t->dims; i++)
        all *= period != NULL ? period[i] : t->size[i];
    if (legs == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for %" PRIu32 " %s", most,
                         text_plural(most, "leg", "legs"));
    for (uint32_t source = 0; source < t->nodes && !ferror(out); source++) {
        if (period != NULL && !is_in_first_box(t, period, source))
            continue;
        for (uint32_t destination = 0; destination < t->nodes && !ferror(out); destination++) {
            if (destination == source)
                continue;
            for (uint32_t segment = 0; segment < a->segments; segment++) {
                schedule_export_route(out, source, destination, segment, legs,
                                      algorithm_route(a, t, source, destination, segment, legs));
                watch_count(&printed, all);
            }
        }
    }
    free(legs);
    return 0;
}

int schedule_export(FILE *out, const struct torus *t, const struct algorithm *a, bool by_period,
                    struct error *e)
{
    uint32_t period[TORUS_MAX_DIMS];

    algorithm_period(a, t, period);
    print_header(out, t, a, by_period ? period : NULL);
    return print_routes(out, t, a, by_period ? period : NULL, e);
}

int schedule_export_routes(FILE *out, const struct torus *t, const struct algorithm *a,
                           struct error *e)
{
    return print_routes(out, t, a, NULL, e);
}
