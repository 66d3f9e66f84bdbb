/* A node that has the cluster key and says more than anybody could: exchanges that it begins and does not go
 * on with, the end of those that others have not begun yet; and one that keeps what it should pass on. What
 * others begin meanwhile, or when it is gone, succeeds. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/exchange/engine.h"
#include "tests/sim/checks.h"
#include "tests/sim/lies.h"
#include "tests/sim/memory.h"

#define LIAR 1u
#define FLOODS 200u

static const struct spec generated = {
    .algorithm = "direct", .block_bytes = 200000, .from = "", .to = "", .timeout_ns = 60 * SECONDS};

static struct sim *open_ring(uint64_t memory)
{
    const struct sim_setup setup = {
        .dims = "4", .seed = 1, .latency = 100 * MICROSECONDS, .rate = 125000000, .memory = memory};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    sim_set_lying(sim, LIAR, true);
    return sim;
}

static void say_everywhere(struct sim *sim, const Peer__Head *head)
{
    size_t length;
    uint8_t *bytes = lie_frame(head, NULL, 0, &length);

    for (unsigned port = 0; port < 2; port++)
        (void)sim_say(sim, LIAR, port, bytes, length);
    free(bytes);
}

struct flood {
    uint64_t block_bytes;
    uint32_t said;
};

/* A few more exchanges of its own, which it does not know itself, again and again. */
static void flood(struct sim *sim, void *context)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct flood *f = context;
    char id[EXCHANGE_ID_SIZE];
    Torus__Spec spec;

    torus__spec__init(&spec);
    spec.algorithm = (char *)(uintptr_t) "direct";
    spec.mode = (char *)(uintptr_t) "stepped";
    spec.block_bytes = f->block_bytes;
    spec.timeout_ms = 3600000;
    prepare.id = id;
    prepare.root = LIAR;
    prepare.dims = (char *)(uintptr_t) "4";
    prepare.spec = &spec;
    prepare.round_bytes = f->block_bytes > 0 ? f->block_bytes : 1;
    prepare.window = 1;
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    for (unsigned i = 0; i < 40; i++) {
        uint32_t counter = 1000000 + f->said++;
        (void)snprintf(id, sizeof id, "%u-%08" PRIx32 "-%" PRIu32, LIAR,
                       (uint32_t)router_boot(sim_router(sim, LIAR)), counter);
        prepare.exchange = (4 * counter + LIAR) & 0x0fffffff;
        say_everywhere(sim, &head);
    }
    if (f->said < 40 * FLOODS)
        sim_at(sim, sim_now(sim) + 5 * MILLISECONDS, flood, f);
}

static bool has_said_all(struct sim *sim, void *context)
{
    (void)sim;
    return ((const struct flood *)context)->said >= 40 * FLOODS;
}

static bool is_quiet(struct sim *sim)
{
    return sim_run(sim, 120 * SECONDS, sim_is_quiet, NULL);
}

static void replace_liar(struct sim *sim)
{
    sim_set_lying(sim, LIAR, false);
    sim_kill(sim, LIAR, SIM_CRASH);
    sim_restart(sim, LIAR);
    sim_run_until_whole(sim);
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
        assert_false(sim_is_quiet(sim, NULL)); /* the liar's are still there */
    }
    assert_true(sim_run(sim, 60 * SECONDS, has_said_all, &f));
    replace_liar(sim);
    assert_true(is_quiet(sim));
    check_next_exchange(sim, 0);
    sim_free(sim);
}

static void exchanges_that_one_node_begins_leave_places(void **state)
{
    (void)state;
    others_go_on(0, 0);
}

static void and_memory(void **state)
{
    (void)state;
    others_go_on(1 << 20, 20000);
}

/* --- the end of what has not begun --- */

static void verdicts_about_what_is_to_come(void **state)
{
    struct sim *sim = open_ring(0);
    struct sim_request *r = sim_exchange(sim, 0, &generated);
    uint32_t counter;

    (void)state;
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    assert_int_equal(sscanf(r->id, "%*u-%*x-%" SCNu32, &counter), 1);
    for (uint32_t i = 1; i <= 200; i++) {
        Peer__Verdict verdict = PEER__VERDICT__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        char id[EXCHANGE_ID_SIZE];
        (void)snprintf(id, sizeof id, "0-%08" PRIx32 "-%" PRIu32,
                       (uint32_t)router_boot(sim_router(sim, 0)), counter + i);
        verdict.exchange = 4 * (counter + i);
        verdict.id = id;
        verdict.code = ERROR_IO;
        verdict.reason = (char *)(uintptr_t) "invented";
        verdict.left = 4;
        head.kind_case = PEER__HEAD__KIND_VERDICT;
        head.verdict = &verdict;
        say_everywhere(sim, &head);
    }
    sim_pass(sim, 10 * MILLISECONDS);
    replace_liar(sim);
    r = sim_exchange(sim, 0, &generated);
    assert_true(sim_run_until_ended(r, 120 * SECONDS));
    if (r->error.code != ERROR_NONE)
        fail_msg("%s", r->error.text);
    assert_true(is_quiet(sim));
    sim_free(sim);
}

/* --- a piece that does not come again --- */

struct keeper {
    unsigned damages; /* to be done yet */
    unsigned kept;    /* answers */
};

/* What node 0 sends further than to its neighbours is damaged, and the liar keeps what comes again. */
static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct keeper *k = sim_context(sim);
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    unsigned times = 1;

    (void)port;
    assert_non_null(head);
    if (rank == 0 && head->kind_case == PEER__HEAD__KIND_STEPPED_DATA &&
        head->stepped_data->left == 1 && *length > body && k->damages > 0) {
        k->damages--;
        (*bytes)[body + (*length - body) / 2] ^= 0x10;
    }
    if (rank == LIAR && head->kind_case == PEER__HEAD__KIND_MENDED) {
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
        if (strstr(r->error.text, "no answer comes by node 1 within 15 s") == NULL ||
            strstr(r->error.text, "block from node 0 to node 2 is damaged") == NULL)
            fail_msg("%s", r->error.text);
    }
    replace_liar(sim);
    assert_true(is_quiet(sim));
    sim_free(sim);
}

static void a_piece_that_does_not_come_again(void **state)
{
    (void)state;
    keep_answers(1);
    keep_answers(UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_that_one_node_begins_leave_places),
        cmocka_unit_test(and_memory),
        cmocka_unit_test(verdicts_about_what_is_to_come),
        cmocka_unit_test(a_piece_that_does_not_come_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
