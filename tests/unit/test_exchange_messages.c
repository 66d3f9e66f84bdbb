/* Every message of an exchange is valid only at certain times and from certain sides. The middle node of three, below
 * node 0 and above node 2, receives each message from both of them in each state, and a root receives them from its
 * child. An unexpected message costs the link; a late one is ignored. */
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "line_fixture.h"
#include "tests/support/cmocka.h"

enum situation {
    /* of node 1; in each only a part of node 2 is missing, if any is */
    OPENING,
    OPENED,
    PREPARING,
    READY,
    FIRST_ROUND,    /* of two; finished here */
    BETWEEN_ROUNDS, /* the first has been finished here and below */
    LAST_ROUND,     /* of one; finished here */
    REPETITION,     /* the first of two; finished here */
    PAUSED,         /* between them */
    DONE,
    COMMITTING,
    COMMITTED,
    FINISHED,
    FAILING,
    FAILED,
    IN_DOUBT,
    ENTERED,
    /* of node 0, the root */
    ROOT_WAITING, /* to retry */
    ROOT_OPENING,
    ROOT_PREPARING,
    ROOT_FIRST_ROUND,
    ROOT_LAST_ROUND,
    ROOT_REPETITION,
    ROOT_DECIDING,
    ROOT_COMMITTING,
    ROOT_COMMITTED,
    ROOT_FAILED,
    SITUATIONS
};

/* --- node 1 --- */

/* Node 1: the root prepares an exchange of folders or of generated blocks, with that many repetitions. */
static void situation_prepare(struct line_root *n, bool folders, uint32_t repeat)
{
    struct xf_prepare p;

    xf_prepare_init(&p, &n->f);
    if (!folders)
        xf_prepare_generated(&p);
    p.spec.repeat = repeat;
    assert_true(xf_say(&n->f, PARENT, &p.message));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_PREPARE);
}

/* Node 1 and its child are ready. */
static void situation_make_ready(struct line_root *n)
{
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_READY);
}

/* Runs an exchange of folders to the wanted situation. */
static void reach_with_folders(struct line_root *n, enum situation s)
{
    situation_prepare(n, true, 0);
    if (s == OPENING)
        return;
    if (s == FAILING || s == FAILED) {
        xf_folders_fail(&n->f, ERROR_REFUSED, "missing");
        if (s == FAILED)
            assert_true(xf_say_abort(&n->f, PARENT, n->handle, XF_ID, ERROR_REFUSED, "missing", 0));
        return;
    }
    assert_true(xf_say_sizes(&n->f, CHILD, n->handle, 0));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_SIZES);
    if (s == OPENED)
        return;
    assert_true(xf_say_layout(&n->f, PARENT, n->handle));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_LAYOUT);
    if (s == PREPARING)
        return;
    situation_make_ready(n);
    if (s == READY)
        return;
    assert_true(
        xf_say_go(&n->f, PARENT, n->handle, s == FIRST_ROUND || s == BETWEEN_ROUNDS ? 2 : 1, 0));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 0, true);
    if (s == FIRST_ROUND || s == LAST_ROUND)
        return;
    if (s == BETWEEN_ROUNDS) {
        assert_true(xf_say_round_done(&n->f, CHILD, n->handle, 0));
        assert_int_equal(xf_hear(&n->f, PARENT), PEER_ROUND_DONE);
        return;
    }
    assert_true(xf_say_done(&n->f, CHILD, n->handle, 2, 1));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_DONE);
    if (s == IN_DOUBT)
        xf_pass(&n->f, 70 * SECONDS);
    n->f.commit = s == COMMITTED;
    if (s == COMMITTING || s == COMMITTED)
        assert_true(xf_say_handle(&n->f, PARENT, PEER_COMMIT, n->handle));
    if (s == COMMITTED)
        assert_true(xf_say_confirm(&n->f, CHILD, XF_ID, 2, ""));
}

