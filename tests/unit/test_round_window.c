/* The round window: which frames belong to its rounds, which round is the oldest, and when it ends. */
#include "daemon/torusd/engine/engine.h"
#include "engine_fixture.h"
#include "tests/support/cmocka.h"

enum { WINDOW = 3 };

/* Laid out like a round of an engine: its own fields follow those that all rounds have. */
struct numbered_round {
    struct window_round base;
    uint64_t content;
};

static struct node *node;
static struct engine engine;
static struct round_window window;

static int open_window(void **state)
{
    node = node_open("3", 1, 4);
    engine = (struct engine){.set = node->setup};
    engine.set.window = WINDOW;
    return round_window_init(&window, &engine, sizeof(struct numbered_round));
}

static int close_window(void **state)
{
    round_window_free(&window);
    node_close(node);
    return 0;
}

static struct numbered_round *begin_round(uint64_t number)
{
    struct numbered_round *r = round_window_slot(&window, number);

    assert_null(round_window_find(&window, number));
    r->base = (struct window_round){.number = number, .open = true, .admitted = true};
    r->content = number;
    return r;
}

TEST_WITH(open_window, close_window, rounds_are_found_while_under_way)
{
    begin_round(0);
    begin_round(2);
    assert_int_equal(((struct numbered_round *)round_window_find(&window, 2))->content, 2);
    assert_null(round_window_find(&window, 1));
    assert_null(round_window_find(&window, 3)); /* whose slot round 0 has */
    assert_true(round_window_end(&window));
    assert_null(round_window_find(&window, 0));
    begin_round(3);
    assert_non_null(round_window_find(&window, 3));
}

TEST_WITH(open_window, close_window, rounds_are_walked_from_the_oldest)
{
    assert_null(round_window_next(&window, 0));
    struct numbered_round *first = begin_round(0), *last = begin_round(2);
    assert_ptr_equal(round_window_next(&window, 0), first);
    assert_ptr_equal(round_window_next(&window, 1), last);
    assert_null(round_window_next(&window, 3));
}

TEST_WITH(open_window, close_window, a_round_ends_when_nothing_of_it_is_left)
{
    struct numbered_round *r = begin_round(0);

    r->base.delivered = 7;
    r->base.left = 1;
    assert_false(round_window_end(&window));
    r->base.left = 0;
    r->base.admitted = false;
    assert_false(round_window_end(&window));
    r->base.admitted = true;
    node->sink.pending = 1;
    assert_false(round_window_end(&window));
    node->sink.pending = 0;
    engine.damaged_count = 1; /* it will be repaired */
    assert_false(round_window_end(&window));
    engine.damaged_count = 0;
    engine.failure.code = ERROR_MEMORY;
    assert_false(round_window_end(&window));
    engine.failure.code = ERROR_NONE;
    assert_int_equal(engine.rounds_finished, 0);
    assert_true(round_window_end(&window));
    assert_int_equal(engine.rounds_finished, 1);
    assert_int_equal(engine.counts.blocks_delivered, 7);
    assert_false(round_window_end(&window)); /* the next one has not begun */
}

/* Frames name rounds modulo 128. */
TEST_WITH(open_window, close_window, frames_name_rounds_of_the_window)
{
    const uint64_t oldest[] = {0, 5, 126, 127, 128, 1000};

    for (size_t i = 0; i < sizeof oldest / sizeof *oldest; i++) {
        engine.rounds_finished = oldest[i];
        for (uint32_t named = 0; named < 300; named++) {
            uint64_t number = 0, ahead = (named - oldest[i]) % (ENGINE_ROUND_MASK + 1);
            struct error e;
            int result = round_window_number(&window, named, &number, &e);
            if (named > ENGINE_ROUND_MASK || ahead >= WINDOW) {
                assert_fails(result, e, ERROR_PROTOCOL, "");
            } else {
                assert_int_equal(result, 0);
                assert_int_equal(number, oldest[i] + ahead);
            }
        }
    }
}
