#include "tests/unit/cabling_fixture.h"

#include "tests/support/cmocka.h"

static const struct cabling_end nowhere = {CABLING_NONE, CABLING_NONE};

uint32_t world_random(struct world *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 20) % below;
}

static bool same(struct cabling_end a, struct cabling_end b)
{
    return a.host == b.host && a.interface == b.interface;
}

void world_plug(struct world *w, struct cabling_end a, struct cabling_end b)
{
    if (w->cables == w->room) {
        w->room = 2 * w->room + 16;
        w->cable = realloc(w->cable, w->room * sizeof *w->cable);
        assert_non_null(w->cable);
    }
    w->cable[w->cables++] = (struct plugged){.end = {a, b}};
}

static void unplug(struct world *w, uint32_t cable)
{
    w->cable[cable] = w->cable[--w->cables];
}

static bool is_free(const struct world *w, struct cabling_end end)
{
    for (uint32_t i = 0; i < w->cables; i++)
        if (same(w->cable[i].end[0], end) || same(w->cable[i].end[1], end))
            return false;
    return true;
}

static void shuffle(struct world *w, uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = i;
    for (uint32_t i = count; i-- > 1;) {
        uint32_t k = world_random(w, i + 1), moved = list[i];
        list[i] = list[k];
        list[k] = moved;
    }
}

static void place_ports(struct world *w, uint32_t rank, uint32_t spare)
{
    uint32_t host = w->host_at[rank], order[WORLD_INTERFACES], used = 0;

    for (unsigned port = 0; port < torus_ports(&w->torus); port++)
        used += torus_neighbour(&w->torus, rank, port) != TORUS_NO_NODE;
    w->interfaces[host] = used + spare;
    assert_true(w->interfaces[host] <= WORLD_INTERFACES);
    shuffle(w, order, w->interfaces[host]);
    for (uint32_t i = 0; i < WORLD_INTERFACES; i++)
        w->port[host][i] = -1;
    used = 0;
    for (unsigned port = 0; port < torus_ports(&w->torus); port++)
        if (torus_neighbour(&w->torus, rank, port) != TORUS_NO_NODE)
            w->port[host][order[used++]] = (int)port;
}

static struct cabling_end interface_of(const struct world *w, uint32_t rank, unsigned port)
{
    struct cabling_end end = {.host = w->host_at[rank]};

    while (w->port[end.host][end.interface] != (int)port)
        end.interface++;
    return end;
}

struct world *world_make(const char *dims, uint32_t spare, bool named, uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    struct error e;

    assert_non_null(w);
    w->random = seed * 0x9e3779b97f4a7c15u + 1;
    assert_int_equal(torus_parse(&w->torus, dims, &e), 0);
    w->hosts = w->torus.nodes;
    w->down = CABLING_NONE;
    shuffle(w, w->host_at, w->hosts);
    for (uint32_t rank = 0; rank < w->hosts; rank++) {
        uint32_t host = w->host_at[rank];
        (void)snprintf(w->host_name[host], sizeof w->host_name[host], "node%u",
                       named ? rank : host);
        place_ports(w, rank, spare);
    }
    for (uint32_t i = 0; i < WORLD_INTERFACES; i++)
        (void)snprintf(w->interface_name[i], sizeof w->interface_name[i], "eth%u", i);
    for (uint32_t rank = 0; rank < w->hosts; rank++)
        for (unsigned port = 0; port < torus_ports(&w->torus); port++)
            if (torus_port_dials(&w->torus, rank, port))
                world_plug(w, interface_of(w, rank, port),
                           interface_of(w, torus_neighbour(&w->torus, rank, port),
                                        torus_port_opposite(&w->torus, port)));
    return w;
}

static void free_input(struct world *w)
{
    free(w->host);
    free(w->interface);
    free(w->heard);
    w->host = NULL;
    w->interface = NULL;
    w->heard = NULL;
}

void world_free(struct world *w)
{
    free_input(w);
    free(w->cable);
    free(w);
}

