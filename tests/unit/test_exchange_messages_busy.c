/* Requests for which there is no room now, and the root's reaction. */
#include "line_fixture.h"
#include "tests/support/cmocka.h"

static bool prepare_another(struct exchange_fixture *n, uint32_t i, uint64_t block_bytes)
{
    return line_prepare(n, PARENT, 0, i, block_bytes);
}

TEST(a_prepare_without_room_is_busy)
{
    struct exchange_fixture n;
    uint32_t i = 0;

    line_open(&n, 1); /* memory */
    do
        assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    while (xf_hear(&n, PARENT) == PEER_NOTHING && i < 20);
    assert_in_range(i, 2, 9);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    line_hears_objection(&n, ERROR_BUSY, 1, NULL);
    assert_true(xf_say_verdict(&n, PARENT, 3, "0-0000004d-1", ERROR_CANCELLED, "over", 0));
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8)); /* there is room again */
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_close(&n);

    line_open(&n, 1); /* number */
    for (i = 0; i < 16; i++)
        assert_true(prepare_another(&n, 1 + i, 0));
    assert_int_equal(line_known(&n), 16);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, 1 + i, 0));
    line_hears_objection(&n, ERROR_BUSY, 1, "node 0");
    assert_int_equal(line_known(&n), 16);
    assert_true(line_prepare(&n, CHILD, 2, 1, 0)); /* one root leaves places for others */
    assert_int_equal(line_known(&n), 17);
    xf_close(&n);
}

/* All roots together have a number of places, and each root gets at least one. */
TEST(each_root_has_a_place)
{
    static const struct spec own = {
        .algorithm = "direct", .mode = MODE_STEPPED, .from = "", .to = ""};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    uint32_t prepared = 0;
    struct error e;

    xf_init(&n);
    xf_open(&n, "40m", 1);
    for (uint32_t root = 2; root < 2 + 256 / 16; root++)
        for (uint32_t i = 1; i <= 16; i++, prepared++)
            assert_true(line_prepare(&n, CHILD, root, i, 0));
    assert_int_equal(line_known(&n), prepared);
    for (uint32_t root = 30; root < 40; root++) {
        assert_true(line_prepare(&n, CHILD, root, 1, 0));
        assert_int_equal(line_known(&n), ++prepared);
        assert_true(line_prepare(&n, CHILD, root, 2, 0));
        assert_int_equal(line_known(&n), prepared);
    }
    (void)xf_drain(&n);
    for (unsigned i = 0; i < 2; i++) { /* and so has this node */
        struct exchange_progress progress;
        struct job *x = xf_start(&n, &own, &seen, &e);
        assert_non_null(x);
        xf_settle(&n);
        exchange_progress(x, &progress);
        assert_int_equal(progress.state, i == 0 ? EXCHANGE_PREPARING : EXCHANGE_WAITING);
    }
    xf_close(&n);
}

/* However much one root prepares without going on, it leaves a share. */
TEST(one_root_does_not_take_all_memory)
{
    struct exchange_fixture n;
    uint32_t i = 0;

    line_open(&n, 1);
    do
        assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    while (xf_hear(&n, PARENT) == PEER_NOTHING && i < 16);
    assert_in_range(i, 3, 15);
    assert_in_range(exchanges_reserved(core_exchanges(n.core)), EXCHANGE_FIXTURE_BUDGET / 2,
                    EXCHANGE_FIXTURE_BUDGET / 4 * 3);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    line_hears_objection(&n, ERROR_BUSY, 1, "node 0");
    assert_true(line_prepare(&n, CHILD, 2, 1, EXCHANGE_FIXTURE_BUDGET / 16));
    assert_int_equal(xf_state_of(&n, "2-0000004d-1"), EXCHANGE_PREPARING);
    xf_close(&n);
}

