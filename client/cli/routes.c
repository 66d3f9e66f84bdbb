#include "client/cli/routes.h"

#include <inttypes.h>
#include <stdlib.h>

/* Numbers only, and up to millions of lines: printed as they are, without a JSON value each. */
static void print_route(FILE *out, uint32_t source, uint32_t destination, uint32_t segment,
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

int routes_print(FILE *out, const struct torus *t, const struct algorithm *a, struct error *e)
{
    uint32_t most = a->max_legs(t);
    struct leg *legs = calloc(most > 0 ? most : 1, sizeof *legs);

    if (legs == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for %" PRIu32 " legs", most);
    for (uint32_t source = 0; source < t->nodes && !ferror(out); source++) {
        for (uint32_t destination = 0; destination < t->nodes && !ferror(out); destination++) {
            if (destination == source)
                continue;
            for (uint32_t segment = 0; segment < a->segments; segment++)
                print_route(out, source, destination, segment, legs,
                            algorithm_route(a, t, source, destination, segment, legs));
        }
    }
    free(legs);
    return 0;
}
