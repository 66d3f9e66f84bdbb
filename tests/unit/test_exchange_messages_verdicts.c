/* Objections to the root, and its verdict. */
#include "line_fixture.h"
#include "tests/support/cmocka.h"

#define OTHER_ID "0-0000004d-9"

TEST(an_objection_ends_it_everywhere)
{
    static const uint32_t codes[] = {0, ERROR_IO, ERROR_BUSY + 1, UINT32_MAX};
    struct line_root r;

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        line_root_open(&r);
        /* Verdicts about other exchanges: another handle, another id, another root. */
        assert_true(xf_say_objection(&r.f, CHILD, r.handle + 1, r.id, 0, ERROR_IO, "no"));
        assert_true(xf_say_objection(&r.f, CHILD, r.handle, XF_ID, 0, ERROR_IO, "no"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
        assert_true(line_root_object(&r, codes[i], "node 2 reports:\n\x1b[2Jno"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_FAILED);
        assert_true(line_hears_verdict(&r.f, CHILD, ERROR_IO));
        assert_int_equal(r.client.told, 1);
        assert_int_equal(r.client.e.code, ERROR_IO);
        assert_string_equal(r.client.e.text, "node 2 reports:??[2Jno");
        /* A node that has not heard the verdict hears it again. */
        assert_true(line_root_object(&r, ERROR_IO, "again"));
        assert_true(line_hears_verdict(&r.f, CHILD, ERROR_IO));
        assert_int_equal(xf_drain(&r.f), 0);
        xf_close(&r.f);
    }
    line_root_open(&r); /* for nodes that do not exist */
    assert_false(xf_say_objection(&r.f, CHILD, r.handle, r.id, 3, ERROR_IO, "no"));
    xf_close(&r.f);
    line_root_open(
        &r); /* from the root's own side: its sender knows of other links that are down */
    assert_true(xf_say_objection(&r.f, CHILD, r.handle, r.id, 2, ERROR_IO, "no"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
    assert_int_equal(xf_drain(&r.f), 0);
    xf_close(&r.f);
}

/* The root believes a node about nodes behind the node's own link; otherwise it names the node that reports. The text
 * is not parsed. */
TEST(an_objection_is_about_whom_it_says)
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
        assert_true(xf_say_objection_about(&r.f, CHILD, r.handle, r.id, 0, &why));
        assert_int_equal(strstr(r.client.e.text, "node 1 reports") == NULL, rows[i].believed);
        assert_int_equal(r.client.e.culprit.kind,
                         rows[i].believed ? rows[i].culprit.kind : CULPRIT_NODE);
        assert_int_equal(r.client.e.culprit.node, rows[i].believed ? rows[i].culprit.node : 1);
        xf_close(&r.f);
    }
}

/* A node that is ready and has not heard `go` tells its program by this whether others may have begun. */
TEST(a_verdict_says_whether_anybody_was_told_to_go)
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
        while (head != NULL && head->kind != PEER_VERDICT) { /* its blocks */
            message_forget(head);
            head = xf_next(&r.f, CHILD);
        }
        assert_non_null(head);
        assert_int_equal(head->verdict.before_go, !gone);
        message_forget(head);
        xf_close(&r.f);
    }
}

TEST(objections_pass_through)
{
    struct exchange_fixture n;

    line_open(&n, 1); /* an exchange that is not known here */
    assert_true(xf_say_objection(&n, CHILD, 77, "0-0000004d-99", 0, ERROR_REFUSED, "no\x7f"));
    line_hears_objection(&n, ERROR_REFUSED, TORUS_NO_NODE, "no?");
    assert_true(xf_say_objection(&n, PARENT, 77, XF_ID, 0, ERROR_REFUSED, "no"));
    assert_int_equal(xf_drain(&n), 0);
    assert_false(xf_say_objection(&n, CHILD, 77, "0-0000004d-\x01", 0, ERROR_REFUSED, "no"));
    xf_close(&n);
}

TEST(verdicts_end_it_and_go_on)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    line_open(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    (void)xf_drain(&n);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, OTHER_ID, ERROR_IO, "another", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_OPENING);
    assert_int_equal(xf_drain(&n), 0);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, UINT32_MAX, "the\nroot's", 0));
    assert_string_equal(xf_info(&n).reason, "the?root's");
    assert_true(line_hears_verdict(&n, CHILD, ERROR_IO));
    for (int i = 0; i < 5; i++)
        assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "again", UINT32_MAX));
    assert_int_equal(xf_drain(&n), 0);
    assert_string_equal(xf_info(&n).reason, "the?root's");
    xf_close(&n);
}

/* If links are down, a verdict may arrive before the prepare: it is passed on once, and takes effect. */
TEST(a_verdict_before_the_prepare)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    struct peer_message *head;
    size_t passed = 0;

    line_open(&n, 1);
    assert_true(xf_say_verdict(&n, CHILD, XF_HANDLE, XF_ID, ERROR_LINK, "cut", UINT32_MAX));
    head = xf_next(&n, PARENT);
    assert_non_null(head);
    assert_int_equal(head->kind, PEER_VERDICT);
    assert_true(head->verdict.left <= n.f.torus.nodes); /* whatever the neighbour says */
    message_forget(head);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_LINK, "cut", UINT32_MAX));
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, "0-0000004d-10", ERROR_LINK, "cut", 0));
    assert_int_equal(xf_drain(&n), 0);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    line_hears_objection(&n, ERROR_BUSY, 1, NULL);
    assert_int_equal(xf_drain(&n), 0);
    assert_int_equal(line_known(&n), 0);
    /* Thousands of others do not make the node forget this one, and are not all passed on. */
    for (unsigned i = 0; i < 3000; i++) {
        char id[EXCHANGE_ID_SIZE];
        (void)snprintf(id, sizeof id, "0-0000004d-%u", 100 + i);
        assert_true(xf_say_verdict(&n, PARENT, i, id, ERROR_LINK, "cut", 1));
        passed += xf_drain(&n);
    }
    assert_in_range(passed, 1, 1000);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(line_known(&n), 0);
    /* But the node does not remember it for ever: it may have been invented. */
    xf_pass(&n, 10 * SECONDS);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(line_known(&n), 1);
    xf_close(&n);
}
