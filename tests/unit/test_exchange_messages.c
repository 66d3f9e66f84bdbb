/* Every message of an exchange has its time and its side: the middle node of three, below node 0
 * and above node 2, hears each message from both of them in each state, and a root hears them from
 * its child. What is unexpected costs the neighbour its link, what is late costs nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exchange_fixture.h"

enum { PARENT = 1, CHILD = 0 }; /* ports of node 1 to nodes 0 and 2; a root's child is at port 0 */

/* --- situations --- */

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
    ROOT_WAITING, /* to begin anew */
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

/* What becomes of each message, in the order above, from the parent and from the child:
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

struct node {
    struct exchange_fixture f;
    struct exchange_client_seen client;
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
};

/* --- node 1 --- */

static void prepare(struct node *n, bool folders, uint32_t repeat)
{
    struct xf_prepare p;

    xf_prepare_init(&p, &n->f);
    if (!folders)
        xf_prepare_generated(&p);
    p.spec.repeat = repeat;
    assert_true(xf_say(&n->f, PARENT, &p.message));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_PREPARE);
}

static void make_ready(struct node *n)
{
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_READY);
}

/* With folders, as far as the wanted situation. */
static void reach_with_folders(struct node *n, enum situation s)
{
    prepare(n, true, 0);
    if (s == OPENING)
        return;
    if (s == FAILING || s == FAILED) {
        xf_folders_fail(&n->f, ERROR_REFUSED, "missing");
        if (s == FAILED)
            assert_true(
                xf_say_verdict(&n->f, PARENT, n->handle, XF_ID, ERROR_REFUSED, "missing", 0));
        return;
    }
    assert_true(xf_say_sized(&n->f, CHILD, n->handle, 0));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_SIZED);
    if (s == OPENED)
        return;
    assert_true(xf_say_layout(&n->f, PARENT, n->handle));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_LAYOUT);
    if (s == PREPARING)
        return;
    make_ready(n);
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

static void reach_with_repetitions(struct node *n, enum situation s)
{
    prepare(n, false, 2);
    make_ready(n);
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

static void start(struct node *n, bool folders, enum operation operation, uint32_t repeat)
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

/* By the prepare that the root sends. */
static void learn_handle(struct node *n)
{
    struct peer_message *head = xf_next(&n->f, CHILD);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_PREPARE);
    n->handle = head->prepare.exchange;
    (void)snprintf(n->id, sizeof n->id, "%s", head->prepare.id);
    message_forget(head);
}

