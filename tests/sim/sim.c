#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "tests/sim/internal.h"
#include "tests/sim/sim.h"

#define DEFAULT_UNSENT (128u * 1024u)
#define DEFAULT_MEMORY (64u * 1024u * 1024u)
#define LISTED 100u /* exchanges at a node */
#define WHOLE_TIME (30 * SECONDS + ROUTER_HOLD_MOST)

struct sim *sim_new(const struct sim_setup *setup)
{
    struct sim *sim = sim_alloc(sizeof *sim);
    const char *level = getenv("TORUS_SIM_LOG");

    log_set_level(level != NULL ? (enum log_level)log_level_parse(level) : LOG_LEVEL_ERROR);
    sim->set = *setup;
    if (sim->set.memory == 0)
        sim->set.memory = DEFAULT_MEMORY;
    if (sim->set.unsent == 0)
        sim->set.unsent = DEFAULT_UNSENT;
    if (torus_parse(&sim->torus, setup->dims, NULL) != 0)
        abort();
    sim->chance = chance_stream(setup->seed, SIM_STREAM_TEST, 0);
    sim->now = 1 * SECONDS;
    sim->harmed_at = UINT64_MAX;
    network_open(sim);
    sim->node = sim_alloc(sim->torus.nodes * sizeof *sim->node);
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        struct node *node = &sim->node[rank];
        node->sim = sim;
        node->rank = rank;
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            node->nominal[port] = setup->rate;
        node->chance = chance_stream(setup->seed, SIM_STREAM_DAEMONS, rank);
        disk_init(&node->disk, node);
        node->disk.chance = chance_stream(setup->seed, SIM_STREAM_DISKS, rank);
        tree_disk_init(&node->trees, node, chance_stream(setup->seed, SIM_STREAM_TREES, rank));
        node->tree_store = tree_disk_store(&node->trees);
    }
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        sim_start_node(&sim->node[rank]);
    return sim;
}

static bool is_whole(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        if (!sim->node[rank].alive || !topology_whole(router_topology(sim_router(sim, rank))))
            return false;
    return true;
}

void sim_run_until_whole(struct sim *sim)
{
    if (!sim_run(sim, WHOLE_TIME, is_whole, NULL))
        sim_fail(sim, "the torus does not become whole");
}

struct sim *sim_whole(const struct sim_setup *setup)
{
    struct sim *sim = sim_new(setup);

    sim_run_until_whole(sim);
    return sim;
}

struct sim *sim_new_whole(const char *dims, uint64_t seed)
{
    return SIM_WHOLE(.dims = dims, .seed = seed, .latency = 100 * MICROSECONDS, .rate = 125000000,
                     .memory = seed % 3 == 0 ? 256 * 1024 : 0, .chop = true);
}

bool sim_info(struct sim *sim, uint32_t rank, const char *id, struct exchange_info *out)
{
    struct exchange_info info[LISTED];
    size_t n = exchanges_list(sim_exchanges(sim, rank), info, LISTED);

    for (size_t i = 0; i < n; i++)
        if (strcmp(info[i].id, id) == 0) {
            *out = info[i];
            return true;
        }
    return false;
}

bool sim_is_quiet(struct sim *sim, void *unused)
{
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        if (!sim->node[rank].alive)
            continue;
        const struct exchanges *all = sim_exchanges(sim, rank);
        if (exchanges_under_way(all) > 0 || exchanges_reserved(all) > 0)
            return false;
    }
    return true;
}

void sim_free(struct sim *sim)
{
    sim->watch = NULL;
    sim->ending = true;
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        sim_kill(sim, rank, SIM_STOP);
    while (sim_step(sim))
        ;
    network_free(sim);
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        if (sim->node[rank].pool.in_use > 0)
            sim_violated(sim, "memory", "node %u has not given back %zu buffers", rank,
                         sim->node[rank].pool.in_use);
        (void)slab_pool_close(&sim->node[rank].pool);
        disk_free(&sim->node[rank].disk);
        tree_disk_free(&sim->node[rank].trees);
    }
    sim_requests_free(sim);
    sim_copies_free(sim);
    free(sim->node);
    events_free(&sim->events);
    sim_programs_forget(sim);
    free(sim);
}

/* Virtual time: schedules events, and runs them in order. */

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number)
{
    events_add(
        &sim->events,
        (struct event){
            .at = sim->now + delay, .what = what, .run = run, .object = object, .number = number});
}

static void mix(uint64_t *trace, uint64_t value)
{
    *trace = (*trace ^ value) * UINT64_C(1099511628211);
    *trace ^= *trace >> 29;
}

bool sim_step(struct sim *sim)
{
    struct event e;

    if (!events_next(&sim->events, &e))
        return false;
    if (e.at > sim->now)
        sim->wakes_now = 0;
    sim->now = e.at;
    mix(&sim->trace, e.at);
    mix(&sim->trace, (uint64_t)(unsigned char)e.what[0] << 8 | (unsigned char)e.what[1]);
    mix(&sim->trace, e.number);
    e.run(sim, e.object, e.number);
    if (sim->watch != NULL) {
        if (sim->watch(sim, sim->watch_context))
            sim->watch = NULL;
        sim->touched = 0;
    }
    return true;
}

static void on_time_over(struct sim *sim, void *object, uint64_t number)
{
    *(bool *)object = true;
}

bool sim_run(struct sim *sim, uint64_t most, bool (*until)(struct sim *sim, void *context),
             void *context)
{
    bool over = false, reached;

    sim_schedule(sim, most, "over", on_time_over, &over, 0);
    reached = until(sim, context);
    while (!reached && !over && sim_step(sim))
        reached = until(sim, context);
    /* No event may write to `over` later. */
    for (size_t i = 0; i < sim->events.count; i++)
        if (sim->events.heap[i].object == &over) {
            static bool ignored;
            sim->events.heap[i].object = &ignored;
        }
    return reached;
}

static bool never(struct sim *sim, void *context)
{
    return false;
}

void sim_pass(struct sim *sim, uint64_t time)
{
    (void)sim_run(sim, time, never, NULL);
}

struct call {
    void (*call)(struct sim *sim, void *context);
    void *context;
};

static void on_call(struct sim *sim, void *object, uint64_t number)
{
    struct call call = *(struct call *)object;

    free(object);
    if (!sim->ending)
        call.call(sim, call.context);
}

void sim_at(struct sim *sim, uint64_t at, void (*call)(struct sim *sim, void *context),
            void *context)
{
    struct call *c = sim_alloc(sizeof *c);

    *c = (struct call){call, context};
    sim_schedule(sim, at > sim->now ? at - sim->now : 0, "call", on_call, c, 0);
}

void sim_watch(struct sim *sim, bool (*watch)(struct sim *sim, void *context), void *context)
{
    sim->watch = watch;
    sim->touched = sim->torus.nodes < 64 ? (UINT64_C(1) << sim->torus.nodes) - 1 : UINT64_MAX;
    sim->watch_context = context;
}

uint64_t sim_touched(const struct sim *sim)
{
    return sim->touched;
}
