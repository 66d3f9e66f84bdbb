#include "daemon/torusd/copy/plan.h"

#include <stdlib.h>

#include "proto/text.h"

static bool is_there(const bool *gone, uint32_t node)
{
    return gone == NULL || !gone[node];
}

/* Lists the other nodes that take part. *count, and p->absent, are set. Returns NULL without memory. */
static uint32_t *list_others(struct copy_plan *p, const struct copy_request *r, uint32_t nodes,
                             const bool *gone, uint32_t *count)
{
    uint32_t *list = calloc(nodes, sizeof *list);

    p->absent = calloc(nodes, sizeof *p->absent);
    *count = 0;
    if (list == NULL || p->absent == NULL) {
        free(list);
        return NULL;
    }
    for (uint32_t node = 0; node < nodes; node++) {
        if (!copy_request_takes_part(r, node))
            continue;
        if (!is_there(gone, node))
            p->absent[p->absents++] = node;
        else if (node != r->node || r->kind == COPY_EXCHANGE)
            list[(*count)++] = node;
    }
    return list;
}

static void add_end(struct copy_plan *p, uint32_t node, uint32_t tree)
{
    p->end[p->ends++] = (struct copy_end){.node = node, .tree = tree};
}

static void add_pair(struct copy_plan *p, uint32_t reader, uint32_t writer)
{
    p->tree[p->trees] = (struct copy_tree){.reader = reader, .writer = writer};
    add_end(p, writer, p->trees++);
}

/* Adds trees and ends; ends are in the order of their nodes, and of the readers. */
static void add_all(struct copy_plan *p, const struct copy_request *r, const uint32_t *other,
                    uint32_t others)
{
    if (r->kind == COPY_TO_ALL)
        p->tree[p->trees++] = (struct copy_tree){.reader = r->node, .writer = COPY_EVERY_NODE};
    for (uint32_t i = 0; i < others; i++)
        switch (r->kind) {
        case COPY_TO_ALL:
            add_end(p, other[i], 0);
            break;
        case COPY_GATHER:
            add_pair(p, other[i], r->node);
            break;
        case COPY_SCATTER:
            add_pair(p, r->node, other[i]);
            break;
        case COPY_EXCHANGE:
            for (uint32_t j = 0; j < others; j++)
                add_pair(p, other[j], other[i]);
            break;
        }
}

static int check_nodes(const struct copy_request *r, const bool *gone, uint32_t others,
                       struct error *e)
{
    if (!is_there(gone, r->node) && r->kind != COPY_EXCHANGE) {
        (void)error_set(e, ERROR_LINK, "node %u is down, which %s", r->node,
                        r->kind == COPY_GATHER ? "is to get the trees" : "has the trees");
        return error_blame_node(e, r->node);
    }
    if (others == 0)
        return error_set(e, ERROR_LINK, "no other node that takes part is up");
    if (r->kind != COPY_TO_ALL && others > COPY_PAIRS_MOST)
        return error_set(e, ERROR_REFUSED,
                         "at most %u nodes can have trees of their own in one copy, not %u: list "
                         "nodes (--nodes), and make several copies",
                         COPY_PAIRS_MOST, others);
    return 0;
}

int copy_plan_make(struct copy_plan *p, const struct copy_request *r, uint32_t nodes,
                   const bool *gone, struct error *e)
{
    uint32_t others = 0, *other;
    size_t pairs;

    *p = (struct copy_plan){.told = r->told};
    other = list_others(p, r, nodes, gone, &others);
    if (other == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    if (check_nodes(r, gone, others, e) != 0) {
        free(other);
        return -1;
    }
    pairs = r->kind == COPY_EXCHANGE ? (size_t)others * others : others;
    p->tree = calloc(pairs, sizeof *p->tree);
    p->end = calloc(pairs, sizeof *p->end);
    if (p->tree != NULL && p->end != NULL)
        add_all(p, r, other, others);
    free(other);
    return p->ends > 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for a copy");
}

void copy_plan_free(struct copy_plan *p)
{
    for (uint32_t i = 0; i < p->trees; i++) {
        copy_spans_free(&p->tree[i].missing);
        free(p->tree[i].changed);
        free(p->tree[i].place);
    }
    for (uint32_t i = 0; i < p->ends; i++) {
        free(p->end[i].wanted);
        free(p->end[i].going);
    }
    free(p->tree);
    free(p->end);
    free(p->absent);
    *p = (struct copy_plan){0};
}

const struct error *copy_end_failed(const struct copy_plan *p, const struct copy_end *end)
{
    /* what this node says of itself is nearer to the cause: its target may be why the source has changed */
    if (end->error.code != ERROR_NONE)
        return &end->error;
    return p->tree[end->tree].failed.code != ERROR_NONE ? &p->tree[end->tree].failed : NULL;
}
