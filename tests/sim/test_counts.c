/* The cost of a small exchange: counts every frame that any node sends, by kind. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/tree.h"
#include "tests/sim/checks.h"
#include "tests/support/cmocka.h"

#define LATENCY (1 * MILLISECONDS)

static struct sim *open_torus(const char *dims)
{
    struct sim *sim =
        SIM_WHOLE(.dims = dims, .seed = 1, .latency = LATENCY, .memory = UINT64_C(1) << 32);

    sim_pass(sim, 1 * SECONDS); /* including the last message of it */
    return sim;
}

static uint64_t all_sent(struct sim *sim, Peer__Head__KindCase kind)
{
    uint64_t frames = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        frames += sim_frames_sent(sim, rank, kind);
    return frames;
}

/* Runs an exchange from node 0 after resetting the counts. Returns its nanoseconds. */
static uint64_t run(struct sim *sim, const struct spec *spec)
{
    sim_forget_frames(sim);
    struct sim_request *r = sim_exchange(sim, 0, spec);
    (void)sim_run_until_ended(r, 60 * SECONDS);
    check_success(r, spec);
    return r->result.nanoseconds;
}

/* Waves of control messages: each crosses every edge of the tree of nodes once. */
static void check_waves(struct sim *sim, bool outputs)
{
    static const Peer__Head__KindCase always[] = {PEER__HEAD__KIND_PREPARE, PEER__HEAD__KIND_READY,
                                                  PEER__HEAD__KIND_GO, PEER__HEAD__KIND_DONE};
    static const Peer__Head__KindCase outputs_too[] = {
        PEER__HEAD__KIND_SIZES, PEER__HEAD__KIND_LAYOUT, PEER__HEAD__KIND_COMMIT,
        PEER__HEAD__KIND_CONFIRM};
    uint64_t edges = sim_torus(sim)->nodes - 1, others = 0;

    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_int_equal(all_sent(sim, always[i]), edges);
    for (size_t i = 0; i < sizeof outputs_too / sizeof *outputs_too; i++)
        assert_int_equal(all_sent(sim, outputs_too[i]), outputs ? edges : 0);
    for (int kind = PEER__HEAD__KIND_HELLO; kind <= PEER__HEAD__KIND_NACK; kind++)
        others += all_sent(sim, (Peer__Head__KindCase)kind);
    others -= all_sent(sim, PEER__HEAD__KIND_HEARTBEAT);
    assert_int_equal(others, edges * (outputs ? 8 : 4));
}

/* tree: one message over each edge in each direction; a block of a leaf goes up and down the whole depth. */
TEST(tree_sends_a_message_an_edge_each_way)
{
    static const char *const dims[] = {"8x8", "4x4", "5x7", "3x4x5", "1x9"};
    const struct spec spec = GENERATED(.algorithm = "tree", .block_bytes = 8);

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct sim *sim = open_torus(dims[i]);
        const struct torus *t = sim_torus(sim);
        uint64_t took = run(sim, &spec), depth = torus_diameter(t);
        assert_int_equal(all_sent(sim, PEER__HEAD__KIND_STEPPED_DATA), 2 * (t->nodes - 1));
        check_waves(sim, false);
        print_message("%-6s tree: %llu data messages, %.1f hops one after another\n", dims[i],
                      (unsigned long long)all_sent(sim, PEER__HEAD__KIND_STEPPED_DATA),
                      (double)took / LATENCY);
        assert_in_range(took, 2 * depth * LATENCY, 2 * depth * LATENCY + LATENCY / 10);
        sim_free(sim);
    }
}

/* When stepped, every node sends and relays exactly the messages of its plan, each in one frame. */
TEST(small_blocks_take_the_plans_messages)
{
    static const char *const names[] = {"tree",   "pair",     "pair-s4", "dim",
                                        "dim-s2", "dim-tree", "at2"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sim *sim = open_torus("8x8");
        const struct torus *t = sim_torus(sim);
        const struct spec spec = GENERATED(.algorithm = names[i], .block_bytes = 8);
        (void)run(sim, &spec);
        for (uint32_t rank = 0; rank < t->nodes; rank++) {
            struct plan plan;
            uint64_t relayed = 0;
            assert_int_equal(plan_build(&plan, t, algorithm_find(names[i]), rank, NULL), 0);
            for (uint32_t m = 0; m < plan.arrivals; m++)
                relayed += plan.arrival[m].left > 0;
            assert_int_equal(sim_frames_sent(sim, rank, PEER__HEAD__KIND_STEPPED_DATA),
                             plan.sends + relayed);
            plan_free(&plan);
        }
        check_waves(sim, false);
        sim_free(sim);
    }
}

SIM_TEST(open_torus("4x4"), outputs_take_one_wave_more)
{
    const struct spec spec = {.algorithm = "at2", .from = "/same/8", .to = "/a"};

    (void)run(sim, &spec);
    check_waves(sim, true);
}
