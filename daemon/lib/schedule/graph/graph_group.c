#include "daemon/lib/schedule/graph/graph_group.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT16_MAX
#define GENERATORS_MOST                                                                            \
    11u /* each at least doubles the group, which has at most GRAPH_NODES_MOST moves */

/* The group is built from generators: automorphisms that take node 0 to neighbours of it that no move of the group so
 * far reaches. When all neighbours are reached, all nodes are. */
struct search {
    const struct graph *g;
    uint32_t n;
    uint16_t *order,
        *parent; /* the nodes in the order of a search from node 0, and from where they were found */
    uint16_t *generator; /* one after another; the last one is being chosen */
    uint16_t *inverse;   /* of the last one */
    uint32_t generators;
    uint32_t cycle; /* the length of the last one's cycles; 0: none is closed yet */
    uint16_t *move; /* of the group; NONE at the beginning of a move that it does not have */
    uint16_t *queue, *product;
    uint64_t work;
};

/* Whether all nodes have as many nodes at each distance as node 0. */
static bool is_alike_everywhere(const struct graph *g)
{
    for (uint32_t node = 0; node < g->nodes; node++) {
        int32_t more[GRAPH_NODES_MOST] = {0};
        for (uint32_t to = 0; to < g->nodes; to++) {
            more[graph_distance(g, 0, to)]++;
            more[graph_distance(g, node, to)]--;
        }
        for (uint32_t distance = 0; distance <= g->diameter; distance++)
            if (more[distance] != 0)
                return false;
    }
    return true;
}

