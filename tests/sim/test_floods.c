/* A node that has the cluster key and floods others: with exchanges that it begins and does not continue, and with
 * aborts about exchanges of others that have not begun; and a node that does not relay. Exchanges that others begin
 * in the meantime, or after it is gone, succeed. */
#include <inttypes.h>

#include "daemon/torusd/engine/engine.h"
#include "tests/sim/checks.h"
#include "tests/sim/lies.h"
#include "tests/sim/memory.h"
#include "tests/support/cmocka.h"

#define LIAR 1u
#define FLOODS 200u

static const struct spec generated =
    GENERATED(.algorithm = "direct", .block_bytes = 200000, .timeout_ns = 60 * SECONDS);

static struct sim *open_ring_with(uint64_t memory, uint32_t liar)
{
    struct sim *sim = SIM_WHOLE(.dims = "4", .seed = 1, .latency = 100 * MICROSECONDS,
                                .rate = 125000000, .memory = memory);

    sim_set_lying(sim, liar, true);
    return sim;
}

static struct sim *open_ring(uint64_t memory)
{
    return open_ring_with(memory, LIAR);
}

static void say_as(struct sim *sim, uint32_t liar, const Peer__Head *head)
{
    size_t length;
    uint8_t *bytes = lie_frame(head, NULL, 0, &length);

    for (unsigned port = 0; port < 2; port++)
        (void)sim_say(sim, liar, port, bytes, length);
    free(bytes);
}

static void say_everywhere(struct sim *sim, const Peer__Head *head)
{
    say_as(sim, LIAR, head);
}

struct flood {
    uint64_t block_bytes;
    uint32_t said;
};

/* The node claims to begin its counter-th exchange, which its own core does not know. */
static void say_prepare(struct sim *sim, uint32_t liar, uint32_t counter, Torus__Spec *spec)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    char id[EXCHANGE_ID_SIZE];

    bool group = spec->operation == OPERATION_GROUP;

    spec->algorithm = (char *)(uintptr_t)(group ? "balanced" : "direct");
    spec->mode = (char *)(uintptr_t) "stepped";
    spec->timeout_ms = 3600000;
    (void)snprintf(id, sizeof id, "%u-%08" PRIx32 "-%" PRIu32, liar,
                   (uint32_t)router_boot(sim_router(sim, liar)), counter);
    prepare.id = id;
    prepare.root = liar;
    prepare.dims = (char *)(uintptr_t) "4";
    prepare.spec = spec;
    prepare.round_bytes = spec->block_bytes > 0 ? spec->block_bytes : 1;
    prepare.window = 1;
    prepare.exchange = (4 * counter + liar) & 0x0fffffff;
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    say_as(sim, liar, &head);
}

/* Claims a few more of them, again and again. */
static void flood(struct sim *sim, void *context)
{
    struct flood *f = context;
    Torus__Spec spec;

    torus__spec__init(&spec);
    spec.block_bytes = f->block_bytes;
    for (unsigned i = 0; i < 40; i++)
        say_prepare(sim, LIAR, 1000000 + f->said++, &spec);
    if (f->said < 40 * FLOODS)
        sim_at(sim, sim_now(sim) + 5 * MILLISECONDS, flood, f);
}

static bool has_said_all(struct sim *sim, void *context)
{
    return ((const struct flood *)context)->said >= 40 * FLOODS;
}

static bool is_quiet(struct sim *sim)
{
    return sim_run(sim, 120 * SECONDS, sim_is_quiet, NULL);
}

static void replace(struct sim *sim, uint32_t liar)
{
    sim_set_lying(sim, liar, false);
    sim_kill(sim, liar, SIM_CRASH);
    sim_restart(sim, liar);
    sim_run_until_whole(sim);
}

static void replace_liar(struct sim *sim)
{
    replace(sim, LIAR);
}

