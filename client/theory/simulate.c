#include "client/theory/simulate.h"

#include <stdlib.h>

#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

enum { NONE = UINT32_MAX };

/* A segment on its way; simulation.hop has its ports. */
struct piece {
    uint32_t next;  /* the piece behind it in its line, or NONE */
    uint32_t class; /* class of its source */
    uint32_t hop;   /* index of its next port */
    uint32_t to_go; /* hops that are left */
};

/* Pieces that wait for the same port with equally many hops left, first come, first served. */
struct line {
    uint32_t first, last; /* NONE: empty */
};

struct simulation {
    const struct torus *torus;
    const struct algorithm *algorithm;
    uint32_t classes;
    uint32_t *representative; /* class -> node */
    uint32_t *class_of;       /* node -> class */
    struct piece *piece;
    size_t pieces;
    uint8_t *hop; /* ports of all routes, one after another */
    size_t hops, room;
    struct line *line;          /* (class * ports + port) * (longest + 1) + hops left */
    uint32_t *most;             /* class * ports + port -> most hops left of any piece there */
    uint32_t *moving;           /* class * ports + port by which it came in -> piece, or NONE */
    const struct damage *rates; /* NULL: each channel carries a segment in a tick */
    uint32_t *sending;          /* with rates, class * ports + port -> piece, or NONE */
    uint32_t *sent; /* how much of it the channel has carried, DAMAGE_FULL_RATE in all */
    uint32_t longest;
    uint64_t moved; /* hops made so far */
};

