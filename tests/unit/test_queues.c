/* Items that wait for a port leave by urgency; equally urgent items leave in the order in which they came. */
#include "daemon/torusd/engine/queues.h"
#include "tests/support/cmocka.h"

enum { PORTS = 2, LEVELS = 130, ITEMS = 200 };

static struct queues queues;

static int open_queues(void **state)
{
    return queues_init(&queues, PORTS, LEVELS, ITEMS);
}

static int close_queues(void **state)
{
    queues_free(&queues);
    return 0;
}

static void expect_next(unsigned port, uint32_t urgency, uint32_t item)
{
    assert_int_equal(queues_peek(&queues, port), item);
    queues_take(&queues, port, urgency);
    assert_false(queues_has(&queues, item));
}

TEST_WITH(open_queues, close_queues, the_most_urgent_leaves_first)
{
    const uint32_t urgency[] = {0, 129, 63, 64, 128, 1}; /* in each word of bits */

    for (uint32_t i = 0; i < 6; i++)
        assert_true(queues_add(&queues, 0, urgency[i], i));
    assert_int_equal(queues_peek(&queues, 1), QUEUES_NONE);
    expect_next(0, 129, 1);
    expect_next(0, 128, 4);
    expect_next(0, 64, 3);
    expect_next(0, 63, 2);
    expect_next(0, 1, 5);
    expect_next(0, 0, 0);
    assert_int_equal(queues_peek(&queues, 0), QUEUES_NONE);
}

TEST_WITH(open_queues, close_queues, as_urgent_leaves_in_order)
{
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_true(queues_add(&queues, 1, 7, ITEMS - 1 - i));
    expect_next(1, 7, ITEMS - 1);
    assert_true(queues_add(&queues, 1, 7, ITEMS - 1)); /* behind the others now */
    for (uint32_t i = 1; i < ITEMS; i++)
        expect_next(1, 7, ITEMS - 1 - i);
    expect_next(1, 7, ITEMS - 1);
    assert_int_equal(queues_peek(&queues, 1), QUEUES_NONE);
}

TEST_WITH(open_queues, close_queues, an_item_waits_once)
{
    assert_true(queues_add(&queues, 0, 3, 5));
    assert_false(queues_add(&queues, 0, 3, 5));
    assert_false(queues_add(&queues, 1, 4, 5)); /* nor in another queue */
    assert_true(queues_has(&queues, 5));
    assert_int_equal(queues_peek(&queues, 1), QUEUES_NONE);
    expect_next(0, 3, 5);
    assert_int_equal(queues_peek(&queues, 0), QUEUES_NONE);
}

/* A taken item's urgency may be below that of one that was added since it was looked at. */
TEST_WITH(open_queues, close_queues, an_item_is_taken_from_its_own_queue)
{
    assert_true(queues_add(&queues, 0, 3, 5));
    assert_int_equal(queues_peek(&queues, 0), 5);
    assert_true(queues_add(&queues, 0, 9, 6));
    queues_take(&queues, 0, 3);
    assert_false(queues_has(&queues, 5));
    expect_next(0, 9, 6);
}

TEST_WITH(open_queues, close_queues, cleared_queues_are_empty)
{
    assert_true(queues_add(&queues, 0, 3, 5));
    assert_true(queues_add(&queues, 1, 100, 6));
    queues_clear(&queues);
    assert_int_equal(queues_peek(&queues, 0), QUEUES_NONE);
    assert_int_equal(queues_peek(&queues, 1), QUEUES_NONE);
    assert_true(queues_add(&queues, 1, 100, 5));
    expect_next(1, 100, 5);
}