static void others_go_on(uint64_t memory, uint64_t block_bytes)
{
    struct sim *sim = open_ring(memory);
    struct flood f = {.block_bytes = block_bytes};

    flood(sim, &f);
    for (uint32_t i = 0; i < 6; i++) {
        static const uint32_t roots[] = {0, 2, 3};
        struct sim_request *r;
        sim_pass(sim, 50 * MILLISECONDS);
        r = sim_exchange(sim, roots[i % 3], &generated);
        if (!sim_run_until_ended(r, 120 * SECONDS) || r->error.code != ERROR_NONE)
            fail_msg("root %u: %s", r->root, r->error.text);
        assert_false(sim_is_quiet(sim, NULL)); /* the liar's exchanges are still there */
    }
    assert_true(sim_run(sim, 60 * SECONDS, has_said_all, &f));
    replace_liar(sim);
    assert_true(is_quiet(sim));
    check_next_exchange(sim, 0);
    sim_free(sim);
}

TEST(exchanges_that_one_node_begins_leave_places)
{
    others_go_on(0, 0);
}

TEST(and_memory)
{
    others_go_on(1 << 20, 20000);
}

/* Node 0 prepares any number of groups that no program has entered. */
SIM_TEST(open_ring_with(0, 0), groups_that_are_not_opened_leave_memory)
{
    char name[] = "group 00";
    struct sim_request *r;
    Torus__Spec spec;

    torus__spec__init(&spec);
    spec.operation = OPERATION_GROUP;
    spec.barrier = name;
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "group %u", i);
        say_prepare(sim, 0, 1000000 + i, &spec);
    }
    sim_pass(sim, 50 * MILLISECONDS);
    for (uint32_t rank = 0; rank < 4; rank++)
        assert_int_equal(exchanges_reserved(sim_exchanges(sim, rank)), 0);
    r = sim_exchange(sim, 2, &generated);
    assert_true(sim_run_until_ended(r, 120 * SECONDS));
    if (r->error.code != ERROR_NONE)
        fail_msg("%s", r->error.text);
    replace(sim, 0);
    assert_true(is_quiet(sim));
}

/* --- outcomes that are not passed on --- */

struct silence {
    Peer__Head__KindCase kind[2]; /* that the liar does not send */
    bool over;
};

static unsigned say_nothing(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                            size_t *length)
{
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    const struct silence *s = sim_context(sim);
    bool kept = !s->over && rank == LIAR &&
                (head->kind_case == s->kind[0] || head->kind_case == s->kind[1]);

    peer__head__free_unpacked(head, NULL);
    return kept ? 0 : 1;
}

static struct sim_request *exchange_files(struct sim *sim, uint32_t root, unsigned number,
                                          uint64_t timeout)
{
    char to[20];
    struct spec spec = {.algorithm = "direct", .from = "/same/10", .to = to, .timeout_ns = timeout};
    struct sim_request *r;

    (void)snprintf(to, sizeof to, "/%u", number);
    r = sim_exchange(sim, root, &spec);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    return r;
}

/* The memory of exchanges of this root is bounded: at some point no more exchanges can start, for this reason. When the
 * liar has gone, or sends its messages after all, nothing is left. */
static void records_are_bounded(uint32_t root, struct silence *silence, unsigned most,
                                const char *reason)
{
    struct sim *sim = SIM_WHOLE(.dims = "4", .seed = 1, .latency = 100 * MICROSECONDS,
                                .rate = 125000000, .on_bytes = say_nothing, .context = silence);
    struct sim_request *r;
    unsigned committed = 0;

    sim_set_lying(sim, LIAR, true);
    while ((r = exchange_files(sim, root, committed, 100 * MILLISECONDS))->error.code ==
               ERROR_IN_DOUBT &&
           committed < 1000) {
        committed++;
        sim_pass(sim, 6 * SECONDS); /* until nodes no longer wait for its outcome */
    }
    assert_in_range(committed, most / 2, most);
    if (strstr(r->error.text, reason) == NULL)
        fail_msg("after %u: %s", committed, r->error.text);
    r = sim_exchange(sim, root, &generated); /* of which nothing is kept */
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    silence->over = true;
    sim_pass(sim, 60 * SECONDS);
    r = exchange_files(sim, root, 10000, 60 * SECONDS);
    if (r->error.code != ERROR_NONE)
        fail_msg("%s", r->error.text);
    replace_liar(sim);
    assert_true(is_quiet(sim));
    sim_free(sim);
}

