/* Schedules that an exchange names: how a node fetches them from a neighbour and passes them on, and
 * what neighbours that lie or fall silent come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/planning/schedule_store.h"
#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/file/export.h"
#include "exchange_fixture.h"
#include "proto/sha256.h"

enum { PARENT = 1, CHILD = 0 }; /* ports of node 1 to nodes 0 and 2 */

#define TEXT(text) ((char *)(uintptr_t)(text))
#define MOST 100000u

struct file {
    char text[MOST];
    uint32_t length;
    char digest[SHA256_TEXT_SIZE];
};

static void name_file(struct file *f)
{
    sha256_text(f->text, f->length, f->digest);
}

/* The routes of "direct", with so many spaces behind them. */
static struct file file_for(const char *dims, uint32_t spaces)
{
    struct file f = {.length = 0};
    struct torus t;
    FILE *out = fmemopen(f.text, sizeof f.text, "w");

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    assert_int_equal(schedule_export(out, &t, algorithm_find("direct"), false, NULL), 0);
    f.length = (uint32_t)ftell(out);
    assert_int_equal(fclose(out), 0);
    memset(f.text + f.length, ' ', spaces);
    f.length += spaces;
    name_file(&f);
    return f;
}

static void open_node(struct exchange_fixture *n, uint32_t rank)
{
    xf_init(n);
    xf_open(n, "3m", rank);
}

static void say_prepare(struct exchange_fixture *n, const struct file *f)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.spec.algorithm = TEXT("");
    p.spec.schedule = TEXT(f->digest);
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(xf_hear(n, CHILD), PEER_PREPARE);
}

/* Another exchange, with the same schedule. */
static void say_prepare_again(struct exchange_fixture *n, const struct file *f)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.message.prepare.id = TEXT("0-0000004d-9");
    p.message.prepare.exchange = XF_HANDLE + 3;
    p.spec.algorithm = TEXT("");
    p.spec.schedule = TEXT(f->digest);
    assert_true(xf_say(n, PARENT, &p.message));
}

static bool say_query(struct exchange_fixture *n, const char *digest, uint32_t offset)
{
    struct peer_schedule_query query = {0};

    query.digest = TEXT(digest);
    query.offset = offset;
    const struct peer_message head = {.kind = PEER_SCHEDULE_QUERY, .schedule_query = query};
    return xf_say(n, CHILD, &head);
}

static bool say_part(struct exchange_fixture *n, const struct file *f, uint32_t total,
                     uint32_t offset, size_t length)
{
    struct peer_schedule_part part = {0};

    part.digest = TEXT(f->digest);
    part.total = total;
    part.offset = offset;
    part.part.data = (uint8_t *)TEXT(f->text) + offset;
    part.part.len = length;
    const struct peer_message head = {.kind = PEER_SCHEDULE_PART, .schedule_part = part};
    return xf_say(n, PARENT, &head);
}

/* It asks its parent for what begins there. */
static void hears_query(struct exchange_fixture *n, const struct file *f, uint32_t offset)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_SCHEDULE_QUERY);
    assert_string_equal(head->schedule_query.digest, f->digest);
    assert_int_equal(head->schedule_query.offset, offset);
    message_forget(head);
}

/* It gives its child so much from there on, of so much. */
static void hears_part(struct exchange_fixture *n, const struct file *f, uint32_t total,
                       uint32_t offset, size_t length)
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

static void hears_objection(struct exchange_fixture *n, enum error_code code, const char *reason)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_OBJECTION);
    if (head->objection.code != code || strstr(head->objection.reason, reason) == NULL)
        fail_msg("%u: \"%s\" instead of %d: \"%s\"", head->objection.code, head->objection.reason,
                 (int)code, reason);
    message_forget(head);
}

static void becomes_ready(struct exchange_fixture *n)
{
    assert_true(xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE));
    assert_int_equal(xf_hear(n, PARENT), PEER_READY);
}

