#include "tests/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "daemon/planning/schedule_store.h"
#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/file/export.h"
#include "daemon/schedule/predict/relay.h"
#include "proto/sha256.h"
#include "tests/sim/internal.h"

#define DEFAULT_MEMORY (64u * 1024u * 1024u)
#define FREE_SLABS_KEPT (4u * 1024u * 1024u)
#define WAKES_MOST 100u /* at one moment: more is a loop that never sleeps */
#define WHOLE_TIME (30 * SECONDS + ROUTER_HOLD_MOST)

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

void sim_enter(struct node *node)
{
    if (memory_countdown != NULL)
        abort(); /* nested */
    memory_countdown = &node->allocations;
}

void sim_leave(void)
{
    memory_countdown = NULL;
}

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number)
{
    events_add(
        &sim->events,
        (struct event){
            .at = sim->now + delay, .what = what, .run = run, .object = object, .number = number});
}

/* --- a node --- */

/* What must hold after whatever has happened to a node. */
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
        sim_violated(sim, "sleep", "node %u wakes up and wakes up", node->rank);
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

/* Something that the node has begun and is told of when it is over: not while it is stopped. */
struct pending {
    struct node *node;
    const char *what;
    void (*run)(struct sim *sim, void *object, uint64_t number);
    void *object;
};

static void on_over(struct sim *sim, void *object, uint64_t number)
{
    struct pending p = *(struct pending *)object;

    (void)number;
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

/* Every torus has a key, and links are proved as they are between machines; they are not encrypted,
 * which would be the network's task. */
static const struct secrets *cluster_key(struct secrets *secrets)
{
    static const uint8_t bytes[KEY_SIZE] = "of all simulated tori, as it is";

    *secrets = (struct secrets){.count = 1};
    key_set(&secrets->key[0], bytes);
    return secrets;
}

static void start(struct node *node)
{
    struct sim *sim = node->sim;
    struct secrets secrets;
    struct core_setup setup = {
        .torus = &sim->torus,
        .rank = node->rank,
        .secrets = cluster_key(&secrets),
        .pool = &node->pool,
        .storage = &node->storage,
        .memory_budget = sim->set.memory,
        .link_mbit = (double)sim->set.rate * 8 / 1e6,
        .daemons_per_processor = sim->set.shared ? sim->torus.nodes : 1,
        .link_burst = sim->set.burst > 0 ? RELAY_FRAME_MOST : 0, /* whole pieces pass at once */
    };
    struct error e;

    node->doomed = node->crash_when_decided = false;
    node->allocations = 0;
    node->wake_at = ROUTER_NEVER;
    slab_pool_init(&node->pool, FREE_SLABS_KEPT);
    if (storage_open(node, &e) != 0) { /* it does not start: whoever starts it tries again later */
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
    core_start(node->core);
    network_node_started(node);
    sim_settle(node);
}

bool sim_alive(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].alive;
}

/* It changes when an exchange begins anew because a node was busy. */
static void keep_id(struct sim_request *r)
{
    if (r->exchange != NULL)
        (void)snprintf(r->id, sizeof r->id, "%s", exchange_id(r->exchange));
}

struct sim_request *sim_request_by_id(struct sim *sim, const char *id)
{
    for (struct sim_request *r = sim->requests; r != NULL; r = r->next) {
        keep_id(r);
        if (strcmp(r->id, id) == 0)
            return r;
    }
    return NULL;
}

void sim_kill(struct sim *sim, uint32_t rank, enum sim_death death)
{
    struct node *node = &sim->node[rank];
    size_t leaked;

    if (!node->alive)
        return;
    for (struct sim_request *r = sim->requests; r != NULL; r = r->next)
        if (r->root == rank) {
            keep_id(r);
            r->exchange = NULL;
        }
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
    sim->slowed = true;
    network_node_frozen(node, time);
    node->frozen = true;
    node->frozen_until = sim->now + time;
    sim_schedule(sim, time, "runs again", on_thaw, node, node->frozen_until);
}

bool sim_frozen(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].frozen;
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
        if (node->frozen)
            on_thaw(sim, node, node->frozen_until);
        sim_restart(sim, rank);
    }
    network_heal(sim);
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
    start(&sim->node[rank]);
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

/* --- time --- */

static void mix(uint64_t *trace, uint64_t value)
{
    *trace = (*trace ^ value) * UINT64_C(1099511628211);
    *trace ^= *trace >> 29;
}

static bool step(struct sim *sim)
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
    if (sim->watch != NULL && sim->watch(sim, sim->watch_context))
        sim->watch = NULL;
    return true;
}

static void on_time_over(struct sim *sim, void *object, uint64_t number)
{
    (void)sim, (void)number;
    *(bool *)object = true;
}