/* However many nodes one user asks, memory is left for others. */
TEST(one_user_does_not_take_all_memory)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    char id[EXCHANGE_ID_SIZE];
    uint32_t i = 0;

    line_open(&n, 1);
    do {
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        p.message.prepare.root = i % 2 == 0 ? 0 : 2;
        (void)snprintf(id, sizeof id, "%u-0000004d-%u", p.message.prepare.root, ++i);
        p.message.prepare.id = id;
        p.message.prepare.user = 1000;
        p.message.prepare.exchange = n.f.torus.nodes * i + p.message.prepare.root;
        p.spec.block_bytes = p.message.prepare.round_bytes = EXCHANGE_FIXTURE_BUDGET / 32;
        assert_true(xf_say(&n, p.message.prepare.root == 0 ? PARENT : CHILD, &p.message));
    } while (xf_state_of(&n, id) == EXCHANGE_PREPARING || xf_state_of(&n, id) == EXCHANGE_READY);
    assert_in_range(i, 4, 31);
    assert_in_range(exchanges_reserved(core_exchanges(n.core)), EXCHANGE_FIXTURE_BUDGET / 2,
                    EXCHANGE_FIXTURE_BUDGET / 4 * 3);
    (void)xf_drain(&n);
    assert_true(
        line_prepare(&n, CHILD, 2, ++i, EXCHANGE_FIXTURE_BUDGET / 32)); /* of another user */
    (void)snprintf(id, sizeof id, "2-0000004d-%u", i);
    assert_int_equal(xf_state_of(&n, id), EXCHANGE_PREPARING);
    xf_close(&n);
}

/* An exchange that waits for slow disks takes a place, even when it is over. */
TEST(an_exchange_that_is_still_closing_has_a_place)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    unsigned i;

    line_open(&n, 1);
    n.closes_at_once = false;
    for (i = 1; i <= 16; i++) {
        char id[EXCHANGE_ID_SIZE];
        xf_prepare_init(&p, &n);
        (void)snprintf(id, sizeof id, "0-0000004d-%u", i);
        p.message.prepare.id = id;
        p.message.prepare.exchange = 3 * i;
        assert_true(xf_say(&n, PARENT, &p.message));
        assert_true(xf_say_verdict(&n, PARENT, 3 * i, id, ERROR_CANCELLED, "over", 0));
        assert_int_equal(xf_state_of(&n, id), EXCHANGE_FAILED);
        (void)xf_drain(&n);
    }
    assert_true(prepare_another(&n, i, 0));
    line_hears_objection(&n, ERROR_BUSY, 1, "node 0");
    n.closes_at_once = true;
    xf_closed(&n);
    xf_settle(&n);
    assert_true(prepare_another(&n, i + 1, 0));
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_close(&n);
}

TEST(the_root_retries)
{
    struct line_root r;
    char first[EXCHANGE_ID_SIZE];
    unsigned attempts = 1;

    line_root_open(&r);
    (void)snprintf(first, sizeof first, "%s", r.id);
    assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
    assert_true(line_hears_verdict(&r.f, CHILD, ERROR_BUSY));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    /* Several nodes may be busy; their further messages are about the withdrawn attempt. */
    assert_true(line_root_object(&r, ERROR_BUSY, "node 1 is busy"));
    assert_true(line_root_object(&r, ERROR_REFUSED, "node 1 refuses"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    assert_int_equal(r.client.told, 0);
    while (r.client.told == 0) {
        xf_pass(&r.f, 10 * MILLISECONDS);
        if (!line_root_learn(&r))
            continue;
        attempts++;
        assert_string_not_equal(r.id, first);
        assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
        assert_true(line_hears_verdict(&r.f, CHILD, ERROR_BUSY));
        assert_true(attempts < 200); /* with pauses that grow */
    }
    if (attempts <= 10)
        fail_msg("%u attempts, then: %s", attempts, r.client.e.text);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_TIMEOUT);
    assert_non_null(strstr(r.client.e.text, "node 2 "));
    xf_close(&r.f);

    line_root_open(&r); /* and is done when there is room */
    assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
    (void)xf_drain(&r.f);
    for (int i = 0; i < 100 && !line_root_learn(&r); i++)
        xf_pass(&r.f, 10 * MILLISECONDS);
    assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
    (void)xf_drain(&r.f);
    xf_say_all_data(&r.f, r.handle, 0, false);
    assert_true(xf_say_done(&r.f, CHILD, r.handle, 1, 2));
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_NONE);
    xf_close(&r.f);
}

/* The next message at a port that is no block, or NULL. */
static struct peer_message *next_verdict(struct exchange_fixture *n, unsigned port)
{
    struct peer_message *head = xf_next(n, port);

    while (head != NULL && head->kind != PEER_VERDICT) {
        message_forget(head);
        head = xf_next(n, port);
    }
    return head;
}

