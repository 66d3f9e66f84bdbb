#include "daemon/schedule/imported.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/json_line.h"
#include "proto/sha256.h"
#include "proto/text.h"
#include "proto/text_file.h"

#define DIGEST_SHOWN 8u /* digits of it in the algorithm's name */

struct route {
    uint32_t first; /* of its legs */
    uint32_t legs;
    uint32_t line; /* where it was read; 0: not yet */
};

struct imported {
    unsigned users;
    struct algorithm algorithm;
    struct torus torus;
    uint32_t period[TORUS_MAX_DIMS];
    uint32_t classes; /* sources in the first box of the period */
    uint32_t max_legs;
    struct route *route; /* (class * nodes + destination) * segments + segment */
    struct leg *leg;
    size_t legs, leg_room;
    size_t routes;
    char name[IMPORTED_NAME_SIZE];
    char shown[IMPORTED_NAME_SIZE + 1 + DIGEST_SHOWN];
    char dims[TORUS_TEXT_SIZE];
    char digest[SHA256_TEXT_SIZE];
};

/* What a file is read with. */
struct reader {
    struct imported *s;
    const struct torus *only; /* that it may be for; NULL: any */
    struct json_line line;
    bool has_header;

    /* The route of this line. */
    int64_t source, destination, segment;
    size_t first_leg;
};

/* --- where a route lies --- */

static uint32_t class_of(const struct imported *s, const uint32_t *at)
{
    uint32_t class = 0;

    for (unsigned i = 0; i < s->torus.dims; i++)
        class = class * s->period[i] + at[i] % s->period[i];
    return class;
}

static struct route *route_at(const struct imported *s, uint32_t class, uint32_t destination,
                              uint32_t segment)
{
    return &s->route[((size_t) class * s->torus.nodes + destination) * s->algorithm.segments +
                     segment];
}

/* The one that this block's follows from by moving both ends into the first box. */
static struct route *find_route(const struct imported *s, uint32_t source, uint32_t destination,
                                uint32_t segment)
{
    const struct torus *t = &s->torus;
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        to[i] = (to[i] + t->size[i] - from[i] / s->period[i] * s->period[i]) % t->size[i];
    return route_at(s, class_of(s, from), torus_rank(t, to), segment);
}

/* The first source of a class. */
static uint32_t representative(const struct imported *s, uint32_t class)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = s->torus.dims; i-- > 0;) {
        at[i] = class % s->period[i];
        class /= s->period[i];
    }
    return torus_rank(&s->torus, at);
}

/* --- its methods as an algorithm --- */

static int check_torus(const struct imported *s, const struct torus *t, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (torus_equal(&s->torus, t))
        return 0;
    return error_set(e, ERROR_REFUSED, "schedule %s is for a torus of %s, not %s", s->name, s->dims,
                     torus_format(t, dims));
}

static int imported_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    return check_torus(a->imported, t, e);
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
    const struct route *route = find_route(s, source, destination, segment);

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

/* --- the header --- */

static int read_version(struct json_line *line, void *into, struct error *e)
{
    int64_t version;

    (void)into;
    return json_line_number(line, "the version", IMPORTED_VERSION, IMPORTED_VERSION, &version, e);
}

static int read_dims(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    struct error why;

    if (json_line_string(line, "dims", s->dims, sizeof s->dims, e) != 0)
        return -1;
    return torus_parse(&s->torus, s->dims, &why) == 0
               ? 0
               : json_line_error(line, e, "dims: %s", why.text);
}

