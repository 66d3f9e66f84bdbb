/* Calls of copies, which are flooded: each is handled once, and there are not too many, whatever neighbours send. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/copy/calls.h"
#include "tests/support/cmocka.h"

#define PORTS 4u

static int open_calls(void **state)
{
    static struct copy_calls calls;

    *state = &calls;
    return copy_calls_init(&calls, PORTS);
}

static int close_calls(void **state)
{
    copy_calls_free(*state);
    return 0;
}

static bool take(struct copy_calls *c, unsigned port, uint32_t asker, uint64_t id, uint32_t number,
                 uint64_t now)
{
    return copy_calls_take(c, port,
                           &(struct peer_copy_call){
                               .asker = asker, .id = id, .attempt = 1, .number = number, .left = 3},
                           now);
}

TEST_WITH(open_calls, close_calls, a_call_is_taken_once)
{
    struct copy_calls *c = *state;

    assert_true(take(c, 0, 5, 77, 1, 10 * SECONDS));
    for (unsigned port = 0; port < PORTS; port++)
        assert_false(take(c, port, 5, 77, 1, 11 * SECONDS));
    assert_true(take(c, 1, 5, 77, 2, 11 * SECONDS));
    assert_true(take(c, 1, 6, 77, 1, 11 * SECONDS));
    assert_true(take(c, 1, 5, 78, 1, 11 * SECONDS));
}

TEST_WITH(open_calls, close_calls, an_asker_is_limited)
{
    struct copy_calls *c = *state;
    unsigned taken = 0;

    for (uint32_t i = 0; i < 1000; i++)
        taken += take(c, i % PORTS, 5, i, 1, 10 * SECONDS + i);
    assert_int_equal(taken, COPY_CALLS_ASKER);
    assert_true(take(c, 0, 6, 1, 1, 10 * SECONDS + 1000));
    assert_true(take(c, 0, 5, 5000, 1, 12 * SECONDS));
}

TEST_WITH(open_calls, close_calls, a_port_is_limited)
{
    struct copy_calls *c = *state;
    unsigned taken = 0;

    for (uint32_t i = 0; i < 1000; i++)
        taken += take(c, 2, i, 1, 1, 10 * SECONDS + i);
    assert_int_equal(taken, COPY_CALLS_BURST);
    assert_true(take(c, 3, 1, 2, 1, 10 * SECONDS + 1000));
    for (uint32_t i = 0; i < 1000; i++)
        taken += take(c, 2, 2000 + i, 1, 1, 11 * SECONDS + i);
    assert_int_equal(taken, COPY_CALLS_BURST + COPY_CALLS_RATE);
}

/* Refusals pass only where a call has passed, and not more than there are nodes. */
TEST_WITH(open_calls, close_calls, refusals_are_limited)
{
    struct copy_calls *c = *state;
    struct peer_copy_refusal refusal = {.asker = 5, .id = 77, .attempt = 1, .node = 3, .left = 2};
    unsigned passed = 0;

    assert_false(copy_calls_pass(c, &refusal, 9));
    assert_true(take(c, 0, 5, 77, 1, 10 * SECONDS));
    for (unsigned i = 0; i < 100; i++)
        passed += copy_calls_pass(c, &refusal, 9);
    assert_int_equal(passed, 9);
    refusal.id = 78;
    assert_false(copy_calls_pass(c, &refusal, 9));
}
