#include "daemon/torusd/node.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/base/work.h"
#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/gathering.h"
#include "daemon/lib/net/address.h"
#include "daemon/torusd/config.h"
#include "daemon/torusd/control/route_counts.h"
#include "daemon/torusd/control/server.h"
#include "daemon/torusd/core/core.h"
#include "daemon/torusd/files/folders.h"
#include "daemon/torusd/metrics/server.h"
#include "daemon/torusd/net/beacon.h"
#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/program/server.h"
#include "daemon/torusd/reload.h"
#include "daemon/torusd/setting_facts.h"
#include "daemon/torusd/tree/tree_files.h"
#include "proto/elapsed.h"
#include "proto/error.h"
#include "proto/frame.h"
#include "proto/text.h"

/* Logs which keys are in use. */
static void node_log_keys(const struct secrets *s)
{
    char id[SECRETS_MOST][KEY_ID_TEXT_SIZE];

    if (s->count == 0)
        log_warning("no key_file: anybody who reaches a port of this node can speak to it; set "
                    "key_file to prevent that");
    else if (s->count == 1)
        log_info("cluster key %s; links are %sencrypted", key_id_text(s->key[0].id, id[0]),
                 s->encrypt ? "" : "not ");
    else
        log_info("cluster key %s, second key %s accepted; links are %sencrypted",
                 key_id_text(s->key[0].id, id[0]), key_id_text(s->key[1].id, id[1]),
                 s->encrypt ? "" : "not ");
}

/* Work off the loop (base/work.h) in libuv's thread pool. */

#define THREADS 4 /* libuv's number, unless UV_THREADPOOL_SIZE sets another one */
#define THREADS_MOST 1024

_Static_assert(sizeof(uv_work_t) <= sizeof((struct work *)0)->reserved, "room for libuv's request");

static void on_worker_run(uv_work_t *request)
{
    struct work *work = request->data;

    work->run(work);
}

static void on_worker_done(uv_work_t *request, int status)
{
    struct work *work = request->data;

    (void)status; /* work is never cancelled */
    work->done(work);
}

static int submit(void *context, struct work *work)
{
    uv_work_t *request = (uv_work_t *)(void *)work->reserved;

    request->data = work;
    return uv_queue_work(context, request, on_worker_run, on_worker_done) == 0 ? 0 : -1;
}

static void await(void *lock)
{
    uv_mutex_lock(lock);
    uv_mutex_unlock(lock);
}

/* Starts that many threads, which run at the same time. Returns 0, or an error of libuv. */
static int try_threads(int count)
{
    uv_thread_t thread[THREADS_MOST];
    int started = 0, result;
    uv_mutex_t lock;

    result = uv_mutex_init(&lock);
    if (result != 0)
        return result;
    uv_mutex_lock(&lock);
    while (started < count && (result = uv_thread_create(&thread[started], await, &lock)) == 0)
        started++;
    uv_mutex_unlock(&lock);
    while (started > 0)
        (void)uv_thread_join(&thread[--started]);
    uv_mutex_destroy(&lock);
    return result;
}

static void do_nothing(uv_work_t *request)
{
    (void)request;
}

static void nothing_done(uv_work_t *request, int status)
{
    (void)request, (void)status;
}

/* Fills *workers, and starts the threads. The loop must run until all submitted work is done. Returns 0, or -1 with
 * *e: no thread could be started. libuv starts its threads with the first work, and ends the process if it cannot: so
 * the threads are tried before. */
static int workers_on_loop(uv_loop_t *loop, struct workers *workers, struct error *e)
{
    static uv_work_t first;
    const char *wanted = getenv("UV_THREADPOOL_SIZE");
    int count = wanted != NULL ? atoi(wanted) : THREADS;
    int result = try_threads(count < 1 ? 1 : count > THREADS_MOST ? THREADS_MOST : count);

    *workers = (struct workers){loop, submit};
    if (result == 0)
        result = uv_queue_work(loop, &first, do_nothing, nothing_done);
    if (result == 0)
        return 0;
    return error_set(e, ERROR_MEMORY,
                     "cannot start threads for file operations: %s (see ulimit -u, ulimit -v)",
                     uv_strerror(result));
}

