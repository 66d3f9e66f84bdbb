#include "daemon/lib/schedule/graph/colouring.h"

#include <stdbool.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* By node and colour: the edge of that colour, NONE if there is none. */
struct colouring {
    const uint32_t *edge;
    uint32_t *coloured;
    unsigned colours;
    uint32_t *fan;   /* neighbours of the node whose edge is being coloured */
    uint32_t *spoke; /* the edges to them */
    uint32_t length;
};

static uint32_t *edge_at(const struct colouring *c, uint32_t node, unsigned colour)
{
    return &c->coloured[(size_t)node * c->colours + colour];
}

static unsigned free_colour(const struct colouring *c, uint32_t node)
{
    unsigned colour = 0;

    while (*edge_at(c, node, colour) != NONE) /* one more colour than a node can have edges */
        colour++;
    return colour;
}

static uint32_t other_end(const struct colouring *c, uint32_t edge, uint32_t node)
{
    return c->edge[2 * edge] == node ? c->edge[2 * edge + 1] : c->edge[2 * edge];
}

static void set_colour(struct colouring *c, uint8_t *colour, uint32_t edge, unsigned to)
{
    colour[edge] = (uint8_t)to;
    *edge_at(c, c->edge[2 * edge], to) = edge;
    *edge_at(c, c->edge[2 * edge + 1], to) = edge;
}

static void clear_colour(struct colouring *c, uint32_t edge, unsigned from)
{
    *edge_at(c, c->edge[2 * edge], from) = NONE;
    *edge_at(c, c->edge[2 * edge + 1], from) = NONE;
}

/* The longest fan of `node` that begins with an edge without a colour: the colour of each spoke is
 * free at the end of the spoke before it. */
static void make_fan(struct colouring *c, uint32_t node, uint32_t edge)
{
    bool longer = true;

    c->length = 1;
    c->spoke[0] = edge;
    c->fan[0] = other_end(c, edge, node);
    while (longer) {
        longer = false;
        for (unsigned colour = 0; colour < c->colours && !longer; colour++) {
            uint32_t next = *edge_at(c, node, colour);
            bool used = next == NONE || *edge_at(c, c->fan[c->length - 1], colour) != NONE;
            for (uint32_t i = 0; i < c->length && !used; i++)
                used = c->spoke[i] == next;
            if (used)
                continue;
            c->spoke[c->length] = next;
            c->fan[c->length++] = other_end(c, next, node);
            longer = true;
        }
    }
}

/* Swaps two colours along the path of edges of these colours that begins at `node` with `first`. */
static void invert_path(struct colouring *c, uint8_t *colour, uint32_t node, unsigned first,
                        unsigned second)
{
    uint32_t edge = *edge_at(c, node, first), carried = NONE;
    unsigned from = first, to = second;

    /* An edge takes the other colour at both ends once the next edge of the path has given it up. */
    while (edge != NONE) {
        uint32_t there = other_end(c, edge, node), next = *edge_at(c, there, to);
        clear_colour(c, edge, from);
        if (carried != NONE)
            set_colour(c, colour, carried, from);
        carried = edge;
        node = there;
        edge = next;
        from = to;
        to = to == first ? second : first;
    }
    if (carried != NONE)
        set_colour(c, colour, carried, from);
}

/* Moves the colours of the spokes before `last` one spoke towards the beginning, and gives `last` a
 * colour that is free at both of its ends. */
static void rotate_fan(struct colouring *c, uint8_t *colour, uint32_t last, unsigned fresh)
{
    for (uint32_t i = 0; i < last; i++) {
        unsigned moved = colour[c->spoke[i + 1]];
        clear_colour(c, c->spoke[i + 1], moved);
        set_colour(c, colour, c->spoke[i], moved);
    }
    set_colour(c, colour, c->spoke[last], fresh);
}

static void colour_edge(struct colouring *c, uint8_t *colour, uint32_t edge)
{
    uint32_t node = c->edge[2 * edge], last = 0;

    /* Where a colour is free at both ends, there is no need for the last colour: trees go without. */
    for (unsigned i = 0; i + 1 < c->colours; i++)
        if (*edge_at(c, node, i) == NONE && *edge_at(c, c->edge[2 * edge + 1], i) == NONE) {
            set_colour(c, colour, edge, i);
            return;
        }
    make_fan(c, node, edge);
    unsigned here = free_colour(c, node), there = free_colour(c, c->fan[c->length - 1]);
    invert_path(c, colour, node, there, here);
    /* The path may have ended at a spoke: the longest part of the fan that is still one, and whose
     * end has the colour free, is rotated. */
    for (uint32_t i = 0; i < c->length; i++) {
        if (i > 0 && *edge_at(c, c->fan[i - 1], colour[c->spoke[i]]) != NONE)
            break;
        if (*edge_at(c, c->fan[i], there) == NONE)
            last = i;
    }
    rotate_fan(c, colour, last, there);
}

int colouring_find(uint32_t nodes, const uint32_t *edge, size_t count, unsigned most,
                   uint8_t *colour, unsigned *colours)
{
    struct colouring c = {.edge = edge, .colours = most + 1};
    unsigned highest = 0;

    c.coloured = malloc((size_t)nodes * c.colours * sizeof *c.coloured);
    c.fan = calloc(c.colours, sizeof *c.fan);
    c.spoke = calloc(c.colours, sizeof *c.spoke);
    if (c.coloured != NULL && c.fan != NULL && c.spoke != NULL) {
        for (size_t i = 0; i < (size_t)nodes * c.colours; i++)
            c.coloured[i] = NONE;
        for (uint32_t i = 0; i < count; i++)
            colour_edge(&c, colour, i);
        for (size_t i = 0; i < count; i++)
            highest = colour[i] > highest ? colour[i] : highest;
        *colours = highest + 1;
    }
    int result = c.coloured != NULL && c.fan != NULL && c.spoke != NULL ? 0 : -1;
    free(c.coloured);
    free(c.fan);
    free(c.spoke);
    return result;
}
