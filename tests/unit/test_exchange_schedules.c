/* Schedules that an exchange names: how a node fetches them from a neighbour and passes them on, and neighbours that
 * lie or fall silent. */
#include "daemon/torusd/planning/schedule_store.h"
#include "schedules_fixture.h"
#include "tests/support/cmocka.h"

static void becomes_ready(struct exchange_fixture *n)
{
    assert_true(xf_say_handle(n, SCHEDULES_CHILD, PEER_READY, XF_HANDLE));
    assert_int_equal(xf_hear(n, SCHEDULES_PARENT), PEER_READY);
}

TEST(a_schedule_is_fetched_part_by_part_and_passed_on)
{
    const struct schedule_file f = schedule_file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(
        schedules_say_query(&n, f.digest, 0)); /* nothing is here yet: the answer comes later */
    assert_int_equal(xf_hear(&n, SCHEDULES_CHILD), PEER_NOTHING);
    assert_true(schedules_say_part(&n, &f, f.length, 0, part));
    schedules_hear_query(&n, &f, part);
    schedules_hear_part(&n, &f, f.length, 0, part);
    assert_true(schedules_say_part(&n, &f, f.length, 0, part)); /* it is here already */
    assert_int_equal(xf_hear(&n, SCHEDULES_PARENT), PEER_NOTHING);
    assert_true(schedules_say_query(&n, f.digest, part));
    assert_true(schedules_say_part(&n, &f, f.length, part, part));
    schedules_hear_query(&n, &f, 2 * part);
    schedules_hear_part(&n, &f, f.length, part, part);
    assert_true(schedules_say_part(&n, &f, f.length, 2 * part, f.length - 2 * part));
    assert_true(schedules_say_query(&n, f.digest, 2 * part));
    schedules_hear_part(&n, &f, f.length, 2 * part, f.length - 2 * part);
    becomes_ready(&n);
    assert_memory_equal(xf_info(&n).algorithm, "direct@", 7);
    xf_close(&n);
}

TEST(a_known_schedule_is_not_fetched_again)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, f.length, 0, f.length));
    assert_true(
        xf_say_verdict(&n, SCHEDULES_PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    (void)xf_drain(&n);

    schedules_say_prepare_again(&n, &f);
    assert_int_equal(xf_hear(&n, SCHEDULES_CHILD), PEER_PREPARE);
    assert_true(xf_say_handle(&n, SCHEDULES_CHILD, PEER_READY, XF_HANDLE + 3));
    assert_int_equal(xf_hear(&n, SCHEDULES_PARENT), PEER_READY);
    xf_close(&n);
}

TEST(parts_that_cannot_be_close_the_link)
{
    static const struct {
        uint32_t total, offset;
        size_t length;
    } wrong[] = {
        {IMPORTED_BYTES_MOST + 1, 0, 100},   {500, 0, 501}, {500, 501, 1}, {UINT32_MAX, 0, 100},
        {90000, 0, FRAME_SCHEDULE_PART + 1},
    };
    struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        schedules_open(&n, 1);
        schedules_say_prepare(&n, &f);
        if (schedules_say_part(&n, &f, wrong[i].total, wrong[i].offset, wrong[i].length))
            fail_msg("part %zu was taken", i);
        xf_close(&n);
    }
    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    assert_true(schedules_say_part(&n, &f, f.length, 0, 10));
    assert_false(schedules_say_part(&n, &f, f.length + 1, 10, 10)); /* longer than it was */
    xf_close(&n);
    f.digest[0] = 'G';
    schedules_open(&n, 1);
    assert_false(schedules_say_part(&n, &f, f.length, 0, 10));
    xf_close(&n);
}

TEST(parts_that_nobody_waits_for_are_ignored)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

    schedules_open(&n, 1);
    assert_true(schedules_say_part(&n, &f, f.length, 0, f.length));
    assert_true(schedules_say_part(&n, &f, 0, 0, 0));
    assert_true(schedules_say_query(&n, f.digest, 0));
    schedules_hear_part(&n, &f, 0, 0, 0); /* it is not known here */
    assert_false(schedules_say_query(&n, "0123", 0));
    xf_close(&n);
}

/* The node asked for the schedule, and gave up; now it asks again from the beginning, and the answer to the first
 * request arrives before the new one. */
