/* From the decision to the last confirmation: how a root, and a node in doubt, handle Confirm, OutcomeQuery, Outcome
 * and Commit with any contents. */
#include "exchange_fixture.h"
#include "tests/support/cmocka.h"

enum {
    PARENT = 1,
    CHILD = 0
}; /* ports of node 1 to nodes 0 and 2; the root's child is at port 0 */

/* --- the root --- */

struct root {
    struct exchange_fixture f;
    struct exchange_client_seen client;
    char id[EXCHANGE_ID_SIZE];
};

/* All nodes are done; the decision is being recorded. */
static void reach_decision(struct root *r)
{
    static const struct spec spec = {.algorithm = "direct",
                                     .mode = MODE_STEPPED,
                                     .from = "/in",
                                     .to = "/out",
                                     .timeout_ns = 60 * SECONDS};
    struct error e;
    struct peer_message *head;

    xf_init(&r->f);
    xf_open(&r->f, "3m", 0);
    assert_non_null(xf_start(&r->f, &spec, &r->client, &e));
    xf_settle(&r->f);
    head = xf_next(&r->f, CHILD);
    assert_int_equal(head->kind, PEER_PREPARE);
    uint32_t handle = head->prepare.exchange;
    (void)snprintf(r->id, sizeof r->id, "%s", head->prepare.id);
    message_forget(head);
    assert_true(xf_say_sized(&r->f, CHILD, handle, 0));
    assert_true(xf_say_handle(&r->f, CHILD, PEER_READY, handle));
    (void)xf_drain(&r->f);
    xf_say_all_data(&r->f, handle, 0, true);
    assert_true(xf_say_done(&r->f, CHILD, handle, 1, 2));
    assert_int_equal(xf_state(&r->f), EXCHANGE_DECIDING);
    assert_int_equal(xf_drain(&r->f), 0);
    assert_int_equal(r->f.calls, 1);
}

TEST(the_decision_stays_until_all_have_confirmed)
{
    struct root r;

    reach_decision(&r);
    assert_true(xf_say_query(&r.f, CHILD, r.id, 1)); /* not decided: no answer */
    assert_int_equal(xf_drain(&r.f), 0);
    xf_storage_done(&r.f, NULL);
    assert_int_equal(xf_hear(&r.f, CHILD), PEER_COMMIT);
    assert_int_equal(r.f.commits, 1);
    assert_true(xf_say_confirm(&r.f, CHILD, r.id, 2, ""));
    for (int again = 0; again < 3; again++) {
        assert_true(xf_say_confirm(&r.f, CHILD, r.id, 2, "")); /* counts once */
        assert_true(xf_say_confirm(&r.f, CHILD, r.id, 1, "target\nexists"));
    }
    assert_int_equal(xf_state(&r.f), EXCHANGE_COMMITTING);
    assert_int_equal(r.client.told, 0);
    xf_pass(&r.f, 10 * SECONDS); /* node 1 is reminded */
    assert_int_equal(xf_hear(&r.f, CHILD), PEER_OUTCOME);
    xf_pass(&r.f, 60 * SECONDS);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_IN_DOUBT);
    assert_non_null(strstr(r.client.e.text, "node 1 "));
    assert_non_null(strstr(r.client.e.text, "target?exists"));
    (void)xf_drain(&r.f);
    assert_true(xf_say_query(&r.f, CHILD, r.id, 1)); /* and whenever it asks */
    assert_int_equal(xf_hear(&r.f, CHILD), PEER_OUTCOME);
    assert_int_equal(r.f.forgotten, 0);
    assert_true(xf_say_confirm(&r.f, CHILD, r.id, 1, ""));
    assert_int_equal(r.f.forgotten, 1);
    xf_pass(&r.f, 10 * SECONDS);
    assert_int_equal(xf_drain(&r.f), 0);
    assert_int_equal(r.client.told, 1);
    xf_close(&r.f);
}

/* Only the root knows whether its own output is in place. */
TEST(nobody_confirms_for_the_root)
{
    struct root r;

    reach_decision(&r);
    r.f.commit = 0;
    xf_storage_done(&r.f, NULL);
    for (uint32_t rank = 1; rank < 3; rank++)
        assert_true(xf_say_confirm(&r.f, CHILD, r.id, rank, ""));
    assert_false(xf_say_confirm(&r.f, CHILD, r.id, 0, ""));
    assert_int_equal(r.f.removed, 0);
    assert_int_equal(r.f.forgotten, 0);
    assert_int_equal(xf_state(&r.f), EXCHANGE_COMMITTING);
    r.f.commit = 1;
    xf_wake(&r.f);
    assert_int_equal(r.f.forgotten, 1);
    assert_int_equal(xf_state(&r.f), EXCHANGE_COMMITTED);
    xf_close(&r.f);
}

