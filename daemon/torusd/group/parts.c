/* The parts of a group: limits, routes, which nodes and links they have, and what is down there. */
#include "daemon/torusd/group/state.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/group/relay.h"

/* --- limits --- */

/* Limits of the whole. All other parts together may use half as much. */
#define EARLY_MOST ((UINT64_C(4) << 20) / GROUP_SCALE)
#define ROUNDS_MOST ((UINT64_C(6) << 20) / GROUP_SCALE)

/* Programs have many groups of some nodes, so these have less. */
#define SOME_SHARE 2u

_Static_assert(GROUP_COPIES <= 8,
               "the copies of all parts fit into the memory that group_memory() adds for them");

/* Chooses the eager limit so that a late member can keep the frames of two calls that it has not made, both for
 * itself and for others: a node's blocks once for each of their hops, or a vector from each neighbour, with
 * digests. Instead of the first call there may be several unproven calls, which together have no more bytes. */
static uint64_t choose_eager(const struct torus *t, bool damaged, uint64_t early)
{
    uint32_t times = torus_diameter(t) / 2 + 1, half = (torus_ports(t) + 1) / 2;

    if (damaged || !torus_is_plain(t)) /* all blocks may have to pass through one node */
        times = t->nodes;

    times = times > half ? times : half;
    times = times > 2 ? times : 2; /* for the copies */
    uint64_t eager = early / 4 / times;
    while (eager > 0 && limits_wire_bytes(eager) > early / 4 / times)
        eager -= eager / 1024 + 1;
    return eager < GROUP_EAGER_MOST ? eager : GROUP_EAGER_MOST;
}

/* Returns how many parts besides the whole a node is in. */
static uint32_t parts_of(const struct torus *whole)
{
    return (1u << whole->dims) - 2;
}

struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged)
{
    struct limits l = {EARLY_MOST, ROUNDS_MOST, 0};

    if (whole == NULL) {
        l.early /= SOME_SHARE;
        l.rounds /= SOME_SHARE;
    } else if (t->dims < whole->dims) {
        uint32_t parts = parts_of(whole);
        l.early = EARLY_MOST / 2 / parts;
        l.rounds = ROUNDS_MOST / 2 / parts;
    }
    l.eager = choose_eager(t, damaged, l.early);
    return l;
}

/* Returns the bytes of the whole for rounds, and for what a large vector in place keeps. The other parts together have
 * half of it. */
static uint64_t rounds_memory(const struct torus *whole)
{
    return ROUNDS_MOST + ROUNDS_MOST / (2 * whole->dims + 1);
}

/* Returns the bytes of the whole for eager calls and messages. */
static uint64_t calls_memory(const struct torus *whole)
{
    return EARLY_MOST + GROUP_COPIES * limits_of(whole, whole, false).eager + GROUP_MESSAGES_MOST;
}

/* Bytes for eager calls of each other part. */
static uint64_t other_calls_memory(const struct torus *whole)
{
    return (EARLY_MOST / 2 + EARLY_MOST / 2 * GROUP_COPIES / 8) / parts_of(whole);
}

/* What a part has for the frames of waves and agreements, if it has nothing else. */
#define POOR_EARLY (UINT64_C(16) << 10)

uint64_t group_memory(const struct torus *whole)
{
    uint64_t bytes = calls_memory(whole) + rounds_memory(whole);

    if (whole->dims > 1)
        bytes += rounds_memory(whole) / 2 + other_calls_memory(whole) * parts_of(whole);
    return bytes;
}

uint64_t group_first_memory(const struct torus *whole)
{
    uint64_t bytes = calls_memory(whole) + (rounds_memory(whole) >> GROUP_ROUNDS_LAST);

    if (whole->dims > 1)
        bytes += (rounds_memory(whole) / 2 >> GROUP_ROUNDS_LAST) + POOR_EARLY * parts_of(whole);
    return bytes;
}

static const struct torus *whole_of(const struct part *p)
{
    return router_torus(p->session->base.set.router);
}

uint64_t part_rounds_memory(const struct part *p, unsigned level)
{
    const struct torus *whole = whole_of(p);
    const uint64_t bytes =
        p->mask == 0 ? rounds_memory(whole) : rounds_memory(whole) / 2 / parts_of(whole);

    return bytes >> level;
}

uint64_t part_calls_memory(const struct part *p)
{
    const uint64_t bytes = other_calls_memory(whole_of(p));

    return bytes > POOR_EARLY ? bytes - POOR_EARLY : 0;
}

/* --- what a part of a group that grows reserves --- */

static struct limits find_limits(const struct part *p, bool damaged)
{
    const bool some = p->session->relay != NULL;

    return limits_of(some ? NULL : whole_of(p), p->torus, damaged || some);
}

