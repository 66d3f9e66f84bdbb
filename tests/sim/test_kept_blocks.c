/* Blocks that arrive before a link goes down are kept: the next attempt sends only the others. If the exchange ends
 * between two attempts, nothing of them is left. */
#include "tests/sim/down_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(60 / SIM_SHARE);

/* The bytes that the last attempt has sent on channels. */
static uint64_t sent(const struct sim_request *r)
{
    uint64_t bytes = 0;

    for (uint32_t rank = 0; rank < sim_torus(r->sim)->nodes; rank++)
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            bytes += r->result.node[rank].port[port].tx_bytes;
    return bytes;
}

/* Blocks that arrived before a link goes down are not sent again, whichever link it is, and however often. */
TEST(received_blocks_are_kept)
{
    static const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 400000);
    static const char *const dims[] = {"4x4", "3x3", "2x3", "2x2x2", "5"};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4; seed++) {
        const struct sim_setup setup = {.dims = dims[seed % 5],
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .memory = seed % 3 == 0 ? 4u << 20 : 0,
                                        .chop = true};
        struct sim *sim = sim_new(&setup);
        struct damage d;
        struct error e;
        sim_run_until_whole(sim);
        const struct torus *t = sim_torus(sim);
        uint64_t all = (uint64_t)t->nodes * (t->nodes - 1) * spec.block_bytes;
        assert_int_equal(damage_init(&d, t, &e), 0);
        struct sim_request *whole = sim_exchange(sim, 0, &spec);
        down_must_complete(whole, &spec);
        assert_int_equal(whole->result.kept_bytes, 0);

        struct sim_request *r = sim_exchange(sim, sim_any(sim, t->nodes), &spec);
        uint32_t cuts =
            setup.dims[1] == '\0' ? 1 : 1 + sim_any(sim, 2); /* one more would divide a ring */
        for (uint32_t left = cuts; left > 0; left--) {
            sim_pass(sim, whole->result.nanoseconds / 2);
            down_change(sim, &d, false); /* no restoring: a short silence is not noticed */
        }
        down_must_complete(r, &spec);
        assert_in_range(r->result.reroutes, 1, cuts);
        assert_in_range(r->result.kept_bytes, all / 8, all - 1);
        assert_int_equal(r->result.bytes_delivered, all);
        assert_true(sent(r) < sent(whole));
        assert_true(r->result.nanoseconds > whole->result.nanoseconds);
        damage_free(&d);
        sim_free(sim);
    }
}

/* The same with files, which are larger than a round. Only the rest is sent, over routes of any length. */
TEST(files_that_have_arrived_stay)
{
    static const struct spec kinds[] = {
        {.algorithm = "auto", .from = "/same/200000", .to = "/a"},
        {.algorithm = "auto", .from = "/random/300000", .to = "/b"},
        {.algorithm = "auto", .from = "/same/60000", .to = "/c"},
    };
    static const char *const dims[] = {"4x4", "3x3", "2x3", "2x2x2", "5"};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2; seed++) {
        const struct sim_setup setup = {.dims = dims[seed % 5],
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .memory = seed % 4 < 2 ? 4u << 20 : 0,
                                        .chop = true};
        const struct spec *spec = &kinds[seed % 3];
        struct sim *sim = sim_new(&setup);
        struct spec before = *spec;
        struct damage d;
        sim_run_until_whole(sim);
        const struct torus *t = sim_torus(sim);
        uint64_t all = 0;
        for (uint32_t from = 0; from < t->nodes; from++)
            for (uint32_t to = 0; to < t->nodes; to++)
                all += from != to ? sim_block_size(spec->from, from, to) : 0;
        assert_int_equal(damage_init(&d, t, NULL), 0);
        before.to = "/before";
        struct sim_request *whole = sim_exchange(sim, 0, &before);
        down_must_complete(whole, &before);
        assert_int_equal(whole->result.kept_bytes, 0);

        uint32_t cuts = setup.dims[1] == '\0' ? 1 : 1 + sim_any(sim, 2);
        struct sim_request *r = sim_exchange(sim, sim_any(sim, t->nodes), spec);
        sim_pass(sim, 1 * MILLISECONDS); /* files are opened */
        for (uint32_t left = cuts; left > 0; left--) {
            sim_pass(sim, whole->result.nanoseconds / 2);
            down_change(sim, &d, false);
        }
        down_must_complete(r, spec);
        assert_in_range(r->result.reroutes, 1, cuts);
        if (r->result.kept_bytes < all / 10 || r->result.kept_bytes >= all)
            fail_msg("seed %llu: %llu of %llu bytes were kept", (unsigned long long)seed,
                     (unsigned long long)r->result.kept_bytes, (unsigned long long)all);
        assert_int_equal(r->result.bytes_delivered, all);
        uint64_t rest = all - r->result.kept_bytes;
        if (sent(r) < rest || sent(r) >= sent(whole))
            fail_msg("seed %llu: %llu bytes are sent for %llu, %llu for %llu",
                     (unsigned long long)seed, (unsigned long long)sent(r),
                     (unsigned long long)rest, (unsigned long long)sent(whole),
                     (unsigned long long)all);
        assert_true(r->result.nanoseconds > whole->result.nanoseconds);
        if (!sim_run(sim, 1 * SECONDS, down_no_leftover, NULL))
            fail_msg("seed %llu: leftovers", (unsigned long long)seed);
        damage_free(&d);
        sim_free(sim);
    }
}

/* In steps, rounds of generated blocks that are complete are kept; files are sent again, and nothing of the first attempt
 * keeps the second one from writing them. */