/* Sets the folders that the daemon uses; borrowed. */
static void setting_folders(const struct config *c, const struct roots *roots,
                            struct gather_setup *setup)
{
    setup->folders = 0;
    if (c->state_folder[0] != '\0') {
        setup->kind[0] = "state_dir";
        setup->folder[setup->folders++] = c->state_folder;
    }
    for (size_t i = 0; i < roots->count && setup->folders < GATHER_FOLDERS_MOST; i++) {
        setup->kind[setup->folders] = "data_root";
        setup->folder[setup->folders++] = roots->path[i];
    }
}

#define FREE_SLABS_KEPT (16u * 1024u * 1024u)
#define RETIRED_MOST 8u
#define NOTE_EVERY_MS 300000u /* notes what interfaces have counted */

struct node {
    struct config *config;
    struct roots *roots;                 /* in use now; */
    struct roots *retired[RETIRED_MOST]; /* exchanges may still use these */
    unsigned retired_count;
    struct reload reload;
    struct slab_pool pool;
    struct tcp *tcp;
    unsigned moves;        /* tcp_moves() that the watching clients know */
    struct beacon *beacon; /* NULL: none */
    struct core *core;
    struct workers workers;
    struct folders folders;
    struct storage storage;
    struct tree_files trees;
    struct work recovery; /* completes or removes copies that the previous daemon left unfinished */
    struct control_server *control;
    struct route_counts routes;     /* what torus-routed tells */
    struct metrics_server *metrics; /* NULL: monitoring is off */
    struct programs *programs;
    struct access_rules access;
    struct gathering gathering; /* gathers facts about this host */
    uv_timer_t note_counters;
    int processor; /* processor_open() */
    uv_prepare_t before_sleep;
    uv_idle_t no_sleep;
    uv_timer_t wake_up;
    uint64_t wakes_at; /* when the timer fires; ROUTER_NEVER: it is not set */
    bool running;
};

static void on_wake_up(uv_timer_t *timer)
{
    struct node *node = timer->data;

    node->wakes_at = ROUTER_NEVER; /* the loop is awake: before_sleep() does the work */
}

static void on_no_sleep(uv_idle_t *idle)
{
    (void)idle;
}

/* Deadlines move away with every frame, so the timer stays as it is if it fires in time; usually
 * it then fires too early. */
static void wake_up_at(struct node *node, uint64_t at)
{
    uint64_t now;

    if (at >= node->wakes_at)
        return;
    now = uv_hrtime();
    uv_update_time(node->wake_up.loop);
    if (uv_timer_start(&node->wake_up, on_wake_up,
                       (elapsed(now, at) + MILLISECONDS - 1) / MILLISECONDS, 0) == 0)
        node->wakes_at = at;
}

/* Frees the earlier data roots if nothing uses them any more. */
static void free_retired(struct node *node)
{
    for (unsigned i = 0; i < node->retired_count; i++) {
        roots_free(node->retired[i]);
        free(node->retired[i]);
    }
    node->retired_count = 0;
}

/* Runs when all input of this iteration of the loop has been handled: runs what is due, sends frames, starts
 * to write files, and sets the next time to wake up. */
static void before_sleep(uv_prepare_t *prepare)
{
    struct node *node = prepare->data;
    bool more = tcp_flush(node->tcp);
    uint64_t now = uv_hrtime(), at = core_deadline(node->core);

    if (now >= at) {
        core_tick(node->core);
        more = tcp_flush(node->tcp);
    }
    more |= folders_flush(&node->folders);
    if (node->retired_count > 0 && folders_are_unused(&node->folders) &&
        tree_files_are_unused(&node->trees))
        free_retired(node);
    if (node->control != NULL && node->moves != tcp_moves(node->tcp))
        control_interfaces_changed(node->control);
    node->moves = tcp_moves(node->tcp);
    at = core_deadline(node->core);
    if (more)
        (void)uv_idle_start(&node->no_sleep, on_no_sleep);
    else
        (void)uv_idle_stop(&node->no_sleep);
    wake_up_at(node, at);
}

static void on_planned(void *context)
{
    struct node *node = context;

    if (node->control != NULL)
        control_schedules_counted(node->control);
}

static void on_links_changed(void *context)
{
    struct node *node = context;

    if (node->control != NULL)
        control_links_changed(node->control);
    if (node->programs != NULL)
        programs_links_changed(node->programs);
}

