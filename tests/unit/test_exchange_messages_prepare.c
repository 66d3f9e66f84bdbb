/* What a root's prepare may contain, and when it may arrive. */
#include "exchange_fixture.h"
#include "line_fixture.h"
#include "tests/support/cmocka.h"

#define TEXT(text) ((char *)(uintptr_t)(text))
#define OTHER_ID "0-0000004d-9"

/* The root is node 0, and its prepare comes from the parent, unless a row says otherwise. */
static const struct {
    const char *id; /* NULL: the usual one */
    uint32_t root;
    unsigned port;
    const char *dims; /* NULL: those of the torus */
    bool no_spec;
    enum schedule_operation operation;
    bool shrink;
} not_of_a_root[] = {
    {.id = "", .port = PARENT},
    {.id = "0", .port = PARENT},
    {.id = "x-0000004d-8", .port = PARENT},
    {.id = "1-0000004d-8", .port = PARENT},
    {.id = "0-4d-8", .port = PARENT},
    {.id = "0-0000004D-8", .port = PARENT},
    {.id = "0-0000004d-08", .port = PARENT},
    {.id = "0-0000004d-8 ", .port = PARENT},
    {.id = "00-0000004d-8", .port = PARENT},
    {.id = "0-0000004d--8", .port = PARENT},
    {.id = "0-0000004d-4294967304", .port = PARENT},
    {.id = "0-0000004d-8\n", .port = PARENT},
    {.id = "0-0000004d-8-with-much-more-than-any-id-could-ever-have", .port = PARENT},
    {.id = "1-0000004d-8", .root = 1, .port = PARENT},
    {.id = "2-0000004d-8", .root = 2, .port = PARENT},
    {.id = "3-0000004d-8", .root = 3, .port = PARENT},
    {.id = "4294967295-0000004d-8", .root = UINT32_MAX, .port = PARENT},
    {.port = PARENT, .dims = "3"},
    {.port = PARENT, .no_spec = true},
    {.port = CHILD}, /* from the side that node 0 is not on */
    /* It is for node 0 to begin that. */
    {"2-0000004d-8", 2, CHILD, .operation = OPERATION_GROUP, .shrink = true},
    {"2-0000004d-8", 2, CHILD, .operation = OPERATION_GROUP},
    {"2-0000004d-8", 2, CHILD, .operation = OPERATION_BARRIER},
};

TEST(prepares_that_no_root_sends_close_the_link)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    for (size_t i = 0; i < sizeof not_of_a_root / sizeof *not_of_a_root; i++) {
        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        if (not_of_a_root[i].id != NULL)
            p.message.prepare.id = not_of_a_root[i].id;
        p.message.prepare.root = not_of_a_root[i].root;
        if (not_of_a_root[i].dims != NULL)
            p.message.prepare.dims = not_of_a_root[i].dims;
        if (not_of_a_root[i].no_spec)
            p.message.prepare.spec = NULL;
        if (not_of_a_root[i].operation != OPERATION_EXCHANGE) {
            xf_prepare_generated(&p);
            p.spec.operation = not_of_a_root[i].operation;
            p.spec.barrier = TEXT("g");
            p.spec.shrink = not_of_a_root[i].shrink;
        }
        if (xf_say(&n, not_of_a_root[i].port, &p.message))
            fail_msg("row %zu was taken", i);
        assert_int_equal(line_known(&n), 0);
        xf_close(&n);
    }
}

/* What a prepare says of the line of three nodes, of which node 0 is the root and node 1 hears it: links that are down (0 is
 * between nodes 0 and 1, 2 is the other one), nodes that are missing, and channels that are slow (0 leaves node 0, 2 and 3
 * node 1, 5 node 2). */
struct said {
    const char *wrong; /* what is wrong with it; NULL: nothing */
    size_t n_without, n_missing, n_rates;
    uint32_t without[2], missing[2], rates[4];
    bool fails; /* not spec.shrink */
    const char
        *nack; /* a part of the nack of the node, which knows better; NULL: there is no nack */
};