TEST(confirmations_that_do_not_come)
{
    struct silence s = {.kind = {PEER__HEAD__KIND_CONFIRM}};

    records_are_bounded(0, &s, 256, "exchanges that began here are not confirmed by all nodes yet");
}

TEST(outcomes_that_are_not_told)
{
    struct silence s = {.kind = {PEER__HEAD__KIND_COMMIT, PEER__HEAD__KIND_OUTCOME}};

    records_are_bounded(LIAR, &s, 64 + 16, "it keeps the outputs of");
}

/* --- aborts about exchanges that have not begun --- */

SIM_TEST(open_ring(0), aborts_about_what_is_to_come)
{
    struct sim_request *r = sim_exchange(sim, 0, &generated);
    uint32_t counter;

    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    assert_int_equal(sscanf(r->id, "%*u-%*x-%" SCNu32, &counter), 1);
    for (uint32_t i = 1; i <= 200; i++) {
        Peer__Abort abort = PEER__ABORT__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        char id[EXCHANGE_ID_SIZE];
        (void)snprintf(id, sizeof id, "0-%08" PRIx32 "-%" PRIu32,
                       (uint32_t)router_boot(sim_router(sim, 0)), counter + i);
        abort.exchange = 4 * (counter + i);
        abort.id = id;
        abort.code = ERROR_IO;
        abort.reason = (char *)(uintptr_t) "invented";
        abort.left = 4;
        head.kind_case = PEER__HEAD__KIND_ABORT;
        head.abort = &abort;
        say_everywhere(sim, &head);
    }
    sim_pass(sim, 10 * MILLISECONDS);
    replace_liar(sim);
    r = sim_exchange(sim, 0, &generated);
    assert_true(sim_run_until_ended(r, 120 * SECONDS));
    if (r->error.code != ERROR_NONE)
        fail_msg("%s", r->error.text);
    assert_true(is_quiet(sim));
}

/* --- a piece that is not repaired --- */

struct keeper {
    unsigned damages; /* to be done yet */
    unsigned kept;    /* answers */
};

/* Blocks that node 0 sends farther than to its neighbours are damaged, and the liar does not relay the repairs. */
static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct keeper *k = sim_context(sim);
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    unsigned times = 1;

    assert_non_null(head);
    if (rank == 0 && head->kind_case == PEER__HEAD__KIND_STEPPED_DATA &&
        head->stepped_data->left == 1 && *length > body && k->damages > 0) {
        k->damages--;
        (*bytes)[body + (*length - body) / 2] ^= 0x10;
    }
    if (rank == LIAR && head->kind_case == PEER__HEAD__KIND_REPAIR_PART) {
        k->kept++;
        times = 0;
    }
    peer__head__free_unpacked(head, NULL);
    return times;
}

static void keep_answers(unsigned damages)
{
    const struct spec spec = {
        .algorithm = "direct", .from = "/same/3000", .to = "/a", .timeout_ns = 600 * SECONDS};
    struct keeper k = {.damages = damages};
    const struct sim_setup setup = {.dims = "4",
                                    .seed = 1,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .on_bytes = on_bytes,
                                    .context = &k};
    struct sim *sim = sim_new(&setup);

    sim_alter(sim);
    sim_run_until_whole(sim);
    sim_set_lying(sim, LIAR, true);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    assert_true(sim_run_until_ended(r, 100 * SECONDS)); /* long before its timeout */
    assert_true(k.kept > 0);
    if (damages == 1) {
        assert_int_equal(r->error.code, ERROR_NONE);
        assert_int_equal(r->result.damages, 1);
    } else {
        assert_int_equal(r->error.code, ERROR_DAMAGED);
        if (strstr(r->error.text, "node 1 within 15 s") == NULL ||
            strstr(r->error.text, "from node 0 to node 2") == NULL)
            fail_msg("%s", r->error.text);
    }
    replace_liar(sim);
    assert_true(is_quiet(sim));
    sim_free(sim);
}

TEST(a_piece_that_does_not_come_again)
{
    keep_answers(1);
    keep_answers(UINT32_MAX);
}
