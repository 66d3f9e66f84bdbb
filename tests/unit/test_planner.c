/* A client of a plan that cannot be made hears of the failure; a client that asks later, or for another plan, does
 * not. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/planning/planner.h"
#include "failing_memory.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

struct asking {
    struct torus torus;
    struct stepper stepper;
    struct planner *planner;
    const char *algorithm; /* asked for when the planner wakes; NULL: nothing */
    unsigned wakes;
    int answer;
};

static int ask(struct asking *a, const char *algorithm)
{
    struct planned *planned;
    struct error e;
    int result = planner_get(a->planner, algorithm_find(algorithm), MODE_STEPPED, TORUS_NO_NODE,
                             false, &planned, &e);

    if (result < 0)
        assert_int_equal(e.code, ERROR_MEMORY);
    if (result > 0)
        planner_put(a->planner, planned);
    return result;
}

static void wake(void *context)
{
    struct asking *a = context;

    a->wakes++;
    if (a->algorithm != NULL)
        a->answer = ask(a, a->algorithm);
}

/* Asks for a plan of "direct", without memory to make it. */
static void fail_direct(struct asking *a, const char *asked_then)
{
    *a = (struct asking){.algorithm = asked_then};
    assert_int_equal(torus_parse(&a->torus, "2x2", NULL), 0);
    stepper_init(&a->stepper, 0);
    a->planner = planner_new(&a->torus, 0, &a->stepper.workers, wake, a);
    assert_non_null(a->planner);
    assert_int_equal(ask(a, "direct"), 0);
    memory_fails(0);
    memory_counts_here(true);
    assert_true(stepper_step(&a->stepper));
    memory_counts_here(false);
    assert_true(memory_failed());
    stepper_finish(&a->stepper);
}

TEST(a_waiting_client_hears_of_a_failure)
{
    struct asking a;

    fail_direct(&a, "direct");
    assert_int_equal(a.wakes, 1);
    assert_int_equal(a.answer, -1);
    planner_free(a.planner);
}

TEST(a_client_that_asks_later_gets_a_new_plan)
{
    struct asking a;

    fail_direct(&a, NULL); /* the client has gone */
    assert_int_equal(ask(&a, "direct"), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(ask(&a, "direct"), 1);
    planner_free(a.planner);
}

TEST(a_client_of_another_plan_does_not_hear_of_it)
{
    struct asking a;

    fail_direct(&a, "at2");
    assert_int_equal(a.wakes, 2);
    assert_int_equal(a.answer, 1);
    planner_free(a.planner);
}

static void begin_on(struct asking *a, const char *dims)
{
    *a = (struct asking){.algorithm = NULL};
    assert_int_equal(torus_parse(&a->torus, dims, NULL), 0);
    stepper_init(&a->stepper, 0);
    a->planner = planner_new(&a->torus, 0, &a->stepper.workers, wake, a);
    assert_non_null(a->planner);
}

/* A plan that was used is kept. */
TEST(kept_plans_are_found_again)
{
    static const char *const asked[] = {"direct", "cccube-q2", "cccube-q3"};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct asking a;
        begin_on(&a, "4x4");
        assert_int_equal(ask(&a, asked[i]), 0);
        stepper_finish(&a.stepper);
        assert_int_equal(ask(&a, asked[i]), 1);
        assert_int_equal(ask(&a, asked[i]), 1);
        planner_free(a.planner);
    }
}

/* Returns the result of planner_get(), and releases the plan. */
static int broadcast_from(struct asking *a, uint32_t sender)
{
    struct planned *planned;
    struct error e;
    int result = planner_get(a->planner, algorithm_find("balanced"), MODE_STREAMING, sender, false,
                             &planned, &e);

    if (result > 0) {
        assert_int_equal(planned->sender, sender);
        planner_put(a->planner, planned);
    }
    stepper_finish(&a->stepper);
    return result;
}

/* There are as many plans of broadcasts as nodes: plans of frequent roots are kept, while others are replaced. */
TEST(plans_of_frequent_broadcasts_are_kept)
{
    struct asking a;

    begin_on(&a, "12x12");
    assert_int_equal(broadcast_from(&a, 0), 0);
    for (uint32_t sender = 1; sender < 140; sender++) {
        assert_int_equal(broadcast_from(&a, 0), 1);
        assert_int_equal(broadcast_from(&a, sender), 0);
        assert_int_equal(broadcast_from(&a, sender), 1);
    }
    assert_int_equal(broadcast_from(&a, 139), 1);
    assert_int_equal(broadcast_from(&a, 1), 0); /* has gone */
    planner_free(a.planner);
}

/* The plan of a reduction differs from that of a broadcast from the same node, and a failure of one is not reported for
 * the other. */
TEST(plans_of_reductions_are_plans_of_their_own)
{
    const struct algorithm *algorithm = algorithm_find("disjoint");
    struct planned *broadcast, *reduction;
    struct asking a;
    struct error e;

    begin_on(&a, "4x4");
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 0);
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 5, false, &broadcast, &e),
                     0);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(a.wakes, 2); /* a plan that is being made is not started again */
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 1);
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 5, false, &broadcast, &e),
                     1);
    assert_ptr_not_equal(broadcast, reduction);
    assert_int_equal(reduction->trees.count, algorithm->segments);
    assert_int_equal(reduction->trees.tree[0].owner, 5);
    assert_int_equal(broadcast->trees.count, 0);
    planner_put(a.planner, broadcast);
    planner_put(a.planner, reduction);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 0);
    memory_fails(0);
    memory_counts_here(true);
    assert_true(stepper_step(&a.stepper));
    memory_counts_here(false);
    assert_true(memory_failed());
    stepper_finish(&a.stepper);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 1);
    planner_put(a.planner, reduction);
    planner_free(a.planner);
}

/* There are as many plans of broadcasts as nodes: of plans that were requested and not fetched, not all are kept, and
 * not more are started at once than can be made soon. */
TEST(plans_that_nobody_fetches)
{
    const struct algorithm *algorithm = algorithm_find("balanced");
    struct planned *planned;
    struct asking a;
    struct error e;

    begin_on(&a, "12x12");
    for (uint32_t sender = 0; sender < 128; sender++) {
        if (sender == 64)
            stepper_finish(&a.stepper);
        assert_false(planner_is_busy(a.planner));
        assert_int_equal(
            planner_get(a.planner, algorithm, MODE_STREAMING, sender, false, &planned, &e), 0);
    }
    assert_true(planner_is_busy(a.planner));
    stepper_finish(&a.stepper);
    assert_false(planner_is_busy(a.planner));
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 128, false, &planned, &e),
                     0);
    for (uint32_t sender = 0; sender < 128; sender += 127) { /* the oldest and the youngest */
        int result = planner_get(a.planner, algorithm, MODE_STREAMING, sender, false, &planned, &e);
        assert_int_equal(result, sender > 0);
        if (result > 0)
            planner_put(a.planner, planned);
    }
    stepper_finish(&a.stepper);
    planner_free(a.planner);
}
