#include "daemon/lib/cabling/changes.h"

#include <string.h>

struct deciding {
    const struct links *links;
    bool extra_done[CHANGES_MOST], missing_done[CHANGES_MOST];
    struct cabling_end end[CHANGES_MOST]
                          [2]; /* of the cables that are left over, after the changes so far */
    uint32_t extras_left, missings_left;
    struct changes now, *best;
    uint32_t limit; /* more changes than this are not wanted */
    bool found;
};

static const struct cabling_end *link_ends(const struct deciding *d, uint32_t missing)
{
    return d->links->link[d->links->missing[missing]].end;
}

static void decide(struct deciding *d);

static void with(struct deciding *d, struct change c)
{
    d->now.change[d->now.count++] = c;
    decide(d);
    d->now.count--;
}

static void try_moves(struct deciding *d, uint32_t extra)
{
    const struct cabling_end *have = d->end[extra];

    for (uint32_t m = 0; m < d->links->missings; m++) {
        const struct cabling_end *want = link_ends(d, m);
        for (unsigned way = 0; way < 4 && !d->missing_done[m]; way++) {
            unsigned stays = way & 1, as = way >> 1;
            if (!links_end_fits(want[as], have[stays]))
                continue;
            d->missing_done[m] = true;
            d->missings_left--;
            with(d, (struct change){.kind = CHANGE_MOVE,
                                    .cable[0] = d->links->extra[extra],
                                    .link[0] = d->links->missing[m],
                                    .stays[0] = stays,
                                    .as[0] = as});
            d->missings_left++;
            d->missing_done[m] = false;
        }
    }
}

/* Whether the ends of two cables, one of each, make a missing link: returns it, or CABLING_NONE, and which end of it
 * the first one becomes. */
static uint32_t made_link(const struct deciding *d, struct cabling_end a, struct cabling_end b,
                          uint32_t not_this, unsigned *as)
{
    for (uint32_t m = 0; m < d->links->missings; m++) {
        const struct cabling_end *want = link_ends(d, m);
        for (*as = 0; *as < 2 && !d->missing_done[m] && m != not_this; ++*as)
            if (links_end_fits(want[*as], a) && links_end_fits(want[1 - *as], b))
                return m;
    }
    return CABLING_NONE;
}

static void exchange_ends(struct cabling_end *a, struct cabling_end *b)
{
    struct cabling_end moved = *a;

    *a = *b;
    *b = moved;
}

/* Marks a cable as right, or takes the mark away. */
static void set_done(struct deciding *d, uint32_t extra, uint32_t missing, bool done)
{
    if (missing == CABLING_NONE)
        return;
    d->extra_done[extra] = d->missing_done[missing] = done;
    d->extras_left = d->extras_left + !done - done;
    d->missings_left = d->missings_left + !done - done;
}

/* Swaps plugs of two cables if at least one of the cables is right after that. */
static void try_swap(struct deciding *d, uint32_t extra, uint32_t x, unsigned turn)
{
    struct cabling_end *have = d->end[extra], *other = d->end[x];
    unsigned as0 = 0, as1 = 0;

    exchange_ends(&have[1], &other[1 - turn]);
    uint32_t m0 = made_link(d, have[0], have[1], CABLING_NONE, &as0);
    uint32_t m1 = made_link(d, other[turn], other[1 - turn], m0, &as1);
    if (m0 != CABLING_NONE || m1 != CABLING_NONE) {
        uint32_t link0 = m0 != CABLING_NONE ? d->links->missing[m0] : CABLING_NONE;
        uint32_t link1 = m1 != CABLING_NONE ? d->links->missing[m1] : CABLING_NONE;
        set_done(d, extra, m0, true);
        set_done(d, x, m1, true);
        with(d, (struct change){.kind = CHANGE_SWAP,
                                .cable = {d->links->extra[extra], d->links->extra[x]},
                                .link = {link0, link1},
                                .stays = {0, turn},
                                .as = {as0, as1}});
        set_done(d, x, m1, false);
        set_done(d, extra, m0, false);
    }
    exchange_ends(&have[1], &other[1 - turn]);
}

static void try_swaps(struct deciding *d, uint32_t extra)
{
    for (uint32_t x = extra + 1; x < d->links->extras; x++)
        for (unsigned turn = 0; turn < 2 && !d->extra_done[x]; turn++)
            try_swap(d, extra, x, turn);
}

static void add_the_rest(struct deciding *d)
{
    uint32_t count = d->now.count;

    for (uint32_t m = 0; m < d->links->missings; m++)
        if (!d->missing_done[m])
            d->now.change[d->now.count++] =
                (struct change){.kind = CHANGE_ADD, .link[0] = d->links->missing[m]};
    *d->best = d->now;
    d->found = true;
    d->limit = d->now.count - 1; /* from here on, only fewer are better */
    d->now.count = count;
}

/* Decides about the next cable that is left over. A swap is tried first, then a move. */
static void decide(struct deciding *d)
{
    uint32_t extra = 0;
    uint32_t least = d->extras_left > d->missings_left ? d->extras_left : d->missings_left;

    if ((d->found && d->best->count == 0) || d->now.count + (least + 1) / 2 > d->limit)
        return;
    while (extra < d->links->extras && d->extra_done[extra])
        extra++;
    if (extra == d->links->extras) {
        if (d->now.count + d->missings_left <= d->limit)
            add_the_rest(d);
        return;
    }
    try_swaps(d, extra);
    d->extra_done[extra] = true;
    d->extras_left--;
    try_moves(d, extra);
    with(d, (struct change){.kind = CHANGE_REMOVE, .cable[0] = d->links->extra[extra]});
    d->extras_left++;
    d->extra_done[extra] = false;
}

uint32_t changes_find(struct changes *c, const struct links *l, uint32_t limit)
{
    struct deciding d = {.links = l,
                         .extras_left = l->extras,
                         .missings_left = l->missings,
                         .best = c,
                         .limit = limit < 2 * CHANGES_MOST ? limit : 2 * CHANGES_MOST};

    for (uint32_t i = 0; i < l->extras && i < CHANGES_MOST; i++)
        for (unsigned side = 0; side < 2; side++)
            d.end[i][side] = l->wiring->cable[l->extra[i]].end[side];
    c->count = 0;
    if (l->extras > CHANGES_MOST || l->missings > CHANGES_MOST)
        return UINT32_MAX;
    decide(&d);
    return d.found ? c->count : UINT32_MAX;
}
