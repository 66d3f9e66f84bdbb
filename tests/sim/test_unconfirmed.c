/* Nodes go down, are cut off or cannot put their output in place, between the decision and their confirmation: the
 * client hears of that, correctly, as soon as its node knows, and all other nodes confirm over any route. When
 * everything works again, every output is in place. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(1);

/* The timeout of all exchanges, far longer than they take. */
#define TIMEOUT (500 * SECONDS)
/* Within these, in virtual time, the client hears of: links that go down at once, */
#define SOON (400 * MILLISECONDS)
/* a node that is silent from then on, */
#define AFTER_SILENCE (SOON + 2 * SECONDS)
/* a torus in parts, */
#define AFTER_NAMING (SOON + 2 * SECONDS)
/* and an obstacle. */
#define OBSTACLE (10 * SECONDS)

struct world {
    struct sim *sim;
    struct spec spec;
    struct sim_request *r;
    uint32_t root;
    /* Faults when the root decides, or has decided and no other node has heard of that: */
    enum exchange_state moment;
    void (*hurt)(struct world *w);
    uint64_t victims; /* nodes (bits) */
    enum sim_death death;
    unsigned port; /* of the victim's */
    bool done;
    uint64_t decided_at;
    bool obstructed; /* the victims' outputs cannot be put in place */
};

static void open_world(struct world *w, const char *dims, uint64_t seed)
{
    if (w->moment != EXCHANGE_DECIDING)
        w->moment = EXCHANGE_COMMITTING;
    w->spec = (struct spec){.algorithm = seed % 2 == 0 ? "direct" : "stream",
                            .from = "/random/3000",
                            .to = "/a",
                            .timeout_ns = TIMEOUT};
    w->sim = SIM_WHOLE(.dims = dims, .seed = seed, .latency = 100 * MICROSECONDS, .rate = 12500000,
                       .chop = true);
}

static bool is_victim(const struct world *w, uint32_t rank)
{
    return rank < 64 && (w->victims & UINT64_C(1) << rank) != 0;
}

static void kill_all(struct world *w)
{
    for (uint32_t rank = 0; rank < sim_torus(w->sim)->nodes; rank++)
        if (is_victim(w, rank))
            sim_kill(w->sim, rank, w->death);
}

static void set_wires(struct world *w, uint32_t rank, enum sim_wire state)
{
    for (unsigned port = 0; port < torus_ports(sim_torus(w->sim)); port++)
        if (torus_neighbour(sim_torus(w->sim), rank, port) != TORUS_NO_NODE)
            sim_set_wire(w->sim, rank, port, state);
}

static void cut_all_off(struct world *w)
{
    for (uint32_t rank = 0; rank < sim_torus(w->sim)->nodes; rank++)
        if (is_victim(w, rank))
            set_wires(w, rank, SIM_WIRE_CUT);
}

static void cut_one(struct world *w)
{
    for (uint32_t rank = 0; rank < sim_torus(w->sim)->nodes; rank++)
        if (is_victim(w, rank))
            sim_set_wire(w->sim, rank, w->port, SIM_WIRE_CUT);
}

static bool hurt_when_decided(struct sim *sim, void *context)
{
    struct world *w = context;
    struct exchange_info info;

    for (uint32_t rank = 0; w->obstructed && rank < sim_torus(sim)->nodes; rank++)
        if (is_victim(w, rank))
            sim_disk_fail(sim, rank, SIM_DISK_COMMIT); /* again and again */
    if (w->decided_at > 0)
        return !w->obstructed;
    if (w->r->exchange == NULL || !sim_info(sim, w->root, exchange_id(w->r->exchange), &info))
        return false;
    if (info.state == EXCHANGE_COMMITTING)
        w->decided_at = sim_now(sim);
    if (info.state == w->moment && !w->done) {
        w->done = true;
        w->hurt(w);
    }
    return w->decided_at > 0 && !w->obstructed;
}

/* Returns the time since the decision after which the client was told. */
static uint64_t exchange_and_hurt(struct world *w)
{
    w->r = sim_exchange(w->sim, w->root, &w->spec);
    sim_watch(w->sim, hurt_when_decided, w);
    assert_true(sim_run_until_ended(w->r, TIMEOUT + 10 * SECONDS));
    assert_true(w->done && w->decided_at > 0);
    return sim_now(w->sim) - w->decided_at;
}

/* Checks that the client is told that the exchange was committed, and the rest of the truth. */
static void check_answer(const struct world *w, uint64_t waited, uint64_t most, const char *text)
{
    if (w->r->error.code != ERROR_IN_DOUBT || strstr(w->r->error.text, text) == NULL)
        sim_violated(w->sim, "answer", "\"%s\" is not \"%s\"", w->r->error.text, text);
    if (waited > most)
        sim_violated(w->sim, "wait", "the client has waited %.3f s", (double)waited / 1e9);
    for (uint32_t rank = 0; rank < sim_torus(w->sim)->nodes; rank++)
        if (!is_victim(w, rank) && sim_output(w->sim, rank, w->r->id) != SIM_OUTPUT_FINAL)
            sim_violated(w->sim, "answer", "the output of node %u is not in place", rank);
}