uint64_t part_undamaged_eager(const struct part *p)
{
    return find_limits(p, false).eager;
}

void part_set_limits(struct part *p)
{
    p->limits = find_limits(p, p->finds_routes);
    if (!p->poor)
        return;
    p->limits.eager = 0;
    if (p->limits.early > POOR_EARLY)
        p->limits.early = POOR_EARLY;
}

void part_take_memory(struct part *p)
{
    struct session *s = p->session;

    if (!s->grows || p->has_memory || p->lacks)
        return;
    p->has_memory = s->memory.take(s->events.context, part_calls_memory(p));
    p->lacks = !p->has_memory;
}

void part_give_memory(struct part *p)
{
    struct session *s = p->session;

    if (p->has_memory)
        s->memory.give(s->events.context, part_calls_memory(p));
    p->has_memory = false;
    p->poor = true;
    part_set_limits(p);
}

void part_take_rounds(struct part *p)
{
    struct session *s = p->session;

    for (unsigned level = 0; level < p->level; level++)
        if (s->memory.take(s->events.context,
                           part_rounds_memory(p, level) - part_rounds_memory(p, p->level)))
            p->level = level;
}

void part_give_rounds(struct part *p)
{
    struct session *s = p->session;

    s->memory.give(s->events.context,
                   part_rounds_memory(p, p->level) - part_rounds_memory(p, GROUP_ROUNDS_LAST));
    p->level = GROUP_ROUNDS_LAST;
}

/* What the members of an eager call send is about a quarter of their limit of early frames, wherever it is, and two such
 * calls may be under way. The rest is for large calls, and for the heads of frames. */
#define PASSING_LARGE (EARLY_MOST / SOME_SHARE / 2)
#define PASSING_MOST (EARLY_MOST / SOME_SHARE + PASSING_LARGE)

uint64_t group_passing_memory(void)
{
    return PASSING_MOST + GROUP_MESSAGES_MOST;
}

uint64_t group_some_memory(void)
{
    const uint64_t rounds = ROUNDS_MOST / SOME_SHARE;

    /* A large vector in place is kept while it is overwritten; a node holds at least two of them. */
    return EARLY_MOST / SOME_SHARE + rounds + rounds / 2 + GROUP_COPIES * GROUP_EAGER_MOST +
           GROUP_MESSAGES_MOST;
}

uint64_t part_blocks(const struct part *p, uint64_t blocks, uint64_t crossing)
{
    const struct relay *relay = p->session->relay;
    const uint64_t passing = relay != NULL ? relay->overlay.passing * crossing *
                                                 (ROUNDS_MOST / SOME_SHARE / PASSING_LARGE)
                                           : 0;

    return passing > blocks ? passing : blocks;
}

/* --- routes --- */

int part_detour(struct part *p, struct error *e)
{
    return p->detour != NULL ? 1 : planner_get_detour(p->planner, &p->damage, &p->detour, e);
}

int part_detour_both_ways(struct part *p, struct error *e)
{
    struct damage level;

    if (p->both_ways != NULL)
        return 1;
    if (damage_copy(&level, &p->damage, e) != 0)
        return -1;
    damage_level_links(&level);
    const int result = planner_get_detour(p->planner, &level, &p->both_ways, e);
    damage_free(&level);
    return result;
}

int part_trees(struct part *p, struct error *e)
{
    int result = !p->has_trees && p->finds_routes ? part_detour_both_ways(p, e) : 1;

    if (result <= 0 || p->has_trees)
        return result;
    const struct algorithm *a =
        p->finds_routes ? detour_reductions(p->both_ways) : even_algorithm(p->torus);
    if (reduction_build(&p->trees, p->torus, a, p->rank, e) != 0)
        return -1;
    p->has_trees = true;
    return 1;
}

struct part *part_find(const struct session *s, uint32_t mask)
{
    struct part *p = s->part;

    while (p != NULL && p->mask != mask)
        p = p->next;
    return p;
}

int part_port(const struct part *p, unsigned port, uint32_t channel)
{
    if (p->session->relay == NULL)
        return p->port[port];
    return (int)torus_port_opposite(p->torus, (channel - 1) % torus_ports(p->torus));
}

void part_tell_lost(const struct part *p, struct engine *engine)
{
    for (unsigned own = 0; own < torus_ports(p->torus); own++)
        if (engine_has_lost(&p->session->base, p->place != NULL ? p->place->port[own] : own))
            engine_lose_port(engine, own);
}

/* --- engines, and waves --- */

struct engine_setup part_engine_setup(const struct part *p, const struct peer_group_call *mark,
                                      struct source *source, struct sink *sink)
{
    const struct session *s = p->session;

    return (struct engine_setup){
        .router = s->base.set.router,
        .part = p->place,
        .call = mark,
        .handle = s->base.set.handle,
        .source = source,
        .sink = sink,
        .relayed = exchanges_relayed_frames(s->groups->exchanges),
        .segments = 1,
        .window = 1,
    };
}