static void a_schedule_is_fetched_part_by_part_and_passed_on(void **state)
{
    const struct file f = file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_query(&n, f.digest, 0)); /* nothing is here yet: the answer comes later */
    assert_int_equal(xf_hear(&n, CHILD), PEER_NOTHING);
    assert_true(say_part(&n, &f, f.length, 0, part));
    hears_query(&n, &f, part);
    hears_part(&n, &f, f.length, 0, part);
    assert_true(say_part(&n, &f, f.length, 0, part)); /* it is here already */
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    assert_true(say_query(&n, f.digest, part));
    assert_true(say_part(&n, &f, f.length, part, part));
    hears_query(&n, &f, 2 * part);
    hears_part(&n, &f, f.length, part, part);
    assert_true(say_part(&n, &f, f.length, 2 * part, f.length - 2 * part));
    assert_true(say_query(&n, f.digest, 2 * part));
    hears_part(&n, &f, f.length, 2 * part, f.length - 2 * part);
    becomes_ready(&n);
    assert_memory_equal(xf_info(&n).algorithm, "direct@", 7);
    xf_close(&n);
}

static void what_is_known_is_not_fetched_again(void **state)
{
    const struct file f = file_for("3m", 0);
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, f.length, 0, f.length));
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    (void)xf_drain(&n);

    say_prepare_again(&n, &f);
    assert_int_equal(xf_hear(&n, CHILD), PEER_PREPARE);
    assert_true(xf_say_handle(&n, CHILD, PEER_READY, XF_HANDLE + 3));
    assert_int_equal(xf_hear(&n, PARENT), PEER_READY);
    xf_close(&n);
}

static void parts_that_cannot_be_close_the_link(void **state)
{
    static const struct {
        uint32_t total, offset;
        size_t length;
    } wrong[] = {
        {IMPORTED_BYTES_MOST + 1, 0, 100},   {500, 0, 501}, {500, 501, 1}, {UINT32_MAX, 0, 100},
        {90000, 0, FRAME_SCHEDULE_PART + 1},
    };
    struct file f = file_for("3m", 0);
    struct exchange_fixture n;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        open_node(&n, 1);
        say_prepare(&n, &f);
        if (say_part(&n, &f, wrong[i].total, wrong[i].offset, wrong[i].length))
            fail_msg("part %zu was taken", i);
        xf_close(&n);
    }
    open_node(&n, 1);
    say_prepare(&n, &f);
    assert_true(say_part(&n, &f, f.length, 0, 10));
    assert_false(say_part(&n, &f, f.length + 1, 10, 10)); /* longer than it was */
    xf_close(&n);
    f.digest[0] = 'G';
    open_node(&n, 1);
    assert_false(say_part(&n, &f, f.length, 0, 10));
    xf_close(&n);
}

static void parts_that_nobody_waits_for_are_ignored(void **state)
{
    const struct file f = file_for("3m", 0);
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    assert_true(say_part(&n, &f, f.length, 0, f.length));
    assert_true(say_part(&n, &f, 0, 0, 0));
    assert_true(say_query(&n, f.digest, 0));
    hears_part(&n, &f, 0, 0, 0); /* it is not known here */
    assert_false(say_query(&n, "0123", 0));
    xf_close(&n);
}

/* It was asked for, and given up; now it is asked for again from its beginning on, and the answer to what was
 * asked first comes before the new one. */
static void an_answer_to_an_older_question_is_ignored(void **state)
{
    const struct file f = file_for("3m", 70000);
    const uint32_t part = FRAME_SCHEDULE_PART;
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, f.length, 0, part));
    hears_query(&n, &f, part);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_CANCELLED, "cancelled", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    (void)xf_drain(&n);

    say_prepare_again(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, f.length, part, part));
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    for (uint32_t at = 0; at < f.length; at += part) {
        uint32_t left = f.length - at;
        assert_true(say_part(&n, &f, f.length, at, left < part ? left : part));
        if (left > part)
            hears_query(&n, &f, at + part);
    }
    (void)xf_drain(&n);
    assert_true(say_query(&n, f.digest, part));
    hears_part(&n, &f, f.length, part, part);
    xf_close(&n);
}

