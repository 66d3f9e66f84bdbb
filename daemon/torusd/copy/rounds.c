#include "daemon/torusd/copy/rounds.h"

#include <stdlib.h>
#include <string.h>

#define SHARE_LEAST 4096u /* bytes of a tree in a round, if there is room and that much left */

uint64_t copy_rounds_total(const struct copy_plan *p, enum moved what, uint32_t tree)
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

static bool goes_to_all(const struct copy_plan *p)
{
    return p->tree[0].writer == COPY_EVERY_NODE;
}

int copy_rounds_init(struct copy_rounds *r, const struct copy_plan *p, enum moved what,
                     uint32_t nodes, uint32_t call_bytes)
{
    *r = (struct copy_rounds){.plan = p,
                              .what = what,
                              .nodes = nodes,
                              .side = goes_to_all(p) ? call_bytes : call_bytes / 2,
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

/* The bytes of each tree if the busier of its two nodes divided its room equally. */
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

/* Each tree gets its share, and then what others have left over. */
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
    if (goes_to_all(r->plan))
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
