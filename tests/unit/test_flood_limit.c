/* Messages that are flooded: each is handled once, and there are not too many, whatever neighbours send. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/router/flood_limit.h"
#include "tests/support/cmocka.h"

#define PORTS 4u

static const struct flood_rules rules = {.kept = 64, .rate = 32, .burst = 64, .initiator = 16};

static int open_limit(void **state)
{
    static struct flood_limit limit;

    *state = &limit;
    return flood_limit_init(&limit, &rules, PORTS);
}

static int close_limit(void **state)
{
    flood_limit_free(*state);
    return 0;
}

static bool take(struct flood_limit *f, unsigned port, uint32_t initiator, uint64_t id,
                 uint32_t number, uint64_t now)
{
    const struct flooded message = {
        .initiator = initiator, .id = id, .number = number, .cost = 1, .answers_left = 9};
    const struct flooded *taken = flood_limit_take(f, port, &message, now);

    assert_true(taken == NULL || (taken->port == port && taken->id == id));
    return taken != NULL;
}

TEST_WITH(open_limit, close_limit, a_message_is_taken_once)
{
    struct flood_limit *f = *state;

    assert_true(take(f, 0, 5, 77, 1, 10 * SECONDS));
    for (unsigned port = 0; port < PORTS; port++)
        assert_false(take(f, port, 5, 77, 1, 11 * SECONDS));
    assert_true(take(f, 1, 5, 77, 2, 11 * SECONDS));
    assert_true(take(f, 1, 6, 77, 1, 11 * SECONDS));
    assert_true(take(f, 1, 5, 78, 1, 11 * SECONDS));
}

TEST_WITH(open_limit, close_limit, an_initiator_is_limited)
{
    struct flood_limit *f = *state;
    unsigned taken = 0;

    for (uint32_t i = 0; i < 1000; i++)
        taken += take(f, i % PORTS, 5, i, 1, 10 * SECONDS + i);
    assert_int_equal(taken, rules.initiator);
    assert_true(take(f, 0, 6, 1, 1, 10 * SECONDS + 1000));
    assert_true(take(f, 0, 5, 5000, 1, 12 * SECONDS));
}

TEST_WITH(open_limit, close_limit, a_port_is_limited)
{
    struct flood_limit *f = *state;
    unsigned taken = 0;

    for (uint32_t i = 0; i < 1000; i++)
        taken += take(f, 2, i, 1, 1, 10 * SECONDS + i);
    assert_int_equal(taken, rules.burst);
    assert_true(take(f, 3, 1, 2, 1, 10 * SECONDS + 1000));
    for (uint32_t i = 0; i < 1000; i++)
        taken += take(f, 2, 2000 + i, 1, 1, 11 * SECONDS + i);
    assert_int_equal(taken, rules.burst + rules.rate);
}

/* What costs more is taken less often, from a port and of an initiator. */
TEST_WITH(open_limit, close_limit, costs_count)
{
    struct flood_limit *f = *state;
    struct flooded message = {.cost = 4};
    unsigned of_port = 0, of_initiator = 0;

    for (; message.id < 1000; message.id++, message.initiator++)
        of_port += flood_limit_take(f, 0, &message, 10 * SECONDS) != NULL;
    assert_int_equal(of_port, rules.burst / message.cost);
    for (; message.id < 2000; message.id++)
        of_initiator += flood_limit_take(f, 1, &message, 10 * SECONDS) != NULL;
    assert_int_equal(of_initiator, rules.initiator / message.cost);
}

/* Answers pass only where a message has passed, and not more than it may have. */
TEST_WITH(open_limit, close_limit, answers_are_limited)
{
    struct flood_limit *f = *state;
    unsigned passed = 0;

    assert_null(flood_limit_answer(f, 5, 77));
    assert_true(take(f, 3, 5, 77, 1, 10 * SECONDS));
    for (unsigned i = 0; i < 100; i++) {
        const struct flooded *way = flood_limit_answer(f, 5, 77);
        passed += way != NULL;
        assert_true(way == NULL || way->port == 3);
    }
    assert_int_equal(passed, 9);
    assert_null(flood_limit_answer(f, 5, 78));
}