static void number_classes(struct simulation *s)
{
    const struct torus *t = s->torus;
    uint32_t period[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    if (s->rates != NULL)
        torus_no_period(t, period);
    else
        algorithm_period(s->algorithm, t, period);
    for (uint32_t node = 0; node < t->nodes; node++) {
        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            at[i] %= period[i];
        uint32_t first = torus_rank(t, at);
        if (first == node)
            s->representative[s->classes++] = node;
        s->class_of[node] = first == node ? s->classes - 1 : s->class_of[first];
    }
}

static int add_hops(struct simulation *s, const struct leg *leg)
{
    if (s->hops + leg->hops > s->room) {
        size_t room = 2 * s->room + leg->hops + 1024;
        uint8_t *hop = reallocarray(s->hop, room, sizeof *hop);
        if (hop == NULL)
            return -1;
        s->hop = hop;
        s->room = room;
    }
    for (uint16_t i = 0; i < leg->hops; i++)
        s->hop[s->hops++] = (uint8_t)torus_port(s->torus, leg->dim, leg->direction);
    return 0;
}

static void enqueue(struct simulation *s, uint32_t class, uint32_t index)
{
    struct piece *p = &s->piece[index];
    size_t channel = (size_t) class * torus_ports(s->torus) + s->hop[p->hop];
    struct line *line = &s->line[channel * (s->longest + 1) + p->to_go];

    p->next = NONE;
    if (line->first == NONE)
        line->first = index;
    else
        s->piece[line->last].next = index;
    line->last = index;
    if (s->most[channel] < p->to_go)
        s->most[channel] = p->to_go;
}

/* Takes the next piece to be sent on a channel out of its line; NONE if none waits. */
static uint32_t dequeue(struct simulation *s, size_t channel)
{
    struct line *lines = &s->line[channel * (s->longest + 1)];
    uint32_t *most = &s->most[channel];

    while (*most > 0 && lines[*most].first == NONE)
        --*most;
    uint32_t index = lines[*most].first; /* line 0 is always empty */
    if (index != NONE)
        lines[*most].first = s->piece[index].next;
    return index;
}

/* Carries the piece that a slow channel is sending on by what the channel carries in a tick. Returns the piece if it is
 * through; otherwise NONE. */
static uint32_t send_at_rate(struct simulation *s, size_t channel)
{
    const unsigned ports = torus_ports(s->torus);
    const uint32_t node = s->representative[channel / ports];
    uint32_t index = s->sending[channel];

    if (index == NONE)
        index = s->sending[channel] = dequeue(s, channel);
    if (index == NONE) {
        s->sent[channel] = 0;
        return NONE;
    }
    s->sent[channel] += damage_rate(s->rates, node, (unsigned)(channel % ports));
    if (s->sent[channel] < DAMAGE_FULL_RATE)
        return NONE;
    s->sent[channel] -= DAMAGE_FULL_RATE; /* of the next piece */
    s->sending[channel] = NONE;
    return index;
}

/* Adds the pieces of a class's node, in the order of (offset, segment). `legs` has room for a
 * route. Returns 0, or -1 without memory. */
static int add_pieces(struct simulation *s, uint32_t class, struct leg *legs)
{
    const struct torus *t = s->torus;
    uint32_t source = s->representative[class];
    uint32_t from[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    torus_coordinates(t, source, from);
    for (uint32_t offset = 1; offset < t->nodes; offset++) {
        torus_coordinates(t, offset, at);
        for (unsigned i = 0; i < t->dims; i++)
            at[i] = (at[i] + from[i]) % t->size[i];
        for (uint32_t segment = 0; segment < s->algorithm->segments; segment++) {
            uint32_t count =
                algorithm_route(s->algorithm, t, source, torus_rank(t, at), segment, legs);
            if (count == 0)
                continue; /* there is no such block */
            struct piece *p = &s->piece[s->pieces++];
            p->class = class;
            p->hop = (uint32_t)s->hops;
            for (uint32_t i = 0; i < count; i++)
                if (add_hops(s, &legs[i]) != 0)
                    return -1;
            p->to_go = (uint32_t)s->hops - p->hop;
            if (p->to_go > s->longest)
                s->longest = p->to_go;
        }
    }
    return 0;
}

static int make_lines(struct simulation *s)
{
    size_t channels = (size_t)s->classes * torus_ports(s->torus);
    size_t lines = channels * (s->longest + 1);

    s->line = calloc(lines, sizeof *s->line);
    s->most = calloc(channels, sizeof *s->most);
    s->moving = calloc(channels, sizeof *s->moving);
    if (s->rates != NULL) {
        s->sending = calloc(channels, sizeof *s->sending);
        s->sent = calloc(channels, sizeof *s->sent);
    }
    if (s->line == NULL || s->most == NULL || s->moving == NULL ||
        (s->rates != NULL && (s->sending == NULL || s->sent == NULL)))
        return -1;
    for (size_t i = 0; s->rates != NULL && i < channels; i++)
        s->sending[i] = NONE;
    for (size_t i = 0; i < lines; i++)
        s->line[i] = (struct line){NONE, NONE};
    for (size_t i = 0; i < s->pieces; i++)
        enqueue(s, s->piece[i].class, (uint32_t)i);
    return 0;
}

static uint64_t run(struct simulation *s)
{
    unsigned ports = torus_ports(s->torus);
    size_t channels = (size_t)s->classes * ports, arrived = 0;
    uint64_t ticks = 0;

    for (; arrived < s->pieces; ticks++) {
        for (size_t i = 0; i < channels; i++)
            s->moving[i] = NONE;
        for (size_t i = 0; i < channels; i++) {
            uint32_t index = s->rates != NULL ? send_at_rate(s, i) : dequeue(s, i);
            if (index == NONE)
                continue;
            unsigned out = (unsigned)(i % ports);
            uint32_t to = torus_neighbour(s->torus, s->representative[i / ports], out);
            s->moving[(size_t)s->class_of[to] * ports + torus_port_opposite(s->torus, out)] = index;
        }
        for (size_t i = 0; i < channels; i++) {
            uint32_t index = s->moving[i];
            if (index == NONE)
                continue;
            watch_count(&s->moved, s->hops);
            s->piece[index].hop++;
            if (--s->piece[index].to_go > 0)
                enqueue(s, (uint32_t)(i / ports), index);
            else
                arrived++;
        }
    }
    return ticks;
}

static int make_pieces(struct simulation *s)
{
    const struct torus *t = s->torus;
    struct leg *legs =
        calloc((size_t)algorithm_max_legs(s->algorithm, t) + 1, sizeof *legs); /* never 0 bytes */
    int rc = -1;

    s->representative = calloc(t->nodes, sizeof *s->representative);
    s->class_of = calloc(t->nodes, sizeof *s->class_of);
    if (legs != NULL && s->representative != NULL && s->class_of != NULL) {
        number_classes(s);
        s->piece = calloc((size_t)s->classes * t->nodes * s->algorithm->segments, sizeof *s->piece);
        rc = s->piece == NULL ? -1 : 0;
    }
    for (uint32_t class = 0; rc == 0 && class < s->classes; class ++)
        rc = add_pieces(s, class, legs);
    free(legs);
    return rc;
}

int simulate_stream(const struct torus *t, const struct algorithm *a, uint64_t *ticks,
                    struct error *e)
{
    return simulate_stream_rated(t, a, algorithm_damage(a), ticks, e);
}

int simulate_stream_rated(const struct torus *t, const struct algorithm *a,
                          const struct damage *damage, uint64_t *ticks, struct error *e)
{
    const struct damage *rates = damage != NULL && damage->rate != NULL ? damage : NULL;
    struct simulation s = {.torus = t, .algorithm = a, .rates = rates};
    int rc;

    if (a->operation != OPERATION_EXCHANGE)
        return error_set(e, ERROR_REFUSED, "%s is not an algorithm for exchanges", a->name);
    if (algorithm_accepts(a, t, e) != 0 ||
        work_check(t, a, work_of(t, a), SIMULATE_WORK_MOST, e) != 0)
        return -1;
    rc = make_pieces(&s);
    if (rc == 0)
        rc = s.pieces > 0 ? make_lines(&s) : 0;
    if (rc == 0)
        *ticks = s.pieces > 0 ? run(&s) : 0;
    else
        (void)error_set(e, ERROR_MEMORY, "out of memory to simulate a stream of %u %s", t->nodes,
                        text_plural(t->nodes, "node", "nodes"));
    free(s.representative);
    free(s.class_of);
    free(s.piece);
    free(s.hop);
    free(s.line);
    free(s.most);
    free(s.moving);
    free(s.sending);
    free(s.sent);
    return rc;
}

uint64_t simulate_bound(const struct torus *t, const struct algorithm *a)
{
    double blocks = a->detour != NULL ? detour_bound(a->detour) : torus_bound_all_port(t);
    uint64_t bound = (uint64_t)(blocks * a->segments);
    uint32_t diameter = torus_diameter(t);
    return bound > diameter ? bound : diameter;
}
