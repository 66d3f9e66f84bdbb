/* Whether calls go by MPI or by the torus (client/mpi/job/choice.h): these tests play all ranks. */
#include <string.h>

#include "client/mpi/job/choice.h"
#include "tests/support/cmocka.h"

#define RANKS 3u
#define SMALL 0u /* a class of which the usual way is MPI */
#define MIDDLE 6u
#define LARGE 8u
#define FIRST 32u    /* small calls until the ranks ask what is known, */
#define UNTIMED 128u /* and until they are timed */

/* The ranks of a communicator, and how long a call takes at each of them. */
static struct world {
    struct choice rank[RANKS];
    struct choice_known known[RANKS];
    uint32_t changes[RANKS];
    bool failed; /* at the last rank */
    uint64_t nanoseconds[WAYS][RANKS];
    uint64_t bytes; /* of the next call */
    unsigned calls[WAYS], questions;
} w;

static void begin_fresh(unsigned size_class)
{
    memset(&w, 0, sizeof w);
    for (unsigned r = 0; r < RANKS; r++) {
        choice_begin(&w.rank[r], size_class);
        w.nanoseconds[WAY_MPI][r] = w.nanoseconds[WAY_TORUS][r] = 100000;
    }
}

static void ask(void)
{
    struct choice_vote all = {0};
    uint64_t *maximum = (uint64_t *)(void *)&all;

    w.questions++;
    for (unsigned r = 0; r < RANKS; r++) {
        struct choice_vote v = choice_vote(&w.rank[r], w.changes[r], &w.known[r]);
        const uint64_t *its = (const uint64_t *)(const void *)&v;
        assert_true(choice_asks(&w.rank[r]));
        v.question = 100000;
        v.failed = w.failed && r == RANKS - 1;
        for (unsigned i = 0; i < CHOICE_VOTE_NUMBERS; i++)
            maximum[i] = its[i] > maximum[i] ? its[i] : maximum[i];
    }
    for (unsigned r = 0; r < RANKS; r++)
        (void)choice_decide(&w.rank[r], &all, w.changes[r]);
}

/* One call of all ranks, which must take the same way. Rank 1 remembers calls that stay with MPI. */
static enum way call(void)
{
    enum way way = WAYS;

    while (choice_asks(&w.rank[0]))
        ask();
    for (unsigned r = 0; r < RANKS; r++) {
        struct choice_sample *sample = NULL;
        enum way its = WAY_MPI;
        assert_false(choice_asks(&w.rank[r]));
        if (r == 1 && choice_stays(&w.rank[r]))
            choice_count(&w.rank[r]);
        else
            its = choice_next(&w.rank[r], &sample);
        assert_true(r == 0 || its == way);
        way = its;
        if (sample != NULL)
            *sample = (struct choice_sample){w.nanoseconds[way][r], w.bytes};
    }
    w.calls[way]++;
    return way;
}

static enum way after(unsigned calls)
{
    while (--calls > 0)
        (void)call();
    return call();
}

/* The first two calls are not timed. */
static void begin(unsigned size_class)
{
    begin_fresh(size_class);
    if (size_class == SMALL)
        (void)after(UNTIMED - 2);
    w.calls[WAY_MPI] = w.questions = 0;
}

static void set_times(uint64_t mpi, uint64_t torus)
{
    for (unsigned r = 0; r < RANKS; r++) {
        w.nanoseconds[WAY_MPI][r] = mpi;
        w.nanoseconds[WAY_TORUS][r] = torus;
    }
}

TEST(sizes_have_classes)
{
    assert_int_equal(choice_class(0), 0);
    assert_int_equal(choice_class(16), 0);
    assert_int_equal(choice_class(17), 1);
    assert_int_equal(choice_class(1024), 3);
    assert_true(choice_class(SIZE_MAX) < CHOICE_ANY_SIZE);
    assert_true(choice_usual(SMALL) == WAY_MPI && choice_usual(LARGE) == WAY_TORUS);
    assert_int_equal(choice_usual(choice_class(65536)), WAY_MPI);
    assert_int_equal(choice_usual(choice_class(65537)), WAY_TORUS);
    assert_int_equal(choice_usual(CHOICE_ANY_SIZE), WAY_MPI);
    assert_int_equal(choice_usual_nonblocking(choice_class(4096)), WAY_MPI);
    assert_int_equal(choice_usual_nonblocking(choice_class(4097)), WAY_TORUS);
    assert_int_equal(choice_usual_nonblocking(CHOICE_ANY_SIZE), WAY_TORUS);
}

