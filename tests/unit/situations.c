#include "situations.h"

#include "tests/support/cmocka.h"

/* --- node 1 --- */

void situation_prepare(struct node *n, bool folders, uint32_t repeat)
{
    struct xf_prepare p;

    xf_prepare_init(&p, &n->f);
    if (!folders)
        xf_prepare_generated(&p);
    p.spec.repeat = repeat;
    assert_true(xf_say(&n->f, PARENT, &p.message));
    assert_int_equal(xf_hear(&n->f, CHILD), PEER_PREPARE);
}

void situation_make_ready(struct node *n)
{
    assert_true(xf_say_handle(&n->f, CHILD, PEER_READY, n->handle));
    assert_int_equal(xf_hear(&n->f, PARENT), PEER_READY);
}

/* Runs an exchange of folders to the wanted situation. */
static void reach_with_folders(struct node *n, enum situation s)
{
    situation_prepare(n, true, 0);
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

static void reach_with_repetitions(struct node *n, enum situation s)
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

/* The handle in the root's prepare. */
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

void situation_reach(struct node *n, enum situation s)
{
    bool root = s >= ROOT_WAITING;

    *n = (struct node){.handle = XF_HANDLE, .id = XF_ID};
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