/* All nodes are back: all outputs are in place, and no node is reported as unconfirmed any more. */
static void heal_and_end(struct world *w)
{
    struct exchange_info info;

    w->obstructed = false;
    sim_heal(w->sim);
    check_doubts_end(w->sim, w->r->id);
    assert_true(sim_decided(w->sim, w->root, w->r->id));
    sim_pass(w->sim, 5 * SECONDS);
    assert_true(sim_info(w->sim, w->root, w->r->id, &info));
    assert_int_equal(info.state, EXCHANGE_COMMITTED);
    assert_string_equal(info.reason, "");
    for (uint32_t rank = 0; rank < sim_torus(w->sim)->nodes; rank++)
        assert_null(sim_leftover(w->sim, rank));
    check_next_exchange(w->sim, w->root);
    sim_free(w->sim);
}

static void dies(uint64_t seed, uint32_t victim, enum exchange_state moment,
                 void (*hurt)(struct world *w), enum sim_death death)
{
    struct world w = {
        .moment = moment, .hurt = hurt, .victims = UINT64_C(1) << victim, .death = death};
    char text[120];

    open_world(&w, "3x4", seed);
    uint64_t waited = exchange_and_hurt(&w);
    (void)snprintf(text, sizeof text,
                   "committed, but node %u (%u,%u) went down before it confirmed that its output "
                   "is in place; it finishes",
                   victim, victim / 4, victim % 4);
    check_answer(&w, waited, death == SIM_POWER ? AFTER_SILENCE : SOON, text);
    heal_and_end(&w);
}

TEST(nobody_waits_for_a_node_that_is_down)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (uint32_t victim = 1; victim < 12; victim++) {
            dies(seed, victim, EXCHANGE_DECIDING, kill_all, SIM_CRASH);
            dies(seed, victim, EXCHANGE_COMMITTING, kill_all, SIM_CRASH);
            dies(seed, victim, EXCHANGE_COMMITTING, kill_all, SIM_POWER);
            dies(seed, victim, EXCHANGE_COMMITTING, cut_all_off, SIM_CRASH);
        }
}

static void restart_all(struct sim *sim, void *context)
{
    const struct world *w = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (is_victim(w, rank))
            sim_restart(sim, rank);
}

static void kill_for_a_moment(struct world *w)
{
    kill_all(w);
    sim_at(w->sim, sim_now(w->sim) + 20 * MILLISECONDS, restart_all, w);
}

TEST(a_node_that_is_back_at_once_is_waited_for)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (uint32_t victim = 1; victim < 12; victim++) {
            struct world w = {.hurt = kill_for_a_moment, .victims = UINT64_C(1) << victim};
            open_world(&w, "3x4", seed);
            uint64_t waited = exchange_and_hurt(&w);
            check_success(w.r, &w.spec);
            assert_true(waited < 3 * SECONDS); /* until it is reminded once more */
            heal_and_end(&w);
        }
}

/* Victims that are far apart, neighbours of each other, and neighbours of the root. */
TEST(several_nodes_go_down)
{
    static const struct {
        uint64_t victims;
        const char *text;
    } cases[] = {
        {1u << 5 | 1u << 11, "committed, but nodes 5 (1,1) and 11 (2,3) went down before they "
                             "confirmed that their output is in place; they finish"},
        {1u << 5 | 1u << 6, "committed, but nodes 5 (1,1) and 6 (1,2) went down before they "},
        {1u << 1 | 1u << 4, "committed, but nodes 1 (0,1) and 4 (1,0) went down before they "},
        {1u << 2 | 1u << 6 | 1u << 10 | 1u << 8 | 1u << 9,
         "committed, but nodes 2 (0,2), 6 (1,2), 8 (2,0), 9 (2,1) and 1 more went down before "},
    };

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct world w = {.hurt = kill_all, .victims = cases[i].victims, .death = SIM_CRASH};
            open_world(&w, "3x4", seed);
            check_answer(&w, exchange_and_hurt(&w), SOON, cases[i].text);
            heal_and_end(&w);
        }
}

/* Their messages to and from the root went through the node that has died. */
TEST(nodes_behind_it_find_another_way)
{
    static const uint32_t neighbours[] = {1, 7, 8, 56}; /* of the root */

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (size_t i = 0; i<sizeof neighbours / sizeof neighbours[0]; i += seeds> 1 ? 1 : 3) {
            struct world w = {
                .hurt = kill_all, .victims = UINT64_C(1) << neighbours[i], .death = SIM_CRASH};
            open_world(&w, "8x8", seed);
            check_answer(&w, exchange_and_hurt(&w), SOON, "went down before it confirmed");
            heal_and_end(&w);
        }
}

