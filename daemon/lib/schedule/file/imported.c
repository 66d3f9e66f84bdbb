#include "daemon/lib/schedule/file/imported.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/file/imported_parts.h"
#include "proto/text_file.h"

/* --- the methods of the algorithm --- */

static int imported_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    return imported_check_torus(a->imported, t, e);
}

static uint32_t imported_max_legs(const struct algorithm *a, const struct torus *t)
{
    (void)t;
    return a->imported->max_legs;
}

static void imported_period(const struct algorithm *a, const struct torus *t, uint32_t *period)
{
    memcpy(period, a->imported->period, t->dims * sizeof *period);
}

static uint32_t imported_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                               uint32_t destination, uint32_t segment, struct leg *legs)
{
    const struct imported *s = a->imported;
    const struct imported_route *route = imported_find_route(s, source, destination, segment);

    (void)t;
    memcpy(legs, s->leg + route->first, route->legs * sizeof *legs);
    return route->legs;
}

static const struct algorithm_methods imported_methods = {
    .accepts = imported_accepts,
    .max_legs = imported_max_legs,
    .period = imported_period,
    .route = imported_route,
};

/* --- the whole file --- */

static bool same_legs(const struct leg *a, const struct leg *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].step != b[i].step || a[i].hops != b[i].hops || a[i].dim != b[i].dim ||
            a[i].direction != b[i].direction)
            return false;
    return true;
}

/* Allgather: the legs before the last one must be the whole route to the node where the last leg
 * begins. Returns 0, or -1 with *e. */
static int check_branch(struct imported_reader *r, const struct imported_route *route,
                        struct error *e)
{
    const struct imported *s = r->s;
    const struct leg *leg = s->leg + route->first;
    uint32_t here = (uint32_t)r->source, last = route->legs - 1;

    for (uint32_t i = 0; i < last; i++)
        here = torus_walk(&s->torus, here, leg[i].dim, leg[i].direction, leg[i].hops);
    if (last == 0)
        return 0;
    r->line.number = route->line;
    if (here == (uint32_t)r->source)
        return imported_bad_route(r, e, "in step %" PRIu32 " it comes back to node %" PRIu32,
                                  leg[last - 1].step, here);
    const struct imported_route *other =
        imported_find_route(s, (uint32_t)r->source, here, (uint32_t)r->segment);
    if (other->legs != last || !same_legs(leg, s->leg + other->first, last))
        return imported_bad_route(r, e,
                                  "in step %" PRIu32 " node %" PRIu32
                                  " sends it on, but the legs before "
                                  "differ from the route to that node in line %" PRIu32,
                                  leg[last].step, here, other->line);
    return 0;
}

/* Checks that all routes are there, and form trees in an allgather. Returns 0, or -1 with *e. */
static int check_routes(struct imported_reader *r, struct error *e)
{
    const struct imported *s = r->s;

    for (uint32_t class = 0; class < s->classes; class ++) {
        uint32_t source = imported_representative(s, class);
        for (uint32_t destination = 0; destination < s->torus.nodes; destination++)
            for (uint32_t segment = 0; segment < s->algorithm.segments; segment++)
                if (source != destination &&
                    imported_route_at(s, class, destination, segment)->line == 0)
                    return error_set(e, ERROR_REFUSED,
                                     "block %" PRIu32 " -> %" PRIu32 ", segment %" PRIu32
                                     " has no route: the schedule needs a line for it",
                                     source, destination, segment);
    }
    for (uint32_t class = 0; class < s->classes; class ++) {
        r->source = imported_representative(s, class);
        for (r->destination = 0; r->destination < s->torus.nodes; r->destination++)
            for (r->segment = 0; r->segment < s->algorithm.segments; r->segment++)
                if (r->source != r->destination && s->algorithm.operation == OPERATION_ALLGATHER &&
                    check_branch(
                        r,
                        imported_route_at(s, class, (uint32_t)r->destination, (uint32_t)r->segment),
                        e) != 0)
                    return -1;
    }
    return 0;
}

