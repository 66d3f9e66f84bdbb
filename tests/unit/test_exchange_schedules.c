/* Schedules that an exchange names: how a node fetches them from a neighbour and passes them on, and neighbours that
 * lie or fall silent. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "line_fixture.h"
#include "proto/sha256.h"
#include "tests/support/cmocka.h"

#define SCHEDULE_FILE_MOST 100000u

struct schedule_file {
    char text[SCHEDULE_FILE_MOST];
    uint32_t length;
    char digest[SHA256_TEXT_SIZE];
};

#define TEXT(text) ((char *)(uintptr_t)(text))

/* Sets the name of a file from the digest of its present text. */
static void schedule_file_name(struct schedule_file *f)
{
    sha256_text(f->text, f->length, f->digest);
}

/* The routes of "direct" on a torus, followed by that many spaces. */
static struct schedule_file schedule_file_for(const char *dims, uint32_t spaces)
{
    struct schedule_file f = {.length = 0};
    struct torus t;
    FILE *out = fmemopen(f.text, sizeof f.text, "w");

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    assert_int_equal(schedule_export(out, &t, algorithm_find("direct"), false, NULL), 0);
    f.length = (uint32_t)ftell(out);
    assert_int_equal(fclose(out), 0);
    memset(f.text + f.length, ' ', spaces);
    f.length += spaces;
    schedule_file_name(&f);
    return f;
}

/* The parent prepares an exchange of this number with a schedule. */
static void say_prepare(struct exchange_fixture *n, const struct schedule_file *f, uint32_t number)
{
    char id[EXCHANGE_ID_SIZE];
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    (void)snprintf(id, sizeof id, "0-0000004d-%u", number);
    p.message.prepare.id = id;
    p.message.prepare.exchange = XF_HANDLE + 3 * (number - 8);
    p.spec.algorithm = TEXT("");
    p.spec.schedule = TEXT(f->digest);
    assert_true(xf_say(n, PARENT, &p.message));
}

/* Node 2 hears of it. */
static void schedules_say_prepare(struct exchange_fixture *n, const struct schedule_file *f)
{
    say_prepare(n, f, 8);
    assert_int_equal(xf_hear(n, CHILD), PEER_PREPARE);
}

/* The child asks for the part that begins at `begin`. Returns whether its link is still up. */
static bool schedules_say_query(struct exchange_fixture *n, const char *digest, uint32_t offset)
{
    return XF_SAY(n, CHILD, PEER_SCHEDULE_QUERY, schedule_query, TEXT(digest), offset);
}

/* The parent sends `length` bytes of a file of `total` bytes. Returns whether its link is still up. */
static bool schedules_say_part(struct exchange_fixture *n, const struct schedule_file *f,
                               uint32_t total, uint32_t offset, size_t length)
{
    return XF_SAY(n, PARENT, PEER_SCHEDULE_PART, schedule_part, .digest = TEXT(f->digest),
                  .total = total, .offset = offset,
                  .part = {(const uint8_t *)f->text + offset, length});
}

/* These fail the test unless the next message is this one. The node asks its parent for the part from `begin` on; */
static void schedules_hear_query(struct exchange_fixture *n, const struct schedule_file *f,
                                 uint32_t offset)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_SCHEDULE_QUERY);
    assert_string_equal(head->schedule_query.digest, f->digest);
    assert_int_equal(head->schedule_query.offset, offset);
    message_forget(head);
}

/* gives its child `length` bytes from there on, of a file of `total` bytes; */
static void schedules_hear_part(struct exchange_fixture *n, const struct schedule_file *f,
                                uint32_t total, uint32_t offset, size_t length)
{
    struct peer_message *head = xf_next(n, CHILD);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_SCHEDULE_PART);
    assert_string_equal(head->schedule_part.digest, f->digest);
    assert_int_equal(head->schedule_part.total, total);
    assert_int_equal(head->schedule_part.offset, offset);
    assert_int_equal(head->schedule_part.part.len, length);
    if (length > 0)
        assert_memory_equal(head->schedule_part.part.data, f->text + offset, length);
    message_forget(head);
}