static const struct said said[] = {
    {"there is no such link", 1, .without = {4}},
    {"nobody dials there", 1, .without = {3}},
    {"a huge link", 1, .without = {UINT32_MAX}},
    {"a link twice", 2, .without = {2, 2}},
    {"links that fall", 2, .without = {2, 0}},
    {"the link that brings it", 1, .without = {0}},
    {NULL, 1, .without = {2}, .fails = true, .nack = "1:+0"},
    {"the root is missing", 0, 1, .missing = {0}},
    {"there is no such node", 0, 1, .missing = {3}},
    {"a node twice", 0, 2, .missing = {2, 2}},
    {"the node itself", 0, 1, .missing = {1}},
    {"a missing node and its link", 1, 1, .without = {2}, .missing = {2}},
    {"an exchange that needs all nodes", 0, 1, .missing = {2}, .fails = true},
    {NULL, 0, 1, .missing = {2}, .nack = "2, as the root knows"},
    {"there is no such channel", 0, 0, 2, .rates = {4, 500}},
    {"a huge channel", 0, 0, 2, .rates = {UINT32_MAX, 500}},
    {"no rate", 0, 0, 2, .rates = {2, 0}},
    {"the full rate", 0, 0, 2, .rates = {2, 1000}},
    {"a channel twice", 0, 0, 4, .rates = {2, 500, 2, 500}},
    {"channels that fall", 0, 0, 4, .rates = {3, 500, 2, 500}},
    {"half of a pair", 0, 0, 3, .rates = {2, 500, 3}},
    {NULL, 0, 0, 4, .rates = {2, 500, 5, 1}},
};

TEST(a_prepare_says_what_is_down_and_slow)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    for (const struct said *s = said; s < said + sizeof said / sizeof *said; s++) {
        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        p.spec.algorithm = TEXT("auto");
        p.spec.shrink = s->n_missing > 0 && !s->fails;
        p.message.prepare.without = s->without;
        p.message.prepare.n_without = s->n_without;
        p.message.prepare.missing = s->missing;
        p.message.prepare.n_missing = s->n_missing;
        p.message.prepare.rates = s->rates;
        p.message.prepare.n_rates = s->n_rates;
        if (xf_say(&n, PARENT, &p.message) != (s->wrong == NULL))
            fail_msg("row %zu: %s", (size_t)(s - said), s->wrong != NULL ? s->wrong : "refused");
        assert_int_equal(line_known(&n), s->wrong == NULL && s->nack == NULL);
        if (s->nack != NULL)
            line_hears_nack(&n, ERROR_BUSY, 1, s->nack);
        xf_close(&n);
    }
}

TEST(a_prepare_comes_once)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    line_open(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_false(xf_say(&n, PARENT, &p.message));
    xf_close(&n);

    line_open(&n, 1); /* when it has ended it may be on its way */
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_true(xf_say_abort(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_int_equal(line_known(&n), 1);
    xf_close(&n);
}

/* Handles are reused: a root that was restarted does not know the old ones. */
LINE_TEST(a_handle_that_is_in_use_is_a_matter_of_time)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    assert_true(xf_say(n, PARENT, &p.message));
    (void)xf_drain(n);
    p.message.prepare.id = OTHER_ID;
    assert_true(xf_say(n, PARENT, &p.message));
    line_hears_nack(n, ERROR_BUSY, 1, NULL);
    assert_int_equal(xf_state_of(n, XF_ID), EXCHANGE_OPENING);
    assert_int_equal(line_known(n), 1);

    n->closes_at_once =
        false; /* the memory of an exchange that has ended, but whose disk is slow */
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    (void)xf_drain(n);
    assert_true(xf_say(n, PARENT, &p.message));
    line_hears_nack(n, ERROR_BUSY, 1, NULL);
    xf_closed(n);
    xf_settle(n);
    n->closes_at_once = true;
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(xf_state_of(n, OTHER_ID), EXCHANGE_OPENING);
    assert_int_equal(xf_state_of(n, XF_ID), EXCHANGE_STATES);
}

/* The node hears of a restart of the root only after the root's prepare. Although a client entered the barrier here
 * long before, the node must not take the start that it knows for the later one. */
TEST(a_restart_of_the_root_is_heard_after_its_prepare)
{
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    for (int entered = 0; entered < 2; entered++) {
        line_open(&n, 2);
        if (entered == 1)
            assert_non_null(xf_start(&n, &line_barrier, &seen, &e));
        xf_pass(&n, 10 * SECONDS);
        xf_prepare_init(&p, &n);
        if (entered == 1)
            line_prepare_barrier(&p);
        else
            xf_prepare_generated(&p);
        p.message.prepare.id = "0-0000004e-8";
        assert_true(xf_say(&n, PARENT, &p.message));
        xf_pass(&n, 2 * SECONDS);
        assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_READY);
        xf_pass(&n, 3 * SECONDS); /* nor is it heard of now: it was the earlier one */
        assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILED);
        (void)xf_drain(&n);
        xf_close(&n);
    }
}

