#include "client/cli/drawing/factor_shape.h"

#include <stdlib.h>

#include "client/cli/drawing/tree_shape.h"

static const double pi = 3.14159265358979323846;
/* Rounds of moves towards the wanted distances, and away from nodes and links that are too near. */
enum {
    STRESS_ROUNDS = 300,
    SPREAD_ROUNDS = 200,
    MANY_NODES = 128,
    STRESS_OF_MANY = 60,
    SPREAD_OF_MANY = 10
};
static const double node_room = 0.8; /* the least distance of two nodes, in lengths of links */
static const double link_room = 0.4; /* and of a node and a link of others */

static void circle(struct point *at, uint32_t count, double radius)
{
    for (uint32_t i = 0; i < count; i++) {
        double angle = 2 * pi * i / count - pi / 2;
        at[i] = (struct point){radius * cos(angle), radius * sin(angle)};
    }
}

/* The radius of the circle on which so many nodes are 1 apart. */
static double radius_of(uint32_t count)
{
    return count < 2 ? 0 : 0.5 / sin(pi / count);
}

static void row(struct point *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct point){i, 0};
}

/* The middle, and the other nodes on a circle. */
static void star(struct point *at, uint32_t count)
{
    double radius = radius_of(count - 1);

    at[0] = (struct point){0, 0};
    circle(at + 1, count - 1, radius < 1.2 ? 1.2 : radius);
}

/* Moves every node to the mean of the places that the other nodes want for it: as far from each as there are hops
 * between them. Near nodes count more (stress majorization, by Gansner, Koren, North: Graph Drawing by Stress
 * Majorization, 2005). */
static void settle(const struct graph *g, struct point *at, struct point *next)
{
    unsigned rounds = g->nodes > MANY_NODES ? STRESS_OF_MANY : STRESS_ROUNDS;

    for (unsigned round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < g->nodes; i++) {
            struct point sum = {0, 0};
            double weights = 0;
            for (uint32_t j = 0; j < g->nodes; j++) {
                double hops = graph_distance(g, i, j);
                if (j == i)
                    continue;
                struct point wanted = point_plus(at[j], point_towards(at[j], at[i]), hops);
                sum = point_plus(sum, wanted, 1 / (hops * hops));
                weights += 1 / (hops * hops);
            }
            next[i] = (struct point){sum.x / weights, sum.y / weights};
        }
        for (uint32_t i = 0; i < g->nodes; i++)
            at[i] = next[i];
    }
}

static void spread_nodes(const struct graph *g, struct point *at)
{
    for (uint32_t i = 0; i < g->nodes; i++)
        for (uint32_t j = i + 1; j < g->nodes; j++) {
            double lacks = node_room - point_distance(at[i], at[j]);
            if (lacks <= 0)
                continue;
            struct point away = point_towards(at[i], at[j]);
            at[i] = point_plus(at[i], away, -lacks / 2);
            at[j] = point_plus(at[j], away, lacks / 2);
        }
}

/* Moves a node away from a link of two others that passes it too closely. */
static void spread_link(struct point *at, uint32_t node, uint32_t a, uint32_t b)
{
    double lacks = link_room - point_off_line(at[node], at[a], at[b]);

    if (lacks <= 0)
        return;
    struct point left = point_left(point_towards(at[a], at[b]));
    double side = (at[node].x - at[a].x) * left.x + (at[node].y - at[a].y) * left.y;
    double move = (side < 0 ? -lacks : lacks) / 3;
    at[node] = point_plus(at[node], left, move);
    at[a] = point_plus(at[a], left, -move);
    at[b] = point_plus(at[b], left, -move);
}

static void spread_links(const struct graph *g, struct point *at)
{
    for (uint32_t a = 0; a < g->nodes; a++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t b = graph_neighbour(g, a, direction);
            if (b == GRAPH_NO_NODE || b < a)
                continue;
            for (uint32_t node = 0; node < g->nodes; node++)
                if (node != a && node != b)
                    spread_link(at, node, a, b);
        }
}

static int any_graph(const struct graph *g, struct point *at)
{
    struct point *next = calloc(g->nodes, sizeof *next);
    unsigned rounds = g->nodes > MANY_NODES ? SPREAD_OF_MANY : SPREAD_ROUNDS;

    if (next == NULL)
        return -1;
    circle(at, g->nodes, radius_of(g->nodes));
    settle(g, at, next);
    for (unsigned round = 0; round < rounds; round++) {
        spread_nodes(g, at);
        spread_links(g, at);
    }
    free(next);
    return 0;
}

static int whole_graph(const struct graph *g, struct point *at)
{
    if (g->kind == GRAPH_KIND_STAR)
        star(at, g->nodes);
    else if (g->links == g->nodes - 1)
        return tree_shape(g, at);
    else if (g->links == g->nodes * (g->nodes - 1) / 2)
        circle(at, g->nodes, radius_of(g->nodes));
    else
        return any_graph(g, at);
    return 0;
}

int factor_shape(const struct torus *t, unsigned dim, uint32_t first, uint32_t count,
                 struct point *at)
{
    const struct graph *g = t->graph[dim];
    struct point *all;

    if (g == NULL) {
        if (t->wrap[dim] && count == t->size[dim])
            circle(at, count, radius_of(count));
        else
            row(at, count);
        return 0;
    }
    all = calloc(g->nodes, sizeof *all);
    int rc = all == NULL ? -1 : whole_graph(g, all);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        at[i] = all[first + i];
    free(all);
    return rc;
}