static void becomes_ready(struct exchange_fixture *n)
{
    assert_true(xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE));
    assert_int_equal(xf_hear(n, PARENT), PEER_READY);
}

LINE_TEST(a_schedule_is_fetched_part_by_part_and_passed_on)
{
    const struct schedule_file f = schedule_file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(
        schedules_say_query(n, f.digest, 0)); /* nothing is here yet: the answer comes later */
    assert_int_equal(xf_hear(n, CHILD), PEER_NOTHING);
    assert_true(schedules_say_part(n, &f, f.length, 0, part));
    schedules_hear_query(n, &f, part);
    schedules_hear_part(n, &f, f.length, 0, part);
    assert_true(schedules_say_part(n, &f, f.length, 0, part)); /* it is here already */
    assert_int_equal(xf_hear(n, PARENT), PEER_NOTHING);
    assert_true(schedules_say_query(n, f.digest, part));
    assert_true(schedules_say_part(n, &f, f.length, part, part));
    schedules_hear_query(n, &f, 2 * part);
    schedules_hear_part(n, &f, f.length, part, part);
    assert_true(schedules_say_part(n, &f, f.length, 2 * part, f.length - 2 * part));
    assert_true(schedules_say_query(n, f.digest, 2 * part));
    schedules_hear_part(n, &f, f.length, 2 * part, f.length - 2 * part);
    becomes_ready(n);
    assert_memory_equal(xf_info(n).algorithm, "direct@", 7);
}

LINE_TEST(a_known_schedule_is_not_fetched_again)
{
    const struct schedule_file f = schedule_file_for("3m", 0);

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, f.length, 0, f.length));
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(n), EXCHANGE_FAILED);
    (void)xf_drain(n);

    say_prepare(n, &f, 9);
    assert_int_equal(xf_hear(n, CHILD), PEER_PREPARE);
    assert_true(xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE + 3));
    assert_int_equal(xf_hear(n, PARENT), PEER_READY);
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
        line_open(&n, 1);
        schedules_say_prepare(&n, &f);
        if (schedules_say_part(&n, &f, wrong[i].total, wrong[i].offset, wrong[i].length))
            fail_msg("part %zu was taken", i);
        xf_close(&n);
    }
    line_open(&n, 1);
    schedules_say_prepare(&n, &f);
    assert_true(schedules_say_part(&n, &f, f.length, 0, 10));
    assert_false(schedules_say_part(&n, &f, f.length + 1, 10, 10)); /* longer than it was */
    xf_close(&n);
    f.digest[0] = 'G';
    line_open(&n, 1);
    assert_false(schedules_say_part(&n, &f, f.length, 0, 10));
    xf_close(&n);
}

LINE_TEST(parts_that_nobody_waits_for_are_ignored)
{
    const struct schedule_file f = schedule_file_for("3m", 0);

    assert_true(schedules_say_part(n, &f, f.length, 0, f.length));
    assert_true(schedules_say_part(n, &f, 0, 0, 0));
    assert_true(schedules_say_query(n, f.digest, 0));
    schedules_hear_part(n, &f, 0, 0, 0); /* it is not known here */
    assert_false(schedules_say_query(n, "0123", 0));
}

/* The node asked for the schedule, and gave up; now it asks again from the beginning, and the answer to the first
 * request arrives before the new one. */
LINE_TEST(an_answer_to_an_older_question_is_ignored)
{
    const struct schedule_file f = schedule_file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, f.length, 0, part));
    schedules_hear_query(n, &f, part);
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(n), EXCHANGE_FAILED);
    (void)xf_drain(n);

    say_prepare(n, &f, 9);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, f.length, part, part));
    assert_int_equal(xf_hear(n, PARENT), PEER_NOTHING);
    for (uint32_t at = 0; at < f.length; at += part) {
        uint32_t left = f.length - at;
        assert_true(schedules_say_part(n, &f, f.length, at, left < part ? left : part));
        if (left > part)
            schedules_hear_query(n, &f, at + part);
    }
    (void)xf_drain(n);
    assert_true(schedules_say_query(n, f.digest, part));
    schedules_hear_part(n, &f, f.length, part, part);
}