/* Nodes keep what they have of an attempt that ran and was withdrawn. If there is no next attempt, they hear that. */
TEST(the_end_is_told_to_nodes_of_the_last_attempt)
{
    struct line_root r;
    struct error e;

    line_open(&r.f, 0);
    struct job *j = xf_start(&r.f, &line_generated, &r.client, &e);
    assert_non_null(j);
    xf_settle(&r.f);
    assert_true(line_root_learn(&r));
    assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
    const struct peer_message damaged = {.kind = PEER_OBJECTION,
                                         .objection = {.exchange = r.handle,
                                                       .id = r.id,
                                                       .code = ERROR_DAMAGED,
                                                       .reason = "damaged",
                                                       .retry_may_help = true}};
    for (int end = 0; end < 2; end++) {
        if (end == 0)
            assert_true(xf_say(&r.f, CHILD, &damaged));
        else
            exchange_cancel(j);
        xf_settle(&r.f);
        struct peer_message *head = next_verdict(&r.f, CHILD);
        assert_non_null(head);
        assert_string_equal(head->verdict.id, r.id);
        assert_int_equal(head->verdict.code, end == 0 ? ERROR_BUSY : ERROR_CANCELLED);
        message_forget(head);
    }
    xf_close(&r.f);
}

/* Without a timeout of its own it waits for an hour, and its client is told that time, not the time that it needs to
 * run. */
TEST(the_time_that_it_has_waited_is_told)
{
    struct spec spec = line_generated;
    struct line_root r;
    struct error e;

    spec.timeout_ns = 0;
    line_open(&r.f, 0);
    assert_non_null(xf_start(&r.f, &spec, &r.client, &e));
    xf_settle(&r.f);
    for (int second = 0; second < 3610 && r.client.told == 0; second++) {
        if (line_root_learn(&r))
            assert_true(line_root_object(&r, ERROR_BUSY, "node 2 is busy"));
        (void)xf_drain(&r.f);
        xf_pass(&r.f, 2 * SECONDS);
    }
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_TIMEOUT);
    if (strstr(r.client.e.text, " 3600.0 s") == NULL)
        fail_msg("%s", r.client.e.text);
    xf_close(&r.f);
}

static enum exchange_state state_of(const struct job *x)
{
    struct exchange_progress progress;

    assert_non_null(x);
    exchange_progress(x, &progress);
    return progress.state;
}

/* Later exchanges do not overtake an exchange that waits for memory. */
TEST(a_barrier_lets_nobody_overtake)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct spec large = line_generated;
    struct exchange_client_seen seen[3];
    struct job *waits, *enters, *later;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;
    char id[EXCHANGE_ID_SIZE];
    uint32_t counter;

    line_open(&n, 0);
    xf_prepare_init(&p, &n); /* of another root: the rest is less than the large one's share */
    xf_prepare_generated(&p);
    p.message.prepare.root = 1;
    p.message.prepare.id = "1-0000004d-2";
    p.message.prepare.exchange = 7;
    p.spec.block_bytes = p.message.prepare.round_bytes = EXCHANGE_FIXTURE_BUDGET / 8 * 5;
    assert_true(xf_say(&n, CHILD, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_READY);
    assert_true(line_prepare(&n, CHILD, 2, 9, EXCHANGE_FIXTURE_BUDGET / 4)); /* and of a third */
    assert_int_equal(xf_state_of(&n, "2-0000004d-9"), EXCHANGE_READY);
    large.block_bytes = EXCHANGE_FIXTURE_BUDGET;
    waits = xf_start(&n, &large, &seen[0], &e);
    enters = xf_start(&n, &barrier, &seen[1], &e);
    later = xf_start(&n, &line_generated, &seen[2], &e);
    xf_settle(&n);
    assert_int_equal(state_of(enters), EXCHANGE_PREPARING);
    (void)xf_drain(&n); /* the barrier must be retried, while others wait for memory before it */
    (void)snprintf(id, sizeof id, "%s", exchange_id(enters));
    assert_int_equal(sscanf(id, "%*u-%*x-%u", &counter), 1);
    assert_true(xf_say_objection(&n, CHILD, 3 * counter, id, 0, ERROR_BUSY, "busy"));
    assert_int_equal(state_of(enters), EXCHANGE_WAITING);
    xf_pass(&n, 50 * MILLISECONDS);
    assert_int_equal(state_of(enters), EXCHANGE_PREPARING);
    assert_int_equal(state_of(waits), EXCHANGE_WAITING);
    assert_int_equal(state_of(later), EXCHANGE_WAITING);
    assert_true(
        xf_say_verdict(&n, CHILD, 7, "1-0000004d-2", ERROR_CANCELLED, "over", 0)); /* room again */
    assert_int_equal(state_of(waits), EXCHANGE_PREPARING);
    assert_int_equal(state_of(later), EXCHANGE_PREPARING);
    xf_close(&n);
}