static void fails_with(struct file *f, enum error_code code, const char *reason)
{
    struct exchange_fixture n;

    open_node(&n, 1);
    say_prepare(&n, f);
    hears_query(&n, f, 0);
    assert_true(say_query(&n, f->digest, f->length - 1));
    assert_true(say_part(&n, f, f->length, 0, f->length));
    hears_objection(&n, code, reason);
    assert_int_equal(xf_state(&n), EXCHANGE_FAILING);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, code, reason, 0));
    (void)xf_drain(&n);
    assert_true(say_query(&n, f->digest, 0)); /* it is not kept */
    hears_part(&n, f, 0, 0, 0);
    xf_close(&n);
}

static void what_is_not_what_it_should_be_is_refused(void **state)
{
    struct file damaged = file_for("3m", 1), other = file_for("3", 0), wrong = file_for("3m", 0);

    (void)state;
    damaged.text[damaged.length - 1] = '\t';
    fails_with(&damaged, ERROR_DAMAGED, "has another digest");
    fails_with(&other, ERROR_REFUSED, "is for a torus of 3, not 3m");
    strstr(wrong.text, "\"dst\":1")[6] = '2'; /* 0 -> 1 becomes 0 -> 2 */
    name_file(&wrong);
    fails_with(&wrong, ERROR_REFUSED,
               "line 2: block 0 -> 2, segment 0: it ends at node 1 in step 0");
}

static void a_neighbour_that_falls_silent_is_named(void **state)
{
    const struct file f = file_for("3m", 50000);
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    xf_pass(&n, SCHEDULES_PATIENCE - 1 * SECONDS);
    assert_true(say_part(&n, &f, f.length, 0, 1000));
    (void)xf_drain(&n);
    xf_pass(&n, SCHEDULES_PATIENCE - 1 * SECONDS);
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_pass(&n, 2 * SECONDS);
    hears_objection(&n, ERROR_TIMEOUT, "node 0 has sent 1000 of");
    xf_close(&n);
}

/* What was asked for over a link that is up again is asked for once more when it is named again, also while
 * an exchange from before still waits for its end; and nothing is answered that was asked before. */
static void a_link_that_was_lost_is_asked_again(void **state)
{
    const struct file f = file_for("5", 0);
    struct exchange_fixture n;

    (void)state;
    xf_init(&n);
    xf_open(&n, "5", 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_query(&n, f.digest, 0));
    xf_link_up(&n, PARENT);
    xf_link_up(&n, CHILD);
    (void)xf_drain(&n);
    say_prepare_again(&n, &f);
    hears_query(&n, &f, 0);
    (void)xf_drain(&n);
    assert_true(say_part(&n, &f, f.length, 0, f.length));
    assert_int_equal(xf_hear(&n, CHILD), PEER_NOTHING);
    assert_true(say_query(&n, f.digest, 0));
    hears_part(&n, &f, f.length, 0, f.length);
    xf_close(&n);
}

static void a_neighbour_that_does_not_have_it_makes_it_busy(void **state)
{
    const struct file f = file_for("3m", 0);
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, 0, 0, 0));
    hears_objection(&n, ERROR_BUSY, "node 0 does not have schedule");
    xf_close(&n);
}

/* What could not be fetched is taken from a client as if it had never been asked for. */
static void a_client_gives_what_could_not_be_fetched(void **state)
{
    const struct file f = file_for("3m", 0);
    struct exchange_fixture n;
    struct schedules *all;
    struct schedule *s;
    const struct algorithm *a;
    uint32_t have = 0;
    struct error e;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, 0, 0, 0));
    hears_objection(&n, ERROR_BUSY, "node 0 does not have schedule");
    all = exchanges_schedules(core_exchanges(n.core)); /* the exchange has not ended */
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
    xf_close(&n);
}

/* Who asks faster than he reads does not make the answers pile up. */
static void answers_do_not_pile_up(void **state)
{
    struct file f = file_for("3m", 60000);
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1);
    say_prepare(&n, &f);
    hears_query(&n, &f, 0);
    assert_true(say_part(&n, &f, f.length, 0, 32768));
    (void)xf_drain(&n);
    for (int i = 0; i < 1000; i++)
        assert_true(say_query(&n, f.digest, 0));
    assert_in_range(xf_drain(&n), 200, 300);
    assert_true(say_query(&n, f.digest, 0));
    assert_int_equal(xf_hear(&n, CHILD), PEER_SCHEDULE_PART);
    xf_close(&n);
}