static void fails_with(struct schedule_file *f, enum error_code code, const char *part)
{
    struct exchange_fixture n;

    line_open(&n, 1);
    schedules_say_prepare(&n, f);
    schedules_hear_query(&n, f, 0);
    assert_true(schedules_say_query(&n, f->digest, f->length - 1));
    assert_true(schedules_say_part(&n, f, f->length, 0, f->length));
    line_hears_nack(&n, code, 1, part);
    assert_int_equal(xf_state(&n), EXCHANGE_FAILING);
    assert_true(xf_say_abort(&n, PARENT, XF_HANDLE, XF_ID, code, "no", 0));
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

LINE_TEST(a_neighbour_that_falls_silent_is_named)
{
    const struct schedule_file f = schedule_file_for("3m", 50000);

    schedules_say_prepare(n, &f);
    xf_pass(n, SCHEDULES_SILENCE_MOST - 1 * SECONDS);
    assert_true(schedules_say_part(n, &f, f.length, 0, 1000));
    (void)xf_drain(n);
    xf_pass(n, SCHEDULES_SILENCE_MOST - 1 * SECONDS);
    assert_int_equal(xf_hear(n, PARENT), PEER_NOTHING);
    xf_pass(n, 2 * SECONDS);
    line_hears_nack(n, ERROR_TIMEOUT, 1, "node 0 has sent 1000");
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
    xf_link_up(&n, PARENT);
    xf_link_up(&n, CHILD);
    (void)xf_drain(&n);
    say_prepare(&n, &f, 9);
    schedules_hear_query(&n, &f, 0);
    (void)xf_drain(&n);
    assert_true(schedules_say_part(&n, &f, f.length, 0, f.length));
    assert_int_equal(xf_hear(&n, CHILD), PEER_NOTHING);
    assert_true(schedules_say_query(&n, f.digest, 0));
    schedules_hear_part(&n, &f, f.length, 0, f.length);
    xf_close(&n);
}

LINE_TEST(a_neighbour_that_does_not_have_it_makes_it_busy)
{
    const struct schedule_file f = schedule_file_for("3m", 0);

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, 0, 0, 0));
    line_hears_nack(n, ERROR_BUSY, 1, "node 0 ");
}

/* A neighbour that asks faster than it reads does not make answers pile up. */
LINE_TEST(answers_do_not_pile_up)
{
    struct schedule_file f = schedule_file_for("3m", 60000);

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, f.length, 0, 32768));
    (void)xf_drain(n);
    for (int i = 0; i < 1000; i++)
        assert_true(schedules_say_query(n, f.digest, 0));
    assert_in_range(xf_drain(n), 200, 300);
    assert_true(schedules_say_query(n, f.digest, 0));
    assert_int_equal(xf_hear(n, CHILD), PEER_SCHEDULE_PART);
}

/* The places for schedules at a node: their number, their users, and how they become free. */

/* A schedule that could not be fetched is accepted from a client. */
LINE_TEST(a_client_gives_what_could_not_be_fetched)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct schedules *all;
    struct schedule *s;
    const struct algorithm *a;
    uint32_t have = 0;
    struct error e;

    schedules_say_prepare(n, &f);
    schedules_hear_query(n, &f, 0);
    assert_true(schedules_say_part(n, &f, 0, 0, 0));
    line_hears_nack(n, ERROR_BUSY, 1, "node 0 ");
    all = exchanges_schedules(core_exchanges(n->core)); /* the exchange has not ended */
    s = schedules_join(all, f.digest, 0, &e);
    assert_non_null(s);
    assert_false(schedule_is_complete(s));
    assert_int_equal(
        schedule_give(all, s, f.length, 0, (const uint8_t *)f.text, f.length / 2, &have, &e), 0);
    assert_int_equal(have, f.length / 2);
    assert_int_equal(schedule_give(all, s, f.length, have, (const uint8_t *)f.text + have,
                                   f.length - have, &have, &e),
                     0);
    assert_int_equal(have, f.length);
    assert_true(schedule_ready(s, &a, &e) >= 0);
    schedules_leave(all, s);
}

