/* Every message of an exchange is valid only at certain times and from certain sides. The middle node of three, below
 * node 0 and above node 2, receives each message from both of them in each state, and a root receives them from its
 * child. An unexpected message costs the link; a late one is ignored. */
#include "situations.h"
#include "tests/support/cmocka.h"

enum message {
    SIZED,
    LAYOUT,
    READY_MESSAGE,
    GO,
    ROUND_DONE,
    ROUND_GO,
    REPEATED,
    DONE_MESSAGE,
    COMMIT,
    DATA,
    CLEAR,
    MESSAGES
};

/* The effect of each message, in the order above, from the parent and from the child:
 *     T taken    . ignored    X the link is closed */
static const struct expectation {
    const char *name;
    enum exchange_state state;
    const char *from_parent, *from_child;
    uint32_t round, repetition; /* that data, and go and repeated, are about */
    bool sizes;                 /* of blocks in data */
} expected[SITUATIONS] = {
    [OPENING] = {"opening", EXCHANGE_OPENING, "XXXXXXXXXXX", "TXXXXXXXXXX", 0, 0, true},
    [OPENED] = {"opened", EXCHANGE_OPENED, "XTXXXXXXXXX", "XXXXXXXXXXX", 0, 0, true},
    [PREPARING] = {"preparing", EXCHANGE_PREPARING, "XXXXXXXXXXX", "XXTXXXXXXXX", 0, 0, true},
    [READY] = {"ready", EXCHANGE_READY, "XXXTXXXXXTX", "XXXXXXXXXTX", 0, 0, true},
    [FIRST_ROUND] = {"first round", EXCHANGE_RUNNING, "XXXXXXXXXTX", "XXXXTXXXXTX", 1, 0, true},
    [BETWEEN_ROUNDS] = {"between rounds", EXCHANGE_RUNNING, "XXXXXTXXXTX", "XXXXXXXXXTX", 1, 0,
                        true},
    [LAST_ROUND] = {"last round", EXCHANGE_RUNNING, "XXXXXXXXXXX", "XXXXXXXTXXX", 1, 0, true},
    [REPETITION] = {"repetition", EXCHANGE_RUNNING, "XXXXXXXXXTX", "XXXXXXTXXTX", 1, 0, false},
    [PAUSED] = {"paused", EXCHANGE_PAUSED, "XXXTXXXXXTX", "XXXXXXXXXTX", 1, 1, false},
    [DONE] = {"done", EXCHANGE_DONE, "XXXXXXXXTXX", "XXXXXXXXXXX", 1, 0, true},
    [COMMITTING] = {"committing", EXCHANGE_COMMITTING, "XXXXXXXXTXX", "XXXXXXXXXXX", 1, 0, true},
    [COMMITTED] = {"committed", EXCHANGE_COMMITTED, "........T..", "...........", 1, 0, true},
    [FINISHED] = {"finished", EXCHANGE_FINISHED, "...........", "...........", 2, 2, false},
    [FAILING] = {"failing", EXCHANGE_FAILING, "...........", "...........", 0, 0, true},
    [FAILED] = {"failed", EXCHANGE_FAILED, "...........", "...........", 0, 0, true},
    [IN_DOUBT] = {"in doubt", EXCHANGE_IN_DOUBT, "........T..", "...........", 1, 0, true},
    [ENTERED] = {"entered", EXCHANGE_ENTERED, "...........", "...........", 0, 0, false},
    [ROOT_WAITING] = {"root, waiting", EXCHANGE_WAITING, NULL, "...........", 0, 0, false},
    [ROOT_OPENING] = {"root, opening", EXCHANGE_OPENING, NULL, "TXXXXXXXXXX", 0, 0, true},
    [ROOT_PREPARING] = {"root, preparing", EXCHANGE_PREPARING, NULL, "XXTXXXXXXXX", 0, 0, false},
    [ROOT_FIRST_ROUND] = {"root, first round", EXCHANGE_RUNNING, NULL, "XXXXTXXXXTX", 1, 0, true},
    [ROOT_LAST_ROUND] = {"root, last round", EXCHANGE_RUNNING, NULL, "XXXXXXXTXXX", 1, 0, true},
    [ROOT_REPETITION] = {"root, repetition", EXCHANGE_RUNNING, NULL, "XXXXXXTXXTX", 1, 0, false},
    [ROOT_DECIDING] = {"root, deciding", EXCHANGE_DECIDING, NULL, "XXXXXXXXXXX", 1, 0, true},
    [ROOT_COMMITTING] = {"root, committing", EXCHANGE_COMMITTING, NULL, "XXXXXXXXXXX", 1, 0, true},
    [ROOT_COMMITTED] = {"root, committed", EXCHANGE_COMMITTED, NULL, "...........", 1, 0, true},
    [ROOT_FAILED] = {"root, failed", EXCHANGE_FAILED, NULL, "...........", 0, 0, false},
};