/* The root's disk takes longer than its client waits: the decision stays. */
TEST(a_slow_disk_keeps_the_roots_output)
{
    struct root r;

    reach_decision(&r);
    r.f.commit = 0;
    xf_storage_done(&r.f, NULL);
    for (uint32_t rank = 1; rank < 3; rank++)
        assert_true(xf_say_confirm(&r.f, CHILD, r.id, rank, ""));
    xf_pass(&r.f, 70 * SECONDS);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_IN_DOUBT);
    assert_int_equal(r.f.removed, 0);
    assert_int_equal(r.f.kept, 1);
    assert_int_equal(r.f.forgotten, 0);
    assert_int_equal(r.f.calls, 1); /* the rest is the storage's */
    assert_true(r.f.call[0].resolves && r.f.call[0].committed);
    xf_storage_done(&r.f, NULL);
    assert_int_equal(r.f.forgotten, 1);
    xf_close(&r.f);
}

TEST(a_decision_that_is_not_recorded_is_none)
{
    const struct error full = {.code = ERROR_IO, .text = "disk full"};
    struct root r;

    reach_decision(&r);
    xf_storage_done(&r.f, &full);
    assert_int_equal(xf_hear(&r.f, CHILD), PEER_VERDICT);
    assert_int_equal(xf_state(&r.f), EXCHANGE_FAILED);
    assert_int_equal(r.f.removed, 1);
    assert_int_equal(r.client.e.code, ERROR_IO);
    xf_close(&r.f);

    reach_decision(&r); /* or not in time */
    xf_pass(&r.f, 70 * SECONDS);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_IN_DOUBT);
    assert_int_equal(xf_state(&r.f), EXCHANGE_DECIDING);
    xf_storage_done(&r.f, NULL);
    assert_int_equal(r.f.commits, 1);
    assert_int_equal(r.client.told, 1);
    xf_close(&r.f);
}

/* --- node 1 --- */

static void reach_done(struct exchange_fixture *n)
{
    struct xf_prepare p;

    xf_init(n);
    xf_open(n, "3m", 1);
    xf_prepare_init(&p, n);
    assert_true(xf_say(n, PARENT, &p.message));
    assert_true(xf_say_sized(n, CHILD, XF_HANDLE, 0));
    assert_true(xf_say_layout(n, PARENT, XF_HANDLE));
    assert_true(xf_say_handle(n, CHILD, PEER_READY, XF_HANDLE));
    assert_true(xf_say_go(n, PARENT, XF_HANDLE, 1, 0));
    (void)xf_drain(n);
    xf_say_all_data(n, XF_HANDLE, 0, true);
    assert_true(xf_say_done(n, CHILD, XF_HANDLE, 2, 1));
    assert_int_equal(xf_state(n), EXCHANGE_DONE);
    (void)xf_drain(n);
}

static void hears_confirm(struct exchange_fixture *n, const char *obstacle)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_CONFIRM);
    assert_string_equal(head->confirm.id, XF_ID);
    assert_int_equal(head->confirm.rank[0], 1);
    assert_string_equal(head->confirm.obstacle, obstacle);
    message_forget(head);
}

/* It can hear of the commit in several ways. */
TEST(a_node_in_doubt_commits_late)
{
    for (int by_commit = 0; by_commit < 2; by_commit++) {
        struct exchange_fixture n;
        reach_done(&n);
        xf_pass(&n, 70 * SECONDS);
        assert_int_equal(xf_state(&n), EXCHANGE_IN_DOUBT);
        assert_int_equal(n.kept, 1);
        assert_int_equal(xf_hear(&n, PARENT), PEER_OUTCOME_QUERY);
        (void)xf_drain(&n);
        if (by_commit)
            assert_true(xf_say_handle(&n, PARENT, PEER_COMMIT, XF_HANDLE));
        else
            assert_true(xf_say_outcome(&n, PARENT, XF_ID, true, 1));
        assert_int_equal(n.calls, 1);
        assert_true(n.call[0].resolves && n.call[0].committed);
        assert_true(xf_say_outcome(&n, PARENT, XF_ID, false, 1)); /* too late */
        assert_int_equal(xf_state(&n), EXCHANGE_IN_DOUBT);
        assert_int_equal(n.calls, 1);
        xf_storage_done(&n, NULL);
        assert_int_equal(xf_state(&n), EXCHANGE_COMMITTED);
        hears_confirm(&n, "");
        assert_true(xf_say_outcome(&n, PARENT, XF_ID, true, 1)); /* it confirms again */
        hears_confirm(&n, "");
        xf_close(&n);
    }
}

TEST(an_obstacle_is_told_and_tried_again)
{
    const struct error exists = {.code = ERROR_REFUSED, .text = "target exists"};
    struct exchange_fixture n;

    reach_done(&n);
    n.commit = -1;
    assert_true(xf_say_handle(&n, PARENT, PEER_COMMIT, XF_HANDLE));
    assert_int_equal(xf_state(&n), EXCHANGE_IN_DOUBT);
    assert_int_equal(n.kept, 1);
    hears_confirm(&n, "target exists");
    for (int again = 0; again < 3; again++) {
        xf_pass(&n, 3 * SECONDS);
        assert_int_equal(n.calls, 1);
        assert_true(n.call[0].resolves && n.call[0].committed);
        xf_storage_done(&n, &exists);
        hears_confirm(&n, "target exists");
    }
    /* The commit is final. */
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "no", 0));
    assert_true(xf_say_outcome(&n, PARENT, XF_ID, false, 1));
    xf_pass(&n, 3 * SECONDS);
    assert_true(n.call[0].committed);
    xf_storage_done(&n, NULL);
    assert_int_equal(xf_state(&n), EXCHANGE_COMMITTED);
    xf_close(&n);
}

