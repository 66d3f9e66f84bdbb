#include "daemon/lib/cabling/link_classes.h"

#include <stdlib.h>
#include <string.h>

struct classing {
    const struct network *net;
    struct link_classes *c;
    uint16_t *distance; /* node * nodes + node */
    uint32_t *parent;   /* by link: another one of its class; the last one leads to itself */
    uint32_t *number;   /* by place in net->neighbour: the link */
    uint32_t *tree;     /* by node: its place in net->neighbour of the link to the node before it */
    uint32_t root;
};

static uint32_t class_of(struct classing *s, uint32_t link)
{
    while (s->parent[link] != link) {
        s->parent[link] = s->parent[s->parent[link]];
        link = s->parent[link];
    }
    return link;
}

static void join(struct classing *s, uint32_t a, uint32_t b)
{
    s->parent[class_of(s, a)] = class_of(s, b);
}

/* Lists the links, each with the smaller node first. */
static void list(struct classing *s)
{
    const struct network *n = s->net;

    s->root = CABLING_NONE;
    for (uint32_t a = 0; a < n->nodes; a++)
        for (uint32_t k = n->first[a]; k < n->first[a + 1]; k++) {
            uint32_t b = n->neighbour[k];
            s->root = s->root == CABLING_NONE ? a : s->root;
            if (a < b) {
                s->number[k] = s->parent[s->c->links] = s->c->links;
                s->c->link[s->c->links++] =
                    (struct classed_link){.node = {a, b}, .count = network_links(n, a, b)};
                continue;
            }
            for (uint32_t i = n->first[b]; i < n->first[b + 1]; i++)
                if (n->neighbour[i] == a)
                    s->number[k] = s->number[i];
        }
}

static void measure(struct classing *s, uint32_t from, uint32_t *queue)
{
    const struct network *n = s->net;
    uint16_t *distance = s->distance + (size_t)from * n->nodes;
    uint32_t count = 0;

    memset(distance, 0xff, n->nodes * sizeof *distance);
    distance[from] = 0;
    queue[count++] = from;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = n->first[queue[i]]; k < n->first[queue[i] + 1]; k++) {
            uint32_t next = n->neighbour[k];
            if (distance[next] != UINT16_MAX)
                continue;
            distance[next] = (uint16_t)(distance[queue[i]] + 1);
            queue[count++] = next;
            if (from == s->root)
                s->tree[next] = k;
        }
}

/* Joins links that are related by distances. It is enough to compare those of one tree with all. */
static void join_by_distance(struct classing *s)
{
    const struct network *n = s->net;

    for (uint32_t y = 0; y < n->nodes; y++) {
        if (y == s->root || n->degree[y] == 0)
            continue;
        uint32_t tree = s->number[s->tree[y]];
        const uint32_t *end = s->c->link[tree].node;
        const uint16_t *one = s->distance + (size_t)end[0] * n->nodes;
        const uint16_t *other = s->distance + (size_t)end[1] * n->nodes;
        for (uint32_t i = 0; i < s->c->links; i++) {
            const uint32_t *node = s->c->link[i].node;
            if (one[node[0]] + other[node[1]] != one[node[1]] + other[node[0]])
                join(s, tree, i);
        }
    }
}

static uint32_t common_neighbours(const struct network *n, uint32_t a, uint32_t b)
{
    uint32_t common = 0;

    for (uint32_t k = n->first[a]; k < n->first[a + 1] && common < 2; k++)
        common += network_links(n, n->neighbour[k], b) > 0;
    return common;
}

/* Joins links that meet at the only common neighbour of their other ends. */
static void join_by_corner(struct classing *s)
{
    const struct network *n = s->net;

    for (uint32_t x = 0; x < n->nodes; x++)
        for (uint32_t i = n->first[x]; i < n->first[x + 1]; i++)
            for (uint32_t k = i + 1; k < n->first[x + 1]; k++)
                if (class_of(s, s->number[i]) != class_of(s, s->number[k]) &&
                    common_neighbours(n, n->neighbour[i], n->neighbour[k]) == 1)
                    join(s, s->number[i], s->number[k]);
}

static void number_classes(struct classing *s, uint32_t *class)
{
    struct link_classes *c = s->c;

    for (uint32_t i = 0; i < c->links; i++)
        class[i] = CABLING_NONE;
    for (uint32_t i = 0; i < c->links; i++) {
        uint32_t first = class_of(s, i);
        if (class[first] == CABLING_NONE)
            class[first] = c->classes++;
        c->link[i].class = class[first];
    }
    if (c->classes <= GRID_FACTORS_MOST)
        return;
    c->classes = 1;
    for (uint32_t i = 0; i < c->links; i++)
        c->link[i].class = 0;
}

int link_classes_find(struct link_classes *c, const struct network *n, struct error *e)
{
    struct classing s = {.net = n, .c = c};
    uint32_t *queue = calloc((size_t)n->nodes + 2 * (size_t)n->links + 1, sizeof *queue);
    int result = 0;

    *c = (struct link_classes){.links = 0};
    c->link = calloc((size_t)n->links + 1, sizeof *c->link);
    s.distance = calloc((size_t)n->nodes * n->nodes + 1, sizeof *s.distance);
    s.parent = calloc((size_t)n->links + 1, sizeof *s.parent);
    s.number = calloc(2 * (size_t)n->links + 1, sizeof *s.number);
    s.tree = calloc((size_t)n->nodes + 1, sizeof *s.tree);
    if (queue == NULL || c->link == NULL || s.distance == NULL || s.parent == NULL ||
        s.number == NULL || s.tree == NULL) {
        link_classes_free(c);
        result = error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    } else {
        list(&s);
        for (uint32_t node = 0; node < n->nodes; node++)
            measure(&s, node, queue);
        join_by_distance(&s);
        join_by_corner(&s);
        number_classes(&s, queue);
    }
    free(queue);
    free(s.distance);
    free(s.parent);
    free(s.number);
    free(s.tree);
    return result;
}

void link_classes_free(struct link_classes *c)
{
    free(c->link);
}
