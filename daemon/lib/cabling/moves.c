#include "daemon/lib/cabling/moves.h"

#include <stdlib.h>
#include <string.h>

/* The interface that should have a port, or CABLING_NONE. */
static uint32_t hinted(const struct wiring *w, uint32_t host, uint32_t rank, unsigned port)
{
    const struct cabling_host *h = &w->input->host[host];

    if (w->input->wanted == NULL || h->rank != rank)
        return CABLING_NONE;
    for (uint32_t i = 0; i < h->interfaces; i++)
        if (h->interface[i].port == (int)port)
            return i;
    return CABLING_NONE;
}

static void list_links(struct links *l, const struct torus *t, const uint32_t *host_at)
{
    uint32_t hosts = l->wiring->input->hosts;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        l->missing_hosts += host_at[rank] >= hosts;
        for (unsigned port = 0; port < torus_ports(t); port++) {
            if (!torus_port_dials(t, rank, port))
                continue;
            struct wanted_link *k = &l->link[l->links++];
            k->rank[0] = rank;
            k->rank[1] = torus_neighbour(t, rank, port);
            k->port[0] = port;
            k->port[1] = torus_port_opposite(t, port);
            k->cable = CABLING_NONE;
            for (unsigned i = 0; i < 2; i++) {
                uint32_t host = host_at[k->rank[i]];
                k->end[i].host = host < hosts ? host : CABLING_NONE;
                k->end[i].interface =
                    host < hosts ? hinted(l->wiring, host, k->rank[i], k->port[i]) : CABLING_NONE;
            }
        }
    }
}

/* Finds a cable for a link among those of its first host. */
static void match(struct links *l, struct wanted_link *k, bool *used)
{
    const struct wiring *w = l->wiring;
    uint32_t host = k->end[0].host;

    if (k->cable != CABLING_NONE || host == CABLING_NONE || k->end[1].host == CABLING_NONE)
        return;
    for (uint32_t n = w->first[host]; n < w->first[host + 1]; n++) {
        uint32_t cable = w->cable_at[n];
        if (cable == CABLING_NONE || used[cable])
            continue;
        const struct cabling_end *end = w->cable[cable].end;
        for (unsigned turn = 0; turn < 2; turn++)
            if (links_end_fits(k->end[0], end[turn]) && links_end_fits(k->end[1], end[1 - turn])) {
                k->cable = cable;
                k->end[0] = end[turn];
                k->end[1] = end[1 - turn];
                used[cable] = true;
                return;
            }
    }
}

static unsigned known_ends(const struct wanted_link *k)
{
    unsigned first = k->end[0].interface != CABLING_NONE;

    return first + (k->end[1].interface != CABLING_NONE);
}

int links_make(struct links *l, const struct wiring *w, const struct torus *t,
               const uint32_t *host_at, struct error *e)
{
    size_t most = (size_t)t->nodes * torus_ports(t) + 1;
    bool *used = calloc((size_t)w->cables + 1, sizeof *used);

    *l = (struct links){.wiring = w};
    l->link = calloc(most, sizeof *l->link);
    l->missing = calloc(most, sizeof *l->missing);
    l->extra = calloc((size_t)w->cables + 1, sizeof *l->extra);
    if (used == NULL || l->link == NULL || l->missing == NULL || l->extra == NULL) {
        free(used);
        links_free(l);
        return error_set(e, ERROR_MEMORY, "no memory for %zu links", most);
    }
    list_links(l, t, host_at);
    for (unsigned known = 3; known-- > 0;) /* first the links whose interfaces are given */
        for (uint32_t i = 0; i < l->links; i++)
            if (known_ends(&l->link[i]) == known)
                match(l, &l->link[i], used);
    for (uint32_t i = 0; i < l->links; i++)
        if (l->link[i].cable == CABLING_NONE && l->link[i].end[0].host != CABLING_NONE &&
            l->link[i].end[1].host != CABLING_NONE)
            l->missing[l->missings++] = i;
    for (uint32_t i = 0; i < w->cables; i++)
        if (!used[i])
            l->extra[l->extras++] = i;
    free(used);
    return 0;
}

void links_free(struct links *l)
{
    free(l->link);
    free(l->missing);
    free(l->extra);
}

struct deciding {
    const struct links *links;
    bool extra_done[CHANGES_MOST], missing_done[CHANGES_MOST];
    struct cabling_end end[CHANGES_MOST]
                          [2]; /* the cables that are left over after the changes so far */
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

/* Decides what happens to the next cable that is left over. A swap is tried first, then a move. */
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

/* How badly an interface suits a plug; CABLING_NONE: not at all. `loose`: a cable that is plugged in there and leads
 * nowhere may be the cable to move. */
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
