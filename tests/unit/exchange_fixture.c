#include "exchange_fixture.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "failing_memory.h"
#include "tests/support/cmocka.h"

static struct storage exchange_storage(struct exchange_fixture *n);

/* --- workers --- */

static int submit(void *context, struct work *work)
{
    struct exchange_fixture *n = context;

    if (n->works == EXCHANGE_FIXTURE_WORK)
        return -1;
    work->run(work);
    n->work[n->works++] = work;
    return 0;
}

/* --- the node --- */

void xf_init(struct exchange_fixture *n)
{
    *n = (struct exchange_fixture){
        .opened = true, .written = true, .closes_at_once = true, .commit = 1};
}

static void say_link_states(struct exchange_fixture *n, unsigned port)
{
    const struct torus *t = &n->f.torus;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        struct peer_link_state_entry entry = {
            .rank = rank,
            .hops = torus_distance(t, torus_neighbour(t, n->f.rank, port), rank),
            .version = 1,
            .boot = 77};
        if (rank == n->f.rank)
            continue;
        for (unsigned p = 0; p < torus_ports(t); p++)
            if (torus_neighbour(t, rank, p) != TORUS_NO_NODE)
                entry.up |= 1u << p;
        assert_true(XF_SAY(n, port, PEER_LINK_STATE, link_state, 1, &entry));
    }
}

void xf_link_up(struct exchange_fixture *n, unsigned port)
{
    fixture_link_up(&n->f, port);
    xf_settle(n);
    say_link_states(n, port);
    (void)xf_drain(n);
}

void xf_open(struct exchange_fixture *n, const char *dims, uint32_t rank)
{
    const struct router_io io = fixture_begin(&n->f, dims, rank);
    const struct core_setup setup = {
        .torus = &n->f.torus,
        .rank = rank,
        .io = io,
        .pool = &n->f.pool,
        .storage = &n->storage,
        .workers = {n, submit},
        .memory_budget = EXCHANGE_FIXTURE_BUDGET,
    };

    n->storage = exchange_storage(n);
    struct error e;
    n->core = core_new(&setup, &e);
    assert_non_null(n->core);
    n->f.router = core_router(n->core);
    core_start(n->core);
    for (unsigned port = 0; port < torus_ports(&n->f.torus); port++)
        if (torus_neighbour(&n->f.torus, rank, port) != TORUS_NO_NODE)
            xf_link_up(n, port);
}

static void run_works(struct exchange_fixture *n)
{
    while (n->works > 0) {
        struct work *work = n->work[0];
        memmove(&n->work[0], &n->work[1], --n->works * sizeof n->work[0]);
        work->done(work);
    }
}

void xf_close(struct exchange_fixture *n)
{
    n->calls = 0; /* no done() comes after storage.close */
    core_free(n->core);
    run_works(n);
    xf_closed(n);
    assert_null(n->folders);
    fixture_end(&n->f);
}

static void check(struct exchange_fixture *n)
{
    struct error e;

    assert_success(core_check(n->core, &e), e);
}

/* Storage and workers are not part of the core: their allocations do not fail. */
static void memory_counts(struct exchange_fixture *n, bool inside)
{
    if (n->counts_memory)
        memory_counts_here(inside);
}

void xf_settle(struct exchange_fixture *n)
{
    check(n);
    memory_counts(n, true);
    for (int i = 0; n->works > 0 || core_deadline(n->core) <= n->f.now; i++) {
        assert_true(i < 1000); /* otherwise the loop never sleeps */
        run_works(n);
        core_tick(n->core);
        check(n);
    }
    memory_counts(n, false);
}

void xf_pass(struct exchange_fixture *n, uint64_t nanoseconds)
{
    while (nanoseconds > 0) {
        uint64_t step = nanoseconds < ROUTER_HEARTBEAT ? nanoseconds : ROUTER_HEARTBEAT;
        n->f.now += step;
        nanoseconds -= step;
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            if (n->f.up[port] != NULL && n->f.up[port]->link != NULL)
                fixture_say_heartbeat(n->f.up[port]);
        xf_settle(n);
    }
}

bool xf_say(struct exchange_fixture *n, unsigned port, const struct peer_message *head)
{
    assert_non_null(n->f.up[port]);
    fixture_say(n->f.up[port], head, NULL, 0);
    xf_settle(n);
    return n->f.up[port]->link != NULL;
}