bool sim_run(struct sim *sim, uint64_t most, bool (*until)(struct sim *sim, void *context),
             void *context)
{
    bool over = false, reached;

    sim_schedule(sim, most, "over", on_time_over, &over, 0);
    reached = until(sim, context);
    while (!reached && !over && step(sim))
        reached = until(sim, context);
    /* Nobody shall write to `over` later. */
    for (size_t i = 0; i < sim->events.count; i++)
        if (sim->events.heap[i].object == &over) {
            static bool ignored;
            sim->events.heap[i].object = &ignored;
        }
    return reached;
}

static bool never(struct sim *sim, void *context)
{
    (void)sim, (void)context;
    return false;
}

void sim_pass(struct sim *sim, uint64_t time)
{
    (void)sim_run(sim, time, never, NULL);
}

static bool is_whole(struct sim *sim, void *context)
{
    (void)context;
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

struct call {
    void (*call)(struct sim *sim, void *context);
    void *context;
};

static void on_call(struct sim *sim, void *object, uint64_t number)
{
    struct call call = *(struct call *)object;

    (void)number;
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
    sim->watch_context = context;
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

struct sim *sim_new_whole(const char *dims, uint64_t seed)
{
    const struct sim_setup setup = {
        .dims = dims,
        .seed = seed,
        .latency = 100 * MICROSECONDS,
        .rate = 125000000,
        .memory = seed % 3 == 0 ? 256 * 1024 : 0,
        .chop = true,
    };
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    return sim;
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

const struct torus *sim_torus(const struct sim *sim)
{
    return &sim->torus;
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

uint64_t sim_frames(const struct sim *sim)
{
    return sim->frames;
}

/* --- exchanges --- */

static uint64_t missing_by_result(const struct sim_request *r)
{
    uint64_t missing = 0;

    for (uint32_t rank = 0; r->result.gone != NULL && rank < r->sim->torus.nodes; rank++)
        if (r->result.gone[rank])
            missing |= UINT64_C(1) << rank;
    return missing;
}

uint64_t sim_missing(const struct sim_request *r)
{
    if (r->ended && r->error.code == ERROR_NONE)
        return missing_by_result(r);
    return strcmp(r->missing_in, r->id) == 0 ? r->missing : 0;
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct sim_request *r = context;
    size_t nodes = r->sim->torus.nodes;

    if (r->ended || (result == NULL) == (e == NULL))
        sim_violated(r->sim, "told once", "the client of %s is told something strange", r->id);
    keep_id(r);
    r->ended = true;
    r->exchange = NULL;
    if (e != NULL) {
        r->error = *e;
        return;
    }
    struct exchange_node_report *node = sim_alloc(nodes * sizeof *node);
    for (uint32_t i = 0; i < result->nodes; i++)
        node[result->node[i].rank] = result->node[i];
    r->result = *result;
    r->result.node = node;
    if (result->gone != NULL) {
        bool *gone = sim_alloc(nodes * sizeof *gone);
        memcpy(gone, result->gone, nodes * sizeof *gone);
        r->result.gone = gone;
    }
    if (r->missing_in[0] != '\0' && strcmp(r->missing_in, r->id) == 0 &&
        r->missing != missing_by_result(r))
        sim_violated(r->sim, "missing nodes",
                     "the client of %s is told of others than outputs show", r->id);
    (void)snprintf(r->algorithm, sizeof r->algorithm, "%s", result->algorithm);
    r->result.algorithm = r->algorithm;
    if (result->each == NULL)
        return;
    uint64_t *each = sim_alloc(result->repeat * sizeof *each);
    memcpy(each, result->each, result->repeat * sizeof *each);
    r->result.each = each;
}

struct sim_request *sim_exchange(struct sim *sim, uint32_t root, const struct spec *spec)
{
    struct sim_request *r = sim_alloc(sizeof *r);
    const struct exchange_client client = {r, on_ended, 1000 + root % 3}; /* several users */

    r->sim = sim;
    r->root = root;
    r->operation = spec->operation;
    r->sender = spec->sender;
    r->shrink = spec->shrink;
    (void)snprintf(r->from, sizeof r->from, "%s", spec->from != NULL ? spec->from : "");
    r->next = sim->requests;
    sim->requests = r;
    sim_enter(&sim->node[root]);
    r->exchange = exchange_start(sim_exchanges(sim, root), spec, &client, &r->error);
    sim_leave();
    if (r->exchange == NULL)
        r->ended = true;
    else
        (void)snprintf(r->id, sizeof r->id, "%s", exchange_id(r->exchange));
    sim_settle(&sim->node[root]);
    return r;
}

#define FILE_MOST (1u << 20)

/* Gives the schedule to the node, which has it as long as the result is a user of it. */
static struct schedule *give(struct sim *sim, uint32_t root, const char *text, size_t length,
                             char *digest)
{
    struct schedules *all = exchanges_schedules(sim_exchanges(sim, root));
    uint32_t have = 0;
    struct error e;

    sha256_text(text, length, digest);
    struct schedule *s = schedules_join(all, digest, 0, &e);
    while (s != NULL && have < length) {
        size_t part = length - have < FRAME_SCHEDULE_PART ? length - have : FRAME_SCHEDULE_PART;
        if (schedule_give(all, s, (uint32_t)length, have, (const uint8_t *)text + have, part, &have,
                          &e) != 0) {
            schedules_leave(all, s);
            return NULL;
        }
    }
    return s;
}

struct sim_request *sim_exchange_imported(struct sim *sim, uint32_t root, const struct spec *wanted)
{
    const struct algorithm *a = algorithm_find(wanted->algorithm);
    char digest[SHA256_TEXT_SIZE],
        *text = malloc(FILE_MOST); /* counted, unlike a memory stream's */
    struct spec spec = *wanted;
    struct sim_request *r;
    struct schedule *s;
    FILE *out = text != NULL ? fmemopen(text, FILE_MOST, "w") : NULL;

    if (out == NULL || schedule_export(out, sim_torus(sim), a, root % 2 == 0, NULL) != 0)
        abort();
    size_t length = (size_t)ftell(out);
    if (fclose(out) != 0 || length + 1 >= FILE_MOST)
        abort();
    sim_enter(&sim->node[root]);
    s = give(sim, root, text, length, digest);
    sim_leave();
    spec.algorithm = "";
    spec.schedule = digest;
    r = sim_exchange(sim, root, &spec);
    sim_enter(&sim->node[root]);
    if (s != NULL && sim_alive(sim, root)) /* asking may have crashed it */
        schedules_leave(exchanges_schedules(sim_exchanges(sim, root)), s);
    sim_leave();
    free(text);
    return r;
}

void sim_abandon(struct sim_request *r)
{
    struct job *x = r->exchange;

    if (x == NULL)
        return;
    keep_id(r);
    r->exchange = NULL;
    sim_enter(&r->sim->node[r->root]);
    exchange_abandon(x);
    sim_leave();
    sim_settle(&r->sim->node[r->root]);
}

void sim_cancel(struct sim_request *r)
{
    if (r->exchange == NULL)
        return;
    sim_enter(&r->sim->node[r->root]);
    exchange_cancel(r->exchange);
    sim_leave();
    sim_settle(&r->sim->node[r->root]);
}

static bool request_ended(struct sim *sim, void *context)
{
    (void)sim;
    return ((struct sim_request *)context)->ended;
}

bool sim_run_until_ended(struct sim_request *r, uint64_t most)
{
    return sim_run(r->sim, most, request_ended, r);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

double sim_median_seconds(const struct sim_request *r)
{
    size_t count = r->result.repeat;
    uint64_t *each = calloc(count + 1, sizeof *each);

    if (each == NULL)
        abort();
    memcpy(each, r->result.each, count * sizeof *each);
    qsort(each, count, sizeof *each, compare_times);
    double median = (double)each[count / 2] / 1e9;
    free(each);
    return median;
}

#define LISTED 100u

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
    (void)unused;
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        if (!sim->node[rank].alive)
            continue;
        const struct exchanges *all = sim_exchanges(sim, rank);
        if (exchanges_under_way(all) > 0 || exchanges_reserved(all) > 0)
            return false;
    }
    return true;
}

/* --- all together --- */

struct sim *sim_new(const struct sim_setup *setup)
{
    struct sim *sim = sim_alloc(sizeof *sim);
    const char *level = getenv("TORUS_SIM_LOG");

    log_set_level(level != NULL ? (enum log_level)log_level_parse(level) : LOG_LEVEL_ERROR);
    sim->set = *setup;
    if (sim->set.memory == 0)
        sim->set.memory = DEFAULT_MEMORY;
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
        node->chance = chance_stream(setup->seed, SIM_STREAM_DAEMONS, rank);
        disk_init(&node->disk, node);
        node->disk.chance = chance_stream(setup->seed, SIM_STREAM_DISKS, rank);
    }
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        start(&sim->node[rank]);
    return sim;
}

void sim_free(struct sim *sim)
{
    sim->watch = NULL;
    sim->ending = true;
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        sim_kill(sim, rank, SIM_STOP);
    while (step(sim))
        ;
    network_free(sim);
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        if (sim->node[rank].pool.in_use > 0)
            sim_violated(sim, "memory", "node %u has not given back %zu buffers", rank,
                         sim->node[rank].pool.in_use);
        (void)slab_pool_close(&sim->node[rank].pool);
        disk_free(&sim->node[rank].disk);
    }
    while (sim->requests != NULL) {
        struct sim_request *r = sim->requests;
        sim->requests = r->next;
        free((void *)(uintptr_t)r->result.node);
        free((void *)(uintptr_t)r->result.gone);
        free((void *)(uintptr_t)r->result.each);
        free(r);
    }
    free(sim->node);
    events_free(&sim->events);
    sim_programs_forget(sim);
    free(sim);
}
