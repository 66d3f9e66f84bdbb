#include "client/cli/drawing/drawing_part.h"

#include <inttypes.h>
#include <stdio.h>

/* How many dimensions of more than one node come after this one: 0 and 1 make a plane. */
static unsigned axis_of(const struct torus *t, unsigned dim)
{
    unsigned axis = 0;

    for (unsigned i = dim + 1; i < t->dims; i++)
        axis += t->size[i] > 1;
    return axis;
}

/* The dimension to be cut next: the outermost one of planes, else the longer side of a plane. */
static unsigned dimension_to_cut(const struct drawing_part *p, const struct torus *t)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        if (p->count[i] > 1 && axis_of(t, i) > 1)
            return i;
        if (p->count[i] > p->count[longest])
            longest = i;
    }
    return longest;
}

uint32_t drawing_part_nodes(const struct drawing_part *p, const struct torus *t)
{
    uint32_t nodes = 1;

    for (unsigned i = 0; i < t->dims; i++)
        nodes *= p->count[i];
    return nodes;
}

struct drawing_part drawing_part_choose(const struct torus *t, uint32_t most, uint32_t node)
{
    struct drawing_part p = {0};
    uint32_t at[TORUS_MAX_DIMS] = {0};

    for (unsigned i = 0; i < t->dims; i++)
        p.count[i] = t->size[i];
    while (drawing_part_nodes(&p, t) > most)
        p.count[dimension_to_cut(&p, t)]--;
    if (node != TORUS_NO_NODE)
        torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t before = p.count[i] / 2, last = t->size[i] - p.count[i];
        p.first[i] = at[i] > before ? at[i] - before : 0;
        if (p.first[i] > last)
            p.first[i] = last;
    }
    return p;
}

bool drawing_part_is_whole(const struct drawing_part *p, const struct torus *t)
{
    return drawing_part_nodes(p, t) == t->nodes;
}

bool drawing_part_has(const struct drawing_part *p, const struct torus *t, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (at[i] < p->first[i] || at[i] - p->first[i] >= p->count[i])
            return false;
    return true;
}

bool drawing_part_has_line(const struct drawing_part *p, const struct torus *t, uint32_t start,
                           const struct leg *leg, uint32_t *from)
{
    uint32_t at[TORUS_MAX_DIMS], size = t->size[leg->dim], first = p->first[leg->dim];

    torus_coordinates(t, start, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (i != leg->dim && (at[i] < p->first[i] || at[i] - p->first[i] >= p->count[i]))
            return false;
    if (leg->direction > 0)
        *from = (at[leg->dim] + size - first) % size;
    else
        *from = (first + p->count[leg->dim] - 1 + size - at[leg->dim]) % size;
    return true;
}

bool drawing_part_is_crossed(const struct drawing_part *p, const struct torus *t, uint32_t start,
                             const struct leg *leg)
{
    uint32_t from;

    if (t->graph[leg->dim] != NULL)
        return drawing_part_has(p, t, start) ||
               drawing_part_has(p, t, torus_walk(t, start, leg->dim, leg->direction, leg->hops));
    return drawing_part_has_line(p, t, start, leg, &from) &&
           (from < p->count[leg->dim] || from + leg->hops >= t->size[leg->dim]);
}

bool drawing_part_shows(const struct drawing_part *p, const struct torus *t, uint32_t start,
                        const struct leg *leg)
{
    if (axis_of(t, leg->dim) < 2)
        return drawing_part_is_crossed(p, t, start, leg);
    return drawing_part_has(p, t, start) ||
           drawing_part_has(p, t, torus_walk(t, start, leg->dim, leg->direction, leg->hops));
}

char *drawing_part_format(const struct drawing_part *p, const struct torus *t, char *text,
                          size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < t->dims && used < size; i++) {
        uint32_t last = p->first[i] + p->count[i] - 1;
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu32, i == 0 ? "(" : ", ",
                                 p->first[i]);
        if (p->count[i] > 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%" PRIu32, last);
    }
    if (used < size)
        (void)snprintf(text + used, size - used, ")");
    return text;
}