TEST(the_faster_way_is_chosen)
{
    begin(SMALL);
    set_times(100000, 40000);
    assert_int_equal(after(50), WAY_TORUS);
    begin(SMALL);
    set_times(40000, 100000);
    assert_int_equal(after(50), WAY_MPI);
    assert_true(w.calls[WAY_TORUS] <= 3); /* a clear difference needs few calls */
    begin(LARGE);
    set_times(10000000, 100000);
    assert_int_equal(after(50), WAY_TORUS);
    assert_int_equal(w.calls[WAY_MPI], 1);
    begin(LARGE);
    set_times(90000, 100000);
    assert_int_equal(after(50), WAY_MPI);
}

/* By its own times each rank would choose another way: the slowest rank counts. */
TEST(all_ranks_choose_alike)
{
    begin(SMALL);
    w.nanoseconds[WAY_MPI][0] = 1000;
    w.nanoseconds[WAY_MPI][1] = 90000;
    w.nanoseconds[WAY_TORUS][1] = 10000;
    assert_int_equal(after(50), WAY_MPI);
    w.nanoseconds[WAY_MPI][2] = 200000;
    assert_int_equal(after(100000), WAY_TORUS);
}

TEST(few_calls_are_not_timed)
{
    begin_fresh(SMALL);
    assert_int_equal(after(FIRST), WAY_MPI);
    assert_int_equal(w.questions, 0);
    assert_int_equal(after(UNTIMED - FIRST), WAY_MPI);
    assert_int_equal(w.questions, 1);
    begin_fresh(MIDDLE);
    assert_int_equal(after(16), WAY_MPI);
    assert_int_equal(w.questions, 0);
    begin_fresh(CHOICE_ANY_SIZE);
    assert_int_equal(after(16), WAY_MPI);
    assert_int_equal(w.questions, 0);
    begin(LARGE);
    assert_int_equal(after(16), WAY_TORUS);
    assert_int_equal(w.questions, 0);
}

TEST(little_time_goes_into_questions)
{
    begin(SMALL);
    set_times(90000, 100000);
    (void)after(100000);
    assert_true(w.questions * 100000ul < 100000ul * 90000 / 200);
    assert_true(w.calls[WAY_TORUS] < 500);
}

TEST(a_small_difference_changes_nothing_later)
{
    begin(SMALL);
    set_times(100000, 90000);
    assert_int_equal(after(50), WAY_TORUS);
    set_times(95000, 100000);
    assert_int_equal(after(100000), WAY_TORUS);
}

/* One rank learns that links have changed. */
TEST(a_torus_that_has_changed_is_timed_again)
{
    begin(LARGE);
    set_times(10000000, 1000000);
    assert_int_equal(after(100), WAY_TORUS);
    set_times(10000000, 50000000);
    assert_int_equal(after(100), WAY_TORUS); /* not noticed */
    w.changes[1]++;
    assert_int_equal(after(100), WAY_MPI);
    set_times(10000000, 1000000);
    w.changes[2]++;
    assert_int_equal(after(100), WAY_TORUS);
}

TEST(what_all_ranks_know_is_not_timed)
{
    begin_fresh(SMALL);
    for (unsigned r = 0; r < RANKS; r++)
        w.known[r] = (struct choice_known){true, WAY_TORUS, {100000, 50000}, 0, 1};
    assert_int_equal(after(FIRST + 1), WAY_TORUS);
    assert_int_equal(w.calls[WAY_MPI], FIRST);

    begin_fresh(SMALL); /* one of them has heard something else, or knows an earlier torus */
    for (unsigned r = 0; r < RANKS; r++)
        w.known[r] = (struct choice_known){true, r == 1 ? WAY_MPI : WAY_TORUS, {1, 1}, 0, 1};
    assert_int_equal(after(UNTIMED), WAY_MPI);
    (void)call();
    assert_non_null(w.rank[0].script); /* it is timed */
    begin_fresh(SMALL);
    for (unsigned r = 0; r < RANKS; r++)
        w.known[r] = (struct choice_known){true, WAY_TORUS, {1, 1}, 0, 1};
    w.changes[2] = 1;
    (void)after(UNTIMED + 1);
    assert_non_null(w.rank[0].script);
}