struct peer_message *xf_next(struct exchange_fixture *n, unsigned port)
{
    struct peer_message *head;

    while ((head = fixture_next(n->f.up[port], NULL, 0, NULL)) != NULL) {
        xf_settle(n);
        if (head->kind != PEER_LINK_STATE && head->kind != PEER_HEARTBEAT &&
            head->kind != PEER_CALIBRATION)
            return head;
        message_forget(head);
    }
    return NULL;
}

enum peer_kind xf_hear(struct exchange_fixture *n, unsigned port)
{
    struct peer_message *head = xf_next(n, port);
    enum peer_kind kind = head != NULL ? head->kind : PEER_NOTHING;

    if (head != NULL)
        message_forget(head);
    return kind;
}

unsigned xf_drain(struct exchange_fixture *n)
{
    unsigned heard = 0, before;

    do {
        before = heard;
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            while (n->f.up[port] != NULL && xf_hear(n, port) != PEER_NOTHING)
                heard++;
    } while (heard > before);
    return heard;
}

/* --- clients --- */

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct exchange_client_seen *seen = context;

    assert_true((result == NULL) != (e == NULL));
    seen->told++;
    seen->e.code = ERROR_NONE;
    if (e != NULL)
        seen->e = *e;
}

struct job *xf_start(struct exchange_fixture *n, const struct spec *spec,
                     struct exchange_client_seen *seen, struct error *e)
{
    const struct exchange_client client = {.context = seen, .ended = on_ended};

    *seen = (struct exchange_client_seen){0};
    memory_counts(n, true);
    struct job *x = exchange_start(core_exchanges(n->core), spec, &client, e);
    memory_counts(n, false);
    return x;
}

struct exchange_info xf_info(struct exchange_fixture *n)
{
    struct exchange_info info;

    assert_int_equal(exchanges_list(core_exchanges(n->core), &info, 1), 1);
    return info;
}

enum exchange_state xf_state(struct exchange_fixture *n)
{
    return xf_info(n).state;
}

enum exchange_state xf_state_of(struct exchange_fixture *n, const char *id)
{
    static struct exchange_info info[200];
    size_t known = exchanges_list(core_exchanges(n->core), info, 200);

    for (size_t i = 0; i < known; i++)
        if (strcmp(info[i].id, id) == 0)
            return info[i].state;
    return EXCHANGE_STATES;
}

/* The messages that exchange_fixture.h declares. */

#define TEXT(text) ((char *)(uintptr_t)(text))

void xf_prepare_init(struct xf_prepare *p, const struct exchange_fixture *n)
{
    torus__spec__init(&p->spec);
    p->spec.algorithm = TEXT("direct");
    p->spec.mode = TEXT("stepped");
    p->spec.from = TEXT("/in");
    p->spec.to = TEXT("/out");
    p->spec.timeout_ms = 60000;
    p->message = (struct peer_message){.kind = PEER_PREPARE,
                                       .prepare = {.exchange = XF_HANDLE,
                                                   .id = XF_ID,
                                                   .dims = torus_format(&n->f.torus, p->dims),
                                                   .spec = &p->spec,
                                                   .window = 1}};
}

void xf_prepare_generated(struct xf_prepare *p)
{
    p->spec.from = p->spec.to = TEXT("");
    p->message.prepare.round_bytes = 1;
}

static uint32_t steps_of(const struct exchange_fixture *n)
{
    struct plan plan;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    uint32_t steps = plan.steps;
    plan_free(&plan);
    return steps;
}

bool xf_say_done(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t first,
                 uint32_t nodes)
{
    unsigned ports = torus_ports(&n->f.torus);
    const struct peer_port_report port_report[TORUS_MAX_PORTS] = {{0}};
    struct peer_node_report node[XF_REPORTS];
    struct peer_done done = {0};
    uint32_t steps[64] = {0};

    assert_true(nodes <= XF_REPORTS);
    for (uint32_t i = 0; i < nodes; i++)
        node[i] = (struct peer_node_report){.rank = first + i,
                                            .blocks_delivered = n->f.torus.nodes - 1,
                                            .n_port = ports,
                                            .port = port_report};
    done.exchange = handle;
    done.n_node = nodes;
    done.node = node;
    done.n_step_blocks = done.n_step_messages = steps_of(n);
    assert_true(done.n_step_blocks <= 64);
    done.step_blocks = done.step_messages = steps;
    const struct peer_message head = {.kind = PEER_DONE, .done = done};
    return xf_say(n, port, &head);
}

