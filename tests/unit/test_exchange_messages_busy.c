/* Requests for which there is no room now, and the root's reaction. */
#include "exchange_fixture.h"
#include "failing_memory.h"
#include "line_fixture.h"
#include "tests/support/cmocka.h"

static bool prepare_another(struct exchange_fixture *n, uint32_t i, uint64_t block_bytes)
{
    return line_prepare(n, PARENT, 0, i, block_bytes);
}

TEST(a_prepare_without_room_is_busy)
{
    struct exchange_fixture n;
    uint32_t i = 0;

    line_open(&n, 1); /* memory */
    do
        assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    while (xf_hear(&n, PARENT) == PEER_NOTHING && i < 20);
    assert_in_range(i, 2, 9);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    line_hears_nack(&n, ERROR_BUSY, 1, NULL);
    assert_true(xf_say_abort(&n, PARENT, 3, "0-0000004d-1", ERROR_CANCELLED, "over", 0));
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8)); /* there is room again */
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_close(&n);

    line_open(&n, 1); /* number */
    for (i = 0; i < 16; i++)
        assert_true(prepare_another(&n, 1 + i, 0));
    assert_int_equal(line_known(&n), 16);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, 1 + i, 0));
    line_hears_nack(&n, ERROR_BUSY, 1, "node 0");
    assert_int_equal(line_known(&n), 16);
    assert_true(line_prepare(&n, CHILD, 2, 1, 0)); /* one root must leave places for other roots */
    assert_int_equal(line_known(&n), 17);
    xf_close(&n);
}

/* All roots together have a number of places, and each root gets at least one. */
TEST(each_root_has_a_place)
{
    static const struct spec own = {
        .algorithm = "direct", .mode = MODE_STEPPED, .from = "", .to = ""};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    uint32_t prepared = 0;
    struct error e;

    xf_init(&n);
    xf_open(&n, "40m", 1);
    for (uint32_t root = 2; root < 2 + 256 / 16; root++)
        for (uint32_t i = 1; i <= 16; i++, prepared++)
            assert_true(line_prepare(&n, CHILD, root, i, 0));
    assert_int_equal(line_known(&n), prepared);
    for (uint32_t root = 30; root < 40; root++) {
        assert_true(line_prepare(&n, CHILD, root, 1, 0));
        assert_int_equal(line_known(&n), ++prepared);
        assert_true(line_prepare(&n, CHILD, root, 2, 0));
        assert_int_equal(line_known(&n), prepared);
    }
    (void)xf_drain(&n);
    for (unsigned i = 0; i < 2; i++) { /* this node knows it, too */
        struct exchange_progress progress;
        struct job *x = xf_start(&n, &own, &seen, &e);
        assert_non_null(x);
        xf_settle(&n);
        exchange_progress(x, &progress);
        assert_int_equal(progress.state, i == 0 ? EXCHANGE_PREPARING : EXCHANGE_WAITING);
    }
    xf_close(&n);
}

