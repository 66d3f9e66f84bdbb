/* Three Cayley graphs of the permutations of four places, which are not cyclic: the star graph, the bubble-sort graph and
 * the pancake graph of 24 nodes. Written out from their definitions, without the library's search for groups. */
#pragma once

#include "daemon/lib/schedule/graph/graph.h"
#include "tests/support/cmocka.h"

enum permutation_graph { STAR_GRAPH, BUBBLE_SORT_GRAPH, PANCAKE_GRAPH, PERMUTATION_GRAPHS };

enum { PLACES = 4, PERMUTATIONS = 24 };

/* The permutation with a number, in lexicographic order. */
static inline void permutation(uint32_t number, uint8_t *at)
{
    bool used[PLACES] = {false};

    for (uint32_t i = 0, left = PERMUTATIONS; i < PLACES; i++) {
        uint8_t value = 0;
        left /= PLACES - i;
        for (uint32_t skip = number / left % (PLACES - i); used[value] || skip > 0; value++)
            skip -= !used[value];
        at[i] = value;
        used[value] = true;
    }
}

static inline uint32_t permutation_number(const uint8_t *at)
{
    uint8_t other[PLACES];
    uint32_t number = 0;

    for (; number < PERMUTATIONS; number++) {
        permutation(number, other);
        if (memcmp(at, other, PLACES) == 0)
            break;
    }
    return number;
}

/* What generator 1, 2 or 3 of the graph makes of a permutation. */
static inline uint32_t permutation_neighbour(enum permutation_graph graph, uint32_t node,
                                             uint32_t generator)
{
    uint8_t at[PLACES], to[PLACES];

    permutation(node, at);
    memcpy(to, at, PLACES);
    if (graph == PANCAKE_GRAPH) { /* the first generator + 1 places are reversed */
        for (uint32_t i = 0; i <= generator; i++)
            to[i] = at[generator - i];
    } else { /* two places are swapped: the first and another one, or neighbours */
        uint32_t other = graph == STAR_GRAPH ? 0 : generator - 1;
        to[generator] = at[other];
        to[other] = at[generator];
    }
    return permutation_number(to);
}

static inline const struct graph *permutation_graph(enum permutation_graph graph)
{
    uint32_t edge[2 * PERMUTATIONS * 3], count = 0;
    struct error e;

    for (uint32_t node = 0; node < PERMUTATIONS; node++)
        for (uint32_t generator = 1; generator < PLACES; generator++) {
            uint32_t other = permutation_neighbour(graph, node, generator);
            if (node > other)
                continue;
            edge[2 * count] = node;
            edge[2 * count++ + 1] = other;
        }
    return graph_of_edges(edge, count, &e);
}