static bool say_arrival(struct exchange_fixture *n, const struct plan_message *m, uint32_t handle,
                        uint32_t round, bool sizes)
{
    const uint32_t nothing[64] = {0};

    assert_true(m->blocks <= 64);
    return XF_SAY(n, m->port, PEER_STEPPED_DATA, stepped_data, .exchange = handle, .round = round,
                  .step = m->step, .hops = m->hops, .left = m->left,
                  .n_sizes = sizes ? m->blocks : 0, .sizes = nothing);
}

bool xf_say_data(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t round,
                 unsigned index, bool sizes)
{
    struct plan plan;
    bool up = false;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    for (uint32_t i = 0; i < plan.arrivals; i++)
        if (plan.arrival[i].port == port && index-- == 0)
            up = say_arrival(n, &plan.arrival[i], handle, round, sizes);
    plan_free(&plan);
    return up;
}

void xf_say_all_data(struct exchange_fixture *n, uint32_t handle, uint32_t round, bool sizes)
{
    struct plan plan;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    for (uint32_t i = 0; i < plan.arrivals; i++) {
        if (!say_arrival(n, &plan.arrival[i], handle, round, sizes))
            fail_msg("data of step %u was refused: %s", plan.arrival[i].step,
                     n->f.up[plan.arrival[i].port]->last);
        (void)xf_drain(n);
    }
    plan_free(&plan);
}

bool xf_say_nack(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                 uint32_t root, uint32_t code, const char *reason)
{
    struct error why = {.code = (enum error_code)code};

    (void)snprintf(why.text, sizeof why.text, "%s", reason);
    return xf_say_nack_about(n, port, handle, id, root, &why);
}

bool xf_say_nack_about(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                       uint32_t root, const struct error *why)
{
    return XF_SAY(n, port, PEER_NACK, nack, .exchange = handle, .id = id, .root = root,
                  .code = why->code, .reason = why->text, .culprit = why->culprit);
}

/* --- folders --- */

struct folders {
    struct source source;
    struct sink sink;
    struct exchange_fixture *node;
    struct folders *next;
    struct block_events events;
    bool source_open, sink_open;
    unsigned closing; /* closed() is still to come this many times */
    bool failed;
};

static struct folders *of_source(struct source *s)
{
    return (struct folders *)((char *)s - offsetof(struct folders, source));
}

static struct folders *of_sink(struct sink *s)
{
    return (struct folders *)((char *)s - offsetof(struct folders, sink));
}

static void free_closed(struct folders *folders)
{
    struct folders **at = &folders->node->folders;

    if (folders->source_open || folders->sink_open || folders->closing > 0)
        return;
    while (*at != folders)
        at = &(*at)->next;
    *at = folders->next;
    free(folders);
}

static bool close_half(struct folders *folders)
{
    bool at_once = folders->node->closes_at_once;

    folders->closing += !at_once;
    free_closed(folders);
    return at_once;
}

static bool source_opened(struct source *s)
{
    return of_source(s)->node->opened;
}

static int source_lay_out(struct source *s, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    assert_true(round_bytes > 0 && segments > 0);
    return 0;
}

static uint64_t source_size(struct source *s, uint32_t destination)
{
    assert_true(destination < of_source(s)->node->f.torus.nodes);
    return 0;
}

static int source_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    fail_msg("an empty block is read");
    return -1;
}

static bool source_finish(struct source *s)
{
    return true;
}

static bool source_close(struct source *s)
{
    assert_true(of_source(s)->source_open);
    of_source(s)->source_open = false;
    return close_half(of_source(s));
}

static bool sink_opened(struct sink *s)
{
    return of_sink(s)->node->opened;
}

static int sink_lay_out(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    assert_true(round_bytes > 0 && segments > 0);
    return 0;
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    assert_int_equal(piece->length, 0);
    return 0;
}

static uint64_t sink_none(struct sink *s)
{
    return 0;
}

static bool sink_finish(struct sink *s)
{
    return of_sink(s)->node->written;
}

static int sink_commit(struct sink *s, struct error *e)
{
    struct exchange_fixture *n = of_sink(s)->node;

    if (n->commit < 0)
        return error_set(e, ERROR_REFUSED, "target exists");
    n->commits += n->commit > 0;
    return n->commit;
}

