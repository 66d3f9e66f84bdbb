/* Every allocation in the life of an exchange fails once, at the root and at another node: only the exchange may
 * fail. */
#include "exchange_fixture.h"
#include "failing_memory.h"
#include "tests/support/cmocka.h"

enum {
    PARENT = 1,
    CHILD = 0
}; /* ports of node 1 to nodes 0 and 2; the root's child is at port 0 */

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
    (void)xf_say_sized(n, CHILD, XF_HANDLE, 0);
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

static void say_sized(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    (void)xf_say_sized(n, port, handle, 0);
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

/* Of the line, or between its ends: two children. */
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
    children_say(n, say_sized, handle);
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
    xf_prepare_generated(&p);
    p.spec.operation = OPERATION_BARRIER;
    p.spec.barrier = (char *)(uintptr_t) "b";
    p.spec.algorithm = (char *)(uintptr_t) "saadschultz";
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