static void reach_with_repetitions(struct line_root *n, enum situation s)
{
    situation_prepare(n, false, 2);
    situation_make_ready(n);
    assert_true(xf_say_go(&n->f, PARENT, n->handle, 1, 0));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 0, false);
    if (s == REPETITION)
        return;
    assert_true(xf_say_repeated(&n->f, CHILD, n->handle, 0, 1));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_REPEATED);
    if (s == PAUSED)
        return;
    assert_true(xf_say_go(&n->f, PARENT, n->handle, 1, 1));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 1, false);
    assert_true(xf_say_done(&n->f, CHILD, n->handle, 2, 1));
}

/* --- node 0 --- */

static void start(struct line_root *n, bool folders, enum schedule_operation operation,
                  uint32_t repeat)
{
    const struct spec spec = {.algorithm = operation == OPERATION_BARRIER ? SPEC_AUTO : "direct",
                              .mode =
                                  operation == OPERATION_BARRIER ? MODE_OF_ALGORITHM : MODE_STEPPED,
                              .operation = operation,
                              .barrier = "b",
                              .from = folders ? "/in" : NULL,
                              .to = folders ? "/out" : NULL,
                              .repeat = repeat,
                              .timeout_ns = 60 * SECONDS};
    struct error e;

    if (xf_start(&n->f, &spec, &n->client, &e) == NULL)
        fail_msg("%s", e.text);
    xf_settle(&n->f);
}

static void reach_as_root_with_folders(struct line_root *n, enum situation s)
{
    start(n, true, OPERATION_EXCHANGE, 0);
    assert_true(line_root_learn(n));
    if (s == ROOT_OPENING)
        return;
    assert_true(
        xf_say_sizes(&n->f, CHILD, n->handle, s == ROOT_FIRST_ROUND ? EXCHANGE_FIXTURE_BUDGET : 0));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_LAYOUT);
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 0, true);
    if (s == ROOT_FIRST_ROUND || s == ROOT_LAST_ROUND)
        return;
    assert_true(xf_say_done(&n->f, CHILD, n->handle, 1, 2));
    assert_int_equal(xf_state(&n->f), EXCHANGE_DECIDING);
    n->f.commit = 0;
    if (s == ROOT_DECIDING)
        return;
    xf_storage_done(&n->f, NULL); /* its own output is not in place yet */
    if (s == ROOT_COMMITTING)
        return;
    n->f.commit = 1;
    xf_wake(&n->f);
    for (uint32_t rank = 1; rank < 3; rank++)
        assert_true(xf_say_confirm(&n->f, CHILD, n->id, rank, ""));
}

static void reach_as_root(struct line_root *n, enum situation s)
{
    start(n, false, OPERATION_EXCHANGE, s == ROOT_REPETITION ? 2 : 0);
    assert_true(line_root_learn(n));
    if (s == ROOT_WAITING)
        assert_true(xf_say_nack(&n->f, CHILD, n->handle, n->id, 0, ERROR_BUSY, "busy"));
    if (s == ROOT_FAILED)
        assert_true(xf_say_nack(&n->f, CHILD, n->handle, n->id, 0, ERROR_REFUSED, "no"));
    if (s == ROOT_WAITING || s == ROOT_FAILED || s == ROOT_PREPARING)
        return;
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 0, false);
}

/* Opens the node and brings it into a situation. Discards what it sends. The caller closes n->f. */
static void situation_reach(struct line_root *n, enum situation s)
{
    bool root = s >= ROOT_WAITING;

    *n = (struct line_root){.handle = XF_HANDLE, .id = XF_ID};
    xf_init(&n->f);
    xf_open(&n->f, "3m", root ? 0 : 1);
    if (s == ENTERED) {
        start(n, false, OPERATION_BARRIER, 0);
        /* No node has been told the handle, but a neighbour may guess it. */
        (void)snprintf(n->id, sizeof n->id, "%s", xf_info(&n->f).id);
        assert_int_equal(sscanf(n->id, "%*u-%*x-%u", &n->handle), 1);
        n->handle = n->handle * n->f.f.torus.nodes + 1;
    } else if (s == REPETITION || s == PAUSED || s == FINISHED) {
        reach_with_repetitions(n, s);
    } else if (!root) {
        reach_with_folders(n, s);
    } else if (s == ROOT_WAITING || s == ROOT_PREPARING || s == ROOT_REPETITION ||
               s == ROOT_FAILED) {
        reach_as_root(n, s);
    } else {
        reach_as_root_with_folders(n, s);
    }
    (void)xf_drain(&n->f);
}

