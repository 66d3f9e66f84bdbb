/* Nodes: calls into their cores; starting, stopping, killing and repairing them. */
#include "daemon/lib/schedule/predict.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

#define FREE_SLABS_KEPT (4u * 1024u * 1024u)
#define WAKES_MOST 100u /* at one virtual time; more of them are a loop that never sleeps */

/* Call this when the node's state may change. */
static void touch(struct node *node)
{
    node->sim->touched |= node->rank < 64 ? UINT64_C(1) << node->rank : 0;
}

void sim_enter(struct node *node)
{
    if (memory_countdown != NULL)
        abort(); /* nested */
    memory_countdown = &node->allocations;
    touch(node);
}

void sim_leave(void)
{
    memory_countdown = NULL;
}

/* Checks a node's invariants after each event. */
static void check_node(const struct node *node)
{
    const struct sim *sim = node->sim;
    struct error e;

    if (core_check(node->core, &e) != 0)
        sim_violated(sim, "core", "node %u: %s", node->rank, e.text);
}

static void on_wake(struct sim *sim, void *object, uint64_t at)
{
    struct node *node = object;

    if (!node->alive || node->wake_at != at)
        return;
    if (node->frozen) { /* it looks at the clock when it runs again */
        node->wake_at = ROUTER_NEVER;
        return;
    }
    if (++sim->wakes_now > WAKES_MOST * sim->torus.nodes)
        sim_violated(sim, "sleep", "node %u wakes up again and again", node->rank);
    node->wake_at = ROUTER_NEVER;
    sim_settle(node);
}

void sim_settle(struct node *node)
{
    struct sim *sim = node->sim;
    uint64_t at;

    if (!node->alive || node->frozen)
        return;
    sim_enter(node);
    do
        core_tick(node->core);
    while (folders_flush(&node->folders));
    sim_leave();
    if (node->doomed) {
        sim_kill(sim, node->rank, SIM_CRASH);
        return;
    }
    network_flush(node);
    check_node(node);
    at = core_deadline(node->core);
    if (at < sim->now)
        at = sim->now;
    if (at < node->wake_at) {
        node->wake_at = at;
        sim_schedule(sim, at - sim->now, "wake", on_wake, node, at);
    }
}

/* Tells the node that an operation is over; not while the node is stopped. */
struct pending {
    struct node *node;
    const char *what;
    void (*run)(struct sim *sim, void *object, uint64_t number);
    void *object;
};

static void on_over(struct sim *sim, void *object, uint64_t number)
{
    struct pending p = *(struct pending *)object;

    if (p.node->frozen && !sim->ending) {
        sim_schedule(sim, p.node->frozen_until - sim->now, p.what, on_over, object, 0);
        return;
    }
    free(object);
    sim_enter(p.node);
    p.run(sim, p.object, 0);
    sim_leave();
    sim_settle(p.node);
}

void sim_schedule_at_node(struct node *node, uint64_t delay, const char *what,
                          void (*run)(struct sim *sim, void *object, uint64_t number), void *object)
{
    struct pending *p = sim_alloc(sizeof *p);

    *p = (struct pending){node, what, run, object};
    sim_schedule(node->sim, delay, what, on_over, p, 0);
}

/* Every torus has a key, and links are proved, as between machines. They are not encrypted, because encryption
 * belongs to the network code, which the simulator replaces. */
static const struct secrets *cluster_key(struct secrets *secrets)
{
    static const uint8_t bytes[KEY_SIZE] = "of all simulated tori, as it is";

    *secrets = (struct secrets){.count = 1};
    key_set(&secrets->key[0], bytes);
    return secrets;
}

static void on_survey(void *context, enum survey_kind kind)
{
    const struct node *node = context;
    uint8_t bytes[SIM_SURVEY_ANSWER];

    memset(bytes, (int)(node->rank + kind), sizeof bytes);
    survey_tell(core_survey(node->core), kind, bytes, sizeof bytes);
}

static double mbit_of(uint64_t bytes_per_second)
{
    return (double)bytes_per_second * 8 / 1e6;
}

static void read_nominal(struct node *node, unsigned port)
{
    router_set_nominal(
        core_router(node->core), port,
        (struct nominal_rate){mbit_of(node->nominal[port]), mbit_of(node->sim->set.rate)});
}

void sim_start_node(struct node *node)
{
    struct sim *sim = node->sim;
    struct secrets secrets;
    struct core_setup setup = {
        .torus = &sim->torus,
        .rank = node->rank,
        .secrets = cluster_key(&secrets),
        .pool = &node->pool,
        .storage = &node->storage,
        .trees = node->trees.absent ? NULL : &node->tree_store,
        .memory_budget = sim->set.memory,
        .minors_back = node->minors_back,
        .link_mbit = mbit_of(sim->set.rate),
        .daemons_per_processor = sim->set.shared ? sim->torus.nodes : 1,
        .link_burst = sim->set.burst > 0 ? RELAY_FRAME_MOST : 0, /* whole pieces pass at once */
    };
    struct error e;

    node->doomed = node->crash_when_decided = false;
    node->allocations = 0;
    node->wake_at = ROUTER_NEVER;
    slab_pool_init(&node->pool, FREE_SLABS_KEPT);
    if (storage_open(node, &e) != 0) { /* it does not start; the caller tries again later */
        node->death = SIM_CRASH;
        return;
    }
    node->alive = true;
    node->leaving = node->frozen = false;
    node->life++;
    node->no_carrier = 0;
    setup.workers = node->workers;
    network_io(node, &setup.io);
    node->core = core_new(&setup, &e);
    if (node->core == NULL)
        abort();
    for (unsigned port = 0; port < torus_ports(&sim->torus); port++)
        if (node->nominal[port] != sim->set.rate)
            read_nominal(node, port);
    survey_set_source(core_survey(node->core), &(struct survey_source){node, on_survey});
    core_start(node->core);
    network_node_started(node);
    sim_settle(node);
}