static int read_name(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;

    if (json_line_string(line, "name", s->name, sizeof s->name, e) != 0)
        return -1;
    if (s->name[0] == '\0' ||
        s->name[strspn(
            s->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] != '\0')
        return json_line_error(line, e, "name has to be letters, digits, '-', '_' and '.'");
    return 0;
}

/* One of two words. */
static int read_choice(struct json_line *line, const char *what, const char *no, const char *yes,
                       bool *chosen, struct error *e)
{
    char text[16];

    if (json_line_string(line, what, text, sizeof text, e) != 0)
        return -1;
    *chosen = strcmp(text, yes) == 0;
    if (*chosen || strcmp(text, no) == 0)
        return 0;
    return json_line_error(line, e, "%s has to be \"%s\" or \"%s\"", what, no, yes);
}

static int read_operation(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    bool allgather;

    if (read_choice(line, "operation", "exchange", "allgather", &allgather, e) != 0)
        return -1;
    s->algorithm.operation = allgather ? OPERATION_ALLGATHER : OPERATION_EXCHANGE;
    return 0;
}

/* As algorithm_bound_name() says. */
static int read_ports(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    char text[32];

    if (json_line_string(line, "ports", text, sizeof text, e) != 0)
        return -1;
    s->algorithm.single_hops = strcmp(text, "one-port, single hops") == 0;
    s->algorithm.port_model =
        s->algorithm.single_hops || strcmp(text, "one-port") == 0 ? PORT_MODEL_ONE : PORT_MODEL_ALL;
    if (s->algorithm.port_model == PORT_MODEL_ONE || strcmp(text, "all-port") == 0)
        return 0;
    return json_line_error(line, e,
                           "ports has to be \"all-port\", \"one-port\" or \"one-port, single "
                           "hops\"");
}

static int read_mode(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;

    return read_choice(line, "mode", "stepped", "streaming", &s->algorithm.streaming, e);
}

static int read_segments(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    int64_t segments;

    if (json_line_number(line, "segments", 1, IMPORTED_SEGMENTS_MOST, &segments, e) != 0)
        return -1;
    s->algorithm.segments = (uint32_t)segments;
    return 0;
}

/* Has to be checked against the torus, which may come later in the line. 0: as many as there are. */
static int read_period(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    unsigned count = 0;
    int64_t one;

    if (json_line_need(line, '[', e) != 0)
        return -1;
    do {
        if (count == TORUS_MAX_DIMS)
            return json_line_error(line, e, "a period has one number for each dimension");
        if (json_line_number(line, "a period", 1, TORUS_MAX_NODES, &one, e) != 0)
            return -1;
        s->period[count++] = (uint32_t)one;
    } while (json_line_has(line, ','));
    return json_line_need(line, ']', e);
}

enum { KEY_VERSION, KEY_DIMS };
static const struct json_key header_keys[] = {
    [KEY_VERSION] = {"schedule", read_version},
    [KEY_DIMS] = {"dims", read_dims},
    {"name", read_name},
    {"operation", read_operation},
    {"ports", read_ports},
    {"mode", read_mode},
    {"segments", read_segments},
    {"period", read_period},
};

/* Sets the period where there is none, and counts the classes. */
static int check_period(struct reader *r, struct error *e)
{
    struct imported *s = r->s;
    const struct torus *t = &s->torus;
    bool given = s->period[0] != 0;

    s->classes = 1;
    for (unsigned i = 0; i < TORUS_MAX_DIMS; i++) {
        if (given && (i < t->dims) != (s->period[i] != 0))
            return json_line_error(&r->line, e, "the period has to have %u %s", t->dims,
                                   text_plural(t->dims, "number", "numbers"));
        if (i >= t->dims)
            break;
        if (!given)
            s->period[i] = t->size[i];
        if (t->size[i] % s->period[i] != 0 || (!t->wrap[i] && s->period[i] != t->size[i]))
            return json_line_error(&r->line, e,
                                   "period %" PRIu32 " of dimension %u has to %s its size %" PRIu32,
                                   s->period[i], i, t->wrap[i] ? "divide" : "be", t->size[i]);
        s->classes *= s->period[i];
    }
    return 0;
}

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
}

static int read_header(struct reader *r, struct error *e)
{
    static const uint32_t needed = 1u << KEY_VERSION | 1u << KEY_DIMS;
    struct imported *s = r->s;
    uint32_t seen;

    if (r->line.end - r->line.at >= 6 && memcmp(r->line.at, "{\"src\"", 6) == 0)
        return json_line_error(
            &r->line, e, "a route where the header is expected: {\"schedule\":%d,\"dims\":...}",
            IMPORTED_VERSION);
    if (json_line_object(&r->line, header_keys, sizeof header_keys / sizeof *header_keys, s, &seen,
                         e) != 0)
        return -1;
    if ((seen & needed) != needed)
        return json_line_error(
            &r->line, e, "the header has no \"%s\"",
            header_keys[(seen & 1u << KEY_VERSION) != 0 ? KEY_DIMS : KEY_VERSION].name);
    if (r->only != NULL && check_torus(s, r->only, e) != 0)
        return -1;
    if (s->algorithm.streaming && s->algorithm.port_model == PORT_MODEL_ONE)
        return json_line_error(&r->line, e, "mode streaming is for all-port schedules");
    if (check_period(r, e) != 0)
        return -1;
    uint64_t routes = (uint64_t)s->classes * s->torus.nodes * s->algorithm.segments;
    if (routes > IMPORTED_ROUTES_MOST)
        return json_line_error(&r->line, e,
                               "%" PRIu64 " routes are more than the %u that a schedule can have; "
                               "a period may make them fewer",
                               routes, IMPORTED_ROUTES_MOST);
    s->routes = (size_t)routes;
    s->route = calloc(s->routes, sizeof *s->route);
    if (s->route == NULL)
        return no_memory(e);
    r->has_header = true;
    return 0;
}