/* Replaces the data roots. Exchanges that are under way keep the earlier ones. */
static void change_roots(struct node *node, struct roots *fresh)
{
    struct roots *roots = NULL;

    if (node->retired_count < RETIRED_MOST)
        roots = malloc(sizeof *roots);
    if (roots == NULL) {
        log_error(
            "data_roots stay as they are: %s",
            node->retired_count < RETIRED_MOST
                ? "out of memory"
                : "exchanges still use several earlier ones. Reload again when they have ended");
        return;
    }
    *roots = *fresh;
    *fresh = (struct roots){0};
    node->retired[node->retired_count++] = node->roots;
    node->roots = roots;
    node->folders.roots = roots;
    atomic_store(&node->trees.roots, roots);
}

/* Sets the nominal rates of the links. */
static void set_rates(struct node *node)
{
    const struct config *config = node->config;
    struct nominal_rate rate[TORUS_MAX_PORTS] = {0};

    for (unsigned port = 0; port < torus_ports(&config->torus); port++) {
        rate[port] = config_port_rate(config, port);
        tcp_set_rate(node->tcp, port, rate[port].send);
    }
    core_set_rates(node->core, rate, config->link_mbit);
}

/* Changes the settings that can change while the daemon runs. */
static void on_read_again(void *context, struct reload *reload)
{
    struct node *node = context;
    struct config *config = node->config;
    struct config *fresh = &reload->fresh;

    reload_log_changes(reload, node->roots);
    if (!roots_are_same(node->roots, &fresh->roots))
        change_roots(node, &fresh->roots);
    config_take_changes(config, fresh);
    log_set_level((enum log_level)config->log_level);
    node->folders.output_mode = config->output_mode;
    atomic_store(&node->trees.output_mode, config->output_mode);
    node->access = reload->access;
    exchanges_raise_memory(core_exchanges(node->core), config->memory);
    set_rates(node);
    control_settings_changed(node->control, node->roots, config->memory, config->link_mbit);
    metrics_roots_changed(node->metrics, node->roots);
    programs_rules_changed(node->programs);
    node_log_keys(&reload->secrets);
    router_set_secrets(core_router(node->core), &reload->secrets);
}

void node_reload(struct node *node, const struct reload_source *source)
{
    if (node->running)
        reload_begin(&node->reload, source);
}

/* Starts what the core needs: workers, permissions, keys, and the files of exchanges. */
static int start_base(struct node *node, uv_loop_t *loop, struct secrets *secrets, struct error *e)
{
    const struct config *config = node->config;

    slab_pool_init(&node->pool, FREE_SLABS_KEPT);
    node->folders = (struct folders){.files = file_system_posix(),
                                     .workers = &node->workers,
                                     .pool = &node->pool,
                                     .made = &node->trees.made,
                                     .roots = node->roots,
                                     .state_folder = config->state_folder,
                                     .output_mode = config->output_mode};
    tree_files_init(&node->trees, config->state_folder, node->roots);
    atomic_store(&node->trees.output_mode, config->output_mode);
    if (workers_on_loop(loop, &node->workers, e) != 0 ||
        config_read_groups(config, &node->access, e) != 0 ||
        config_read_keys(config, secrets, e) != 0)
        return -1;
    return folders_init(&node->folders, &node->storage, e) != 0 ? -1
                                                                : tree_files_open(&node->trees, e);
}

static void read_processor(void *context, uint64_t *used, uint64_t *delayed)
{
    processor_read(((struct node *)context)->processor, used, delayed);
}

static int start_core(struct node *node, uv_loop_t *loop, const struct secrets *secrets,
                      struct error *e)
{
    const struct config *config = node->config;
    double send_mbit[TORUS_MAX_PORTS] = {0};
    const struct tcp_setup tcp_setup = {
        .loop = loop,
        .torus = &config->torus,
        .endpoint = config->endpoint,
        .congestion = config->congestion,
        .send_mbit = send_mbit,
        .hop_limit = config->hop_limit,
        .io_threads = config->io_threads,
    };
    struct router_io io;

    for (unsigned port = 0; port < torus_ports(&config->torus); port++)
        send_mbit[port] = config_port_rate(config, port).send;