/* It cannot end the exchange. */
TEST(a_nack_to_a_restarted_root_is_reported_at_the_end)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    line_open(&n, 2);
    xf_prepare_init(&p, &n);
    xf_prepare_generated(&p);
    p.message.prepare.id = "0-0000004e-8";
    p.message.prepare.round_bytes = UINT64_MAX;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILING);
    xf_pass(&n, 10 * SECONDS);
    assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILED);
    assert_contains(xf_info(&n).reason, "node 0");
    (void)xf_drain(&n);
    xf_close(&n);
}

/* The root of a barrier is found to have gone; before the client here is told, the node hears that this root wanted to
 * retry. */
TEST(a_root_that_is_gone_does_not_retry)
{
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    line_open(&n, 2);
    assert_non_null(xf_start(&n, &line_barrier, &seen, &e));
    xf_settle(&n);
    xf_prepare_init(&p, &n);
    line_prepare_barrier(&p);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_READY);
    fixture_say_entry(n.f.up[PARENT], &(struct peer_link_state_entry){
                                          .hops = 1, .version = 2, .boot = 78, .up = 1});
    assert_int_equal(seen.told, 0);
    assert_true(xf_say_abort(&n, PARENT, XF_HANDLE, XF_ID, ERROR_BUSY, "node 1 is busy", 0));
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.e.code, ERROR_LINK);
    (void)xf_drain(&n);
    xf_close(&n);
}

/* From the decision to the last confirmation: how a root, and a node in doubt, handle Confirm, OutcomeQuery, Outcome
 * and Commit with any contents. */

/* --- the root --- */

/* All nodes are done; the decision is being recorded. */
static void reach_decision(struct line_root *r)
{
    static const struct spec spec = {.algorithm = "direct",
                                     .mode = MODE_STEPPED,
                                     .from = "/in",
                                     .to = "/out",
                                     .timeout_ns = 60 * SECONDS};
    struct error e;

    line_open(&r->f, 0);
    assert_non_null(xf_start(&r->f, &spec, &r->client, &e));
    xf_settle(&r->f);
    assert_true(line_root_learn(r));
    assert_true(xf_say_sizes(&r->f, CHILD, r->handle, 0));
    assert_true(xf_say_handle(&r->f, CHILD, PEER_READY, r->handle));
    (void)xf_drain(&r->f);
    xf_say_all_data(&r->f, r->handle, 0, true);
    assert_true(xf_say_done(&r->f, CHILD, r->handle, 1, 2));
    assert_int_equal(xf_state(&r->f), EXCHANGE_DECIDING);
    assert_int_equal(xf_drain(&r->f), 0);
    assert_int_equal(r->f.calls, 1);
}

static void close_root(struct line_root *r)
{
    xf_close(&r->f);
}

#define ROOT_TEST(name) FIXTURE_TEST(struct line_root, r, reach_decision, close_root, name)