/* However much one root prepares without going on, it leaves a share. */
LINE_TEST(one_root_does_not_take_all_memory)
{
    uint32_t i = 0;

    do
        assert_true(prepare_another(n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    while (xf_hear(n, PARENT) == PEER_NOTHING && i < 16);
    assert_in_range(i, 3, 15);
    assert_in_range(exchanges_reserved(core_exchanges(n->core)), EXCHANGE_FIXTURE_BUDGET / 2,
                    EXCHANGE_FIXTURE_BUDGET / 4 * 3);
    (void)xf_drain(n);
    assert_true(prepare_another(n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    line_hears_nack(n, ERROR_BUSY, 1, "node 0");
    assert_true(line_prepare(n, CHILD, 2, 1, EXCHANGE_FIXTURE_BUDGET / 16));
    assert_int_equal(xf_state_of(n, "2-0000004d-1"), EXCHANGE_PREPARING);
}

/* However many nodes one user asks, memory is left for others. */
LINE_TEST(one_user_does_not_take_all_memory)
{
    struct xf_prepare p;
    char id[EXCHANGE_ID_SIZE];
    uint32_t i = 0;

    do {
        xf_prepare_init(&p, n);
        xf_prepare_generated(&p);
        p.message.prepare.root = i % 2 == 0 ? 0 : 2;
        (void)snprintf(id, sizeof id, "%u-0000004d-%u", p.message.prepare.root, ++i);
        p.message.prepare.id = id;
        p.message.prepare.user = 1000;
        p.message.prepare.exchange = n->f.torus.nodes * i + p.message.prepare.root;
        p.spec.block_bytes = p.message.prepare.round_bytes = EXCHANGE_FIXTURE_BUDGET / 32;
        assert_true(xf_say(n, p.message.prepare.root == 0 ? PARENT : CHILD, &p.message));
    } while (xf_state_of(n, id) == EXCHANGE_PREPARING || xf_state_of(n, id) == EXCHANGE_READY);
    assert_in_range(i, 4, 31);
    assert_in_range(exchanges_reserved(core_exchanges(n->core)), EXCHANGE_FIXTURE_BUDGET / 2,
                    EXCHANGE_FIXTURE_BUDGET / 4 * 3);
    (void)xf_drain(n);
    assert_true(line_prepare(n, CHILD, 2, ++i, EXCHANGE_FIXTURE_BUDGET / 32)); /* of another user */
    (void)snprintf(id, sizeof id, "2-0000004d-%u", i);
    assert_int_equal(xf_state_of(n, id), EXCHANGE_PREPARING);
}

/* An exchange that waits for slow disks takes a place, even when it is over. */
LINE_TEST(an_exchange_that_is_still_closing_has_a_place)
{
    struct xf_prepare p;
    unsigned i;

    n->closes_at_once = false;
    for (i = 1; i <= 16; i++) {
        char id[EXCHANGE_ID_SIZE];
        xf_prepare_init(&p, n);
        (void)snprintf(id, sizeof id, "0-0000004d-%u", i);
        p.message.prepare.id = id;
        p.message.prepare.exchange = 3 * i;
        assert_true(xf_say(n, PARENT, &p.message));
        assert_true(xf_say_abort(n, PARENT, 3 * i, id, ERROR_CANCELLED, "over", 0));
        assert_int_equal(xf_state_of(n, id), EXCHANGE_FAILED);
        (void)xf_drain(n);
    }
    assert_true(prepare_another(n, i, 0));
    line_hears_nack(n, ERROR_BUSY, 1, "node 0");
    n->closes_at_once = true;
    xf_closed(n);
    xf_settle(n);
    assert_true(prepare_another(n, i + 1, 0));
    assert_int_equal(xf_hear(n, PARENT), PEER_NOTHING);
}

TEST(the_root_retries)
{
    struct line_root r;
    char first[EXCHANGE_ID_SIZE];
    unsigned attempts = 1;

    line_root_open(&r);
    (void)snprintf(first, sizeof first, "%s", r.id);
    assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
    assert_true(line_hears_abort(&r.f, CHILD, ERROR_BUSY));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    /* Several nodes may be busy; their further messages are about the withdrawn attempt. */
    assert_true(line_root_object(&r, ERROR_BUSY, "node 1 is busy"));
    assert_true(line_root_object(&r, ERROR_REFUSED, "node 1 refuses"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    assert_int_equal(r.client.told, 0);
    while (r.client.told == 0) {
        xf_pass(&r.f, 10 * MILLISECONDS);
        if (!line_root_learn(&r))
            continue;
        attempts++;
        assert_string_not_equal(r.id, first);
        assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
        assert_true(line_hears_abort(&r.f, CHILD, ERROR_BUSY));
        assert_true(attempts < 200); /* with pauses that grow */
    }
    if (attempts <= 10)
        fail_msg("%u attempts, then: %s", attempts, r.client.e.text);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_TIMEOUT);
    assert_contains(r.client.e.text, "node 2 ");
    xf_close(&r.f);

    line_root_open(&r); /* and is done when there is room */
    assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
    (void)xf_drain(&r.f);
    for (int i = 0; i < 100 && !line_root_learn(&r); i++)
        xf_pass(&r.f, 10 * MILLISECONDS);
    assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
    (void)xf_drain(&r.f);
    xf_say_all_data(&r.f, r.handle, 0, false);
    assert_true(xf_say_done(&r.f, CHILD, r.handle, 1, 2));
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_NONE);
    xf_close(&r.f);
}

/* The next message at a port that is not a block, or NULL. */
static struct peer_message *next_abort(struct exchange_fixture *n, unsigned port)
{
    struct peer_message *head = xf_next(n, port);

    while (head != NULL && head->kind != PEER_ABORT) {
        message_forget(head);
        head = xf_next(n, port);
    }
    return head;
}

/* Nodes keep what they have of an attempt that ran and was withdrawn. If there is no next attempt, they hear that. */
TEST(the_end_is_told_to_nodes_of_the_last_attempt)
{
    struct line_root r;
    struct error e;

    line_open(&r.f, 0);
    struct job *j = xf_start(&r.f, &line_generated, &r.client, &e);
    assert_non_null(j);
    xf_settle(&r.f);
    assert_true(line_root_learn(&r));
    assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
    const struct peer_message damaged = {.kind = PEER_NACK,
                                         .nack = {.exchange = r.handle,
                                                  .id = r.id,
                                                  .code = ERROR_DAMAGED,
                                                  .reason = "damaged",
                                                  .retry_may_help = true}};
    for (int end = 0; end < 2; end++) {
        if (end == 0)
            assert_true(xf_say(&r.f, CHILD, &damaged));
        else
            exchange_cancel(j);
        xf_settle(&r.f);
        struct peer_message *head = next_abort(&r.f, CHILD);
        assert_non_null(head);
        assert_string_equal(head->abort.id, r.id);
        assert_int_equal(head->abort.code, end == 0 ? ERROR_BUSY : ERROR_CANCELLED);
        message_forget(head);
    }
    xf_close(&r.f);
}

/* Without a timeout of its own it waits for an hour, and its client is told that time, not the time that it needs to
 * run. */
TEST(the_time_that_it_has_waited_is_told)
{
    struct spec spec = line_generated;
    struct line_root r;
    struct error e;

    spec.timeout_ns = 0;
    line_open(&r.f, 0);
    assert_non_null(xf_start(&r.f, &spec, &r.client, &e));
    xf_settle(&r.f);
    for (int second = 0; second < 3610 && r.client.told == 0; second++) {
        if (line_root_learn(&r))
            assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
        (void)xf_drain(&r.f);
        xf_pass(&r.f, 2 * SECONDS);
    }
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_TIMEOUT);
    assert_contains(r.client.e.text, " 3600.0 s");
    xf_close(&r.f);
}

static enum exchange_state state_of(const struct job *x)
{
    struct exchange_progress progress;

    assert_non_null(x);
    exchange_progress(x, &progress);
    return progress.state;
}

/* Later exchanges do not overtake an exchange that waits for memory. */
TEST(a_barrier_lets_nobody_overtake)
{
    struct spec large = line_generated;
    struct exchange_client_seen seen[3];
    struct job *waits, *enters, *later;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;
    char id[EXCHANGE_ID_SIZE];
    uint32_t counter;

    line_open(&n, 0);
    xf_prepare_init(&p, &n); /* of another root: the rest is less than the large one's share */
    xf_prepare_generated(&p);
    p.message.prepare.root = 1;
    p.message.prepare.id = "1-0000004d-2";
    p.message.prepare.exchange = 7;
    p.spec.block_bytes = p.message.prepare.round_bytes = EXCHANGE_FIXTURE_BUDGET / 8 * 5;
    assert_true(xf_say(&n, CHILD, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_READY);
    assert_true(line_prepare(&n, CHILD, 2, 9, EXCHANGE_FIXTURE_BUDGET / 4)); /* and of a third */
    assert_int_equal(xf_state_of(&n, "2-0000004d-9"), EXCHANGE_READY);
    large.block_bytes = EXCHANGE_FIXTURE_BUDGET;
    waits = xf_start(&n, &large, &seen[0], &e);
    enters = xf_start(&n, &line_barrier, &seen[1], &e);
    later = xf_start(&n, &line_generated, &seen[2], &e);
    xf_settle(&n);
    assert_int_equal(state_of(enters), EXCHANGE_PREPARING);
    (void)xf_drain(&n); /* the barrier must be retried, while others wait for memory before it */
    (void)snprintf(id, sizeof id, "%s", exchange_id(enters));
    assert_int_equal(sscanf(id, "%*u-%*x-%u", &counter), 1);
    assert_true(xf_say_nack(&n, CHILD, 3 * counter, id, 0, ERROR_BUSY, "busy"));
    assert_int_equal(state_of(enters), EXCHANGE_WAITING);
    xf_pass(&n, 50 * MILLISECONDS);
    assert_int_equal(state_of(enters), EXCHANGE_PREPARING);
    assert_int_equal(state_of(waits), EXCHANGE_WAITING);
    assert_int_equal(state_of(later), EXCHANGE_WAITING);
    assert_true(
        xf_say_abort(&n, CHILD, 7, "1-0000004d-2", ERROR_CANCELLED, "over", 0)); /* room again */
    assert_int_equal(state_of(waits), EXCHANGE_PREPARING);
    assert_int_equal(state_of(later), EXCHANGE_PREPARING);
    xf_close(&n);
}

/* Every allocation in the life of an exchange fails once, at the root and at another node: only the exchange may
 * fail. */

static void say_data(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    for (unsigned i = 0; i < 2; i++) {
        (void)xf_say_data(n, port, handle, 0, i, true);
        (void)xf_drain(n);
    }
}

static void live_at_node_1(struct exchange_fixture *n)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    (void)xf_say(n, PARENT, &p.message);
    (void)xf_say_sizes(n, CHILD, XF_HANDLE, 0);
    (void)xf_say_layout(n, PARENT, XF_HANDLE);
    (void)xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE);
    (void)xf_say_go(n, PARENT, XF_HANDLE, 1, 0);
    (void)xf_drain(n);
    say_data(n, PARENT, XF_HANDLE);
    say_data(n, CHILD, XF_HANDLE);
    (void)xf_say_done(n, CHILD, XF_HANDLE, 2, 1);
    (void)xf_say_handle(n, PARENT, PEER_COMMIT, XF_HANDLE);
    (void)xf_say_confirm(n, CHILD, XF_ID, 2, "");
}

static struct exchange_client_seen seen;
static bool started;

static void children_say(struct exchange_fixture *n,
                         void (*say)(struct exchange_fixture *n, unsigned port, uint32_t handle),
                         uint32_t handle)
{
    for (unsigned port = 0; port < torus_ports(&n->f.torus); port++)
        if (n->f.up[port] != NULL)
            say(n, port, handle);
    (void)xf_drain(n);
}

static void say_sizes(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    (void)xf_say_sizes(n, port, handle, 0);
}

static void say_ready(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    (void)xf_say_handle(n, port, PEER_READY, handle);
}

/* Reports of the node at the end of the line, or of both nodes behind the first one. */
static void say_data_and_done(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    uint32_t rank = router_rank(n->f.router);
    uint32_t peer = torus_neighbour(&n->f.torus, rank, port);

    say_data(n, port, handle);
    (void)xf_say_done(n, port, handle, peer, rank == 0 ? 2 : 1);
}

/* The root is at an end of the line, or in the middle with two children. */
static void live_at_the_root(struct exchange_fixture *n)
{
    static const struct spec spec = {.algorithm = "direct",
                                     .mode = MODE_STEPPED,
                                     .from = "/in",
                                     .to = "/out",
                                     .timeout_ns = 60 * SECONDS};
    struct error e;
    char id[EXCHANGE_ID_SIZE];
    uint32_t counter, handle, own = router_rank(n->f.router);
    struct job *x = xf_start(n, &spec, &seen, &e);

    started = x != NULL;
    if (!started)
        return;
    (void)snprintf(id, sizeof id, "%s", exchange_id(x));
    assert_int_equal(sscanf(id, "%*u-%*x-%u", &counter), 1);
    handle = counter * n->f.torus.nodes + own;
    xf_settle(n);
    children_say(n, say_sizes, handle);
    children_say(n, say_ready, handle);
    children_say(n, say_data_and_done, handle);
    if (n->calls > 0)
        xf_storage_done(n, NULL);
    for (uint32_t rank = 0; rank < 3; rank++)
        if (rank != own)
            (void)xf_say_confirm(n, rank < own ? PARENT : CHILD, id, rank, "");
}

/* A client enters a barrier, and then the root prepares it. */
static void live_in_a_barrier(struct exchange_fixture *n)
{
    static const struct spec spec = {.algorithm = SPEC_AUTO,
                                     .operation = OPERATION_BARRIER,
                                     .barrier = "b",
                                     .timeout_ns = 60 * SECONDS};
    struct error e;
    struct xf_prepare p;

    started = xf_start(n, &spec, &seen, &e) != NULL;
    xf_settle(n);
    xf_prepare_init(&p, n);
    line_prepare_barrier(&p);
    (void)xf_say(n, PARENT, &p.message);
    (void)xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE);
    (void)xf_say_go(n, PARENT, XF_HANDLE, 1, 0);
    (void)xf_say_done(n, CHILD, XF_HANDLE, 2, 1);
    (void)xf_drain(n);
}

/* Returns whether an allocation has failed. */
static bool live(uint32_t rank, void (*lives)(struct exchange_fixture *n), unsigned after,
                 bool *committed)
{
    static struct exchange_fixture n;
    struct exchange_info info[10];

    xf_init(&n);
    xf_open(&n, "3m", rank);
    n.counts_memory = true;
    started = false;
    memory_fails(after);
    lives(&n);
    bool failed = memory_failed();
    for (int i = 0; i < 40; i++) {
        xf_pass(&n, 5 * SECONDS);
        (void)xf_drain(&n);
        while (n.calls > 0)
            xf_storage_done(&n, NULL);
    }
    size_t known = exchanges_list(core_exchanges(n.core), info, 10);
    for (size_t i = 0; i < known; i++)
        if (!exchange_has_ended(info[i].state))
            fail_msg("allocation %u: %s", after, exchange_state_name(info[i].state));
    assert_int_equal(exchanges_reserved(core_exchanges(n.core)), 0);
    if (started)
        assert_int_equal(seen.told, 1);
    *committed = known > 0 && info[0].state == EXCHANGE_COMMITTED && n.commits == 1;
    xf_close(&n);
    return failed;
}

TEST(memory_may_run_out_at_any_moment)
{
    static const struct {
        uint32_t rank;
        void (*lives)(struct exchange_fixture *n);
        bool commits;
    } lives[] = {{0, live_at_the_root, true},
                 {1, live_at_the_root, true},
                 {1, live_at_node_1, true},
                 {1, live_in_a_barrier, false}};

    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        unsigned runs = 0;
        bool committed = false;
        while (live(lives[i].rank, lives[i].lives, runs, &committed))
            assert_true(++runs < 2000);
        assert_int_equal(committed, lives[i].commits); /* nothing has failed */
        assert_in_range(runs, 10, 2000);
    }
}