/* What was disturbed when it was timed, first and perhaps again; then both ways take their usual times. */
static void disturb(uint64_t mpi, uint64_t torus, unsigned calls)
{
    set_times(mpi, torus);
    if (calls > 0)
        (void)after(calls);
    set_times(100000, 200000);
}

/* The second communicator times again. What was disturbed the first time, or is this time, does not count. */
TEST(what_is_known_is_confirmed)
{
    for (unsigned now = 0; now < 2; now++) {
        begin_fresh(SMALL);
        for (unsigned r = 0; r < RANKS; r++)
            w.known[r] = now == 0 ? (struct choice_known){true, WAY_TORUS, {5000000, 3500000}, 0, 0}
                                  : (struct choice_known){true, WAY_MPI, {100000, 200000}, 0, 0};
        /* Until then calls go the way that is known. */
        assert_int_equal(after(UNTIMED), now == 0 ? WAY_TORUS : WAY_MPI);
        assert_int_equal(w.calls[WAY_MPI], now == 0 ? FIRST : UNTIMED);
        disturb(5000000, 3500000, now == 0 ? 0 : 13);
        assert_int_equal(after(50), WAY_MPI);
        assert_int_equal(w.rank[0].time[WAY_MPI], 100001);
        assert_true(w.questions <= 6);
    }
}

/* A disturbed timing does not fix the slower way for long. */
TEST(a_first_timing_is_soon_repeated)
{
    begin(SMALL);
    disturb(300000, 100000, 20);
    assert_true(w.rank[0].settled && w.rank[0].way == WAY_TORUS);
    assert_int_equal(after(2000), WAY_MPI);
    begin(LARGE);
    disturb(1000000, 3000000, 50);
    set_times(9000000, 1000000);
    assert_true(w.rank[0].settled && w.rank[0].way == WAY_MPI);
    assert_int_equal(after(500), WAY_TORUS);
}

/* Once a way has proved to be faster, one disturbed timing changes nothing. */
TEST(a_later_timing_counts_only_twice)
{
    begin(SMALL);
    set_times(100000, 200000);
    (void)after(50);
    while (w.rank[0].script == NULL)
        (void)call();
    disturb(900000, 200000, 4);
    while (w.rank[0].script != NULL)
        (void)call();
    assert_int_equal(call(), WAY_MPI);
    while (w.rank[0].script == NULL)
        (void)call();
    set_times(900000, 200000);
    assert_int_equal(after(50), WAY_TORUS);
}

/* One sample says little: none of the others may contradict the faster way that ends a timing early. */
TEST(one_short_sample_is_not_clear)
{
    begin(SMALL);
    (void)after(4);
    disturb(100000, 60000, 1);
    set_times(100000, 120000);
    assert_int_equal(after(50), WAY_MPI);
}

/* Two of five samples of each way are disturbed. */
TEST(disturbed_samples_do_not_count)
{
    begin(SMALL);
    for (unsigned i = 0; i < 14; i++) {
        const bool disturbed = i % 3 == 0;
        set_times(disturbed ? 900000 : 100000, disturbed ? 950000 : 90000);
        (void)call();
    }
    assert_int_equal(call(), WAY_TORUS);
}

TEST(a_torus_that_has_failed_is_not_timed)
{
    begin(SMALL);
    w.failed = true;
    assert_int_equal(after(100000), WAY_MPI);
    assert_int_equal(w.calls[WAY_TORUS], 0);
    assert_int_equal(w.questions, 1);
}

/* Calls of two sizes in turn, of which each way carries out other ones during the timing. */
TEST(sizes_that_differ_are_compared)
{
    for (unsigned first = 0; first < 3; first++) {
        begin(CHOICE_ANY_SIZE);
        for (unsigned i = first; i < 100; i++) {
            w.bytes = i % 3 == 0 ? 1000000 : 10;
            if (i % 3 == 0)
                set_times(9000000, 8000000);
            else
                set_times(100000, 50000);
            (void)call();
        }
        assert_int_equal(call(), WAY_TORUS);
        assert_true(w.calls[WAY_MPI] <= 16 + 6);
    }
}
