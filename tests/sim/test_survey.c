/* Surveys: whoever can be reached answers, whoever cannot is named, in time; on whole and damaged tori, with faults
 * while the survey is under way, and within its bounds whatever a node sends. */
#include "daemon/torusd/survey/bounds.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
#include "tests/support/cmocka.h"

#define NODES_MOST 256u
#define QUERY PEER__HEAD__KIND_SURVEY_QUERY
#define ANSWER PEER__HEAD__KIND_SURVEY_ANSWER

struct asked {
    struct survey_request request;
    struct sim *sim;
    enum survey_kind kind;
    bool done;
    uint64_t took;
    enum survey_outcome outcome[NODES_MOST];
};

/* Notes the outcomes. Each answer must be that of its node. */
static void on_done(void *context, const struct survey_node *nodes, uint64_t took)
{
    struct asked *a = context;

    assert_false(a->done);
    a->done = true;
    a->took = took;
    for (uint32_t rank = 0; rank < sim_torus(a->sim)->nodes; rank++) {
        a->outcome[rank] = nodes[rank].outcome;
        if (nodes[rank].outcome != SURVEY_ANSWERED)
            continue;
        assert_int_equal(nodes[rank].length, SIM_SURVEY_ANSWER);
        for (size_t i = 0; i < nodes[rank].length; i++)
            assert_int_equal(nodes[rank].bytes[i], (uint8_t)(rank + a->kind));
    }
}

static void start(struct sim *sim, uint32_t rank, enum survey_kind kind, struct asked *a)
{
    struct error e;

    *a = (struct asked){.request = {.context = a, .done = on_done}, .sim = sim, .kind = kind};
    assert_int_equal(survey_start(sim_survey(sim, rank), kind, 2 * SECONDS, &a->request, &e), 0);
    sim_settle(&sim->node[rank]);
}

static bool is_done(struct sim *sim, void *context)
{
    return ((const struct asked *)context)->done;
}

static void finish(struct asked *a)
{
    assert_true(sim_run(a->sim, 4 * SECONDS, is_done, a));
}

static void ask(struct sim *sim, uint32_t rank, enum survey_kind kind, struct asked *a)
{
    start(sim, rank, kind, a);
    finish(a);
}

static unsigned count(const struct asked *a, enum survey_outcome outcome)
{
    unsigned n = 0;

    for (uint32_t rank = 0; rank < sim_torus(a->sim)->nodes; rank++)
        n += a->outcome[rank] == outcome;
    return n;
}

static uint64_t frames(struct sim *sim, Peer__Head__KindCase kind)
{
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        sum += sim_frames_sent(sim, rank, kind);
    return sum;
}

TEST(every_node_answers)
{
    static const char *const tori[] = {"1", "2", "8x8", "4mx4mx4m", "3x4x5", "complete:5x13"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++) {
        struct sim *sim = sim_new_whole(tori[i], i);
        struct asked a;
        for (enum survey_kind kind = 0; kind < SURVEY_KINDS; kind++) {
            ask(sim, sim_torus(sim)->nodes / 2, kind, &a);
            assert_int_equal(count(&a, SURVEY_ANSWERED), sim_torus(sim)->nodes);
            assert_true(a.took < 500 * MILLISECONDS);
        }
        sim_free(sim);
    }
}

/* On 256 nodes, a query crosses each link at most once in each direction, and an answer only the links between its
 * node and the initiator. */
SIM_TEST(sim_new_whole("16x16", 1), costs_little)
{
    struct asked a;

    sim_forget_frames(sim);
    ask(sim, 0, SURVEY_STATE, &a);
    assert_int_equal(count(&a, SURVEY_ANSWERED), 256);
    assert_true(frames(sim, QUERY) >= 255);
    assert_true(frames(sim, QUERY) <= UINT64_C(2) * 2 * 256);
    assert_int_equal(frames(sim, ANSWER), 2 * 256 * 8); /* parts, nodes, hops on average */
}