/* A free interface of a random host, not of the two given. Returns false if there is none. */
static bool find_free(struct world *w, uint32_t not, uint32_t nor, struct cabling_end *end)
{
    for (uint32_t i = 0; i < 4 * w->hosts; i++) {
        end->host = world_random(w, w->hosts);
        end->interface = world_random(w, w->interfaces[end->host]);
        if (end->host != not &&end->host != nor && is_free(w, *end))
            return true;
    }
    return false;
}

static bool find_free_at(const struct world *w, uint32_t host, struct cabling_end *end)
{
    *end = (struct cabling_end){.host = host};
    while (end->interface < w->interfaces[host] && !is_free(w, *end))
        end->interface++;
    return end->interface < w->interfaces[host];
}

static bool cross(struct world *w, struct plugged *c)
{
    struct plugged *other = &w->cable[world_random(w, w->cables)];
    unsigned side = world_random(w, 2);
    struct cabling_end moved = c->end[1];

    if (other == c || other->state != PLUGGED_GOOD)
        return false;
    c->end[1] = other->end[side];
    other->end[side] = moved;
    return true;
}

static bool make_twice(struct world *w, struct plugged *c)
{
    struct plugged *beside = &w->cable[world_random(w, w->cables)];
    struct cabling_end end;

    for (uint32_t i = 0;
         beside->state != PLUGGED_GOOD || beside == c || beside->end[0].host != c->end[0].host;
         beside = &w->cable[world_random(w, w->cables)])
        if (i++ == 8 * w->cables)
            return false;
    if (beside->end[1].host == CABLING_NONE || !find_free_at(w, beside->end[1].host, &end))
        return false;
    c->end[1] = end;
    return true;
}

bool world_break(struct world *w, enum world_fault fault)
{
    uint32_t which = world_random(w, w->cables);
    struct plugged *c = &w->cable[which];
    struct cabling_end a, b;

    if (c->state != PLUGGED_GOOD || c->end[0].host == CABLING_NONE ||
        c->end[1].host == CABLING_NONE || c->end[0].host == c->end[1].host)
        return false;
    if (world_random(w, 2) != 0) {
        a = c->end[0];
        c->end[0] = c->end[1];
        c->end[1] = a;
    }
    switch (fault) {
    case FAULT_MISSING:
        unplug(w, which);
        return true;
    case FAULT_PULLED:
        c->state = PLUGGED_PULLED;
        c->end[1] = nowhere;
        return true;
    case FAULT_CROSSED:
        return cross(w, c);
    case FAULT_WRONG_HOST:
        return find_free(w, c->end[0].host, c->end[1].host, &a) && (c->end[1] = a, true);
    case FAULT_LOOP:
        return find_free_at(w, c->end[0].host, &a) && (c->end[1] = a, true);
    case FAULT_ONE_WAY:
        c->state = PLUGGED_ONE_WAY;
        return true;
    case FAULT_EXTRA:
        if (!find_free(w, CABLING_NONE, CABLING_NONE, &a) ||
            !find_free(w, a.host, CABLING_NONE, &b))
            return false;
        world_plug(w, a, b);
        return true;
    case FAULT_TWICE:
        return make_twice(w, c);
    case FAULT_DEAD:
        c->state = PLUGGED_DEAD;
        return true;
    case FAULT_STRAY:
        c->end[1] = nowhere;
        return true;
    case FAULT_HOST_DOWN:
        if (w->down != CABLING_NONE)
            return false;
        w->down = world_random(w, w->hosts);
        return true;
    default:
        return false;
    }
}

/* Lists the hosts of the input in an order of its own. */
static void list_hosts(struct world *w, bool places)
{
    uint32_t order[CABLING_HOSTS_MOST], number = 0, count = 0;

    shuffle(w, order, w->hosts);
    for (uint32_t i = 0; i < w->hosts; i++) {
        uint32_t host = order[i], rank = 0;
        while (w->host_at[rank] != host)
            rank++;
        w->seen_as[host] = CABLING_NONE;
        if (host == w->down)
            continue;
        w->seen_as[host] = count;
        w->host_of[count] = host;
        w->host[count++] = (struct cabling_host){.name = w->host_name[host],
                                                 .interface = w->interface + number,
                                                 .interfaces = w->interfaces[host],
                                                 .rank = places ? rank : CABLING_NONE};
        for (uint32_t k = 0; k < w->interfaces[host]; k++)
            w->interface[number++] = (struct cabling_interface){
                .name = w->interface_name[k], .port = places ? w->port[host][k] : -1};
    }
    w->input.hosts = count;
}