/* Every message of an exchange is valid only at certain times and from certain sides. The middle node of three, below
 * node 0 and above node 2, receives each message from both of them in each state, and a root receives them from its
 * child. An unexpected message costs the link; a late one is ignored. */

enum message {
    SIZES,
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

static void reach(struct line_root *n, enum situation s)
{
    situation_reach(n, s);
    if (xf_state(&n->f) != expected[s].state)
        fail_msg("%s: the state is %s", expected[s].name, exchange_state_name(xf_state(&n->f)));
}

static bool say(struct line_root *n, unsigned port, enum message m, const struct expectation *x)
{
    switch (m) {
    case SIZES:
        return xf_say_sizes(&n->f, port, n->handle, 0);
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
    static const char *const names[MESSAGES] = {"sizes",      "layout",   "ready",    "go",
                                                "round done", "round go", "repeated", "done",
                                                "commit",     "data",     "clear"};
    static struct line_root n;

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
        for (enum message m = SIZES; m < MESSAGES; m++) {
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
        struct line_root n;
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
    struct line_root n = {.handle = XF_HANDLE};

    xf_init(&n.f);
    xf_open(&n.f, "3m", 1);
    situation_prepare(&n, false, SPEC_REPEAT_MOST);
    situation_make_ready(&n);
    assert_false(xf_say_go(&n.f, PARENT, n.handle, UINT64_MAX / SPEC_REPEAT_MOST + 1, 0));
    xf_close(&n.f);
}

TEST(data_of_a_round_after_the_next_repetition_closes_the_link)
{
    struct line_root n;

    reach(&n, PAUSED);
    assert_false(xf_say_data(&n.f, CHILD, n.handle, 2, 0, false));
    xf_close(&n.f);
}

/* For a repetition, a node reports the time of its child if that is longer. */
TEST(the_slowest_is_told_upwards)
{
    struct line_root n;
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
    for (enum message m = SIZES; m <= DATA; m++) {
        static const struct expectation ready = {.round = 0, .sizes = true};
        struct xf_prepare p;
        struct line_root n = {.handle = XF_HANDLE, .id = XF_ID};
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
    struct line_root n;

    reach(&n, READY);
    n.handle = XF_HANDLE + 3;
    for (int times = 0; times < 100; times++)
        for (enum message m = SIZES; m < MESSAGES; m++) {
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
    struct line_root n = {.handle = XF_HANDLE};

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

/* A node's reports about kept output of earlier attempts. */

#define SPANS_MOST 6000u

#define say_arrived_of(n, port, handle, from, list, count)                                         \
    XF_SAY(n, port, PEER_ARRIVED, arrived, .exchange = (handle), .node = (from),                   \
           .n_spans = 3 * (count), .spans = (list))
#define say_arrived(n, port, from, list, count)                                                    \
    say_arrived_of(n, port, XF_HANDLE, from, list, count)

static void open_resumed(struct exchange_fixture *n)
{
    struct xf_prepare p;

    line_open(n, 1);
    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.message.prepare.round_bytes = 0;
    p.message.prepare.avoids_links = true;
    p.message.prepare.resumes = "0-0000004d-5";
    p.spec.block_bytes = 1000000;
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(xf_state(n), EXCHANGE_OPENING);
    (void)xf_drain(n);
}

/* That many spans of one byte, in the block from this node. */
static size_t fill_spans(uint64_t *spans, uint32_t source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spans[3 * i] = source;
        spans[3 * i + 1] = 2 * i;
        spans[3 * i + 2] = 1;
    }
    return count;
}

TEST(kept_bytes_are_reported_once)
{
    static uint64_t spans[3 * SPANS_MOST];
    struct exchange_fixture n;

    (void)fill_spans(spans, 1, 2);
    open_resumed(&n); /* up */
    assert_true(say_arrived(&n, CHILD, 2, spans, 2));
    assert_int_equal(xf_hear(&n, PARENT), PEER_ARRIVED);
    assert_false(say_arrived(&n, CHILD, 2, spans, 2));
    xf_close(&n);
    for (uint32_t node = 0; node < 2; node++) { /* of nodes that are not behind it */
        open_resumed(&n);
        assert_false(say_arrived(&n, CHILD, node, spans, 2));
        assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
        xf_close(&n);
    }
    open_resumed(&n); /* down: all nodes, and then no more */
    assert_true(say_arrived(&n, CHILD, 2, spans, 2));
    for (uint32_t node = 0; node < 3; node++)
        assert_true(say_arrived(&n, PARENT, node, spans, 2));
    assert_false(say_arrived(&n, PARENT, 2, spans, 2));
    xf_close(&n);
}

TEST(spans_are_bounded)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;

    open_resumed(&n);
    assert_true(say_arrived(&n, PARENT, 0, spans, fill_spans(spans, 1, most)));
    assert_int_equal(xf_hear(&n, CHILD), PEER_ARRIVED);
    assert_false(say_arrived(&n, PARENT, 2, spans, fill_spans(spans, 1, most + 1)));
    xf_close(&n);
    open_resumed(&n); /* of another node's blocks, which this one only passes on */
    assert_false(say_arrived(&n, PARENT, 2, spans, fill_spans(spans, 0, most + 1)));
    xf_close(&n);
}

/* So are those of all exchanges. */
TEST(spans_of_all_exchanges_are_bounded)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;
    struct xf_prepare p;
    size_t held = 0;
    bool busy = false;

    (void)fill_spans(spans, 1, most);
    line_open(&n, 1);
    for (unsigned i = 1; i <= 32 && !busy; i++) {
        uint32_t root = i % 2 == 0 ? 0 : 2;
        char id[EXCHANGE_ID_SIZE];
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        (void)snprintf(id, sizeof id, "%u-0000004d-%u", root, i);
        p.message.prepare.id = p.message.prepare.resumes = id;
        p.message.prepare.root = root;
        p.message.prepare.exchange = XF_HANDLE + i;
        p.message.prepare.round_bytes = 0;
        p.message.prepare.avoids_links = true;
        p.spec.block_bytes = 1000000;
        assert_true(xf_say(&n, root == 0 ? PARENT : CHILD, &p.message));
        for (uint32_t node = 0; node < 3 && !busy; node++) {
            assert_true(
                say_arrived_of(&n, root == 0 ? PARENT : CHILD, XF_HANDLE + i, node, spans, most));
            busy = xf_state_of(&n, id) == EXCHANGE_FAILING;
            held += busy ? 0 : most;
        }
        (void)xf_drain(&n);
    }
    assert_true(busy);
    assert_in_range(held, 200 * 1024, 256 * 1024);
    xf_close(&n);
}

/* Nacks of a node to a valid prepare. */

/* Stands for 0 in a row, where 0 means the usual value. */
#define ZERO (UINT64_MAX - 1)

static char long_path[SPEC_PATH_SIZE + 1];

/* Differences from a usual exchange of generated blocks. NULL and 0: no difference. */
struct row {
    enum error_code code;
    uint32_t operation, repeat;
    const char *algorithm, *mode, *from, *to;
    uint64_t block_bytes, round_bytes, window;
    const char *resumes;
    bool entered; /* of a barrier that a client has entered here */
};

static const struct row rows[] = {
    {ERROR_USAGE, .operation = UINT32_MAX},
    {ERROR_USAGE, .operation = OPERATION_BROADCAST}, /* has other algorithms */
    {ERROR_USAGE, .algorithm = "no\ne"},
    {ERROR_USAGE, .algorithm = SPEC_AUTO},
    {ERROR_USAGE, .algorithm = "cccube-best"},      /* the root names a member */
    {ERROR_REFUSED, .algorithm = "cccube-q524288"}, /* too many packets */
    {ERROR_USAGE, .mode = ""},
    {ERROR_USAGE, .mode = "dreaming"},
    {ERROR_USAGE, .from = "/in"},
    {ERROR_USAGE, .from = long_path, .to = long_path},
    {ERROR_USAGE, .block_bytes = UINT64_MAX},
    {ERROR_USAGE, .from = "/x", .to = "/x", .repeat = 2},
    {ERROR_USAGE, .repeat = SPEC_REPEAT_MOST + 1},
    {ERROR_PROTOCOL, .round_bytes = ZERO},
    /* A round for which no algorithm was chosen yet. */
    {ERROR_PROTOCOL, .algorithm = SPEC_AUTO, .mode = "", .from = "/x", .to = "/x"},
    {ERROR_PROTOCOL, .resumes = XF_ID},
    {ERROR_PROTOCOL, .operation = OPERATION_ALLGATHER, .algorithm = "balanced", .mode = "streaming",
     .from = "/x", .to = "/x", .resumes = XF_ID, .round_bytes = ZERO},
    {ERROR_PROTOCOL, .repeat = 2, .resumes = XF_ID, .round_bytes = ZERO},
    {ERROR_PROTOCOL, .resumes = "7-00000001-1", .round_bytes = ZERO},
    {ERROR_PROTOCOL, .round_bytes = UINT64_MAX},
    {ERROR_PROTOCOL, .window = ZERO},
    {ERROR_PROTOCOL, .window = UINT32_MAX},
    {ERROR_PROTOCOL, .operation = OPERATION_BARRIER, .algorithm = "saadschultz",
     .round_bytes = ZERO, .entered = true},
    {ERROR_MEMORY, .block_bytes = 2 * EXCHANGE_FIXTURE_BUDGET,
     .round_bytes = 2 * EXCHANGE_FIXTURE_BUDGET},
    {ERROR_NONE},
};

static void set_text(char **field, const char *text)
{
    if (text != NULL)
        *field = (char *)(uintptr_t)text; /* only encoded */
}

static uint64_t number(uint64_t usual, uint64_t other)
{
    return other == 0 ? usual : other == ZERO ? 0 : other;
}

static void change(struct xf_prepare *p, const struct row *row)
{
    struct peer_prepare *prepare = &p->message.prepare;

    set_text(&p->spec.algorithm, row->algorithm);
    set_text(&p->spec.mode, row->mode);
    set_text(&p->spec.from, row->from);
    set_text(&p->spec.to, row->to);
    p->spec.operation = row->operation;
    p->spec.repeat = row->repeat;
    p->spec.block_bytes = row->block_bytes;
    prepare->round_bytes = number(prepare->round_bytes, row->round_bytes);
    prepare->window = (uint32_t)number(prepare->window, row->window);
    if (row->resumes != NULL) {
        prepare->avoids_links = true;
        prepare->resumes = row->resumes;
    }
}

static void enter_barrier(struct exchange_fixture *n, struct exchange_client_seen *seen)
{
    struct error e;

    assert_non_null(xf_start(n, &line_barrier, seen, &e));
    xf_settle(n);
}

TEST(a_node_objects_to_impossible_requests)
{
    memset(long_path, 'x', sizeof long_path - 1);
    assert_non_null(algorithm_at(0)); /* the registry has members of families */
    const size_t made = family_made_count();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct exchange_client_seen seen;
        struct exchange_fixture n;
        struct xf_prepare p;

        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        change(&p, &rows[i]);
        if (rows[i].entered) {
            enter_barrier(&n, &seen);
            set_text(&p.spec.barrier, "b");
        }
        if (!xf_say(&n, PARENT, &p.message)) /* the neighbour is not to blame */
            fail_msg("row %zu: %s", i, n.f.up[PARENT]->last);
        if (rows[i].code == ERROR_NONE)
            assert_int_equal(xf_state(&n), EXCHANGE_PREPARING);
        else
            line_hears_nack(&n, rows[i].code, 1, NULL);
        if (rows[i].code != ERROR_NONE) /* an impossible request takes no memory */
            assert_int_equal(exchanges_reserved(core_exchanges(n.core)), 0);
        assert_int_equal(family_made_count(), made);
        (void)xf_drain(&n);
        xf_close(&n);
    }
}