ROOT_TEST(the_decision_stays_until_all_have_confirmed)
{
    assert_true(xf_say_query(&r->f, CHILD, r->id, 1)); /* not decided: no answer */
    assert_int_equal(xf_drain(&r->f), 0);
    xf_storage_done(&r->f, NULL);
    assert_int_equal(xf_hear(&r->f, CHILD), PEER_COMMIT);
    assert_int_equal(r->f.commits, 1);
    assert_true(xf_say_confirm(&r->f, CHILD, r->id, 2, ""));
    for (int again = 0; again < 3; again++) {
        assert_true(xf_say_confirm(&r->f, CHILD, r->id, 2, "")); /* counts once */
        assert_true(xf_say_confirm(&r->f, CHILD, r->id, 1, "target\nexists"));
    }
    assert_int_equal(xf_state(&r->f), EXCHANGE_COMMITTING);
    assert_int_equal(r->client.told, 0);
    xf_pass(&r->f, 10 * SECONDS); /* node 1 is reminded */
    assert_int_equal(xf_hear(&r->f, CHILD), PEER_OUTCOME);
    xf_pass(&r->f, 60 * SECONDS);
    assert_int_equal(r->client.told, 1);
    assert_int_equal(r->client.e.code, ERROR_IN_DOUBT);
    assert_contains(r->client.e.text, "node 1 ");
    assert_contains(r->client.e.text, "target?exists");
    (void)xf_drain(&r->f);
    assert_true(xf_say_query(&r->f, CHILD, r->id, 1)); /* and whenever it asks */
    assert_int_equal(xf_hear(&r->f, CHILD), PEER_OUTCOME);
    assert_int_equal(r->f.forgotten, 0);
    assert_true(xf_say_confirm(&r->f, CHILD, r->id, 1, ""));
    assert_int_equal(r->f.forgotten, 1);
    xf_pass(&r->f, 10 * SECONDS);
    assert_int_equal(xf_drain(&r->f), 0);
    assert_int_equal(r->client.told, 1);
}

/* Only the root knows whether its own output is in place. */
ROOT_TEST(nobody_confirms_for_the_root)
{
    r->f.commit = 0;
    xf_storage_done(&r->f, NULL);
    for (uint32_t rank = 1; rank < 3; rank++)
        assert_true(xf_say_confirm(&r->f, CHILD, r->id, rank, ""));
    assert_false(xf_say_confirm(&r->f, CHILD, r->id, 0, ""));
    assert_int_equal(r->f.removed, 0);
    assert_int_equal(r->f.forgotten, 0);
    assert_int_equal(xf_state(&r->f), EXCHANGE_COMMITTING);
    r->f.commit = 1;
    xf_wake(&r->f);
    assert_int_equal(r->f.forgotten, 1);
    assert_int_equal(xf_state(&r->f), EXCHANGE_COMMITTED);
}

/* The root's disk takes longer than its client waits: the decision stays. */
ROOT_TEST(a_slow_disk_keeps_the_roots_output)
{
    r->f.commit = 0;
    xf_storage_done(&r->f, NULL);
    for (uint32_t rank = 1; rank < 3; rank++)
        assert_true(xf_say_confirm(&r->f, CHILD, r->id, rank, ""));
    xf_pass(&r->f, 70 * SECONDS);
    assert_int_equal(r->client.told, 1);
    assert_int_equal(r->client.e.code, ERROR_IN_DOUBT);
    assert_int_equal(r->f.removed, 0);
    assert_int_equal(r->f.kept, 1);
    assert_int_equal(r->f.forgotten, 0);
    assert_int_equal(r->f.calls, 1); /* the storage must do the rest */
    assert_true(r->f.call[0].resolves && r->f.call[0].committed);
    xf_storage_done(&r->f, NULL);
    assert_int_equal(r->f.forgotten, 1);
}

TEST(a_decision_that_is_not_recorded_is_none)
{
    const struct error full = {.code = ERROR_IO, .text = "disk full"};
    struct line_root r;

    reach_decision(&r);
    xf_storage_done(&r.f, &full);
    assert_int_equal(xf_hear(&r.f, CHILD), PEER_ABORT);
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

    line_open(n, 1);
    xf_prepare_init(&p, n);
    assert_true(xf_say(n, PARENT, &p.message));
    assert_true(xf_say_sizes(n, CHILD, XF_HANDLE, 0));
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

FIXTURE_TEST(struct exchange_fixture, n, reach_done, xf_close, an_obstacle_is_told_and_tried_again)
{
    const struct error exists = {.code = ERROR_REFUSED, .text = "target exists"};

    n->commit = -1;
    assert_true(xf_say_handle(n, PARENT, PEER_COMMIT, XF_HANDLE));
    assert_int_equal(xf_state(n), EXCHANGE_IN_DOUBT);
    assert_int_equal(n->kept, 1);
    hears_confirm(n, "target exists");
    for (int again = 0; again < 3; again++) {
        xf_pass(n, 3 * SECONDS);
        assert_int_equal(n->calls, 1);
        assert_true(n->call[0].resolves && n->call[0].committed);
        xf_storage_done(n, &exists);
        hears_confirm(n, "target exists");
    }
    /* The commit is final. */
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "no", 0));
    assert_true(xf_say_outcome(n, PARENT, XF_ID, false, 1));
    xf_pass(n, 3 * SECONDS);
    assert_true(n->call[0].committed);
    xf_storage_done(n, NULL);
    assert_int_equal(xf_state(n), EXCHANGE_COMMITTED);
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
        assert_true(xf_say_abort(&n, CHILD, XF_HANDLE, XF_ID, ERROR_IO, "a lie", 3));
        assert_int_equal(xf_state(&n), EXCHANGE_DONE);
        assert_int_equal(n.calls, 0);
        xf_pass(&n, 70 * SECONDS);
        assert_int_equal(xf_state(&n), EXCHANGE_IN_DOUBT);
        (void)xf_drain(&n);
        assert_true(xf_say_outcome(&n, CHILD, XF_ID, committed, 1));
        assert_true(xf_say_abort(&n, CHILD, XF_HANDLE, XF_ID, ERROR_IO, "a lie", 3));
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

