#include "daemon/lib/cabling/replug.h"

#include <stdlib.h>

struct replugging {
    struct replug *out;
    struct links *links;
    const struct changes *changes;
    struct cabling_end *end; /* two for each cable: where it is after the moves so far */
    bool *
        taken; /* by number of the interface: a cable between known interfaces is plugged in, or will be */
    bool *freed; /* by number of the interface: a cable that is in it will be moved */
};

static uint32_t number(const struct replugging *r, struct cabling_end end)
{
    return wiring_number(r->links->wiring, end);
}

static void set_taken(struct replugging *r, struct cabling_end end, bool taken)
{
    if (end.host != CABLING_NONE && end.interface != CABLING_NONE)
        r->taken[number(r, end)] = taken;
}

/* A cable leads to no interface that is known. */
static bool is_loose(const struct replugging *r, struct cabling_end end)
{
    const struct wiring *w = r->links->wiring;

    if (end.host == CABLING_NONE || end.interface == CABLING_NONE)
        return false;
    return w->cable_at[number(r, end)] == CABLING_NONE &&
           w->input->host[end.host].interface[end.interface].carrier;
}

/* How little an interface suits a plug, CABLING_NONE: not at all. `loose`: the cable that is plugged in there and leads
 * nowhere may be the one that is meant. */
static uint32_t unsuited(const struct replugging *r, struct cabling_end end, bool loose)
{
    const struct wiring *w = r->links->wiring;
    uint32_t n = number(r, end);

    if (!wiring_usable(w, n) || (r->taken[n] && !r->freed[n]))
        return CABLING_NONE;
    if (r->taken[n])
        return 4;
    if (is_loose(r, end) != loose)
        return 2;
    return w->input->wanted != NULL && w->input->host[end.host].rank != CABLING_NONE &&
           w->input->host[end.host].interface[end.interface].port >= 0;
}

/* Chooses an interface for an end of a link that has none yet. */
static void choose(struct replugging *r, struct cabling_end *end, bool loose)
{
    uint32_t best = CABLING_NONE;
    struct cabling_end at = {.host = end->host};

    if (end->host == CABLING_NONE)
        return;
    if (end->interface == CABLING_NONE) {
        for (at.interface = 0; at.interface < r->links->wiring->input->host[at.host].interfaces;
             at.interface++) {
            uint32_t unsuited_here = unsuited(r, at, loose);
            if (unsuited_here < best) {
                best = unsuited_here;
                *end = at;
            }
        }
    }
    if (end->interface != CABLING_NONE) {
        r->freed[number(r, *end)] = false; /* not for another plug */
        set_taken(r, *end, true);
    }
}

static void add_move(struct replugging *r, struct cabling_move move)
{
    if (move.kind != CABLING_MOVE_END)
        move.stays = (struct cabling_end){CABLING_NONE, CABLING_NONE};
    r->out->move[r->out->moves++] = move;
}

static struct cabling_end *ends(const struct replugging *r, uint32_t cable)
{
    return r->end + 2 * (size_t)cable;
}

/* A cable makes a link: its end `stays` is end `as` of the link. */
static void make_link(struct replugging *r, uint32_t link, uint32_t cable, unsigned stays,
                      unsigned as)
{
    if (link == CABLING_NONE)
        return;
    r->links->link[link].cable = cable;
    r->links->link[link].end[as] = ends(r, cable)[stays];
    r->links->link[link].end[1 - as] = ends(r, cable)[1 - stays];
}

static void remove_cables(struct replugging *r)
{
    for (uint32_t i = 0; i < r->changes->count; i++) {
        const struct change *c = &r->changes->change[i];
        if (c->kind != CHANGE_REMOVE)
            continue;
        const struct cabling_end *end = ends(r, c->cable[0]);
        set_taken(r, end[0], false);
        set_taken(r, end[1], false);
        add_move(r, (struct cabling_move){.kind = CABLING_REMOVE, .from = end[0], .to = end[1]});
    }
}

static void swap_cables(struct replugging *r)
{
    for (uint32_t i = 0; i < r->changes->count; i++) {
        const struct change *c = &r->changes->change[i];
        if (c->kind != CHANGE_SWAP)
            continue;
        struct cabling_end *one = &ends(r, c->cable[0])[1 - c->stays[0]];
        struct cabling_end *two = &ends(r, c->cable[1])[1 - c->stays[1]];
        struct cabling_end moved = *one;
        add_move(r, (struct cabling_move){.kind = CABLING_SWAP, .from = *one, .to = *two});
        *one = *two;
        *two = moved;
        for (unsigned k = 0; k < 2; k++)
            make_link(r, c->link[k], c->cable[k], c->stays[k], c->as[k]);
    }
}

/* Whether an interface is free for the moved end of a cable, or all are taken for good. */
static bool is_free(const struct replugging *r, struct cabling_end end)
{
    struct cabling_end at = {.host = end.host};
    bool any = false;

    if (end.interface != CABLING_NONE)
        return !r->taken[number(r, end)];
    for (at.interface = 0; at.interface < r->links->wiring->input->host[at.host].interfaces;
         at.interface++) {
        uint32_t here = unsuited(r, at, false);
        if (here < 4)
            return true;
        any |= here != CABLING_NONE;
    }
    return !any;
}