static void reach(struct node *n, enum situation s)
{
    situation_reach(n, s);
    if (xf_state(&n->f) != expected[s].state)
        fail_msg("%s: the state is %s", expected[s].name, exchange_state_name(xf_state(&n->f)));
}

static bool say(struct node *n, unsigned port, enum message m, const struct expectation *x)
{
    switch (m) {
    case SIZED:
        return xf_say_sized(&n->f, port, n->handle, 0);
    case LAYOUT:
        return xf_say_layout(&n->f, port, n->handle);
    case READY_MESSAGE:
        return xf_say_handle(&n->f, port, PEER_READY, n->handle);
    case GO:
        return xf_say_go(&n->f, port, n->handle, 1, x->repetition);
    case ROUND_DONE:
        return xf_say_round_done(&n->f, port, n->handle, 0);
    case ROUND_GO:
        return xf_say_round_go(&n->f, port, n->handle, 1);
    case REPEATED:
        return xf_say_repeated(&n->f, port, n->handle, x->repetition, 1);
    case DONE_MESSAGE:
        return n->f.f.rank == 0 ? xf_say_done(&n->f, port, n->handle, 1, 2)
                                : xf_say_done(&n->f, port, n->handle, 2, 1);
    case COMMIT:
        return xf_say_handle(&n->f, port, PEER_COMMIT, n->handle);
    case DATA:
        return xf_say_data(&n->f, port, n->handle, x->round, 0, x->sizes);
    case CLEAR:
        return xf_say_clear(&n->f, port, n->handle);
    case MESSAGES:
        break;
    }
    return false;
}

static void hears(enum situation s, enum message m, unsigned port, char expectation)
{
    static const char *const names[MESSAGES] = {"sized",      "layout",   "ready",    "go",
                                                "round done", "round go", "repeated", "done",
                                                "commit",     "data",     "clear"};
    static struct node n;

    reach(&n, s);
    unsigned calls = n.f.calls, commits = n.f.commits;
    bool up = say(&n, port, m, &expected[s]);
    enum exchange_state after = xf_state_of(&n.f, n.id);
    bool moved = after != expected[s].state || n.f.calls != calls || n.f.commits != commits;
    if (up)
        moved = xf_drain(&n.f) > 0 || moved;
    char seen = !up ? 'X' : moved ? 'T' : '.';
    if (m == DATA && seen == '.' && expectation == 'T')
        seen = 'T'; /* a part of a round shows only when the round is complete */
    if (seen != expectation)
        fail_msg("%s: %s from port %u: %c instead of %c (%s)", expected[s].name, names[m], port,
                 seen, expectation, n.f.f.up[port]->last);
    if (!up && !exchange_has_ended(expected[s].state)) {
        /* Only the link is lost; the exchange continues as after any fault. */
        xf_pass(&n.f, 200 * SECONDS);
        after = xf_state_of(&n.f, n.id);
        if (after != EXCHANGE_FAILED && after != EXCHANGE_IN_DOUBT && after != EXCHANGE_COMMITTED &&
            after != EXCHANGE_DECIDING && after != EXCHANGE_COMMITTING)
            fail_msg("%s: after %s it is %s", expected[s].name, names[m],
                     exchange_state_name(after));
        assert_int_equal(exchanges_reserved(core_exchanges(n.f.core)), 0);
    }
    xf_close(&n.f);
}

TEST(each_message_has_its_time_and_side)
{
    for (enum situation s = OPENING; s < SITUATIONS; s++) {
        for (enum message m = SIZED; m < MESSAGES; m++) {
            if (expected[s].from_parent != NULL)
                hears(s, m, PARENT, expected[s].from_parent[m]);
            hears(s, m, CHILD, expected[s].from_child[m]);
        }
    }
}