/* The expected outcome without faults meanwhile: that of the nodes that are connected. */
static void check_reached(struct sim *sim, uint32_t initiator, const struct asked *a)
{
    const struct torus *t = sim_torus(sim);
    bool reached[NODES_MOST] = {[0] = false}, more = true;

    reached[initiator] = true;
    while (more) {
        more = false;
        for (uint32_t rank = 0; rank < t->nodes; rank++)
            for (unsigned port = 0; port < torus_ports(t) && reached[rank]; port++) {
                struct port_info info;
                router_port_info(sim_router(sim, rank), port, &info);
                if (info.state != PORT_UP || reached[info.neighbour])
                    continue;
                reached[info.neighbour] = more = true;
            }
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        assert_int_equal(a->outcome[rank], reached[rank] ? SURVEY_ANSWERED : SURVEY_UNREACHABLE);
}

TEST(damaged_tori)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct sim *sim = sim_new_whole("8x8", seed);
        const uint32_t initiator = sim_any(sim, 64);
        struct asked a;
        for (unsigned i = 0; i < 4 * seed; i++)
            sim_set_wire(sim, sim_any(sim, 64), 2 * sim_any(sim, 2), SIM_WIRE_CUT);
        for (unsigned i = 0; i < seed / 2; i++) {
            const uint32_t dead = sim_any(sim, 64);
            if (dead != initiator)
                sim_kill(sim, dead, SIM_POWER);
        }
        sim_pass(sim, 10 * SECONDS);
        ask(sim, initiator, SURVEY_STATE, &a);
        assert_true(a.took < 500 * MILLISECONDS); /* it does not wait for those who are down */
        check_reached(sim, initiator, &a);
        sim_free(sim);
    }
}

/* Cuts one row off, so that the torus has two parts. */
SIM_TEST(sim_new_whole("8x8", 3), divided_torus)
{
    struct asked a;

    for (uint32_t x = 0; x < 8; x++)
        for (unsigned port = 0; port < 4; port++)
            if (torus_neighbour(sim_torus(sim), x, port) >= 8)
                sim_set_wire(sim, x, port, SIM_WIRE_CUT);
    sim_pass(sim, 5 * SECONDS);
    ask(sim, 20, SURVEY_STATE, &a);
    check_reached(sim, 20, &a);
    assert_int_equal(count(&a, SURVEY_UNREACHABLE), 8);
}

/* Nodes lose power, and wires go, while the query or the answers are on their way. Nodes that still can be reached
 * answer; others are named. */
TEST(faults_meanwhile)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct sim *sim = sim_new_whole("8x8", seed);
        const uint32_t dead = sim_any(sim, 63), initiator = 63;
        struct asked a;
        start(sim, initiator, SURVEY_STATE, &a);
        sim_pass(sim, sim_any(sim, 3000) * MICROSECONDS);
        sim_kill(sim, dead, seed % 2 == 0 ? SIM_POWER : SIM_CRASH);
        sim_set_wire(sim, sim_any(sim, 64), 0, seed % 3 == 0 ? SIM_WIRE_SILENT : SIM_WIRE_CUT);
        finish(&a);
        assert_true(a.took <= 2 * SECONDS + 100 * MILLISECONDS);
        for (uint32_t rank = 0; rank < 64; rank++)
            if (a.outcome[rank] != SURVEY_ANSWERED && rank != dead)
                fail_msg("seed %u: node %u can be reached, and has not answered", (unsigned)seed,
                         rank);
        sim_free(sim);
    }
}

/* A node that is stopped keeps its links for a while, and does not answer. The answers of others go around it. */
SIM_TEST(sim_new_whole("8x8", 5), silent_node)
{
    struct asked a;

    sim_freeze(sim, 9, 4 * SECONDS);
    ask(sim, 0, SURVEY_STATE, &a);
    assert_int_equal(a.outcome[9], SURVEY_SILENT);
    assert_int_equal(count(&a, SURVEY_ANSWERED), 63);
    assert_true(a.took >= 2 * SECONDS && a.took < 2100 * MILLISECONDS);
}