/* Nacks to the root, and its abort. */

TEST(a_nack_ends_it_everywhere)
{
    static const uint32_t codes[] = {0, ERROR_IO, ERROR_BUSY + 1, UINT32_MAX};
    struct line_root r;

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        line_root_open(&r);
        /* Aborts about other exchanges: another handle, another id, another root. */
        assert_true(xf_say_nack(&r.f, CHILD, r.handle + 1, r.id, 0, ERROR_IO, "no"));
        assert_true(xf_say_nack(&r.f, CHILD, r.handle, XF_ID, 0, ERROR_IO, "no"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
        assert_true(line_root_object(&r, codes[i], "node 2 reports:\n\x1b[2Jno"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_FAILED);
        assert_true(line_hears_abort(&r.f, CHILD, ERROR_IO));
        assert_int_equal(r.client.told, 1);
        assert_int_equal(r.client.e.code, ERROR_IO);
        assert_string_equal(r.client.e.text, "node 2 reports:??[2Jno");
        /* A node that has not heard the abort hears it again. */
        assert_true(line_root_object(&r, ERROR_IO, "again"));
        assert_true(line_hears_abort(&r.f, CHILD, ERROR_IO));
        assert_int_equal(xf_drain(&r.f), 0);
        xf_close(&r.f);
    }
    line_root_open(&r); /* for nodes that do not exist */
    assert_false(xf_say_nack(&r.f, CHILD, r.handle, r.id, 3, ERROR_IO, "no"));
    xf_close(&r.f);
    line_root_open(
        &r); /* from the root's own side: its sender knows of other links that are down */
    assert_true(xf_say_nack(&r.f, CHILD, r.handle, r.id, 2, ERROR_IO, "no"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
    assert_int_equal(xf_drain(&r.f), 0);
    xf_close(&r.f);
}

/* The root believes a node about nodes behind the node's own link; otherwise it names the node that reports. The text
 * is not parsed. */
TEST(a_nack_is_about_whom_it_says)
{
    static const struct {
        struct culprit culprit;
        bool believed;
    } rows[] = {{{CULPRIT_NONE, 0, 0}, false},         {{CULPRIT_NODE, 0, 0}, false},
                {{CULPRIT_NODE, 1, 0}, true},          {{CULPRIT_NODE, 2, 0}, true},
                {{CULPRIT_PROGRAM, 2, 0}, true},       {{CULPRIT_PROGRAM, 0, 0}, false},
                {{CULPRIT_LINK, 2, 1}, true},          {{CULPRIT_LINK, 0, 0}, false},
                {{CULPRIT_LINK, 2, 99}, true},         {{CULPRIT_NODE, 3, 0}, false},
                {{CULPRIT_NODE, UINT32_MAX, 0}, false}};
    struct line_root r;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct error why = {
            .code = ERROR_IO, .text = "node 2 or 0 burns", .culprit = rows[i].culprit};
        line_root_open(&r);
        assert_true(xf_say_nack_about(&r.f, CHILD, r.handle, r.id, 0, &why));
        assert_int_equal(strstr(r.client.e.text, "node 1 reports") == NULL, rows[i].believed);
        assert_int_equal(r.client.e.culprit.kind,
                         rows[i].believed ? rows[i].culprit.kind : CULPRIT_NODE);
        assert_int_equal(r.client.e.culprit.node, rows[i].believed ? rows[i].culprit.node : 1);
        xf_close(&r.f);
    }
}

/* From this field, a node that is ready and has not heard `go` knows whether it must tell its program that others may
 * have begun. */
TEST(an_abort_says_whether_anybody_was_told_to_go)
{
    struct line_root r;

    for (int gone = 0; gone < 2; gone++) {
        line_root_open(&r);
        if (gone) {
            assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
            assert_int_equal(xf_hear(&r.f, CHILD), PEER_GO);
        }
        assert_true(line_root_object(&r, ERROR_IO, "no"));
        struct peer_message *head = xf_next(&r.f, CHILD);
        while (head != NULL && head->kind != PEER_ABORT) { /* its blocks */
            message_forget(head);
            head = xf_next(&r.f, CHILD);
        }
        assert_non_null(head);
        assert_int_equal(head->abort.before_go, !gone);
        message_forget(head);
        xf_close(&r.f);
    }
}

TEST(nacks_pass_through)
{
    struct exchange_fixture n;

    line_open(&n, 1); /* an exchange that is not known here */
    assert_true(xf_say_nack(&n, CHILD, 77, "0-0000004d-99", 0, ERROR_REFUSED, "no\x7f"));
    line_hears_nack(&n, ERROR_REFUSED, TORUS_NO_NODE, "no?");
    assert_true(xf_say_nack(&n, PARENT, 77, XF_ID, 0, ERROR_REFUSED, "no"));
    assert_int_equal(xf_drain(&n), 0);
    assert_false(xf_say_nack(&n, CHILD, 77, "0-0000004d-\x01", 0, ERROR_REFUSED, "no"));
    xf_close(&n);
}

LINE_TEST(aborts_end_it_and_go_on)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    assert_true(xf_say(n, PARENT, &p.message));
    (void)xf_drain(n);
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, OTHER_ID, ERROR_IO, "another", 0));
    assert_int_equal(xf_state(n), EXCHANGE_OPENING);
    assert_int_equal(xf_drain(n), 0);
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, UINT32_MAX, "the\nroot's", 0));
    assert_string_equal(xf_info(n).reason, "the?root's");
    assert_true(line_hears_abort(n, CHILD, ERROR_IO));
    for (int i = 0; i < 5; i++)
        assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "again", UINT32_MAX));
    assert_int_equal(xf_drain(n), 0);
    assert_string_equal(xf_info(n).reason, "the?root's");
}