    node->tcp = tcp_new(&tcp_setup, config->rank, &io, e);
    if (node->tcp == NULL)
        return -1;
    const struct core_setup core_setup = {
        .torus = &config->torus,
        .rank = config->rank,
        .io = io,
        .secrets = secrets,
        .pool = &node->pool,
        .storage = &node->storage,
        .trees = tree_files_store(&node->trees),
        .workers = node->workers,
        .memory_budget = config->memory,
        .link_mbit = config->link_mbit,
        .link_burst = config->link_burst,
        .daemons_per_processor = config->daemons_per_processor,
        .heartbeat = config->heartbeat_ms * MILLISECONDS,
        .silence = config->silence_ms * MILLISECONDS,
        .minors_back = PROTOCOL_MINOR - config->protocol_minor,
        .processor = read_processor,
        .processor_context = node,
        .planned = on_planned,
        .planned_context = node,
        .links_changed = on_links_changed,
        .links_context = node,
    };
    if (core_setup.minors_back > 0)
        log_info("this node speaks peer protocol %u.%u, although it could speak %u.%u "
                 "(protocol_minor)",
                 PROTOCOL_VERSION, config->protocol_minor, PROTOCOL_VERSION, PROTOCOL_MINOR);
    node->core = core_new(&core_setup, e);
    if (node->core == NULL)
        return -1;
    set_rates(node);
    return 0;
}

static int open_metrics(struct node *node, uv_loop_t *loop, struct error *e)
{
    const struct metrics_setup setup = {
        .loop = loop,
        .address = node->config->metrics,
        .roots = node->roots,
        .view = {.router = core_router(node->core),
                 .exchanges = core_exchanges(node->core),
                 .groups = core_groups(node->core),
                 .copies = core_copies(node->core),
                 .shares = core_shares(node->core),
                 .routes = &node->routes,
                 .loop = loop,
                 .tcp = node->tcp,
                 .processor = read_processor,
                 .processor_context = node},
    };

    if (setup.address[0] == '\0')
        return 0;
    node->metrics = metrics_open(&setup, e);
    return node->metrics != NULL ? 0 : -1;
}

/* Opens the sockets for torusctl and for programs. */
static int open_sockets(struct node *node, uv_loop_t *loop, struct error *e)
{
    const struct config *config = node->config;
    const struct control_setup control_setup = {
        .loop = loop,
        .path = config->control,
        .router = core_router(node->core),
        .exchanges = core_exchanges(node->core),
        .groups = core_groups(node->core),
        .copies = core_copies(node->core),
        .shares = core_shares(node->core),
        .survey = core_survey(node->core),
        .roots = node->roots,
        .access = &node->access,
        .endpoint = config->endpoint,
        .tcp = node->tcp,
        .link_mbit = config->link_mbit,
        .memory_budget = config->memory,
        .metrics = node->metrics != NULL ? metrics_address(node->metrics) : "",
        .routes = &node->routes,
    };
    const struct programs_setup programs_setup = {loop, config->control, core_groups(node->core),
                                                  &node->access, core_shares(node->core)};

    node->control = control_open(&control_setup, e);
    if (node->control == NULL)
        return -1;
    node->programs = programs_open(&programs_setup, e);
    return node->programs != NULL ? 0 : -1;
}

static void on_facts(void *context, const char *facts)
{
    const struct node *node = context;

    control_tell_facts(node->control, facts);
}

static void gather_host(struct node *node)
{
    char *settings = setting_facts(node->config, node->roots);
    struct gather_setup setup;

    setting_folders(node->config, node->roots, &setup);
    gathering_start(&node->gathering, settings != NULL ? settings : "", &setup);
    free(settings);
}

/* A survey asks for this node's answer. */
static void on_survey(void *context, enum survey_kind kind)
{
    struct node *node = context;

    if (kind == SURVEY_STATE)
        control_tell_state(node->control);
    else if (kind == SURVEY_TRACE)
        control_tell_trace(node->control);
    else
        gather_host(node);
}

static void on_note_counters(uv_timer_t *timer)
{
    struct node *node = timer->data;

    gathering_note(&node->gathering);
}

static void start_turns(struct node *node, uv_loop_t *loop)
{
    (void)uv_prepare_init(loop, &node->before_sleep);
    (void)uv_idle_init(loop, &node->no_sleep);
    (void)uv_timer_init(loop, &node->wake_up);
    (void)uv_timer_init(loop, &node->note_counters);
    node->before_sleep.data = node->wake_up.data = node->note_counters.data = node;
    node->wakes_at = ROUTER_NEVER;
    (void)uv_prepare_start(&node->before_sleep, before_sleep);
    (void)uv_timer_start(&node->note_counters, on_note_counters, 0, NOTE_EVERY_MS);
    node->running = true;
}