static struct cabling_interface *seen_interface(struct world *w, struct cabling_end end)
{
    if (end.host == CABLING_NONE || end.host == w->down)
        return NULL;
    return (struct cabling_interface *)&w->host[w->seen_as[end.host]].interface[end.interface];
}

static void hear(struct world *w, const struct plugged *c, unsigned at, struct cabling_end *heard)
{
    struct cabling_interface *here = seen_interface(w, c->end[at]);
    const struct cabling_interface *there = seen_interface(w, c->end[1 - at]);

    if (here == NULL)
        return;
    here->carrier = c->state != PLUGGED_PULLED;
    if (there == NULL || c->state == PLUGGED_DEAD || c->state == PLUGGED_PULLED ||
        (c->state == PLUGGED_ONE_WAY && at == 0))
        return;
    *heard = (struct cabling_end){w->seen_as[c->end[1 - at].host], c->end[1 - at].interface};
    here->heard = heard;
    here->heard_count = 1;
}

const struct cabling_input *world_input(struct world *w, bool wanted, bool places)
{
    uint32_t interfaces = 1;

    free_input(w);
    for (uint32_t i = 0; i < w->hosts; i++)
        interfaces += w->interfaces[i];
    w->host = calloc(w->hosts, sizeof *w->host);
    w->interface = calloc(interfaces, sizeof *w->interface);
    w->heard = calloc(2 * w->cables + 1, sizeof *w->heard);
    assert_true(w->host != NULL && w->interface != NULL && w->heard != NULL);
    w->input = (struct cabling_input){.host = w->host, .wanted = wanted ? &w->torus : NULL};
    list_hosts(w, places);
    for (uint32_t i = 0; i < w->cables; i++)
        for (unsigned at = 0; at < 2; at++)
            hear(w, &w->cable[i], at, &w->heard[2 * i + at]);
    return &w->input;
}

/* An end as the result has it, in this world. */
static struct cabling_end real(const struct world *w, struct cabling_end end)
{
    return end.host == CABLING_NONE ? nowhere
                                    : (struct cabling_end){w->host_of[end.host], end.interface};
}

/* The cable with an end there. */
static struct plugged *cable_in(struct world *w, struct cabling_end end, unsigned *side)
{
    for (uint32_t i = 0; i < w->cables; i++)
        for (*side = 0; *side < 2; ++*side)
            if (same(w->cable[i].end[*side], end))
                return &w->cable[i];
    return NULL;
}

/* Removes a cable that does not work; there must be no other one. */
static void clear_end(struct world *w, struct cabling_end end)
{
    unsigned side;
    struct plugged *c = cable_in(w, end, &side);

    if (c == NULL)
        return;
    assert_true(c->state == PLUGGED_PULLED || c->state == PLUGGED_DEAD ||
                c->end[1 - side].host == CABLING_NONE || c->end[1 - side].host == w->down);
    unplug(w, (uint32_t)(c - w->cable));
}

static void move_end(struct world *w, const struct cabling_move *m)
{
    struct cabling_end from = real(w, m->from), to = real(w, m->to), stays = real(w, m->stays);
    unsigned side, other;
    struct plugged *c = cable_in(w, from, &side), *b;

    assert_non_null(c);
    assert_true(same(c->end[1 - side], stays));
    assert_true(to.interface != CABLING_NONE);
    b = cable_in(w, to, &other);
    if (b != NULL &&
        (b->state == PLUGGED_PULLED || b->state == PLUGGED_DEAD ||
         b->end[1 - other].host == CABLING_NONE || b->end[1 - other].host == w->down)) {
        clear_end(w, to);
        c = cable_in(w, from, &side);
    }
    c->end[side] = to;
}