/* A link that goes down does not prevent confirmations, however many nodes are behind it. */
static void a_link_goes_down(const char *dims, uint64_t seed, enum exchange_state moment,
                             uint64_t slowness, uint32_t rank, unsigned port)
{
    struct world w = {
        .moment = moment, .hurt = cut_one, .victims = UINT64_C(1) << rank, .port = port};

    open_world(&w, dims, seed);
    sim_disk_slow(w.sim, w.root, slowness);
    uint64_t waited = exchange_and_hurt(&w);
    check_success(w.r, &w.spec);
    if (waited > SOON + 5 * slowness)
        sim_violated(w.sim, "wait", "the client has waited %.3f s", (double)waited / 1e9);
    heal_and_end(&w);
}

TEST(nobody_waits_for_a_link)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (uint32_t rank = 0; rank < 12; rank++)
            for (unsigned port = 0; port < 4; port += 2) {
                a_link_goes_down("3x4", seed, EXCHANGE_DECIDING, 0, rank, port);
                a_link_goes_down("3x4", seed, EXCHANGE_DECIDING, 200 * MILLISECONDS, rank, port);
                a_link_goes_down("3x4", seed, EXCHANGE_COMMITTING, 0, rank, port);
            }
    /* More nodes are behind this one than are reminded at once. */
    a_link_goes_down("16mx4", first_seed, EXCHANGE_COMMITTING, 0, 0, 0);
}

/* The nodes may be alive, and the client is told so. */
SEED_TEST(seeds, a_torus_in_parts)
{
    struct world w = {.hurt = cut_one, .victims = UINT64_C(1) << 3, .port = 1};
    open_world(&w, "6m", seed);
    uint64_t waited = exchange_and_hurt(&w);
    w.victims = 7u << 3;
    check_answer(&w, waited, AFTER_NAMING,
                 "committed, but nodes 3, 4 and 5 cannot be reached and have not confirmed "
                 "that their output is in place; they finish by themselves when they can");
    heal_and_end(&w);
}

static void obstruct(struct world *w)
{
    w->obstructed = true;
}

static void obstruct_and_kill_another(struct world *w)
{
    obstruct(w);
    sim_kill(w->sim, 7, SIM_CRASH);
}

/* The node is alive, and its obstacle may be removed: it gets some time. */
SEED_TEST(seeds, a_node_has_an_obstacle)
{
    struct world w = {.hurt = obstruct, .victims = 1u << 4};
    open_world(&w, "3x4", seed);
    uint64_t waited = exchange_and_hurt(&w);
    assert_true(waited > OBSTACLE);
    check_answer(&w, waited, OBSTACLE + SOON,
                 "committed, but node 4 (1,0) could not put its output in place, and tries "
                 "again by itself: ");
    heal_and_end(&w);

    w = (struct world){.hurt = obstruct_and_kill_another, .victims = 1u << 4};
    open_world(&w, "3x4", seed);
    waited = exchange_and_hurt(&w);
    w.victims |= 1u << 7;
    check_answer(&w, waited, OBSTACLE + SOON,
                 "committed, but node 7 (1,3) went down before it confirmed that its output "
                 "is in place; it finishes by itself when it is back; node 4 (1,0) could not "
                 "put its output in place, and tries again by itself: ");
    heal_and_end(&w);
}

static void obstruct_once_and_slow_another(struct world *w)
{
    sim_disk_fail(w->sim, 4, SIM_DISK_COMMIT);
    sim_disk_slow(w->sim, 9, 100 * SECONDS);
}

/* The obstacle is gone when the node tries again: the client still waits for the others. */
TEST(an_obstacle_that_has_gone_is_forgotten)
{
    uint64_t longest = 0;

    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct world w = {.hurt = obstruct_once_and_slow_another};
        open_world(&w, "3x4", seed);
        uint64_t waited = exchange_and_hurt(&w);
        check_success(w.r, &w.spec);
        longest = waited > longest ? waited : longest;
        heal_and_end(&w);
    }
    assert_true(longest > OBSTACLE + SOON);
}

/* Node 5 is missing from the beginning, and need not confirm; node 7 dies like any other node. */
SEED_TEST(seeds, a_node_dies_without_another)
{
    struct world w = {.hurt = kill_all, .victims = 1u << 7, .death = SIM_CRASH};
    open_world(&w, "3x4", seed);
    w.spec.algorithm = SPEC_AUTO;
    w.spec.shrink = true;
    sim_kill(w.sim, 5, SIM_CRASH);
    sim_pass(w.sim, 2 * SECONDS);
    uint64_t waited = exchange_and_hurt(&w);
    w.victims |= 1u << 5;
    check_answer(&w, waited, SOON, "committed, but node 7 (1,3) went down before it confirmed");
    sim_heal(w.sim);
    sim_run_until_whole(w.sim);
    sim_pass(w.sim, 10 * SECONDS);
    for (uint32_t rank = 0; rank < 12; rank++) {
        assert_int_equal(sim_output(w.sim, rank, w.r->id),
                         rank == 5 ? SIM_OUTPUT_NONE : SIM_OUTPUT_FINAL);
        assert_null(sim_leftover(w.sim, rank));
    }
    check_next_exchange(w.sim, 0);
    sim_free(w.sim);
}
