/* What a root's prepare may contain, and when it may arrive. */
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
    enum operation operation;
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

/* Links that are down according to the root. The line of three nodes has links 0 (between nodes 0 and 1) and 1. */
TEST(a_prepare_says_what_is_down)
{
    static uint32_t there_is_none[] = {4}, listens[] = {3}, huge[] = {UINT32_MAX}, twice[] = {2, 2},
                    falls[] = {2, 0}, its_own[] = {0}, beyond[] = {2};
    static const struct {
        uint32_t *links;
        size_t count;
    } wrong[] = {{there_is_none, 1}, {listens, 1}, {huge, 1}, {twice, 2}, {falls, 2}, {its_own, 1}};
    struct exchange_fixture n;
    struct xf_prepare p;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        p.message.prepare.without = wrong[i].links;
        p.message.prepare.n_without = wrong[i].count;
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("list %zu was taken", i);
        assert_int_equal(line_known(&n), 0);
        xf_close(&n);
    }
    line_open(&n, 1); /* this node knows better; the root may know, too, when it retries */
    xf_prepare_init(&p, &n);
    p.message.prepare.without = beyond;
    p.message.prepare.n_without = 1;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(line_known(&n), 0);
    line_hears_objection(&n, ERROR_BUSY, 1, "1:+0");
    xf_close(&n);
}

/* Nodes that are missing according to the root. The line has nodes 0 (the root), 1 and 2. */
TEST(a_prepare_says_who_is_missing)
{
    static uint32_t root[] = {0}, there_is_none[] = {3}, twice[] = {2, 2}, itself[] = {1},
                    last[] = {2}, its_link[] = {2};
    static const struct {
        uint32_t *nodes, *links;
        size_t count, link_count;
        bool fails; /* not spec.shrink */
    } wrong[] = {{root, NULL, 1, 0, false},     {there_is_none, NULL, 1, 0, false},
                 {twice, NULL, 2, 0, false},    {itself, NULL, 1, 0, false},
                 {last, its_link, 1, 1, false}, {last, NULL, 1, 0, true}};
    struct exchange_fixture n;
    struct xf_prepare p;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        p.spec.algorithm = TEXT("auto");
        p.spec.shrink = !wrong[i].fails;
        p.message.prepare.missing = wrong[i].nodes;
        p.message.prepare.n_missing = wrong[i].count;
        p.message.prepare.without = wrong[i].links;
        p.message.prepare.n_without = wrong[i].link_count;
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("list %zu was taken", i);
        assert_int_equal(line_known(&n), 0);
        xf_close(&n);
    }
    line_open(&n, 1); /* which knows better */
    xf_prepare_init(&p, &n);
    p.spec.algorithm = TEXT("auto");
    p.spec.shrink = true;
    p.message.prepare.missing = last;
    p.message.prepare.n_missing = 1;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(line_known(&n), 0);
    line_hears_objection(&n, ERROR_BUSY, 1, "2, as the root knows");
    xf_close(&n);
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
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_int_equal(line_known(&n), 1);
    xf_close(&n);
}

/* Handles are reused: a root that was restarted does not know the old ones. */
TEST(a_handle_that_is_in_use_is_a_matter_of_time)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    line_open(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    (void)xf_drain(&n);
    p.message.prepare.id = OTHER_ID;
    assert_true(xf_say(&n, PARENT, &p.message));
    line_hears_objection(&n, ERROR_BUSY, 1, NULL);
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_OPENING);
    assert_int_equal(line_known(&n), 1);

    n.closes_at_once = false; /* of one that has ended, but whose disk is slow */
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    (void)xf_drain(&n);
    assert_true(xf_say(&n, PARENT, &p.message));
    line_hears_objection(&n, ERROR_BUSY, 1, NULL);
    xf_closed(&n);
    xf_settle(&n);
    n.closes_at_once = true;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, OTHER_ID), EXCHANGE_OPENING);
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_STATES);
    xf_close(&n);
}

/* The node hears of a restart of the root only after the root's prepare. Although a client entered the barrier here
 * long before, the node must not take the start that it knows for the later one. */
TEST(a_restart_of_the_root_is_heard_after_its_prepare)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    for (int entered = 0; entered < 2; entered++) {
        line_open(&n, 2);
        if (entered == 1)
            assert_non_null(xf_start(&n, &barrier, &seen, &e));
        xf_pass(&n, 10 * SECONDS);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        p.message.prepare.id = "0-0000004e-8";
        if (entered == 1) {
            p.spec.operation = OPERATION_BARRIER;
            p.spec.barrier = TEXT("b");
            p.spec.algorithm = TEXT("saadschultz");
        }
        assert_true(xf_say(&n, PARENT, &p.message));
        xf_pass(&n, 2 * SECONDS);
        assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_READY);
        xf_pass(&n, 3 * SECONDS); /* nor is it heard of now: it was the earlier one */
        assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILED);
        (void)xf_drain(&n);
        xf_close(&n);
    }
}

/* It cannot give a verdict. */
TEST(an_objection_to_a_restarted_root_is_reported_at_the_end)
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
    assert_non_null(strstr(xf_info(&n).reason, "node 0"));
    (void)xf_drain(&n);
    xf_close(&n);
}

/* The root of a barrier is found to have gone; before the client here is told, the node hears that this root wanted to
 * retry. */
TEST(a_root_that_is_gone_does_not_retry)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct peer_link_state_entry entry = {0};
    struct peer_link_state link_state = {0};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    line_open(&n, 2);
    assert_non_null(xf_start(&n, &barrier, &seen, &e));
    xf_settle(&n);
    xf_prepare_init(&p, &n);
    xf_prepare_generated(&p);
    p.spec.operation = OPERATION_BARRIER;
    p.spec.barrier = TEXT("b");
    p.spec.algorithm = TEXT("saadschultz");
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_READY);
    entry.hops = 1;
    entry.version = 2;
    entry.boot = 78;
    entry.up = 1;
    link_state.n_entry = 1;
    link_state.entry = &entry;
    const struct peer_message head = {.kind = PEER_LINK_STATE, .link_state = link_state};
    fixture_say(n.f.up[PARENT], &head, NULL, 0);
    assert_int_equal(seen.told, 0);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_BUSY, "node 1 is busy", 0));
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.e.code, ERROR_LINK);
    (void)xf_drain(&n);
    xf_close(&n);
}