static void swap(struct world *w, struct cabling_end from, struct cabling_end to)
{
    unsigned side, other;
    struct plugged *c = cable_in(w, from, &side), *d = cable_in(w, to, &other);

    assert_true(c != NULL && d != NULL);
    c->end[side] = to;
    d->end[other] = from;
}

static void carry_out(struct world *w, const struct cabling_move *m)
{
    struct cabling_end from = real(w, m->from), to = real(w, m->to);
    unsigned side;
    struct plugged *c;

    switch (m->kind) {
    case CABLING_MOVE_END:
        move_end(w, m);
        return;
    case CABLING_SWAP:
        swap(w, from, to);
        return;
    case CABLING_PLUG:
    case CABLING_CHECK:
    case CABLING_ADD:
        assert_true(from.interface != CABLING_NONE && to.interface != CABLING_NONE);
        clear_end(w, from);
        clear_end(w, to);
        world_plug(w, from, to);
        return;
    case CABLING_REMOVE:
    case CABLING_REPLACE:
        c = cable_in(w, from, &side);
        assert_non_null(c);
        assert_true(same(c->end[1 - side], to));
        if (m->kind == CABLING_REMOVE)
            unplug(w, (uint32_t)(c - w->cable));
        else
            c->state = PLUGGED_GOOD;
        return;
    case CABLING_START_HOST:
        return;
    }
}

/* The interface at a port, whether or not the host is heard. */
static struct cabling_end end_at(const struct world *w, const struct cabling_result *r,
                                 uint32_t rank, unsigned port)
{
    uint32_t host = r->host_of_rank[rank];

    if (host == CABLING_NONE)
        return (struct cabling_end){w->down, CABLING_NONE};
    return (struct cabling_end){w->host_of[host],
                                r->interface_at[(size_t)rank * torus_ports(&r->torus) + port]};
}

void world_repair(struct world *w, const struct cabling_result *r)
{
    uint32_t links = 0, working = 0;

    for (uint32_t i = 0; i < r->moves; i++)
        carry_out(w, &r->move[i]);
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
            if (!torus_port_dials(&r->torus, rank, port))
                continue;
            struct cabling_end a = end_at(w, r, rank, port);
            struct cabling_end b = end_at(w, r, torus_neighbour(&r->torus, rank, port),
                                          torus_port_opposite(&r->torus, port));
            unsigned side;
            struct plugged *c = cable_in(w, a, &side);
            if (a.host == w->down || b.host == w->down)
                continue; /* nothing tells where the cables of a host lead that is not heard */
            assert_non_null(c);
            assert_int_equal(c->state, PLUGGED_GOOD);
            assert_true(same(c->end[1 - side], b));
            links++;
        }
    for (uint32_t i = 0; i < w->cables; i++) {
        bool stray = false;
        for (unsigned side = 0; side < 2; side++)
            stray |=
                w->cable[i].end[side].host == CABLING_NONE || w->cable[i].end[side].host == w->down;
        for (uint32_t k = 0; k < i; k++) /* no interface has two cables */
            for (unsigned side = 0; side < 4; side++)
                assert_false(w->cable[i].end[side / 2].host != CABLING_NONE &&
                             same(w->cable[i].end[side / 2], w->cable[k].end[side % 2]));
        working += !stray && w->cable[i].state == PLUGGED_GOOD;
    }
    assert_int_equal(working, links);
}

static void print_end(const struct world *w, struct cabling_end end)
{
    if (end.host == CABLING_NONE)
        print_message(" ?");
    else
        print_message(" %s:eth%u", w->host_name[end.host], end.interface);
}

void world_print(const struct world *w, const struct cabling_result *r)
{
    char text[512];

    for (uint32_t i = 0; i < w->cables; i++) {
        print_end(w, w->cable[i].end[0]);
        print_end(w, w->cable[i].end[1]);
        print_message(" state %u\n", w->cable[i].state);
    }
    print_message("%s\n", r->text);
    for (uint32_t i = 0; i < r->moves; i++) {
        (void)cabling_move_text(r, &w->input, i, text, sizeof text);
        print_message("  %s\n", text);
    }
}