void sim_set_nominal(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    struct node *node = &sim->node[rank];

    node->nominal[port] = rate;
    if (!node->alive)
        return;
    sim_enter(node);
    read_nominal(node, port);
    sim_leave();
    sim_settle(node);
}

uint64_t sim_nominal(const struct sim *sim, uint32_t rank, unsigned port)
{
    return sim->node[rank].nominal[port];
}

void sim_set_minors_back(struct sim *sim, uint32_t rank, uint32_t minors_back)
{
    sim->node[rank].minors_back = minors_back;
}

void sim_kill(struct sim *sim, uint32_t rank, enum sim_death death)
{
    struct node *node = &sim->node[rank];
    size_t leaked;

    if (!node->alive)
        return;
    touch(node);
    sim_requests_lose_root(sim, rank);
    sim_copies_lose_node(sim, rank);
    node->alive = node->frozen = false;
    node->leaving = true;
    node->death = death;
    node->disk.dead = death != SIM_STOP;
    network_node_dies(node, death);
    core_free(node->core);
    storage_close(node);
    node->core = NULL;
    node->dirty = NULL;
    leaked = slab_pool_close(&node->pool);
    if (leaked > 0 && death != SIM_STOP)
        sim_violated(sim, "memory", "node %u dies with %zu buffers in use", rank, leaked);
}

static void on_thaw(struct sim *sim, void *object, uint64_t at)
{
    struct node *node = object;

    if (!node->frozen || node->frozen_until != at || sim->ending)
        return;
    node->frozen = false;
    network_node_thawed(node);
    sim_settle(node);
}

void sim_freeze(struct sim *sim, uint32_t rank, uint64_t time)
{
    struct node *node = &sim->node[rank];

    if (!node->alive || node->frozen)
        return;
    touch(node);
    sim->slowed = true;
    network_node_frozen(node, time);
    node->frozen = true;
    node->frozen_until = sim->now + time;
    sim_schedule(sim, time, "runs again", on_thaw, node, node->frozen_until);
}

void sim_fail_allocation(struct sim *sim, uint32_t rank, uint64_t count)
{
    network_excuse_node(&sim->node[rank]);
    sim->node[rank].allocations = count;
}

void sim_heal(struct sim *sim)
{
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        struct node *node = &sim->node[rank];
        if (node->allocations > 0)
            network_excuse_node(node);
        node->allocations = 0;
        node->crash_when_decided = false;
        node->disk.slowness = 0;
        node->disk.full = false;
        memset(node->disk.fault, 0, sizeof node->disk.fault);
        memset(node->trees.fault, 0, sizeof node->trees.fault);
        node->trees.room = UINT64_MAX;
        if (node->frozen)
            on_thaw(sim, node, node->frozen_until);
        sim_restart(sim, rank);
    }
    network_heal(sim);
}

void sim_crash_when_decided(struct sim *sim, uint32_t rank)
{
    sim->node[rank].crash_when_decided = true;
    sim_harmed(sim); /* it may be so at any time */
}

void sim_restart(struct sim *sim, uint32_t rank)
{
    if (sim->node[rank].alive)
        return;
    network_node_back(&sim->node[rank]);
    sim_start_node(&sim->node[rank]);
}

/* The state of a simulation, and violations of invariants. */

void sim_violated(const struct sim *sim, const char *invariant, const char *format, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (sim->set.violated != NULL)
        sim->set.violated(sim, invariant, text);
    else
        fail_msg("%s, seed %llu, at %.6f s: %s: %s", sim->set.dims,
                 (unsigned long long)sim->set.seed, (double)sim->now / 1e9, invariant, text);
    abort(); /* neither returns */
}

void *sim_context(const struct sim *sim)
{
    return sim->set.context;
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now;
}

struct chance *sim_chance(struct sim *sim)
{
    return &sim->chance;
}

uint32_t sim_any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(&sim->chance, below);
}

const struct torus *sim_torus(const struct sim *sim)
{
    return &sim->torus;
}

bool sim_alive(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].alive;
}

bool sim_frozen(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].frozen;
}

uint64_t sim_frames_sent(const struct sim *sim, uint32_t rank, Peer__Head__KindCase kind)
{
    return sim->node[rank].sent[kind];
}

void sim_forget_frames(struct sim *sim)
{
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        memset(sim->node[rank].sent, 0, sizeof sim->node[rank].sent);
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

uint64_t sim_frames(const struct sim *sim)
{
    return sim->frames;
}

void sim_harmed(struct sim *sim)
{
    sim->harms++;
    if (sim->harmed_at > sim->now)
        sim->harmed_at = sim->now;
}

uint64_t sim_harmed_at(const struct sim *sim)
{
    return sim->harmed_at;
}

unsigned sim_harms(const struct sim *sim)
{
    return sim->harms;
}

bool sim_slowed(const struct sim *sim)
{
    return sim->slowed;
}

struct router *sim_router(struct sim *sim, uint32_t rank)
{
    return core_router(sim->node[rank].core);
}

struct exchanges *sim_exchanges(struct sim *sim, uint32_t rank)
{
    return core_exchanges(sim->node[rank].core);
}

struct groups *sim_groups(struct sim *sim, uint32_t rank)
{
    return core_groups(sim->node[rank].core);
}

struct survey *sim_survey(struct sim *sim, uint32_t rank)
{
    return core_survey(sim->node[rank].core);
}