TEST(there_is_room_for_so_many)
{
    struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

    xf_init(&n);
    xf_open(&n, "40m", 38);
    for (unsigned i = 0; i <= SCHEDULES_MOST; i++) {
        struct xf_prepare p;
        char id[EXCHANGE_ID_SIZE];
        uint32_t root = i / 16; /* one has places for this many */
        (void)snprintf(id, sizeof id, "%u-0000004d-%u", root, i + 1);
        (void)snprintf(f.digest, sizeof f.digest, "%064u", i);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        p.message.prepare.id = id;
        p.message.prepare.root = root;
        p.message.prepare.user = 1000 + i;
        p.message.prepare.exchange = 40 * i + root;
        p.spec.algorithm = TEXT("");
        p.spec.schedule = TEXT(f.digest);
        assert_true(xf_say(&n, PARENT, &p.message));
        if (i < SCHEDULES_MOST)
            schedules_hear_query(&n, &f, 0);
        else
            line_hears_nack(&n, ERROR_BUSY, 38, NULL);
    }
    xf_close(&n);
}

TEST(one_user_does_not_take_all_places)
{
    struct schedule *s[SCHEDULES_MOST];
    struct exchange_fixture n;
    struct error e;
    unsigned count = 0;

    line_open(&n, 0);
    struct schedules *all = exchanges_schedules(core_exchanges(n.core));
    for (;; count++) {
        struct schedule_file f = {.length = 0};
        (void)snprintf(f.digest, sizeof f.digest, "%064u", count);
        s[count] = schedules_join(all, f.digest, 1000, &e);
        if (s[count] == NULL)
            break;
    }
    assert_int_equal(count, SCHEDULES_MOST / 2);
    assert_int_equal(e.code, ERROR_BUSY);
    s[count] = schedules_join(all, schedule_file_for("3m", 0).digest, 1001, &e);
    assert_non_null(s[count]);
    for (unsigned i = 0; i <= count; i++)
        schedules_leave(all, s[i]);
    s[0] = schedules_join(all, schedule_file_for("3m", 0).digest, 1000, &e);
    assert_non_null(s[0]);
    schedules_leave(all, s[0]);
    xf_close(&n);
}

/* Unused schedules make room; the one that was unused for the longest time goes first. */
TEST(unused_schedules_make_room)
{
    struct exchange_fixture n;
    struct error e;

    line_open(&n, 0);
    struct schedules *all = exchanges_schedules(core_exchanges(n.core));
    for (uint32_t i = 0; i <= SCHEDULES_MOST; i++) {
        struct schedule_file f = schedule_file_for("3m", i);
        uint32_t have;
        struct schedule *s = schedules_join(all, f.digest, 0, &e);
        assert_non_null(s);
        assert_int_equal(
            schedule_give(all, s, f.length, 0, (const uint8_t *)f.text, f.length, &have, &e), 0);
        assert_int_equal(have, f.length);
        xf_settle(&n);
        schedules_leave(all, s);
    }
    assert_true(schedules_bytes(all) <= SCHEDULES_BYTES_MOST);
    for (uint32_t i = 0; i <= SCHEDULES_MOST; i++) {
        struct schedule_file f = schedule_file_for("3m", SCHEDULES_MOST - i);
        struct schedule *s = schedules_join(all, f.digest, 0, &e);
        assert_int_equal(schedule_is_complete(s), i < SCHEDULES_MOST);
        schedules_leave(all, s);
    }
    xf_close(&n);
}

TEST(a_root_runs_only_what_it_was_given)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct spec spec = {.algorithm = "", .from = "", .to = "", .schedule = f.digest};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct error e;

    line_open(&n, 0);
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    spec.schedule = "12";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_contains(e.text, "\"12\"");
    spec.schedule = f.digest;
    spec.algorithm = "direct";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_contains(e.text, "one or the other");
    xf_close(&n);
}