/* --- a route --- */

static int read_source(struct json_line *line, void *into, struct error *e)
{
    struct reader *r = into;

    return json_line_number(line, "src", 0, r->s->torus.nodes - 1, &r->source, e);
}

static int read_destination(struct json_line *line, void *into, struct error *e)
{
    struct reader *r = into;

    return json_line_number(line, "dst", 0, r->s->torus.nodes - 1, &r->destination, e);
}

static int read_segment(struct json_line *line, void *into, struct error *e)
{
    struct reader *r = into;

    return json_line_number(line, "segment", 0, r->s->algorithm.segments - 1, &r->segment, e);
}

static int add_leg(struct imported *s, struct leg leg)
{
    if (s->legs == s->leg_room) {
        size_t room = s->leg_room == 0 ? 256 : 2 * s->leg_room;
        struct leg *legs = reallocarray(s->leg, room, sizeof *legs);
        if (legs == NULL)
            return -1;
        s->leg = legs;
        s->leg_room = room;
    }
    s->leg[s->legs++] = leg;
    return 0;
}

static int read_leg(struct json_line *line, struct imported *s, struct error *e)
{
    int64_t step, dim, direction, hops;

    if (json_line_need(line, '[', e) != 0 ||
        json_line_number(line, "a step", 0, IMPORTED_STEP_MOST, &step, e) != 0 ||
        json_line_need(line, ',', e) != 0 ||
        json_line_number(line, "a dimension", 0, s->torus.dims - 1, &dim, e) != 0 ||
        json_line_need(line, ',', e) != 0 ||
        json_line_number(line, "a direction", -1, 1, &direction, e) != 0 ||
        json_line_need(line, ',', e) != 0 ||
        json_line_number(line, "hops", 1, UINT16_MAX, &hops, e) != 0 ||
        json_line_need(line, ']', e) != 0)
        return -1;
    if (direction == 0)
        return json_line_error(line, e, "a direction is 1 or -1");
    if (add_leg(s, (struct leg){.step = (uint32_t)step,
                                .hops = (uint16_t)hops,
                                .dim = (uint8_t)dim,
                                .direction = (int8_t)direction}) != 0)
        return no_memory(e);
    return 0;
}

static int read_legs(struct json_line *line, void *into, struct error *e)
{
    struct reader *r = into;

    if (json_line_need(line, '[', e) != 0)
        return -1;
    if (json_line_has(line, ']'))
        return 0;
    do {
        if (read_leg(line, r->s, e) != 0)
            return -1;
    } while (json_line_has(line, ','));
    return json_line_need(line, ']', e);
}

enum { KEY_SOURCE, KEY_DESTINATION, KEY_SEGMENT, KEY_LEGS };
static const struct json_key route_keys[] = {
    [KEY_SOURCE] = {"src", read_source},
    [KEY_DESTINATION] = {"dst", read_destination},
    [KEY_SEGMENT] = {"segment", read_segment},
    [KEY_LEGS] = {"legs", read_legs},
};

static int bad_route(const struct reader *r, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int bad_route(const struct reader *r, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ": block %u -> %u, segment %u: %s",
                     r->line.number, (unsigned)r->source, (unsigned)r->destination,
                     (unsigned)r->segment, text);
}