TEST(an_answer_to_an_older_question_is_ignored)
{
    const struct schedule_file f = schedule_file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, f.length, 0, part));
    schedules_hear_query(&n, &f, part);
    assert_true(
        xf_say_verdict(&n, SCHEDULES_PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    (void)xf_drain(&n);

    schedules_say_prepare_again(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, f.length, part, part));
    assert_int_equal(xf_hear(&n, SCHEDULES_PARENT), PEER_NOTHING);
    for (uint32_t at = 0; at < f.length; at += part) {
        uint32_t left = f.length - at;
        assert_true(schedules_say_part(&n, &f, f.length, at, left < part ? left : part));
        if (left > part)
            schedules_hear_query(&n, &f, at + part);
    }
    (void)xf_drain(&n);
    assert_true(schedules_say_query(&n, f.digest, part));
    schedules_hear_part(&n, &f, f.length, part, part);
    xf_close(&n);
}

static void fails_with(struct schedule_file *f, enum error_code code, const char *part)
{
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, f);
    schedules_hear_query(&n, f, 0);
    assert_true(schedules_say_query(&n, f->digest, f->length - 1));
    assert_true(schedules_say_part(&n, f, f->length, 0, f->length));
    schedules_hear_objection(&n, code, part);
    assert_int_equal(xf_state(&n), EXCHANGE_FAILING);
    assert_true(xf_say_verdict(&n, SCHEDULES_PARENT, XF_HANDLE, XF_ID, code, "no", 0));
    (void)xf_drain(&n);
    assert_true(schedules_say_query(&n, f->digest, 0)); /* it is not kept */
    schedules_hear_part(&n, f, 0, 0, 0);
    xf_close(&n);
}

TEST(wrong_schedules_are_refused)
{
    struct schedule_file damaged = schedule_file_for("3m", 1), other = schedule_file_for("3", 0),
                         wrong = schedule_file_for("3m", 0);

    damaged.text[damaged.length - 1] = '\t';
    fails_with(&damaged, ERROR_DAMAGED, NULL);
    fails_with(&other, ERROR_REFUSED, "3m");
    strstr(wrong.text, "\"dst\":1")[6] = '2'; /* 0 -> 1 becomes 0 -> 2 */
    schedule_file_name(&wrong);
    fails_with(&wrong, ERROR_REFUSED, "line 2: block 0 -> 2");
}

TEST(a_neighbour_that_falls_silent_is_named)
{
    const struct schedule_file f = schedule_file_for("3m", 50000);
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    xf_pass(&n, SCHEDULES_SILENCE_MOST - 1 * SECONDS);
    assert_true(schedules_say_part(&n, &f, f.length, 0, 1000));
    (void)xf_drain(&n);
    xf_pass(&n, SCHEDULES_SILENCE_MOST - 1 * SECONDS);
    assert_int_equal(xf_hear(&n, SCHEDULES_PARENT), PEER_NOTHING);
    xf_pass(&n, 2 * SECONDS);
    schedules_hear_objection(&n, ERROR_TIMEOUT, "node 0 has sent 1000");
    xf_close(&n);
}

/* After a link was down and is up again, the node asks again for the schedule when it is named again, even while an
 * earlier exchange still waits for its end; and it does not answer requests from before. */
TEST(a_link_that_was_lost_is_asked_again)
{
    const struct schedule_file f = schedule_file_for("5", 0);
    struct exchange_fixture n;

    xf_init(&n);
    xf_open(&n, "5", 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_query(&n, f.digest, 0));
    xf_link_up(&n, SCHEDULES_PARENT);
    xf_link_up(&n, SCHEDULES_CHILD);
    (void)xf_drain(&n);
    schedules_say_prepare_again(&n, &f);
    schedules_hear_query(&n, &f, 0);
    (void)xf_drain(&n);
    assert_true(schedules_say_part(&n, &f, f.length, 0, f.length));
    assert_int_equal(xf_hear(&n, SCHEDULES_CHILD), PEER_NOTHING);
    assert_true(schedules_say_query(&n, f.digest, 0));
    schedules_hear_part(&n, &f, f.length, 0, f.length);
    xf_close(&n);
}

TEST(a_neighbour_that_does_not_have_it_makes_it_busy)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, 0, 0, 0));
    schedules_hear_objection(&n, ERROR_BUSY, "node 0 ");
    xf_close(&n);
}

/* A neighbour that asks faster than it reads does not make answers pile up. */
TEST(answers_do_not_pile_up)
{
    struct schedule_file f = schedule_file_for("3m", 60000);
    struct exchange_fixture n;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, f.length, 0, 32768));
    (void)xf_drain(&n);
    for (int i = 0; i < 1000; i++)
        assert_true(schedules_say_query(&n, f.digest, 0));
    assert_in_range(xf_drain(&n), 200, 300);
    assert_true(schedules_say_query(&n, f.digest, 0));
    assert_int_equal(xf_hear(&n, SCHEDULES_CHILD), PEER_SCHEDULE_PART);
    xf_close(&n);
}