static void there_is_room_for_so_many(void **state)
{
    struct file f = file_for("3m", 0);
    struct exchange_fixture n;

    (void)state;
    xf_init(&n);
    xf_open(&n, "40m", 38);
    for (unsigned i = 0; i <= SCHEDULES_MOST; i++) {
        struct xf_prepare p;
        char id[EXCHANGE_ID_SIZE];
        uint32_t root = i / 16; /* one has places for so many */
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
            hears_query(&n, &f, 0);
        else
            hears_objection(&n, ERROR_BUSY, "64 of 64 places for schedules are taken");
    }
    xf_close(&n);
}

static void one_user_does_not_take_all_places(void **state)
{
    struct schedule *s[SCHEDULES_MOST];
    struct exchange_fixture n;
    struct error e;
    unsigned count = 0;

    (void)state;
    open_node(&n, 0);
    struct schedules *all = exchanges_schedules(core_exchanges(n.core));
    for (;; count++) {
        struct file f = {.length = 0};
        (void)snprintf(f.digest, sizeof f.digest, "%064u", count);
        s[count] = schedules_join(all, f.digest, 1000, &e);
        if (s[count] == NULL)
            break;
    }
    assert_int_equal(count, SCHEDULES_MOST / 2);
    assert_int_equal(e.code, ERROR_BUSY);
    assert_non_null(strstr(e.text, "user 1000 has 32 of 64 places for schedules"));
    s[count] = schedules_join(all, file_for("3m", 0).digest, 1001, &e);
    assert_non_null(s[count]);
    for (unsigned i = 0; i <= count; i++)
        schedules_leave(all, s[i]);
    s[0] = schedules_join(all, file_for("3m", 0).digest, 1000, &e);
    assert_non_null(s[0]);
    schedules_leave(all, s[0]);
    xf_close(&n);
}

/* Those that nobody uses make room: the one that was not used for longest goes first. */
static void what_is_not_used_makes_room(void **state)
{
    struct exchange_fixture n;
    struct error e;

    (void)state;
    open_node(&n, 0);
    struct schedules *all = exchanges_schedules(core_exchanges(n.core));
    for (uint32_t i = 0; i <= SCHEDULES_MOST; i++) {
        struct file f = file_for("3m", i);
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
        struct file f = file_for("3m", SCHEDULES_MOST - i);
        struct schedule *s = schedules_join(all, f.digest, 0, &e);
        assert_int_equal(schedule_is_complete(s), i < SCHEDULES_MOST);
        schedules_leave(all, s);
    }
    xf_close(&n);
}

static void a_root_runs_only_what_it_was_given(void **state)
{
    const struct file f = file_for("3m", 0);
    struct spec spec = {.algorithm = "", .from = "", .to = "", .schedule = f.digest};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct error e;

    (void)state;
    open_node(&n, 0);
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    assert_non_null(strstr(e.text, "has not been given to this node"));
    spec.schedule = "12";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_non_null(strstr(e.text, "\"12\" is not the digest of a schedule"));
    spec.schedule = f.digest;
    spec.algorithm = "direct";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_non_null(strstr(e.text, "give one or the other"));
    xf_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_is_fetched_part_by_part_and_passed_on),
        cmocka_unit_test(what_is_known_is_not_fetched_again),
        cmocka_unit_test(parts_that_cannot_be_close_the_link),
        cmocka_unit_test(parts_that_nobody_waits_for_are_ignored),
        cmocka_unit_test(an_answer_to_an_older_question_is_ignored),
        cmocka_unit_test(what_is_not_what_it_should_be_is_refused),
        cmocka_unit_test(a_neighbour_that_falls_silent_is_named),
        cmocka_unit_test(a_link_that_was_lost_is_asked_again),
        cmocka_unit_test(a_neighbour_that_does_not_have_it_makes_it_busy),
        cmocka_unit_test(a_client_gives_what_could_not_be_fetched),
        cmocka_unit_test(answers_do_not_pile_up),
        cmocka_unit_test(there_is_room_for_so_many),
        cmocka_unit_test(one_user_does_not_take_all_places),
        cmocka_unit_test(what_is_not_used_makes_room),
        cmocka_unit_test(a_root_runs_only_what_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
