/* The lower bound of an exchange with blocks of different sizes. */
#include <stdlib.h>

#include "client/cli/measuring/perf.h"

/* Adds to along[a * n + b] the bytes from nodes with coordinate a to nodes with coordinate b. */
static void add_up(const struct torus *t, uint64_t bytes,
                   size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j), unsigned dim,
                   double *along)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], n = t->size[dim];

    for (uint32_t i = 0; i < t->nodes; i++) {
        torus_coordinates(t, i, from);
        for (uint32_t j = 0; j < t->nodes; j++) {
            torus_coordinates(t, j, to);
            along[(size_t)from[dim] * n + to[dim]] += (double)size(bytes, i, j);
        }
    }
}

/* Returns the bytes from the `length` coordinates that begin at `first` to all others. */
static double crossing(const double *along, uint32_t n, uint32_t first, uint32_t length)
{
    double sum = 0;

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if ((a + n - first) % n < length && (b + n - first) % n >= length)
                sum += along[(size_t)a * n + b];
    return sum;
}

static double by_cuts(const struct torus *t, unsigned dim, const double *along)
{
    uint32_t n = t->size[dim], lines = t->nodes / n;
    double most = 0;

    for (uint32_t k = 0; k < n; k++) {
        /* In rings, cut every half. In lines, cut between each two neighbours. */
        uint32_t first = t->wrap[dim] ? k : 0, length = t->wrap[dim] ? n / 2 : k;
        double channels = t->wrap[dim] ? 2.0 * lines : lines;
        double out = crossing(along, n, first, length) / channels;
        double in = crossing(along, n, (first + length) % n, n - length) / channels;
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* A graph: cuts the coordinates below each k from the others. */
static double by_graph_cuts(const struct torus *t, unsigned dim, const double *along)
{
    const struct graph *g = t->graph[dim];
    double lines = t->nodes / t->size[dim], out = 0, in = 0, links = 0, most = 0;

    for (uint32_t k = 0; k + 1 < g->nodes; k++) {
        for (uint32_t other = 0; other < g->nodes; other++) {
            double away = along[(size_t)k * g->nodes + other];
            double back = along[(size_t)other * g->nodes + k];
            out += other < k ? -back : other > k ? away : 0;
            in += other < k ? -away : other > k ? back : 0;
        }
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t other = graph_neighbour(g, k, direction);
            links += other == GRAPH_NO_NODE ? 0 : other < k ? -1 : 1;
        }
        double bytes = out > in ? out : in;
        most = bytes / (links * lines) > most ? bytes / (links * lines) : most;
    }
    return most;
}

static unsigned links_of(const struct torus *t, uint32_t rank)
{
    unsigned links = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    return links;
}

static double by_nodes(const struct torus *t, uint64_t bytes,
                       size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j))
{
    double most = 0;

    for (uint32_t i = 0; i < t->nodes; i++) {
        double in = 0, out = 0, links = links_of(t, i);
        for (uint32_t j = 0; j < t->nodes; j++) {
            out += i != j ? (double)size(bytes, i, j) : 0;
            in += i != j ? (double)size(bytes, j, i) : 0;
        }
        if (links > 0 && (in > out ? in : out) / links > most)
            most = (in > out ? in : out) / links;
    }
    return most;
}

double perf_bound_uneven(const struct torus *t, uint64_t bytes,
                         size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j))
{
    double most = by_nodes(t, bytes, size);

    for (unsigned dim = 0; dim < t->dims; dim++) {
        double *along = calloc((size_t)t->size[dim] * t->size[dim], sizeof *along), cut;
        if (along == NULL)
            return 0;
        add_up(t, bytes, size, dim, along);
        cut = t->graph[dim] != NULL ? by_graph_cuts(t, dim, along) : by_cuts(t, dim, along);
        most = cut > most ? cut : most;
        free(along);
    }
    return most;
}