static int read_lines(struct imported_reader *r, const char *text, size_t length, struct error *e)
{
    const char *end = text + length;

    for (const char *at = text; at < end; at = r->line.end + 1) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        r->line.number++;
        r->line.begin = r->line.at = at;
        r->line.end = newline != NULL ? newline : end;
        if (json_line_is_empty(&r->line))
            continue;
        if ((r->has_header ? imported_read_route(r, e) : imported_read_header(r, e)) != 0)
            return -1;
    }
    if (!r->has_header)
        return error_set(e, ERROR_REFUSED, "the schedule is empty: it has no header");
    return check_routes(r, e);
}

/* Reads the text. A byte order mark at its beginning is skipped, although the digest covers it. */
static int read_text(struct imported_reader *r, const char *text, size_t length, struct error *e)
{
    static const struct text_kind schedule = {.name = "a schedule", .most = IMPORTED_BYTES_MOST};

    if (length > IMPORTED_BYTES_MOST)
        return error_set(
            e, ERROR_REFUSED,
            "the schedule has %zu bytes, more than the limit of %u MiB: a period makes it "
            "shorter",
            length, IMPORTED_BYTES_MOST >> 20);
    return text_check(&text, &length, &schedule, e) != 0 ? -1 : read_lines(r, text, length, e);
}

/* Fills *report, and checks that the schedule keeps to its port model. Returns 0, or -1 with *e. */
static int price(const struct imported *s, struct schedule_report *report, struct error *e)
{
    if (schedule_verify(&s->torus, &s->algorithm, report, e) != 0)
        return -1;
    if (s->algorithm.port_model == PORT_MODEL_ALL || report->one_port_kept)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the schedule is not one-port: in step %" PRIu32 " node %" PRIu32
                     " starts, or ends, more than one message",
                     report->crowded_step, report->crowded_node);
}

int imported_read(struct imported **out, const char *text, size_t length, const struct torus *only,
                  struct schedule_report *report, struct error *e)
{
    struct schedule_report unused;
    struct imported_reader r = {.s = calloc(1, sizeof *r.s), .only = only};
    struct imported *s = r.s;

    if (s == NULL)
        return imported_no_memory(e);
    s->users = 1;
    s->known = only != NULL;
    s->algorithm = (struct algorithm){
        .methods = &imported_methods,
        .imported = s,
        .name = s->shown,
        .summary = "read from a file",
        .accepts_text = s->dims,
        .startups = "",
        .transmission = "",
        .source = "a file",
        .segments = 1,
        .any_graph = true,
    };
    (void)snprintf(s->name, sizeof s->name, "imported");
    int rc = read_text(&r, text, length, e);
    if (rc == 0) {
        sha256_text(text, length, s->digest);
        (void)snprintf(s->shown, sizeof s->shown, "%s@%.*s", s->name, (int)IMPORTED_DIGEST_SHOWN,
                       s->digest);
        rc = price(s, report != NULL ? report : &unused, e);
    }
    if (rc != 0)
        imported_free(s);
    else
        *out = s;
    return rc;
}

void imported_keep(const struct imported *kept)
{
    struct imported *s = (struct imported *)(uintptr_t)kept; /* only the number of users changes */

    s->users++;
}

void imported_free(const struct imported *kept)
{
    struct imported *s = (struct imported *)(uintptr_t)kept;

    if (s == NULL || --s->users > 0)
        return;
    free(s->route);
    free(s->leg);
    free(s);
}

const struct algorithm *imported_algorithm(const struct imported *s)
{
    return &s->algorithm;
}

const struct torus *imported_torus(const struct imported *s)
{
    return &s->torus;
}

const char *imported_name(const struct imported *s)
{
    return s->name;
}

const char *imported_digest(const struct imported *s)
{
    return s->digest;
}

size_t imported_bytes(const struct imported *s)
{
    return sizeof *s + s->routes * sizeof *s->route + s->leg_room * sizeof *s->leg;
}