/* If links are down, an abort may arrive before the prepare: it is passed on once, and takes effect. */
LINE_TEST(an_abort_before_the_prepare)
{
    struct xf_prepare p;
    struct peer_message *head;
    size_t passed = 0;

    assert_true(xf_say_abort(n, CHILD, XF_HANDLE, XF_ID, ERROR_LINK, "cut", UINT32_MAX));
    head = xf_next(n, PARENT);
    assert_non_null(head);
    assert_int_equal(head->kind, PEER_ABORT);
    assert_true(head->abort.left <= n->f.torus.nodes); /* whatever the neighbour says */
    message_forget(head);
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, XF_ID, ERROR_LINK, "cut", UINT32_MAX));
    assert_true(xf_say_abort(n, PARENT, XF_HANDLE, "0-0000004d-10", ERROR_LINK, "cut", 0));
    assert_int_equal(xf_drain(n), 0);
    xf_prepare_init(&p, n);
    assert_true(xf_say(n, PARENT, &p.message));
    line_hears_nack(n, ERROR_BUSY, 1, NULL);
    assert_int_equal(xf_drain(n), 0);
    assert_int_equal(line_known(n), 0);
    /* Thousands of others do not make the node forget this one, and are not all passed on. */
    for (unsigned i = 0; i < 3000; i++) {
        char id[EXCHANGE_ID_SIZE];
        (void)snprintf(id, sizeof id, "0-0000004d-%u", 100 + i);
        assert_true(xf_say_abort(n, PARENT, i, id, ERROR_LINK, "cut", 1));
        passed += xf_drain(n);
    }
    assert_in_range(passed, 1, 1000);
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(line_known(n), 0);
    /* But the node does not remember it for ever: it may have been invented. */
    xf_pass(n, 10 * SECONDS);
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(line_known(n), 1);
}