/* Where a leg that begins at `here` ends; TORUS_NO_NODE with *e if there is no such way. */
static uint32_t cross(const struct reader *r, const struct leg *leg, uint32_t here, struct error *e)
{
    const struct imported *s = r->s;
    unsigned port = torus_port(leg->dim, leg->direction);
    uint32_t size = s->torus.size[leg->dim], end = TORUS_NO_NODE;
    char name[TORUS_PORT_NAME_SIZE];

    torus_port_name(port, name);
    if (leg->hops >= size)
        (void)bad_route(r, e,
                        "in step %" PRIu32 " node %" PRIu32 " sends it %u %s by port %s, where "
                        "there %s %" PRIu32 " %s",
                        leg->step, here, (unsigned)leg->hops, text_plural(leg->hops, "hop", "hops"),
                        name, text_plural(size, "is", "are"), size,
                        text_plural(size, "node", "nodes"));
    else if (s->algorithm.single_hops && leg->hops > 1)
        (void)bad_route(r, e,
                        "in step %" PRIu32 " node %" PRIu32 " sends it %u hops, but ports are "
                        "\"one-port, single hops\"",
                        leg->step, here, (unsigned)leg->hops);
    else if ((end = torus_walk(&s->torus, here, leg->dim, leg->direction, leg->hops)) ==
             TORUS_NO_NODE)
        (void)bad_route(r, e,
                        "in step %" PRIu32 " node %" PRIu32 " sends it %u %s by port %s: there is "
                        "no link",
                        leg->step, here, (unsigned)leg->hops, text_plural(leg->hops, "hop", "hops"),
                        name);
    return end;
}

static int walk(const struct reader *r, const struct leg *leg, uint32_t legs, struct error *e)
{
    uint32_t here = (uint32_t)r->source, hops = 0;

    for (uint32_t i = 0; i < legs; i++) {
        if (i > 0 && leg[i].step <= leg[i - 1].step)
            return bad_route(r, e,
                             "steps have to rise, but node %" PRIu32 " takes it in in step %" PRIu32
                             " and sends it in step %" PRIu32,
                             here, leg[i - 1].step, leg[i].step);
        if ((here = cross(r, &leg[i], here, e)) == TORUS_NO_NODE)
            return -1;
        if ((hops += leg[i].hops) > UINT16_MAX)
            return bad_route(r, e, "more than %u hops", UINT16_MAX);
    }
    if (here == (uint32_t)r->destination && legs > 0)
        return 0;
    if (legs == 0)
        return bad_route(r, e, "no legs: node %" PRIu32 " sends it in no step", here);
    return bad_route(r, e, "it ends at node %" PRIu32 " in step %" PRIu32 ", not at node %u", here,
                     leg[legs - 1].step, (unsigned)r->destination);
}

static int check_source(const struct reader *r, struct error *e)
{
    const struct imported *s = r->s;
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(&s->torus, (uint32_t)r->source, at);
    for (unsigned i = 0; i < s->torus.dims; i++)
        if (at[i] >= s->period[i])
            return bad_route(r, e,
                             "its source is not in the first box of the period, so that its route "
                             "follows from another one");
    return 0;
}

static int read_route(struct reader *r, struct error *e)
{
    static const uint32_t needed = 1u << KEY_SOURCE | 1u << KEY_DESTINATION | 1u << KEY_LEGS;
    struct imported *s = r->s;
    size_t first = s->legs;
    uint32_t seen;

    r->segment = 0;
    if (json_line_object(&r->line, route_keys, sizeof route_keys / sizeof *route_keys, r, &seen,
                         e) != 0)
        return -1;
    for (unsigned i = 0; i < sizeof route_keys / sizeof *route_keys; i++)
        if ((needed & ~seen & 1u << i) != 0)
            return json_line_error(&r->line, e, "the route has no \"%s\"", route_keys[i].name);
    if (r->source == r->destination)
        return bad_route(r, e, "a node's block for itself is not sent");
    if (check_source(r, e) != 0)
        return -1;
    uint32_t legs = (uint32_t)(s->legs - first);
    struct route *route =
        find_route(s, (uint32_t)r->source, (uint32_t)r->destination, (uint32_t)r->segment);
    if (route->line != 0)
        return bad_route(r, e,
                         "node %u sends it twice: in step %" PRIu32 " by line %" PRIu32
                         ", in step %" PRIu32 " by this line",
                         (unsigned)r->source, s->leg[route->first].step, route->line,
                         legs > 0 ? s->leg[first].step : 0);
    if (walk(r, s->leg + first, legs, e) != 0)
        return -1;
    *route = (struct route){.first = (uint32_t)first, .legs = legs, .line = r->line.number};
    if (legs > s->max_legs)
        s->max_legs = legs;
    return 0;
}

/* --- the whole --- */

static bool same_legs(const struct leg *a, const struct leg *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].step != b[i].step || a[i].hops != b[i].hops || a[i].dim != b[i].dim ||
            a[i].direction != b[i].direction)
            return false;
    return true;
}