#define WAVES_MOST (UINT64_C(1) << 40)

static uint64_t wave_size(struct source *s, uint32_t destination)
{
    (void)destination;
    return WAVES_MOST * ((struct wave *)((char *)s - offsetof(struct wave, source)))->bytes;
}

static int wave_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                     struct extent *out, struct error *e)
{
    const struct wave *w = (struct wave *)((char *)s - offsetof(struct wave, source));
    const uint32_t at = (uint32_t)(offset % w->bytes), left = w->bytes - at;

    (void)destination, (void)e;
    out->slab = slab_ref(w->slab);
    out->data = w->slab->data + (offset < w->told ? offset : w->told + at);
    out->length = most < left ? most : left;
    return 1;
}

static int wave_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    const struct wave *w = (struct wave *)((char *)s - offsetof(struct wave, sink));

    (void)origin, (void)e;
    if (offset < w->told && piece->length <= w->told - offset)
        memcpy((uint8_t *)w->result + offset, piece->data, piece->length);
    return 0;
}

static const struct source_ops wave_source_ops = {.size = wave_size, .read = wave_read};
static const struct sink_ops wave_sink_ops = {.write = wave_write, .pending = sink_never_pending};

struct engine *wave_open(struct wave *w, const struct part *p, const struct peer_group_call *mark,
                         const void *numbers, uint32_t window, struct error *e)
{
    struct engine_setup setup = part_engine_setup(p, mark, &w->source, &w->sink);
    const struct reducing_options options = {.type = REDUCTION_UINT64,
                                             .operation = REDUCTION_MAX,
                                             .everywhere = true,
                                             .unchecked = p->session->unchecked};

    w->source.ops = &wave_source_ops;
    w->sink.ops = &wave_sink_ops;
    w->slab = slab_without_pool((size_t)w->told + w->bytes, NULL, NULL);
    if (w->slab == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
        return NULL;
    }
    memcpy(w->slab->data, numbers, w->told);
    memset(w->slab->data + w->told, 0, w->bytes);
    setup.round_bytes = w->bytes;
    setup.window = window;
    return reducing_new(&setup, &p->tree, &options, e);
}

void wave_set(struct wave *w, unsigned round, uint64_t number)
{
    memcpy(w->slab->data + (size_t)round * w->bytes, &number, sizeof number);
}

void wave_free(struct wave *w)
{
    if (w->slab != NULL)
        slab_unref(w->slab);
    *w = (struct wave){0};
}

/* --- nodes and links of the whole torus --- */

/* Returns the rank that a node of the whole torus has in the part. */
static uint32_t rank_in(const struct part *p, const struct torus *whole, uint32_t node)
{
    uint32_t coordinates[TORUS_MAX_DIMS], own[TORUS_MAX_DIMS];
    unsigned dims = 0;

    torus_coordinates(whole, node, coordinates);
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((p->mask & 1u << dim) != 0)
            own[dims++] = coordinates[dim];
    return torus_rank(p->torus, own);
}

void part_cut_out(struct part *p, const struct torus *whole, uint32_t node)
{
    struct engine_part *place = p->place;
    struct torus *t = &place->torus;

    t->nodes = 1;
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((p->mask & 1u << dim) != 0)
            (void)torus_append(t, whole->size[dim], whole->wrap[dim], whole->graph[dim]);
    /* The ports of the part are those of its dimensions, in the same order. */
    for (unsigned port = 0, own = 0; port < torus_ports(whole); port++)
        if ((p->mask & 1u << torus_port_dim(whole, port)) != 0) {
            place->port[own] = (uint8_t)port;
            p->port[port] = (int8_t)own++;
        }
    p->torus = t;
    p->rank = rank_in(p, whole, node);
}

/* Returns the node of the whole torus that has this member number in the part `t` of `node`. */
static uint32_t node_of(const struct torus *whole, const struct torus *t, uint32_t mask,
                        uint32_t node, uint32_t member)
{
    uint32_t coordinates[TORUS_MAX_DIMS], own[TORUS_MAX_DIMS];
    unsigned dims = 0;

    torus_coordinates(whole, node, coordinates);
    torus_coordinates(t, member, own);
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((mask & 1u << dim) != 0)
            coordinates[dim] = own[dims++];
    return torus_rank(whole, coordinates);
}

static void on_planned(void *context)
{
    struct part *p = context;
    session_is_due(p->session);
}

int part_make_planner(struct part *p, struct error *e)
{
    p->planner = planner_new(p->torus, p->rank, &p->session->groups->workers, on_planned, p);
    return p->planner != NULL ? 0 : error_set(e, ERROR_MEMORY, "out of memory for a group");
}

