/* "auto" on networks other than tori, in the real core: all nodes take the root's choice, whether the root knows the
 * sizes of blocks at once or hears of them. */
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/choose_routes.h"
#include "tests/sim/checks.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

/* Messages take long. */
static const struct predict_costs dear_messages = {10e-6, 60e-6, 1e9, 0, 0};

static const char *const networks[] = {"complete:4", "5 x complete:3", "tree:2^2", "star:3 x 4m"};
#define NETWORKS (sizeof networks / sizeof networks[0])

static struct sim *start(const char *dims, uint64_t seed)
{
    struct sim *sim =
        SIM_WHOLE(.dims = dims, .seed = seed, .latency = 100 * MICROSECONDS, .rate = 125000000);
    struct error e;

    assert_int_equal(exchanges_calibrate(sim_exchanges(sim, 0), &dear_messages, 1000, &e), 0);
    sim_settle(&sim->node[0]);
    sim_pass(sim, 1 * SECONDS);
    return sim;
}

struct candidates {
    struct candidate list[CHOOSE_MOST];
    unsigned count;
    uint32_t rank;
    uint64_t block_bytes;
};

static bool are_counted(struct sim *sim, void *context)
{
    struct candidates *c = context;
    const struct block_sizes sizes = {c->block_bytes, c->block_bytes};
    struct error e;

    return choose_candidates(sim_exchanges(sim, c->rank), &sizes, MODE_OF_ALGORITHM, c->list,
                             &c->count, NULL, &e) == 1;
}

static const struct candidate *candidate_of(struct sim *sim, struct candidates *c, uint32_t rank,
                                            uint64_t block_bytes, const char *name)
{
    c->rank = rank;
    c->block_bytes = block_bytes;
    assert_true(sim_run(sim, 1 * SECONDS, are_counted, c));
    for (unsigned i = 0; i < c->count; i++)
        if (strcmp(c->list[i].algorithm->name, name) == 0)
            return &c->list[i];
    fail_msg("%s is not a candidate", name);
    return NULL;
}

static struct sim_request *must_take(struct sim *sim, uint32_t root, const struct spec *spec,
                                     const char *algorithm)
{
    struct sim_request *r = sim_exchange(sim, root, spec);
    struct spec done = *spec;

    if (!sim_run_until_ended(r, 60 * SECONDS) || r->error.code != ERROR_NONE)
        sim_violated(sim, "success", "%s", r->ended ? r->error.text : "not ended");
    assert_string_equal(r->algorithm, algorithm);
    done.algorithm = r->algorithm;
    check_success(r, &done);
    return r;
}

TEST(auto_takes_the_one_for_the_size)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct sim *sim = start(networks[i], i);
        uint32_t last = sim_torus(sim)->nodes - 1;
        struct candidates c;
        struct spec spec = GENERATED(.algorithm = SPEC_AUTO, .block_bytes = 1);
        (void)must_take(sim, last, &spec, "tree"); /* counts, then chooses */
        assert_ptr_equal(candidate_of(sim, &c, last, 1, "tree"), &c.list[0]);
        assert_ptr_equal(candidate_of(sim, &c, 1, 1, "tree"), &c.list[0]);
        spec.block_bytes = 262144;
        for (uint32_t root = 0; root < 2; root++) {
            (void)must_take(sim, root, &spec, "stream");
            assert_ptr_equal(candidate_of(sim, &c, root, 262144, "stream"), &c.list[0]);
        }
        spec.mode = MODE_STREAMING;
        spec.block_bytes = 1;
        assert_int_equal(must_take(sim, 0, &spec, "stream")->result.mode, MODE_STREAMING);
        sim_free(sim);
    }
}

/* The root chooses when all nodes have told the sizes of their files; nodes that have not asked for the routes of
 * `stream` find them then. */
TEST(auto_takes_files_by_their_sizes)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct sim *sim = start(networks[i], 10 + i);
        struct spec spec = {.algorithm = SPEC_AUTO, .from = "/same/200000", .to = "/a"};
        assert_true(check_agreement(must_take(sim, 1, &spec, "stream"), &spec));
        spec.from = "/same/1";
        spec.to = "/b";
        assert_true(check_agreement(must_take(sim, 0, &spec, "tree"), &spec));
        spec.from = "/same/200000";
        spec.to = "/c";
        assert_true(check_agreement(must_take(sim, 0, &spec, "stream"), &spec));
        sim_free(sim);
    }
}

/* A session of `stream` corrects its prediction, as on tori. */
SIM_TEST(start("5 x complete:3", 3), auto_learns_from_found_routes)
{
    const struct spec spec = GENERATED(.algorithm = "stream", .block_bytes = 4096, .repeat = 7);
    struct candidates c;

    double model = candidate_of(sim, &c, 2, 4096, "stream")->seconds;
    double seen = sim_median_seconds(must_take(sim, 2, &spec, "stream"));
    double now = candidate_of(sim, &c, 2, 4096, "stream")->seconds;
    assert_true(now < 0.99 * model || now > 1.01 * model);
    assert_true(now > 0.99 * seen && now < 1.01 * seen);
}

/* While a link is down, only routes that avoid it are possible; then "auto" chooses again. */
TEST(auto_chooses_where_nothing_is_avoided)
{
    static const char *const ringed[] = {"complete:4", "5 x complete:3"};
    const struct spec spec = GENERATED(.algorithm = SPEC_AUTO, .block_bytes = 1);

    for (uint64_t seed = 0; seed < 12; seed++) {
        struct sim *sim = start(ringed[seed % 2], seed);
        (void)must_take(sim, 0, &spec, "tree");
        struct sim_request *r = sim_exchange(sim, 1, &spec);
        sim_pass(sim, seed * 150 * MICROSECONDS);
        sim_set_wire(sim, 0, 0, SIM_WIRE_CUT);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        assert_int_equal(r->error.code, ERROR_NONE);
        sim_pass(sim, 1 * SECONDS);
        (void)must_take(sim, 0, &spec, DETOUR_NAME);
        sim_heal(sim);
        sim_run_until_whole(sim);
        (void)must_take(sim, 0, &spec, "tree");
        sim_free(sim);
    }
}