static void move_end(struct replugging *r, const struct change *c)
{
    struct cabling_end *end = ends(r, c->cable[0]), from = end[1 - c->stays[0]];
    struct cabling_end to = r->links->link[c->link[0]].end[1 - c->as[0]];

    choose(r, &to, false);
    if (r->freed[number(r, from)]) {
        r->freed[number(r, from)] = false;
        set_taken(r, from, false);
    }
    end[1 - c->stays[0]] = to;
    make_link(r, c->link[0], c->cable[0], c->stays[0], c->as[0]);
    add_move(r, (struct cabling_move){
                    .kind = CABLING_MOVE_END, .from = from, .to = to, .stays = end[c->stays[0]]});
}

/* Makes moves whose goal is free first. If none is, three or more plugs change places in a circle, and any may be the
 * first. */
static void move_ends(struct replugging *r)
{
    bool done[2 * CHANGES_MOST] = {false};
    const struct change *change = r->changes->change;

    for (uint32_t i = 0; i < r->changes->count; i++)
        if (change[i].kind == CHANGE_MOVE)
            r->freed[number(r, ends(r, change[i].cable[0])[1 - change[i].stays[0]])] = true;
    for (;;) {
        uint32_t next = r->changes->count;
        for (uint32_t i = r->changes->count; i-- > 0;)
            if (change[i].kind == CHANGE_MOVE && !done[i] &&
                (next == r->changes->count ||
                 is_free(r, r->links->link[change[i].link[0]].end[1 - change[i].as[0]])))
                next = i;
        if (next == r->changes->count)
            return;
        done[next] = true;
        move_end(r, &change[next]);
    }
}

static void add_cables(struct replugging *r)
{
    for (uint32_t i = 0; i < r->changes->count; i++) {
        const struct change *c = &r->changes->change[i];
        if (c->kind != CHANGE_ADD)
            continue;
        struct wanted_link *link = &r->links->link[c->link[0]];
        struct cabling_move move = {.kind = CABLING_ADD};
        choose(r, &link->end[0], true);
        choose(r, &link->end[1], true);
        bool loose = is_loose(r, link->end[0]), other = is_loose(r, link->end[1]);
        move.from = link->end[loose || !other ? 0 : 1];
        move.to = link->end[loose || !other ? 1 : 0];
        if (loose || other)
            move.kind = loose && other ? CABLING_CHECK : CABLING_PLUG;
        add_move(r, move);
    }
}

static void start_hosts(struct replugging *r)
{
    for (uint32_t i = 0; i < r->links->links; i++) {
        struct wanted_link *k = &r->links->link[i];
        for (unsigned end = 0; end < 2; end++)
            if (k->end[end].host == CABLING_NONE)
                choose(r, &k->end[1 - end], true);
    }
    for (uint32_t i = 0; i < r->links->links; i++)
        for (unsigned end = 0; end < 2; end++) {
            const struct wanted_link *k = &r->links->link[i];
            bool listed = k->end[end].host != CABLING_NONE;
            for (uint32_t m = 0; m < r->out->moves; m++)
                listed |= r->out->move[m].kind == CABLING_START_HOST &&
                          r->out->move[m].rank == k->rank[end];
            if (!listed)
                add_move(r, (struct cabling_move){.kind = CABLING_START_HOST,
                                                  .from = {CABLING_NONE, CABLING_NONE},
                                                  .to = {CABLING_NONE, CABLING_NONE},
                                                  .rank = k->rank[end]});
        }
}

static void replace_cables(struct replugging *r)
{
    for (uint32_t i = 0; i < r->links->links; i++) {
        uint32_t cable = r->links->link[i].cable;
        if (cable != CABLING_NONE && r->links->wiring->cable[cable].state == CABLING_CABLE_ONE_WAY)
            add_move(r, (struct cabling_move){.kind = CABLING_REPLACE,
                                              .from = ends(r, cable)[0],
                                              .to = ends(r, cable)[1]});
    }
}

int replug_make(struct replug *out, struct links *l, const struct changes *c, struct error *e)
{
    const struct wiring *w = l->wiring;
    struct replugging r = {.out = out, .links = l, .changes = c};
    size_t room = (size_t)c->count + l->links + l->missing_hosts + 1;
    int result = 0;

    *out = (struct replug){.moves = 0};
    out->move = calloc(room, sizeof *out->move);
    r.taken = calloc((size_t)w->interfaces + 1, sizeof *r.taken);
    r.freed = calloc((size_t)w->interfaces + 1, sizeof *r.freed);
    r.end = calloc(2 * (size_t)w->cables + 1, sizeof *r.end);
    if (r.end == NULL || out->move == NULL || r.taken == NULL || r.freed == NULL) {
        free(out->move);
        result = error_set(e, ERROR_MEMORY, "no memory for %zu moves", room);
    } else {
        for (uint32_t n = 0; n < w->interfaces; n++)
            r.taken[n] = w->cable_at[n] != CABLING_NONE;
        for (uint32_t i = 0; i < 2 * w->cables; i++)
            r.end[i] = w->cable[i / 2].end[i % 2];
        swap_cables(&r);
        remove_cables(&r);
        move_ends(&r);
        add_cables(&r);
        start_hosts(&r);
        replace_cables(&r);
    }
    free(r.taken);
    free(r.freed);
    free(r.end);
    return result;
}
