#include "daemon/lib/cabling/shapes.h"

#include <stdlib.h>

#define SHAPES_MOST 512u

/* Kinds of factors, in the order in which they are tried. */
enum { KIND_RING, KIND_LINE, KIND_COMPLETE, KIND_STAR, KINDS };

struct listing {
    struct shapes *shapes;
    const struct network *seen;
    uint32_t hosts, moves;
};

static int falling(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x > y ? -1 : x < y;
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static uint32_t node_links(const struct torus *t, uint32_t rank)
{
    uint32_t links = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    return links;
}

/* A move changes the number of links of at most two nodes by one, and the number of all links by at most one. A missing
 * host takes its own links away, and one from each neighbour. */
uint32_t shapes_fewest_moves(const struct torus *t, const struct network *seen, uint32_t hosts)
{
    uint32_t nodes = t->nodes > seen->nodes ? t->nodes : seen->nodes;
    uint32_t *want = calloc((size_t)nodes + 1, sizeof *want);
    uint32_t *have = calloc((size_t)nodes + 1, sizeof *have);
    uint32_t unlike = 0, missing = t->nodes > hosts ? t->nodes - hosts : 0, spared;

    if (want == NULL || have == NULL) {
        free(want);
        free(have);
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < t->nodes; i++)
        want[i] = node_links(t, i);
    for (uint32_t i = 0; i < seen->nodes; i++)
        have[i] = seen->degree[i];
    qsort(want, nodes, sizeof *want, falling);
    qsort(have, nodes, sizeof *have, falling);
    for (uint32_t i = 0; i < nodes; i++)
        unlike += difference(want[i], have[i]);
    spared = missing * 2 * want[0];
    free(want);
    free(have);
    return missing + (unlike > spared ? (unlike - spared + 1) / 2 : 0);
}

/* Whether the number of links alone rules a network out. */
static bool links_fit(const struct listing *l, const struct torus *t)
{
    uint64_t links = torus_links(t), seen = l->seen->links;
    uint64_t spared = t->nodes > l->hosts ? torus_ports(t) : 0;

    return links <= seen + l->moves + spared && seen <= links + l->moves;
}

static void consider(struct listing *l, const struct torus *t)
{
    struct shapes *s = l->shapes;
    uint32_t fewest;

    if (s->shapes == SHAPES_MOST || !links_fit(l, t))
        return;
    fewest = shapes_fewest_moves(t, l->seen, l->hosts);
    if (fewest <= l->moves)
        s->shape[s->shapes++] = (struct shape){.torus = *t, .fewest_moves = fewest};
}

/* Whether a factor of this size and kind is not the same as one of another kind. */
static bool is_kind(const struct torus *t, uint32_t size, unsigned kind)
{
    if (kind == KIND_LINE && size == 2) /* two lines of two are a ring of four */
        return t->dims == 0 || t->size[t->dims - 1] != 2 || t->wrap[t->dims - 1];
    return kind <= KIND_LINE || (size >= 4 && size <= GRAPH_DIRECTIONS_MOST + 1);
}

/* Appends a factor of each kind; factors come in rising order of size, and of kind. */
static void extend(struct listing *l, const struct torus *t, uint32_t left, uint32_t size,
                   unsigned first_kind)
{
    struct error why;

    for (; size <= left; size++, first_kind = KIND_RING)
        for (unsigned kind = first_kind; kind < KINDS && left % size == 0; kind++) {
            struct torus longer = *t;
            const struct graph *graph = NULL;
            if (!is_kind(t, size, kind))
                continue;
            if (kind >= KIND_COMPLETE)
                graph = kind == KIND_COMPLETE ? graph_complete(size, &why) : graph_star(size, &why);
            if ((kind >= KIND_COMPLETE && graph == NULL) ||
                torus_append(&longer, size, kind == KIND_RING, graph) != 0)
                continue;
            if (size == left)
                consider(l, &longer);
            else
                extend(l, &longer, left / size, size, kind);
        }
}

static unsigned rings(const struct torus *t)
{
    unsigned count = 0;

    for (unsigned i = 0; i < t->dims; i++)
        count += t->wrap[i];
    return count;
}

static int by_preference(const void *a, const void *b)
{
    const struct torus *x = &((const struct shape *)a)->torus,
                       *y = &((const struct shape *)b)->torus;
    uint32_t sum_x = 0, sum_y = 0;

    if (x->graphs != y->graphs)
        return x->graphs < y->graphs ? -1 : 1;
    if (rings(x) + y->dims != rings(y) + x->dims) /* fewer dimensions that are no rings */
        return rings(x) + y->dims > rings(y) + x->dims ? -1 : 1;
    if (x->dims != y->dims)
        return x->dims < y->dims ? -1 : 1;
    for (unsigned i = 0; i < x->dims; i++) {
        sum_x += x->size[i];
        sum_y += y->size[i];
    }
    if (sum_x != sum_y)
        return sum_x < sum_y ? -1 : 1;
    for (unsigned i = 0; i < x->dims; i++)
        if (x->size[i] != y->size[i] || x->wrap[i] != y->wrap[i])
            return x->size[i] < y->size[i] || (x->size[i] == y->size[i] && x->wrap[i]) ? -1 : 1;
    return 0;
}

int shapes_list(struct shapes *s, uint32_t nodes, const struct network *seen, uint32_t hosts,
                uint32_t moves, struct error *e)
{
    struct listing l = {.shapes = s, .seen = seen, .hosts = hosts, .moves = moves};

    *s = (struct shapes){.shapes = 0};
    s->shape = calloc(SHAPES_MOST, sizeof *s->shape);
    if (s->shape == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a list of networks");
    extend(&l, &(struct torus){.nodes = 1}, nodes, 2, KIND_RING);
    qsort(s->shape, s->shapes, sizeof *s->shape, by_preference);
    return 0;
}

void shapes_free(struct shapes *s)
{
    free(s->shape);
}
