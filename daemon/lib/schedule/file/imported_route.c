/* Reads a line of a schedule with a route. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/schedule/file/imported_parts.h"
#include "proto/text.h"

static int read_source(struct json_line *line, void *into, struct error *e)
{
    struct imported_reader *r = into;

    return json_line_number(line, "src", 0, r->s->torus.nodes - 1, &r->source, e);
}

static int read_destination(struct json_line *line, void *into, struct error *e)
{
    struct imported_reader *r = into;

    return json_line_number(line, "dst", 0, r->s->torus.nodes - 1, &r->destination, e);
}

static int read_segment(struct json_line *line, void *into, struct error *e)
{
    struct imported_reader *r = into;

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
        json_line_number(line, "a direction", -1, GRAPH_DIRECTIONS_MOST, &direction, e) != 0 ||
        json_line_need(line, ',', e) != 0 ||
        json_line_number(line, "hops", 1, UINT16_MAX, &hops, e) != 0 ||
        json_line_need(line, ']', e) != 0)
        return -1;
    if (!torus_has_direction(&s->torus, (unsigned)dim, (int)direction))
        return s->torus.graph[dim] == NULL
                   ? json_line_error(line, e, "a direction must be 1 or -1")
                   : json_line_error(line, e, "a direction of dimension %d must be 1 to %u",
                                     (int)dim, s->torus.graph[dim]->directions);
    if (hops > 1 && s->torus.graph[dim] != NULL)
        return json_line_error(line, e, "a leg has one hop in dimension %d, a graph", (int)dim);
    if (add_leg(s, (struct leg){.step = (uint32_t)step,
                                .hops = (uint16_t)hops,
                                .dim = (uint8_t)dim,
                                .direction = (int8_t)direction}) != 0)
        return imported_no_memory(e);
    return 0;
}

static int read_legs(struct json_line *line, void *into, struct error *e)
{
    struct imported_reader *r = into;

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

int imported_bad_route(const struct imported_reader *r, struct error *e, const char *format, ...)
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

/* The node at which a leg from `here` ends; TORUS_NO_NODE with *e if the torus has no such leg. */
static uint32_t cross(const struct imported_reader *r, const struct leg *leg, uint32_t here,
                      struct error *e)
{
    const struct imported *s = r->s;
    unsigned port = torus_port(&s->torus, leg->dim, leg->direction);
    uint32_t size = s->torus.size[leg->dim], end = TORUS_NO_NODE;
    char name[TORUS_PORT_NAME_SIZE];

    torus_port_name(&s->torus, here, port, name);
    if (leg->hops >= size)
        (void)imported_bad_route(
            r, e,
            "in step %" PRIu32 " node %" PRIu32 " sends it %u %s by port %s, where "
            "there %s only %" PRIu32 " %s",
            leg->step, here, (unsigned)leg->hops, text_plural(leg->hops, "hop", "hops"), name,
            text_plural(size, "is", "are"), size, text_plural(size, "node", "nodes"));
    else if (s->algorithm.single_hops && leg->hops > 1)
        (void)imported_bad_route(r, e,
                                 "in step %" PRIu32 " node %" PRIu32
                                 " sends it %u hops, but ports are "
                                 "\"one-port, single hops\"",
                                 leg->step, here, (unsigned)leg->hops);
    else if ((end = torus_walk(&s->torus, here, leg->dim, leg->direction, leg->hops)) ==
             TORUS_NO_NODE)
        (void)imported_bad_route(
            r, e,
            "in step %" PRIu32 " node %" PRIu32 " sends it %u %s by port %s: there is "
            "no link",
            leg->step, here, (unsigned)leg->hops, text_plural(leg->hops, "hop", "hops"), name);
    return end;
}

static int walk(const struct imported_reader *r, const struct leg *leg, uint32_t legs,
                struct error *e)
{
    uint32_t here = (uint32_t)r->source, hops = 0;

    for (uint32_t i = 0; i < legs; i++) {
        if (i > 0 && leg[i].step <= leg[i - 1].step)
            return imported_bad_route(r, e,
                                      "steps must rise, but node %" PRIu32
                                      " receives it in step %" PRIu32
                                      " and sends it in step %" PRIu32,
                                      here, leg[i - 1].step, leg[i].step);
        if ((here = cross(r, &leg[i], here, e)) == TORUS_NO_NODE)
            return -1;
        if ((hops += leg[i].hops) > UINT16_MAX)
            return imported_bad_route(r, e, "it has more than %u hops", UINT16_MAX);
    }
    if (here == (uint32_t)r->destination && legs > 0)
        return 0;
    if (legs == 0)
        return imported_bad_route(r, e, "its route has no legs");
    return imported_bad_route(r, e,
                              "it ends at node %" PRIu32 " in step %" PRIu32 ", not at node %u",
                              here, leg[legs - 1].step, (unsigned)r->destination);
}

static int check_source(const struct imported_reader *r, struct error *e)
{
    const struct imported *s = r->s;
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(&s->torus, (uint32_t)r->source, at);
    for (unsigned i = 0; i < s->torus.dims; i++)
        if (at[i] >= s->period[i])
            return imported_bad_route(
                r, e,
                "its source is not in the first box of the period: leave the line out, "
                "its route follows from another one");
    return 0;
}

int imported_read_route(struct imported_reader *r, struct error *e)
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
        return imported_bad_route(
            r, e, "it is a node's block for itself, which is not sent: leave the line out");
    if (check_source(r, e) != 0)
        return -1;
    uint32_t legs = (uint32_t)(s->legs - first);
    struct imported_route *route =
        imported_find_route(s, (uint32_t)r->source, (uint32_t)r->destination, (uint32_t)r->segment);
    if (route->line != 0)
        return imported_bad_route(
            r, e, "it already has a route, in line %" PRIu32 ": leave one of them out",
            route->line);
    if (walk(r, s->leg + first, legs, e) != 0)
        return -1;
    *route =
        (struct imported_route){.first = (uint32_t)first, .legs = legs, .line = r->line.number};
    if (legs > s->max_legs)
        s->max_legs = legs;
    return 0;
}