int part_take_members(struct part *p, struct error *e)
{
    const uint32_t here = router_rank(p->session->base.set.router);
    const struct relay *r = p->session->relay;
    struct engine_part *place = p->place;

    if (p->planner != NULL)
        planner_free(p->planner);
    p->planner = NULL;
    *place = (struct engine_part){.torus = r->overlay.torus};
    p->torus = &place->torus;
    p->rank = 0;
    while (r->overlay.node[p->rank] != here)
        p->rank++;
    place->channel = p->rank * torus_ports(p->torus) + 1;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        p->port[port] = -1;
    for (unsigned own = 0; own < torus_ports(p->torus); own++) {
        const int port = r->hop[place->channel - 1 + own].out;
        if (port < 0)
            continue;
        place->port[own] = (uint8_t)port;
        p->port[port] = (int8_t)own;
    }
    return part_make_planner(p, e);
}

/* --- damage --- */

/* Sets *out to the links of the whole that are down in the part that `node` is in. Returns 0, or -1 with *e. */
static int damage_in(struct damage *out, const struct damage *whole,
                     const struct engine_part *place, uint32_t mask, uint32_t node, struct error *e)
{
    const struct torus *t = &place->torus;

    if (damage_init(out, t, e) != 0)
        return -1;
    for (uint32_t member = 0; member < t->nodes; member++) {
        uint32_t there = node_of(&whole->torus, t, mask, node, member);
        for (unsigned port = 0; port < torus_ports(t); port++)
            if ((whole->dead[there] & 1u << place->port[port]) != 0)
                damage_add_link(out, member, port);
    }
    return 0;
}

/* The rate in the whole of a channel of this node's part. */
static uint32_t rate_in(const struct part *p, uint32_t member, unsigned port)
{
    const struct damage *whole = &p->session->damage;
    const uint32_t node =
        node_of(&whole->torus, p->torus, p->mask, router_rank(p->session->base.set.router), member);

    return damage_rate(whole, node, p->place->port[port]);
}

/* Sets the rates of the links of this node's part, relative to its fastest ones. Returns 0, or -1 with *e. */
static int take_rates(struct part *p, struct error *e)
{
    const unsigned ports = torus_ports(p->torus);
    const uint32_t channels = p->torus->nodes * ports;
    uint32_t *rate;

    if (p->session->damage.rate == NULL)
        return 0;
    rate = calloc(channels, sizeof *rate);
    p->damage.rate = calloc(channels, sizeof *p->damage.rate);
    for (uint32_t i = 0; rate != NULL && i < channels; i++)
        if (damage_has_link(&p->damage, i / ports, i % ports))
            rate[i] = rate_in(p, i / ports, i % ports);
    if (rate == NULL || p->damage.rate == NULL) {
        free(rate);
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    }
    (void)damage_relative_rates(rate, channels, p->damage.rate);
    free(rate);
    return 0;
}

int part_check_opening(const struct session *s, uint32_t mask, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    struct part part = {.mask = mask};
    struct engine_part place = {0};
    char links[100];

    if (s->relay != NULL)
        return error_set(e, ERROR_REFUSED, "a group of some nodes has no parts");
    if (s->shrunk)
        return error_set(e, ERROR_REFUSED,
                         "a group without %s has no parts, because some parts would lack members",
                         damage_describe(&s->damage, links, sizeof links));
    part.place = &place;
    part_cut_out(&part, whole, 0);
    for (uint32_t node = 0; s->damaged && node < whole->nodes; node++) {
        struct damage d;
        struct error why;
        if (node_of(whole, &place.torus, mask, node, 0) != node)
            continue; /* check each part only once */
        if (damage_in(&d, &s->damage, &place, mask, node, e) != 0)
            return -1;
        bool connected = damage_is_connected(&d, &why) == 0;
        damage_free(&d);
        if (!connected)
            return error_set(
                e, why.code,
                "this part cannot be opened: without %s, the part of node %u is not connected",
                damage_describe_links(&s->damage, links, sizeof links), node);
    }
    return 0;
}

int part_take_damage(struct part *p, struct error *e)
{
    const struct session *s = p->session;
    int result;

    if (s->relay != NULL) {
        p->finds_routes = !torus_is_plain(p->torus); /* not of one member */
        return damage_copy(&p->damage, &s->relay->overlay.damage, e);
    }
    if (!s->damaged)
        return 0;
    result = p->mask == 0 ? damage_copy(&p->damage, &s->damage, e)
                          : damage_in(&p->damage, &s->damage, p->place, p->mask,
                                      router_rank(s->base.set.router), e);
    if (result != 0 || (p->mask != 0 && take_rates(p, e) != 0))
        return -1;
    p->finds_routes = !damage_is_none(&p->damage) || !torus_is_plain(p->torus);
    return 0;
}
