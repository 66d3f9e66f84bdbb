/* Worlds on networks with factors that are neither rings nor lines. */
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/swarm/swarm.h"

#define RANDOM_NODES 24u
/* Graphs are kept until the process ends, so that many seeds share a random graph. */
#define RANDOM_GRAPHS 32u

/* One seed in NETWORK_SEEDS has any of the networks; one in NAMED_SEEDS has one of the larger ones at the end of the
 * list. All draws of a torus are made for such a seed, too, and the network has streams of its own: the other seeds have
 * the worlds that they had before there were networks, and --dims with a torus plays the world that this seed had. */
#define NETWORK_SEEDS 5u
#define NETWORK_SEED 4u
#define NAMED_SEEDS 10u
#define NAMED_SEED 2u

enum { STREAM_NETWORK = 48, STREAM_GRAPH };

static const char *const networks[] = {
    "complete:3",     "star:4", "complete:3 x 2m", "tree:2^2", "2m^3",   "complete:4",
    "5 x complete:3", "2m^4",   "star:5 x 4",      "petersen", "random",
};
#define NETWORKS (sizeof networks / sizeof networks[0])
#define NAMED 6u /* the larger ones */

const char *swarm_network(unsigned index)
{
    return index < NETWORKS ? networks[index] : NULL;
}

const char *swarm_draw_network(uint64_t seed)
{
    struct chance c = chance_stream(seed, STREAM_NETWORK, 0);

    if (seed % NAMED_SEEDS == NAMED_SEED)
        return networks[NETWORKS - 1 - chance_below(&c, NAMED)];
    return seed % NETWORK_SEEDS == NETWORK_SEED ? networks[chance_below(&c, NETWORKS)] : NULL;
}

static const struct graph *petersen(void)
{
    uint32_t edge[30];

    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t some[] = {i, (i + 1) % 5, i, i + 5, 5 + i, 5 + (i + 2) % 5};
        memcpy(&edge[6 * i], some, sizeof some);
    }
    return graph_of_edges(edge, 15, NULL);
}

/* Each node has 4 links: two rings of all nodes, one of them in random order. */
static const struct graph *four_regular(uint64_t number)
{
    struct chance c = chance_stream(number, STREAM_GRAPH, 0);
    uint32_t edge[4 * RANDOM_NODES], order[RANDOM_NODES];
    const struct graph *g = NULL;

    for (uint32_t i = 0; i < RANDOM_NODES; i++)
        order[i] = i;
    while (g == NULL) { /* an edge of both rings is refused */
        for (uint32_t i = RANDOM_NODES - 1; i > 0; i--) {
            uint32_t j = (uint32_t)chance_below(&c, i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        for (uint32_t i = 0; i < RANDOM_NODES; i++) {
            uint32_t next = (i + 1) % RANDOM_NODES;
            const uint32_t some[] = {i, next, order[i], order[next]};
            memcpy(&edge[4 * i], some, sizeof some);
        }
        g = graph_of_edges(edge, 2 * RANDOM_NODES, NULL);
    }
    return g;
}

const char *swarm_network_text(const char *dims, uint64_t seed)
{
    const struct graph *g;

    if (strcmp(dims, "petersen") != 0 && strcmp(dims, "random") != 0)
        return dims;
    g = strcmp(dims, "petersen") == 0 ? petersen()
                                      : four_regular(seed / NETWORK_SEEDS % RANDOM_GRAPHS);
    if (g == NULL)
        abort();
    return g->text;
}

static bool is_connected_without(const struct torus *t, uint32_t rank, int port)
{
    struct damage d;

    if (damage_init(&d, t, NULL) != 0)
        abort();
    if (port < 0)
        damage_add_node(&d, rank);
    else
        damage_add_link(&d, rank, (unsigned)port);
    bool connected = damage_is_connected(&d, NULL) == 0;
    damage_free(&d);
    return connected;
}

bool swarm_stays_connected(const struct torus *t)
{
    if (torus_is_plain(t)) {
        for (unsigned dim = 0; dim < t->dims; dim++)
            if (!t->wrap[dim])
                return false;
        return true;
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (!is_connected_without(t, rank, -1))
            return false;
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE &&
                !is_connected_without(t, rank, (int)port))
                return false;
    }
    return true;
}