TEST(doubts_from_before_the_start_end)
{
    static const char *const in_doubt[] = {XF_ID, NULL};

    for (int committed = 0; committed < 2; committed++) {
        struct exchange_fixture n;
        xf_init(&n);
        n.in_doubt = in_doubt;
        xf_open(&n, "3m", 1);
        xf_pass(&n, 3 * SECONDS);
        assert_int_equal(xf_hear(&n, PARENT), PEER_OUTCOME_QUERY);
        (void)xf_drain(&n);
        assert_true(xf_say_outcome(&n, PARENT, XF_ID, committed, 1));
        assert_int_equal(n.calls, 1);
        assert_int_equal(n.call[0].committed, committed);
        xf_storage_done(&n, NULL);
        assert_int_equal(xf_hear(&n, PARENT), committed ? PEER_CONFIRM : PEER_NOTHING);
        xf_pass(&n, 10 * SECONDS);
        assert_int_equal(xf_drain(&n), 0);
        xf_close(&n);
    }
}

/* Only the root knows the outcome: messages from another direction, or for a node in another direction, are ignored. */
TEST(messages_of_the_root_from_elsewhere_are_ignored)
{
    struct exchange_fixture n;

    for (int committed = 0; committed < 2; committed++) {
        reach_done(&n);
        assert_true(xf_say_outcome(&n, CHILD, XF_ID, committed, 1));
        assert_true(xf_say_verdict(&n, CHILD, XF_HANDLE, XF_ID, ERROR_IO, "a lie", 3));
        assert_int_equal(xf_state(&n), EXCHANGE_DONE);
        assert_int_equal(n.calls, 0);
        xf_pass(&n, 70 * SECONDS);
        assert_int_equal(xf_state(&n), EXCHANGE_IN_DOUBT);
        (void)xf_drain(&n);
        assert_true(xf_say_outcome(&n, CHILD, XF_ID, committed, 1));
        assert_true(xf_say_verdict(&n, CHILD, XF_HANDLE, XF_ID, ERROR_IO, "a lie", 3));
        assert_int_equal(n.calls, 0);
        assert_true(xf_say_outcome(&n, PARENT, XF_ID, true, 1));
        assert_int_equal(n.calls, 1);
        xf_close(&n);
    }
    reach_done(&n);
    (void)xf_drain(&n);
    assert_true(xf_say_outcome(&n, CHILD, XF_ID, true, 2)); /* back where it came from */
    assert_true(xf_say_outcome(&n, CHILD, XF_ID, true, 0)); /* the root itself */
    assert_true(xf_say_query(&n, CHILD, XF_ID, 0));
    assert_true(xf_say_query(&n, CHILD, XF_ID, 1));
    assert_true(xf_say_query(&n, PARENT, XF_ID, 2));
    assert_int_equal(xf_drain(&n), 0);
    assert_int_equal(xf_state(&n), EXCHANGE_DONE);
    xf_close(&n);
}

TEST(ranks_and_ids_that_there_are_not)
{
    static const char *const strange[] = {"3-0000004d-1", "4294967295-0000004d-1", "-1-0-1"};

    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i <= sizeof strange / sizeof *strange; i++) {
            bool of_rank = i == sizeof strange / sizeof *strange;
            const char *id = of_rank ? XF_ID : strange[i];
            uint32_t rank = of_rank ? 3 : 2;
            struct exchange_fixture n;
            reach_done(&n);
            bool up = kind == 0   ? xf_say_confirm(&n, CHILD, id, rank, "")
                      : kind == 1 ? xf_say_query(&n, CHILD, id, rank)
                                  : xf_say_outcome(&n, CHILD, id, true, rank);
            if (up)
                fail_msg("kind %d of %s from %u was taken", kind, id, rank);
            xf_close(&n);
        }
    /* Messages for other nodes are passed on, whatever they contain. */
    struct exchange_fixture n;
    reach_done(&n);
    assert_true(xf_say_confirm(&n, CHILD, "0-deadbeef-4294967295", 2, "\x1b[2J"));
    assert_int_equal(xf_hear(&n, PARENT), PEER_CONFIRM);
    assert_true(xf_say_query(&n, CHILD, "0-00000000-1", 2));
    assert_int_equal(xf_hear(&n, PARENT), PEER_OUTCOME_QUERY);
    assert_true(xf_say_outcome(&n, PARENT, "0-00000000-1", true, 2));
    assert_int_equal(xf_hear(&n, CHILD), PEER_OUTCOME);
    assert_int_equal(xf_state(&n), EXCHANGE_DONE);
    xf_close(&n);
}
