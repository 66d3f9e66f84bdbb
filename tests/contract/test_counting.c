/* The two short ways in which the verifier counts (verify.h), beside following the routes of all pairs: by the routes
 * between nodes of a line, and by an algorithm's rule for its messages. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/work.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const char *const shapes[] = {
    "1",     "2",     "2m",    "7",        "8m",    "4x4",      "4mx8",   "5x3",
    "4mx5",  "3x6m",  "5mx4m", "2x2x2",    "4x4x2", "1x6x1",    "3x3x3m", "16x4m",
    "8x2x4", "3x4x6", "2m^4",  "2x3mx2x3", "12x12", "star:4x5",
};

static void assert_same(const struct schedule_report *a, const struct schedule_report *b)
{
    assert_int_equal(a->startups, b->startups);
    assert_true(a->transmission == b->transmission);
    assert_true(a->critical_path == b->critical_path);
    assert_int_equal(a->hops, b->hops);
    assert_true(a->busiest == b->busiest);
    assert_true(a->bound == b->bound);
    assert_int_equal(a->contended_steps, b->contended_steps);
    assert_int_equal(a->minimal, b->minimal);
    assert_int_equal(a->one_port_kept, b->one_port_kept);
    assert_int_equal(a->crowded_step, b->crowded_step);
}

/* Returns the report of an algorithm without short ways. */
static struct schedule_report follow_all(const struct torus *t, const struct algorithm *a)
{
    struct schedule_report r;
    struct algorithm walked = *a;
    struct error e;

    walked.by_lines = false;
    walked.messages = NULL;
    assert_success(schedule_verify(t, &walked, &r, &e), e);
    return r;
}

/* Returns on how many of the shapes the algorithm was compared. */
static unsigned check_short_ways(const struct algorithm *a)
{
    unsigned compared = 0;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        struct schedule_report r;
        if (algorithm_accepts(a, &t, NULL) != 0)
            continue;
        const struct schedule_report all = follow_all(&t, a);
        assert_int_equal(schedule_verify(&t, a, &r, NULL), 0);
        assert_same(&r, &all);
        compared++;
        if (a->messages == NULL || !torus_is_plain(&t))
            continue;
        assert_int_equal(schedule_count(&t, a, &r, NULL), 0);
        assert_same(&r, &all);
    }
    return compared;
}

TEST(short_ways_count_the_same)
{
    unsigned by_lines = 0, by_rule = 0;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (!a->by_lines && a->messages == NULL)
            continue;
        assert_true(check_short_ways(a) >= 6);
        by_lines += a->by_lines;
        by_rule += a->messages != NULL;
    }
    assert_int_equal(by_lines, 6);
    assert_int_equal(by_rule, 5);
}

/* Packets of unequal sizes, and few ports. */
TEST(rule_of_every_family_of_cccube)
{
    static const char *const names[] = {"cccube-q3",    "cccube-q5",    "cccube-k1",
                                        "cccube-k1-q3", "cccube-k2-q5", "cccube-k8-q2"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_true(check_short_ways(algorithm_find(names[i])) >= 3);
}

/* A route that is wrong is found where only lines are followed. */
static uint32_t goes_too_far(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                             struct leg *legs)
{
    uint32_t count = algorithm_find("dim-tree")->route(t, s, d, segment, legs);

    if (s == 3 && d == 1)
        legs[0].hops = 2;
    return count;
}

TEST(lines_are_followed)
{
    struct algorithm a = *algorithm_find("dim-tree");
    struct torus t = contract_torus("4x4");
    struct schedule_report r;
    struct error e = {.code = ERROR_NONE};

    a.route = goes_too_far;
    assert_fails(schedule_verify(&t, &a, &r, &e), e, ERROR_DAMAGED, "block 3 -> 1");
}

/* Where following the routes takes seconds, the rule counts; without a rule the work is the routes. */
TEST(rule_is_for_large_tori)
{
    struct torus small = contract_torus("16x16"), large = contract_torus("64x64"),
                 graph = contract_torus("star:16x16");
    const struct algorithm *tree = algorithm_find("tree"), *atape = algorithm_find("atape");
    struct schedule_report r;
    struct error e = {.code = ERROR_NONE};

    assert_false(work_by_rule(&small, tree));
    assert_true(work_by_rule(&large, tree));
    assert_false(work_by_rule(&large, atape));
    assert_true(work_to_verify(&large, tree) < 1e6);
    assert_true(work_to_verify(&small, tree) == work_of(&small, tree));
    assert_true(work_to_verify(&large, algorithm_find("dim-tree")) < WORK_QUICK);
    assert_fails(schedule_count(&small, atape, &r, &e), e, ERROR_REFUSED, "no rule");
    e.code = ERROR_NONE;
    assert_fails(schedule_count(&graph, tree, &r, &e), e, ERROR_REFUSED, "no rule");
}
