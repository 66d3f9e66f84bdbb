#include "daemon/torusd/copy/plan.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

/* --- the plan --- */

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
        intervals_free(&p->tree[i].missing);
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

/* --- rounds --- */

#define SHARE_LEAST 4096u /* bytes of a tree in a round, if there is room and that much left */

/* Returns how many bytes of a tree are moved. */
static uint64_t copy_rounds_total(const struct copy_plan *p, enum moved what, uint32_t tree)
{
    const struct copy_tree *t = &p->tree[tree];

    switch (what) {
    case MOVED_MANIFESTS:
        return t->size[TREE_MANIFEST];
    case MOVED_DIGESTS:
        return t->size[TREE_DIGESTS];
    case MOVED_STREAMS:
        return t->missing.bytes;
    }
    return 0;
}

int copy_rounds_init(struct copy_rounds *r, const struct copy_plan *p, enum moved what,
                     uint32_t nodes, uint32_t call_bytes)
{
    *r = (struct copy_rounds){.plan = p,
                              .what = what,
                              .nodes = nodes,
                              .side = copy_plan_goes_to_all(p) ? call_bytes : call_bytes / 2,
                              .moved = calloc(p->trees, sizeof *r->moved),
                              .sends = calloc(nodes, sizeof *r->sends),
                              .receives = calloc(nodes, sizeof *r->receives),
                              .length = calloc(p->trees, sizeof *r->length),
                              .piece = calloc(p->trees, sizeof *r->piece)};
    for (uint32_t i = 0; i < p->trees; i++)
        r->bytes += copy_rounds_total(p, what, i);
    return r->moved != NULL && r->sends != NULL && r->receives != NULL && r->length != NULL &&
                   r->piece != NULL
               ? 0
               : -1;
}

void copy_rounds_free(struct copy_rounds *r)
{
    free(r->moved);
    free(r->sends);
    free(r->receives);
    free(r->length);
    free(r->piece);
    *r = (struct copy_rounds){0};
}

static uint64_t left_of(const struct copy_rounds *r, uint32_t tree)
{
    return copy_rounds_total(r->plan, r->what, tree) - r->moved[tree];
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Gives each tree the bytes that it would have if the busier of its two nodes divided its room equally. */
static void share_out(struct copy_rounds *r)
{
    const struct copy_plan *p = r->plan;

    memset(r->sends, 0, r->nodes * sizeof *r->sends);
    memset(r->receives, 0, r->nodes * sizeof *r->receives);
    for (uint32_t i = 0; i < p->trees; i++)
        if (left_of(r, i) > 0) {
            r->sends[p->tree[i].reader]++;
            r->receives[p->tree[i].writer]++;
        }
    for (uint32_t i = 0; i < p->trees; i++) {
        const uint32_t sends = r->sends[p->tree[i].reader];
        const uint32_t receives = r->receives[p->tree[i].writer];
        const uint32_t busier = sends > receives ? sends : receives;
        const uint32_t share = busier > 0 ? r->side / busier : 0;
        r->length[i] = least(left_of(r, i),
                             share > SHARE_LEAST + PIECE_HEAD ? share - PIECE_HEAD : SHARE_LEAST);
    }
}

/* Gives a tree up to `want` more bytes, as far as its nodes have room. */
static void give(struct copy_rounds *r, uint32_t tree, uint64_t want)
{
    const struct copy_tree *t = &r->plan->tree[tree];
    const uint32_t head = r->length[tree] == 0 ? PIECE_HEAD : 0;
    const uint32_t room = least(r->sends[t->reader], r->receives[t->writer]);
    uint32_t length;

    if (room <= head)
        return;
    length = least(want, room - head);
    if (length == 0)
        return;
    r->length[tree] += length;
    r->sends[t->reader] -= head + length;
    r->receives[t->writer] -= head + length;
}

/* Each tree gets its share, and then what the others do not need. */
static void plan_pairs(struct copy_rounds *r)
{
    const uint32_t trees = r->plan->trees;

    share_out(r);
    for (uint32_t i = 0; i < r->nodes; i++)
        r->sends[i] = r->receives[i] = r->side;
    for (uint32_t i = 0; i < trees; i++) {
        const uint32_t tree = (r->turn + i) % trees, share = r->length[tree];
        r->length[tree] = 0;
        give(r, tree, share);
    }
    for (uint32_t i = 0; i < trees; i++) {
        const uint32_t tree = (r->turn + i) % trees;
        give(r, tree, left_of(r, tree) - r->length[tree]);
    }
    r->turn = (r->turn + 1) % trees;
}

bool copy_rounds_next(struct copy_rounds *r)
{
    r->pieces = 0;
    if (copy_plan_goes_to_all(r->plan))
        r->length[0] = least(left_of(r, 0), r->side - PIECE_HEAD);
    else
        plan_pairs(r);
    for (uint32_t i = 0; i < r->plan->trees; i++)
        if (r->length[i] > 0) {
            r->piece[r->pieces++] = (struct copy_piece){i, r->length[i], r->moved[i]};
            r->moved[i] += r->length[i];
        }
    return r->pieces > 0;
}