static void reach_as_root_with_folders(struct node *n, enum situation s)
{
    start(n, true, OPERATION_EXCHANGE, 0);
    learn_handle(n);
    if (s == ROOT_OPENING)
        return;
    assert_true(
        xf_say_sized(&n->f, CHILD, n->handle, s == ROOT_FIRST_ROUND ? EXCHANGE_FIXTURE_BUDGET : 0));
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

static void reach_as_root(struct node *n, enum situation s)
{
    start(n, false, OPERATION_EXCHANGE, s == ROOT_REPETITION ? 2 : 0);
    learn_handle(n);
    if (s == ROOT_WAITING)
        assert_true(xf_say_objection(&n->f, CHILD, n->handle, n->id, 0, ERROR_BUSY, "busy"));
    if (s == ROOT_FAILED)
        assert_true(xf_say_objection(&n->f, CHILD, n->handle, n->id, 0, ERROR_REFUSED, "no"));
    if (s == ROOT_WAITING || s == ROOT_FAILED || s == ROOT_PREPARING)
        return;
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    (void)xf_drain(&n->f);
    xf_say_all_data(&n->f, n->handle, 0, false);
}

static void reach(struct node *n, enum situation s)
{
    bool root = s >= ROOT_WAITING;

    *n = (struct node){.handle = XF_HANDLE, .id = XF_ID};
    xf_init(&n->f);
    xf_open(&n->f, "3m", root ? 0 : 1);
    if (s == ENTERED) {
        start(n, false, OPERATION_BARRIER, 0);
        /* Nobody has been told its handle, but somebody may hit it. */
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
        /* Only the link is lost: what becomes of the exchange is as with any fault. */
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

static void each_message_has_its_time_and_side(void **state)
{
    (void)state;
    for (enum situation s = OPENING; s < SITUATIONS; s++) {
        for (enum message m = SIZED; m < MESSAGES; m++) {
            if (expected[s].from_parent != NULL)
                hears(s, m, PARENT, expected[s].from_parent[m]);
            hears(s, m, CHILD, expected[s].from_child[m]);
        }
    }
}

/* What a message says has to fit, too. */
static void numbers_that_do_not_fit_close_the_link(void **state)
{
    enum {
        GO_WITHOUT_ROUNDS,
        GO_OF_ANOTHER_REPETITION,
        GO_UNCOUNTABLE,
        ROUND_DONE_EARLY,
        ROUND_DONE_OF_THE_LAST,
        ROUND_GO_TWICE,
        ROUND_GO_FAR,
        NEXT_GO_LONGER,
        NEXT_GO_SKIPS,
        NEXT_DATA_FAR,
        REPEATED_OTHER,
        CASES
    };
    static const enum situation when[CASES] = {
        READY,          READY,  REPETITION, FIRST_ROUND, FIRST_ROUND, FIRST_ROUND,
        BETWEEN_ROUNDS, PAUSED, PAUSED,     PAUSED,      REPETITION};
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct node n;
        bool up = true;
        reach(&n, i == GO_UNCOUNTABLE ? READY : when[i]);
        switch (i) {
        case GO_WITHOUT_ROUNDS:
            up = xf_say_go(&n.f, PARENT, n.handle, 0, 0);
            break;
        case GO_OF_ANOTHER_REPETITION:
            up = xf_say_go(&n.f, PARENT, n.handle, 1, 1);
            break;
        case GO_UNCOUNTABLE:
            xf_close(&n.f);
            n = (struct node){.handle = XF_HANDLE};
            xf_init(&n.f);
            xf_open(&n.f, "3m", 1);
            prepare(&n, false, SPEC_REPEAT_MOST);
            make_ready(&n);
            up = xf_say_go(&n.f, PARENT, n.handle, UINT64_MAX / SPEC_REPEAT_MOST + 1, 0);
            break;
        case ROUND_DONE_EARLY:
            up = xf_say_round_done(&n.f, CHILD, n.handle, 1);
            break;
        case ROUND_DONE_OF_THE_LAST:
            assert_true(xf_say_round_done(&n.f, CHILD, n.handle, 0));
            up = xf_say_round_done(&n.f, CHILD, n.handle, 1);
            break;
        case ROUND_GO_TWICE: /* round 0 has gone with `go` */
            up = xf_say_round_go(&n.f, PARENT, n.handle, 0);
            break;
        case ROUND_GO_FAR:
            up = xf_say_round_go(&n.f, PARENT, n.handle, 2);
            break;
        case NEXT_GO_LONGER:
            up = xf_say_go(&n.f, PARENT, n.handle, 2, 1);
            break;
        case NEXT_GO_SKIPS:
            up = xf_say_go(&n.f, PARENT, n.handle, 1, 2);
            break;
        case NEXT_DATA_FAR: /* a round after the next repetition */
            up = xf_say_data(&n.f, CHILD, n.handle, 2, 0, false);
            break;
        default:
            up = xf_say_repeated(&n.f, CHILD, n.handle, 1, 1);
            break;
        }
        if (up)
            fail_msg("case %d was taken", i);
        xf_close(&n.f);
    }
}

/* What a node says of a repetition is what its child says, if that was slower. */
static void the_slowest_is_told_upwards(void **state)
{
    struct node n;
    struct peer_message *heard;

    (void)state;
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
static void only_data_comes_from_beside_the_tree(void **state)
{
    (void)state;
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

static void unknown_handles_are_ignored(void **state)
{
    struct node n;

    (void)state;
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

/* A link that has been down may have lost something: the exchange goes on over it no more, in
 * neither direction, but the link is as good as before for others. */
static void a_link_that_was_down_carries_the_exchange_no_more(void **state)
{
    struct xf_prepare p;
    struct node n = {.handle = XF_HANDLE};

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_has_its_time_and_side),
        cmocka_unit_test(numbers_that_do_not_fit_close_the_link),
        cmocka_unit_test(the_slowest_is_told_upwards),
        cmocka_unit_test(only_data_comes_from_beside_the_tree),
        cmocka_unit_test(unknown_handles_are_ignored),
        cmocka_unit_test(a_link_that_was_down_carries_the_exchange_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