static void order_nodes(struct search *s)
{
    uint32_t count = 1;

    memset(s->parent, 0xff, s->n * sizeof *s->parent);
    s->order[0] = s->parent[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        for (unsigned direction = 0; direction < s->g->directions; direction++) {
            uint32_t there = graph_neighbour(s->g, s->order[i], direction);
            if (there == GRAPH_NO_NODE || s->parent[there] != NONE)
                continue;
            s->parent[there] = s->order[i];
            s->order[count++] = (uint16_t)there;
        }
}

static uint16_t *last_generator(const struct search *s)
{
    return s->generator + (size_t)(s->generators - 1) * s->n;
}

/* ---- The group of the generators ------------------------------------------------------------- */

/* Adds the product to the moves, unless the group has it. Returns false if another move leads to the same node. */
static bool add_product(struct search *s, uint32_t *count)
{
    uint16_t *its = s->move + (size_t)s->product[0] * s->n;

    s->work += s->n;
    if (its[0] != NONE)
        return memcmp(its, s->product, s->n * sizeof *its) == 0;
    memcpy(its, s->product, s->n * sizeof *its);
    s->queue[(*count)++] = s->product[0];
    return true;
}

/* Makes all products of the generators. Returns their number, or 0 if two of them take node 0 to the same node. */
static uint32_t make_moves(struct search *s)
{
    uint32_t count = 1;

    for (uint32_t node = 0; node < s->n; node++) {
        s->move[(size_t)node * s->n] = NONE;
        s->product[node] = (uint16_t)node;
    }
    memcpy(s->move, s->product, s->n * sizeof *s->move);
    s->queue[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < s->generators; j++) {
            const uint16_t *move = s->move + (size_t)s->queue[i] * s->n;
            for (uint32_t node = 0; node < s->n; node++)
                s->product[node] = move[s->generator[(size_t)j * s->n + node]];
            if (!add_product(s, &count))
                return 0;
        }
    return count;
}

/* ---- Choosing a generator -------------------------------------------------------------------- */

static bool choose_generators(struct search *s);

/* Whether the generator may take the node there: nodes keep their distances. */
static bool keeps_distances(struct search *s, uint32_t chosen, uint32_t there)
{
    const uint16_t *image = last_generator(s);
    uint32_t node = s->order[chosen];

    for (uint32_t i = 0; i < chosen; i++, s->work++)
        if (graph_distance(s->g, s->order[i], node) !=
            graph_distance(s->g, image[s->order[i]], there))
            return false;
    return true;
}

/* Whether the cycle to which the node's image was added fits: in a regular group all cycles of a move have the same
 * length. Sets s->cycle if it is the first one that closes. */
static bool fits_cycles(struct search *s, uint32_t node)
{
    const uint16_t *image = last_generator(s);
    uint32_t length = 1, at = node;

    for (; image[at] != NONE && image[at] != node; length++)
        at = image[at];
    s->work += length;
    if (image[at] == node) {
        if (s->cycle == 0 && length > 1 && s->n % length == 0)
            s->cycle = length;
        return s->cycle == length;
    }
    for (at = node; s->inverse[at] != NONE; length++)
        at = s->inverse[at];
    s->work += length;
    return s->cycle == 0 || length <= s->cycle;
}

/* Chooses the images of the nodes from order[chosen] on, and then further generators. Returns true when the group is
 * complete. */
static bool choose_images(struct search *s, uint32_t chosen)
{
    uint16_t *image = last_generator(s);

    if (chosen == s->n) {
        uint32_t count = make_moves(s);
        return count > 0 && s->n % count == 0 && (count == s->n || choose_generators(s));
    }
    uint32_t node = s->order[chosen], parent = image[s->parent[node]], cycle = s->cycle;
    for (unsigned direction = 0; direction < s->g->directions; direction++) {
        uint32_t there = graph_neighbour(s->g, parent, direction);
        if (s->work > GRAPH_GROUP_WORK)
            return false;
        if (there == GRAPH_NO_NODE || s->inverse[there] != NONE ||
            !keeps_distances(s, chosen, there))
            continue;
        image[node] = (uint16_t)there;
        s->inverse[there] = (uint16_t)node;
        if (fits_cycles(s, node) && choose_images(s, chosen + 1))
            return true;
        image[node] = s->inverse[there] = NONE;
        s->cycle = cycle;
    }
    return false;
}

/* A neighbour of node 0 that no move reaches. */
static uint32_t next_neighbour(const struct search *s)
{
    for (unsigned direction = 0; direction < s->g->directions; direction++) {
        uint32_t there = graph_neighbour(s->g, 0, direction);
        if (there != GRAPH_NO_NODE && s->move[(size_t)there * s->n] == NONE)
            return there;
    }
    return GRAPH_NO_NODE;
}

/* Chooses one more generator, and all after it. Returns true when the group is complete. Otherwise the generators are
 * those of before, with the inverse of the last one. */
static bool choose_generators(struct search *s)
{
    uint32_t there = next_neighbour(s), cycle = s->cycle;

    if (there == GRAPH_NO_NODE || s->generators == GENERATORS_MOST)
        return false;
    s->generators++;
    uint16_t *image = last_generator(s);
    memset(image, 0xff, s->n * sizeof *image);
    memset(s->inverse, 0xff, s->n * sizeof *s->inverse);
    image[0] = (uint16_t)there;
    s->inverse[there] = 0;
    s->cycle = 0;
    if (choose_images(s, 1))
        return true;
    s->generators--;
    s->cycle = cycle;
    if (s->generators > 0)
        for (uint32_t node = 0; node < s->n; node++)
            s->inverse[last_generator(s)[node]] = (uint16_t)node;
    return false;
}

static int search_init(struct search *s, const struct graph *g)
{
    size_t n = g->nodes;

    *s = (struct search){
        .g = g,
        .n = g->nodes,
        .order = malloc(n * sizeof *s->order),
        .parent = malloc(n * sizeof *s->parent),
        .generator = malloc(GENERATORS_MOST * n * sizeof *s->generator),
        .inverse = malloc(n * sizeof *s->inverse),
        .move = malloc(n * n * sizeof *s->move),
        .queue = malloc(n * sizeof *s->queue),
        .product = malloc(n * sizeof *s->product),
    };
    return s->order != NULL && s->parent != NULL && s->generator != NULL && s->inverse != NULL &&
                   s->move != NULL && s->queue != NULL && s->product != NULL
               ? 0
               : -1;
}

static void search_free(struct search *s)
{
    free(s->order);
    free(s->parent);
    free(s->generator);
    free(s->inverse);
    free(s->move);
    free(s->queue);
    free(s->product);
}

int graph_group(const struct graph *g, uint16_t **moves)
{
    struct search s;
    int rc = 0;

    if (!is_alike_everywhere(g))
        return 0;
    if (search_init(&s, g) != 0) {
        rc = -1;
    } else {
        order_nodes(&s);
        (void)make_moves(&s); /* node 0 is in its place */
        rc = choose_generators(&s);
    }
    if (rc == 1) {
        *moves = s.move;
        s.move = NULL;
    }
    search_free(&s);
    return rc;
}