/* Clients that ask at the same time share a survey, and surveys of a kind begin at most twice in a second. */
SIM_TEST(sim_new_whole("4x4", 6), clients_share)
{
    struct asked a[20], more[5], gone;

    sim_forget_frames(sim);
    for (size_t i = 0; i < 20; i++)
        start(sim, 2, SURVEY_STATE, &a[i]);
    start(sim, 2, SURVEY_STATE, &gone);
    survey_forget(sim_survey(sim, 2), &gone.request);
    for (size_t i = 0; i < 20; i++)
        finish(&a[i]);
    assert_true(frames(sim, QUERY) <= 4 * 16);
    assert_false(gone.done);
    uint64_t began = sim_now(sim);
    for (size_t i = 0; i < 5; i++)
        ask(sim, 2, SURVEY_STATE, &more[i]);
    assert_true(sim_now(sim) - began >= 4 * 500 * MILLISECONDS);
    assert_int_equal(count(&more[4], SURVEY_ANSWERED), 16);
}

/* --- bounds --- */

/* Node 1 sends a query of this initiator with a new id on all of its links. */
static void say_query(struct sim *sim, uint32_t initiator, uint64_t id)
{
    Peer__SurveyQuery query = PEER__SURVEY_QUERY__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    size_t length;

    query.initiator = initiator;
    query.id = id;
    query.kind = SURVEY_HOST;
    query.left = sim_torus(sim)->nodes;
    head.kind_case = QUERY;
    head.survey_query = &query;
    uint8_t *bytes = lie_frame(&head, NULL, 0, &length);
    for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port++)
        (void)sim_say(sim, 1, port, bytes, length);
    free(bytes);
}

/* A node that asks without end, in the name of one node or of all, causes few messages, and a survey that an honest
 * node makes meanwhile is complete. */
TEST(endless_queries)
{
    for (unsigned all = 0; all < 2; all++) {
        struct sim *sim = sim_new_whole("8x8", 7);
        uint64_t id = 1;
        struct asked a;
        sim_set_lying(sim, 1, true);
        sim_forget_frames(sim);
        for (unsigned second = 0; second < 5; second++)
            for (unsigned i = 0; i < 1000; i++) {
                say_query(sim, all ? (uint32_t)id % 64 : 40, id);
                id++;
                sim_pass(sim, 1 * MILLISECONDS);
            }
        /* A node takes 2 in a second of one initiator; each of the four neighbours 8 at once, and 4 more each second. */
        const uint64_t taken = all ? 4 * (8 + 5 * 4 + 1) : 2 * (5 + 1);
        assert_true(frames(sim, QUERY) <= taken * 4 * 64);
        assert_true(frames(sim, QUERY) > 64);
        ask(sim, 36, SURVEY_STATE, &a);
        assert_int_equal(count(&a, SURVEY_ANSWERED), 64);
        sim_free(sim);
    }
}

/* The sum of all answers is bounded: a node that claims large answers for others only spoils the survey. */
TEST(bounded_answers)
{
    struct survey_node node = {.outcome = SURVEY_SILENT};
    const uint8_t bytes[SURVEY_PART] = {1};
    struct collected c;
    uint32_t kept = 0;

    assert_int_equal(collected_begin(&c, 1000), 0);
    for (uint32_t rank = 0; rank < 1000; rank++)
        for (uint32_t part = SURVEY_PARTS_MOST; part-- > 0;) {
            const struct peer_survey_answer answer = {.node = rank,
                                                      .part = part,
                                                      .parts = SURVEY_PARTS_MOST,
                                                      .bytes = {bytes, sizeof bytes}};
            kept += collected_add(&c, &answer, 5) && !c.node[rank].too_large;
        }
    assert_true(c.total <= SURVEY_TOTAL_MOST);
    assert_int_equal(kept, SURVEY_TOTAL_MOST / SURVEY_ANSWER_MOST);
    collected_view(&c, 0, &node);
    assert_int_equal(node.outcome, SURVEY_ANSWERED);
    assert_int_equal(node.length, SURVEY_ANSWER_MOST);
    assert_int_equal(node.arrived, 5);
    collected_view(&c, 999, &node);
    assert_int_equal(node.outcome, SURVEY_TOO_LARGE);
    collected_end(&c);
}