/* The fields of a message must be valid, too. */
TEST(numbers_that_do_not_fit_close_the_link)
{
    static const struct {
        enum situation when;
        unsigned port;
        struct peer_message message;
        bool once; /* the first of it is right, numbered 0 */
    } rows[] = {
        {READY, PARENT, {.kind = PEER_GO, .go = {XF_HANDLE, .rounds = 0}}, false},
        {READY, PARENT, {.kind = PEER_GO, .go = {XF_HANDLE, .rounds = 1, .repetition = 1}}, false},
        {PAUSED, PARENT, {.kind = PEER_GO, .go = {XF_HANDLE, .rounds = 2, .repetition = 1}}, false},
        {PAUSED, PARENT, {.kind = PEER_GO, .go = {XF_HANDLE, .rounds = 1, .repetition = 2}}, false},
        {FIRST_ROUND, CHILD, {.kind = PEER_ROUND_DONE, .round_done = {XF_HANDLE, 1}}, false},
        {FIRST_ROUND, CHILD, {.kind = PEER_ROUND_DONE, .round_done = {XF_HANDLE, 1}}, true},
        /* Round 0 belongs to `go`. */
        {FIRST_ROUND, PARENT, {.kind = PEER_ROUND_GO, .round_go = {XF_HANDLE, 0}}, false},
        {BETWEEN_ROUNDS, PARENT, {.kind = PEER_ROUND_GO, .round_go = {XF_HANDLE, 2}}, false},
        {REPETITION,
         CHILD,
         {.kind = PEER_REPEATED, .repeated = {XF_HANDLE, .repetition = 1}},
         false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct node n;
        reach(&n, rows[i].when);
        if (rows[i].once)
            assert_true(xf_say_round_done(&n.f, rows[i].port, n.handle, 0));
        if (xf_say(&n.f, rows[i].port, &rows[i].message))
            fail_msg("row %zu was taken", i);
        xf_close(&n.f);
    }
}

TEST(more_rounds_than_can_be_counted_close_the_link)
{
    struct node n = {.handle = XF_HANDLE};

    xf_init(&n.f);
    xf_open(&n.f, "3m", 1);
    situation_prepare(&n, false, SPEC_REPEAT_MOST);
    situation_make_ready(&n);
    assert_false(xf_say_go(&n.f, PARENT, n.handle, UINT64_MAX / SPEC_REPEAT_MOST + 1, 0));
    xf_close(&n.f);
}

TEST(data_of_a_round_after_the_next_repetition_closes_the_link)
{
    struct node n;

    reach(&n, PAUSED);
    assert_false(xf_say_data(&n.f, CHILD, n.handle, 2, 0, false));
    xf_close(&n.f);
}

/* For a repetition, a node reports the time of its child if that is longer. */
TEST(the_slowest_is_told_upwards)
{
    struct node n;
    struct peer_message *heard;

    reach(&n, REPETITION);
    assert_true(xf_say_repeated(&n.f, CHILD, n.handle, 0, 123456789));
    heard = xf_next(&n.f, PARENT);
    assert_non_null(heard);
    assert_int_equal(heard->kind, PEER_REPEATED);
    assert_int_equal(heard->repeated.repetition, 0);
    assert_int_equal(heard->repeated.nanoseconds, 123456789);
    message_forget(heard);
    xf_close(&n.f);
}

/* On a ring of three the other neighbour of node 1 is neither above nor below it. */
TEST(only_data_comes_from_beside_the_tree)
{
    for (enum message m = SIZED; m <= DATA; m++) {
        static const struct expectation ready = {.round = 0, .sizes = true};
        struct xf_prepare p;
        struct node n = {.handle = XF_HANDLE, .id = XF_ID};
        xf_init(&n.f);
        xf_open(&n.f, "3", 1);
        xf_prepare_init(&p, &n.f);
        p.message.prepare.round_bytes = 1;
        assert_true(xf_say(&n.f, PARENT, &p.message));
        assert_int_equal(xf_state(&n.f), EXCHANGE_READY);
        assert_int_equal(say(&n, CHILD, m, &ready), m == DATA);
        xf_close(&n.f);
    }
}

TEST(unknown_handles_are_ignored)
{
    struct node n;

    reach(&n, READY);
    n.handle = XF_HANDLE + 3;
    for (int times = 0; times < 100; times++)
        for (enum message m = SIZED; m < MESSAGES; m++) {
            assert_true(say(&n, PARENT, m, &expected[READY]));
            assert_true(say(&n, CHILD, m, &expected[READY]));
        }
    assert_int_equal(xf_drain(&n.f), 0);
    assert_int_equal(xf_state(&n.f), EXCHANGE_READY);
    xf_close(&n.f);
}

/* A link that was down may have lost frames: the exchange does not use it any more in either direction, but other
 * exchanges do. */
TEST(a_link_that_was_down_carries_the_exchange_no_more)
{
    struct xf_prepare p;
    struct node n = {.handle = XF_HANDLE};

    xf_init(&n.f);
    xf_open(&n.f, "3", 1); /* node 0 has another link: it is not down */
    xf_prepare_init(&p, &n.f);
    xf_prepare_generated(&p);
    assert_true(xf_say(&n.f, PARENT, &p.message));
    assert_int_equal(xf_hear(&n.f, PARENT), PEER_READY);
    xf_link_up(&n.f, PARENT); /* in place of the old one */
    assert_true(xf_say_go(&n.f, PARENT, n.handle, 1, 0));
    assert_int_equal(xf_drain(&n.f), 0);
    assert_int_equal(xf_state_of(&n.f, XF_ID), EXCHANGE_READY);
    p.message.prepare.exchange++;
    p.message.prepare.id = (char[]){"0-0000004d-9"};
    assert_true(xf_say(&n.f, PARENT, &p.message));
    xf_pass(&n.f, 10 * SECONDS);
    assert_int_equal(xf_state_of(&n.f, XF_ID), EXCHANGE_FAILED);
    assert_int_equal(xf_state_of(&n.f, "0-0000004d-9"), EXCHANGE_READY);
    xf_close(&n.f);
}
