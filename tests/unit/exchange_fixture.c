#include "exchange_fixture.h"

#include "exchange_storage.h"
#include "failing_memory.h"
#include "tests/support/cmocka.h"

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
        struct peer_link_state_entry entry = {0};
        struct peer_link_state link_state = {0};

        if (rank == n->f.rank)
            continue;
        entry.rank = rank;
        entry.hops = torus_distance(t, torus_neighbour(t, n->f.rank, port), rank);
        entry.version = 1;
        entry.boot = 77;
        for (unsigned p = 0; p < torus_ports(t); p++)
            if (torus_neighbour(t, rank, p) != TORUS_NO_NODE)
                entry.up |= 1u << p;
        link_state.n_entry = 1;
        link_state.entry = &entry;
        const struct peer_message head = {.kind = PEER_LINK_STATE, .link_state = link_state};
        assert_true(xf_say(n, port, &head));
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

    if (core_check(n->core, &e) != 0)
        fail_msg("%s", e.text);
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
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
            struct peer_heartbeat heartbeat = {0};
            const struct peer_message head = {.kind = PEER_HEARTBEAT, .heartbeat = heartbeat};
            if (n->f.up[port] != NULL && n->f.up[port]->link != NULL)
                fixture_say(n->f.up[port], &head, NULL, 0);
        }
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

/* --- events of folders and storage --- */

void xf_wake(struct exchange_fixture *n)
{
    exchange_storage_wake(n);
    xf_settle(n);
}

void xf_folders_fail(struct exchange_fixture *n, enum error_code code, const char *text)
{
    exchange_storage_fail(n, code, text);
    xf_settle(n);
}

void xf_closed(struct exchange_fixture *n)
{
    exchange_storage_closed(n);
}

void xf_storage_done(struct exchange_fixture *n, const struct error *e)
{
    exchange_storage_done(n, e);
    xf_settle(n);
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
