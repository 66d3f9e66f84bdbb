/* The places for schedules at a node: their number, their users, and how they become free. */
#include "daemon/torusd/planning/schedule_store.h"
#include "schedules_fixture.h"
#include "tests/support/cmocka.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

/* A schedule that could not be fetched is accepted from a client. */
TEST(a_client_gives_what_could_not_be_fetched)
{
    const struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;
    struct schedules *all;
    struct schedule *s;
    const struct algorithm *a;
    uint32_t have = 0;
    struct error e;

    schedules_open(&n, 1);
    schedules_say_prepare(&n, &f);
    schedules_hear_query(&n, &f, 0);
    assert_true(schedules_say_part(&n, &f, 0, 0, 0));
    schedules_hear_objection(&n, ERROR_BUSY, "node 0 ");
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

TEST(there_is_room_for_so_many)
{
    struct schedule_file f = schedule_file_for("3m", 0);
    struct exchange_fixture n;

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
        assert_true(xf_say(&n, SCHEDULES_PARENT, &p.message));
        if (i < SCHEDULES_MOST)
            schedules_hear_query(&n, &f, 0);
        else
            schedules_hear_objection(&n, ERROR_BUSY, NULL);
    }
    xf_close(&n);
}

TEST(one_user_does_not_take_all_places)
{
    struct schedule *s[SCHEDULES_MOST];
    struct exchange_fixture n;
    struct error e;
    unsigned count = 0;

    schedules_open(&n, 0);
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

    schedules_open(&n, 0);
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

    schedules_open(&n, 0);
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    spec.schedule = "12";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_non_null(strstr(e.text, "\"12\""));
    spec.schedule = f.digest;
    spec.algorithm = "direct";
    assert_null(xf_start(&n, &spec, &seen, &e));
    assert_non_null(strstr(e.text, "one or the other"));
    xf_close(&n);
}