/* The part of node_start() that needs a node; the keys stay in *secrets. */
static int start_parts(struct node *node, uv_loop_t *loop, struct secrets *secrets, struct error *e)
{
    if (start_base(node, loop, secrets, e) != 0 || start_core(node, loop, secrets, e) != 0)
        return -1;
    node_log_keys(secrets);
    tcp_attach(node->tcp, core_router(node->core));
    node->beacon = beacon_start(loop, node->tcp, core_router(node->core));
    if (open_metrics(node, loop, e) != 0 || open_sockets(node, loop, e) != 0)
        return -1;
    node->gathering = (struct gathering){
        .workers = &node->workers, .past = past_new(), .done = on_facts, .context = node};
    if (node->gathering.past == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the counters of interfaces");
    survey_set_source(core_survey(node->core), &(struct survey_source){node, on_survey});
    return 0;
}

/* The node owns the data roots, because they may be replaced while exchanges use them. */
static int take_roots(struct node *node, struct error *e)
{
    node->roots = malloc(sizeof *node->roots);
    if (node->roots == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the data roots");
    *node->roots = node->config->roots;
    node->config->roots = (struct roots){0};
    return 0;
}

static void run_recovery(struct work *work)
{
    struct node *node = (struct node *)(void *)((char *)work - offsetof(struct node, recovery));

    tree_files_recover(&node->trees);
}

/* Nothing waits for it: a copy to the same target waits in the store of trees. */
static void recovery_done(struct work *work)
{
    (void)work;
}

static void recover_trees(struct node *node)
{
    node->recovery.run = run_recovery;
    node->recovery.done = recovery_done;
    if (workers_submit(&node->workers, &node->recovery) != 0)
        log_error("interrupted copies are not completed: out of memory");
}

struct node *node_start(uv_loop_t *loop, struct config *config, struct error *e)
{
    struct node *node = calloc(1, sizeof *node);
    struct secrets secrets = {0};

    if (node == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    node->config = config;
    node->processor = processor_open();
    if (take_roots(node, e) != 0) {
        processor_close(node->processor);
        free(node);
        return NULL;
    }
    int result = start_parts(node, loop, &secrets, e);
    config_forget_keys(&secrets);
    if (result != 0) {
        node_stop(node);
        (void)uv_run(loop, UV_RUN_DEFAULT);
        (void)node_free(node);
        return NULL;
    }
    start_turns(node, loop);
    node->reload = (struct reload){.config = config,
                                   .folders = &node->folders,
                                   .workers = &node->workers,
                                   .apply = on_read_again,
                                   .context = node};
    recover_trees(node);
    core_start(node->core);
    return node;
}

void node_describe(struct node *node, char *out, size_t size)
{
    const struct router *router = core_router(node->core);
    const struct torus *torus = router_torus(router);
    uint32_t rank = router_rank(router), up = 0, links = 0;
    unsigned exchanges = exchanges_under_way(core_exchanges(node->core));
    char dims[TORUS_TEXT_SIZE];

    for (unsigned port = 0; port < torus_ports(torus); port++) {
        links += torus_neighbour(torus, rank, port) != TORUS_NO_NODE;
        up += topology_link_up(router_topology(router), rank, port);
    }
    (void)snprintf(out, size, "node %u of %s: %u of %u %s, %u %s", rank, torus_format(torus, dims),
                   up, links, text_plural(links, "link", "links"), exchanges,
                   text_plural(exchanges, "exchange", "exchanges"));
}

void node_stop(struct node *node)
{
    if (node->running) {
        uv_close((uv_handle_t *)&node->before_sleep, NULL);
        uv_close((uv_handle_t *)&node->no_sleep, NULL);
        uv_close((uv_handle_t *)&node->wake_up, NULL);
        uv_close((uv_handle_t *)&node->note_counters, NULL);
    }
    node->running = false;
    reload_stop(&node->reload);
    gathering_stop(&node->gathering);
    if (node->control != NULL)
        control_close(node->control);
    if (node->programs != NULL)
        programs_close(node->programs);
    metrics_close(node->metrics);
    beacon_stop(node->beacon);
    core_free(node->core);
    if (node->storage.close != NULL)
        node->storage.close(node->storage.context);
    if (node->tcp != NULL)
        tcp_close(node->tcp);
}

size_t node_free(struct node *node)
{
    size_t leaked = slab_pool_close(&node->pool);

    free_retired(node);
    tree_files_free(&node->trees);
    roots_free(node->roots);
    free(node->roots);
    processor_close(node->processor);
    past_free(node->gathering.past);
    free(node);
    return leaked;
}