/* Allgather: what comes before the last leg has to be the whole route to where that leg begins. */
static int check_branch(struct reader *r, const struct route *route, struct error *e)
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
        return bad_route(r, e, "in step %" PRIu32 " it comes back to node %" PRIu32,
                         leg[last - 1].step, here);
    const struct route *other = find_route(s, (uint32_t)r->source, here, (uint32_t)r->segment);
    if (other->legs != last || !same_legs(leg, s->leg + other->first, last))
        return bad_route(r, e,
                         "in step %" PRIu32 " node %" PRIu32 " sends on what it has taken in by "
                         "another route: line %" PRIu32,
                         leg[last].step, here, other->line);
    return 0;
}

/* Whether all routes are there. */
static int check_routes(struct reader *r, struct error *e)
{
    const struct imported *s = r->s;

    for (uint32_t class = 0; class < s->classes; class ++) {
        uint32_t source = representative(s, class);
        for (uint32_t destination = 0; destination < s->torus.nodes; destination++)
            for (uint32_t segment = 0; segment < s->algorithm.segments; segment++)
                if (source != destination && route_at(s, class, destination, segment)->line == 0)
                    return error_set(e, ERROR_REFUSED,
                                     "block %" PRIu32 " -> %" PRIu32 ", segment %" PRIu32
                                     " has no route: node %" PRIu32 " sends it in no step",
                                     source, destination, segment, source);
    }
    for (uint32_t class = 0; class < s->classes; class ++) {
        r->source = representative(s, class);
        for (r->destination = 0; r->destination < s->torus.nodes; r->destination++)
            for (r->segment = 0; r->segment < s->algorithm.segments; r->segment++)
                if (r->source != r->destination && s->algorithm.operation == OPERATION_ALLGATHER &&
                    check_branch(r,
                                 route_at(s, class, (uint32_t)r->destination, (uint32_t)r->segment),
                                 e) != 0)
                    return -1;
    }
    return 0;
}

static int read_lines(struct reader *r, const char *text, size_t length, struct error *e)
{
    const char *end = text + length;

    for (const char *at = text; at < end; at = r->line.end + 1) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        r->line.number++;
        r->line.begin = r->line.at = at;
        r->line.end = newline != NULL ? newline : end;
        if (json_line_is_empty(&r->line))
            continue;
        if ((r->has_header ? read_route(r, e) : read_header(r, e)) != 0)
            return -1;
    }
    if (!r->has_header)
        return error_set(e, ERROR_REFUSED, "the schedule is empty: it has no header");
    return check_routes(r, e);
}

/* A byte order mark at its beginning has no meaning, but is one of the bytes that the digest is of. */
static int read_text(struct reader *r, const char *text, size_t length, struct error *e)
{
    static const struct text_kind schedule = {.name = "a schedule", .most = IMPORTED_BYTES_MOST};

    if (length > IMPORTED_BYTES_MOST)
        return error_set(e, ERROR_REFUSED,
                         "a schedule of %zu bytes is longer than the %u MiB that are possible; a "
                         "period may make it shorter",
                         length, IMPORTED_BYTES_MOST >> 20);
    return text_check(&text, &length, &schedule, e) != 0 ? -1 : read_lines(r, text, length, e);
}

/* Counts it, and holds it to its port model. */
static int price(const struct imported *s, struct schedule_report *report, struct error *e)
{
    if (schedule_verify(&s->torus, &s->algorithm, report, e) != 0)
        return -1;
    if (s->algorithm.port_model == PORT_MODEL_ALL || report->one_port_kept)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "it is not one-port: in step %" PRIu32 " node %" PRIu32
                     " starts, or ends, more than one message",
                     report->crowded_step, report->crowded_node);
}

int imported_read(struct imported **out, const char *text, size_t length, const struct torus *only,
                  struct schedule_report *report, struct error *e)
{
    struct schedule_report unused;
    struct reader r = {.s = calloc(1, sizeof *r.s), .only = only};
    struct imported *s = r.s;

    if (s == NULL)
        return no_memory(e);
    s->users = 1;
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
    };
    (void)snprintf(s->name, sizeof s->name, "imported");
    int rc = read_text(&r, text, length, e);
    if (rc == 0) {
        sha256_text(text, length, s->digest);
        (void)snprintf(s->shown, sizeof s->shown, "%s@%.*s", s->name, (int)DIGEST_SHOWN, s->digest);
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
    struct imported *s = (struct imported *)(uintptr_t)kept; /* only counted */

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