static bool sink_close(struct sink *s, bool keep)
{
    struct folders *folders = of_sink(s);

    assert_true(folders->sink_open);
    folders->sink_open = false;
    if (keep)
        folders->node->kept++;
    else
        folders->node->removed++;
    return close_half(folders);
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {.opened = source_opened,
                                                 .lay_out = source_lay_out,
                                                 .size = source_size,
                                                 .read = source_read,
                                                 .finish = source_finish,
                                                 .close = source_close};
    static const struct sink_ops sink_ops = {.opened = sink_opened,
                                             .lay_out = sink_lay_out,
                                             .write = sink_write,
                                             .pending = sink_none,
                                             .finish = sink_finish,
                                             .commit = sink_commit,
                                             .close = sink_close};
    struct exchange_fixture *n = context;
    struct folders *folders = calloc(1, sizeof *folders);

    if (folders == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for folders");
    folders->source = (struct source){.ops = &source_ops, .irregular = true};
    folders->sink = (struct sink){&sink_ops, true, CHECK_DIGEST};
    folders->node = n;
    folders->events = *events;
    folders->source_open = folders->sink_open = true;
    folders->next = n->folders;
    n->folders = folders;
    *source = &folders->source;
    *sink = &folders->sink;
    return 0;
}

/* --- decisions --- */

static void begin_call(struct exchange_fixture *n, const char *id, bool resolves, bool committed,
                       storage_done_fn *done, void *argument)
{
    struct storage_call *call = &n->call[n->calls++];

    assert_true(n->calls <= EXCHANGE_FIXTURE_CALLS);
    *call = (struct storage_call){
        .resolves = resolves, .committed = committed, .done = done, .argument = argument};
    (void)snprintf(call->id, sizeof call->id, "%s", id);
}

static void record_commit(void *context, const char *id, storage_done_fn *done, void *argument)
{
    begin_call(context, id, false, true, done, argument);
}

static void resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument)
{
    begin_call(context, id, true, committed, done, argument);
}

static void forget_commit(void *context, const char *id)
{
    ((struct exchange_fixture *)context)->forgotten++;
}

static void name_each(const char *const *ids, void (*each)(void *argument, const char *id),
                      void *argument)
{
    for (; ids != NULL && *ids != NULL; ids++)
        each(argument, *ids);
}

static int each_committed(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e)
{
    name_each(((struct exchange_fixture *)context)->on_record, each, argument);
    return 0;
}

static int each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e)
{
    name_each(((struct exchange_fixture *)context)->in_doubt, each, argument);
    return 0;
}

/* Storage that behaves as the fixture says. It borrows the fixture. */
static struct storage exchange_storage(struct exchange_fixture *n)
{
    return (struct storage){.context = n,
                            .open_folders = open_folders,
                            .record_commit = record_commit,
                            .forget_commit = forget_commit,
                            .each_committed = each_committed,
                            .each_in_doubt = each_in_doubt,
                            .resolve = resolve};
}

/* --- events of folders and decisions --- */

void xf_wake(struct exchange_fixture *n)
{
    struct folders *next;

    for (struct folders *folders = n->folders; folders != NULL; folders = next) {
        next = folders->next;
        if (folders->source_open && folders->sink_open)
            folders->events.wake(folders->events.context);
    }
    xf_settle(n);
}

void xf_folders_fail(struct exchange_fixture *n, enum error_code code, const char *text)
{
    struct folders *folders = n->folders;
    struct error e;

    assert_non_null(folders);
    assert_true(folders->source_open && !folders->failed);
    folders->failed = true;
    (void)error_set(&e, code, "%s", text);
    folders->events.failed(folders->events.context, &e);
    xf_settle(n);
}

void xf_closed(struct exchange_fixture *n)
{
    struct folders *next;

    for (struct folders *folders = n->folders; folders != NULL; folders = next) {
        struct block_events events = folders->events;
        next = folders->next;
        unsigned closing = folders->closing;
        folders->closing = 0;
        free_closed(folders);
        while (closing-- > 0)
            events.closed(events.context);
    }
}

void xf_storage_done(struct exchange_fixture *n, const struct error *e)
{
    struct storage_call call = n->call[0];

    assert_true(n->calls > 0);
    memmove(&n->call[0], &n->call[1], --n->calls * sizeof n->call[0]);
    call.done(call.argument, call.id, e);
    xf_settle(n);
}