TEST(whole_rounds_of_steps_are_kept)
{
    static const struct spec kinds[] = {
        GENERATED(.algorithm = "auto", .mode = MODE_STEPPED, .block_bytes = 400000),
        {.algorithm = "auto", .mode = MODE_STEPPED, .from = "/same/200000", .to = "/a"},
    };
    static const char *const dims[] = {"4x4", "3x3", "2x3", "2x2x2", "5"};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 6; seed++) {
        const struct spec *spec = &kinds[seed % 2];
        struct sim *sim =
            SIM_WHOLE(.dims = dims[seed % 5], .seed = seed, .latency = 100 * MICROSECONDS,
                      .rate = 12500000, .memory = 4u << 20, .chop = true);
        struct damage d;
        assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
        const uint64_t asked = sim_now(sim);
        struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), spec);
        sim_pass(sim, 40 * MILLISECONDS);
        down_change(sim, &d, false);
        down_must_complete(r, spec);
        assert_int_equal(r->result.reroutes, 1);
        assert_int_equal(r->result.kept_bytes > 0, seed % 2 == 0);
        assert_true(sim_now(sim) - asked < 8 * SECONDS);
        damage_free(&d);
        sim_free(sim);
    }
}

static bool is_between(struct sim *sim, void *context)
{
    const struct sim_request *r = context;
    struct exchange_progress progress;

    if (r->exchange == NULL)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.state == EXCHANGE_WAITING;
}

enum { CANCELLED, ROOT_DIES, NODE_DIES, NODE_IS_RESTARTED, CHANGED, FULL, LEFT_OUT, BETWEENS };

/* Events between two attempts at an exchange. */
struct between {
    uint64_t seed;
    uint32_t what, root, victim;
    struct spec spec;
    struct sim *sim;
    struct sim_request *request;
};

/* Begins an exchange of files, and cuts a link when much has arrived. Returns before the next attempt. */
static struct between begin_between(uint64_t seed)
{
    const struct sim_setup setup = {.dims = "3x4",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 12500000,
                                    .memory = 4u << 20,
                                    .chop = true};
    uint32_t what = (uint32_t)(seed % BETWEENS);
    struct between b = {.seed = seed,
                        .what = what,
                        .spec = {.algorithm = "auto",
                                 .from = seed % 2 == 0 ? "/random/600000" : "/same/300000",
                                 .to = "/a",
                                 .shrink = what == LEFT_OUT}};
    struct sim *sim = b.sim = sim_new(&setup);
    uint32_t nodes = sim_torus(sim)->nodes;
    struct damage d;

    b.root = sim_any(sim, nodes);
    b.victim = (b.root + 1 + sim_any(sim, nodes - 1)) % nodes;
    sim_run_until_whole(sim);
    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    b.request = sim_exchange(sim, b.root, &b.spec);
    sim_pass(sim, 20 * MILLISECONDS + sim_any(sim, 40) * MILLISECONDS);
    if (sim_any(sim, 3) == 0)
        sim_disk_slow(sim, sim_any(sim, nodes), 20 * MILLISECONDS);
    down_change(sim, &d, true);
    damage_free(&d);
    if (!sim_run(sim, 20 * SECONDS, is_between, b.request) || b.request->exchange == NULL)
        fail_msg("seed %llu: it is not retried", (unsigned long long)seed);
    if (sim_any(sim, 2) == 0) /* else all may not have heard of it */
        sim_pass(sim, 2 * MILLISECONDS);
    return b;
}

static void let_it_happen(const struct between *b)
{
    switch (b->what) {
    case CANCELLED:
        sim_cancel(b->request);
        break;
    case ROOT_DIES:
        sim_kill(b->sim, b->root, sim_any(b->sim, 3));
        break;
    case NODE_DIES:
    case NODE_IS_RESTARTED:
    case LEFT_OUT:
        sim_kill(b->sim, b->victim, sim_any(b->sim, 3));
        if (b->what == NODE_IS_RESTARTED)
            sim_restart(b->sim, b->victim);
        break;
    case CHANGED:
        sim_disk_fail(b->sim, b->victim, SIM_DISK_CHECK);
        break;
    default:
        sim_disk_full(b->sim, b->victim, true);
        break;
    }
}

static void check_end(const struct between *b)
{
    struct sim_request *r = b->request;

    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("seed %llu: %s does not end", (unsigned long long)b->seed, r->id);
    if (b->what == CHANGED && r->error.code != ERROR_DAMAGED)
        fail_msg("seed %llu: %s", (unsigned long long)b->seed, r->error.text);
    if (b->what == LEFT_OUT && r->error.code == ERROR_NONE)
        down_check_success(r, &b->spec);
    if (b->what == NODE_DIES || b->what == LEFT_OUT)
        sim_restart(b->sim, b->victim);
}

/* Wherever the exchange ends, nothing is left of received blocks. */
static void something_happens_between(uint64_t seed, uint32_t ends[BETWEENS])
{
    struct between b = begin_between(seed);

    let_it_happen(&b);
    if (b.what == ROOT_DIES) {
        sim_pass(b.sim, 5 * SECONDS);
        sim_restart(b.sim, b.root);
    } else {
        check_end(&b);
        ends[b.what] += b.request->error.code == ERROR_NONE;
    }
    sim_heal(b.sim);
    /* Long before the exchange would end by itself. */
    if (!sim_run(b.sim, 4 * SECONDS, down_no_leftover, NULL))
        fail_msg("seed %llu: leftovers after %s", (unsigned long long)seed, b.request->error.text);
    check_next_exchange(b.sim, b.root);
    sim_free(b.sim);
}

TEST(between_two_attempts)
{
    uint32_t ends[BETWEENS] = {0};

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        something_happens_between(seed, ends);
    assert_int_equal(ends[CANCELLED] + ends[CHANGED] + ends[NODE_DIES], 0);
    assert_true(ends[LEFT_OUT] > 0 || seeds < 2 * BETWEENS);
}
