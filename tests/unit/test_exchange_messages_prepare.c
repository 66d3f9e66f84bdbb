/* How an exchange begins and fails: what a root's prepare may say, objections to the root and its
 * verdict, and nodes that are busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/schedule/algorithms/family.h"
#include "exchange_fixture.h"

enum { PARENT = 1, CHILD = 0 }; /* ports of node 1 to nodes 0 and 2 */

#define TEXT(text) ((char *)(uintptr_t)(text))
#define OTHER_ID "0-0000004d-9"

static void open_node(struct exchange_fixture *n, uint32_t rank)
{
    xf_init(n);
    xf_open(n, "3m", rank);
}

static size_t known(struct exchange_fixture *n)
{
    struct exchange_info info[1000];

    return exchanges_list(core_exchanges(n->core), info, 1000);
}

/* The next message there is an objection to the root with this code, and this in its reason. */
static void hears_objection(struct exchange_fixture *n, enum error_code code, const char *reason)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_OBJECTION);
    if (head->objection.code != code || strstr(head->objection.reason, reason) == NULL)
        fail_msg("%u: \"%s\" instead of %d: \"%s\"", head->objection.code, head->objection.reason,
                 (int)code, reason);
    message_forget(head);
}

static bool hears_verdict(struct exchange_fixture *n, unsigned port, enum error_code code)
{
    struct peer_message *head = xf_next(n, port);
    bool verdict = head != NULL && head->kind == PEER_VERDICT && head->verdict.code == code;

    if (head != NULL)
        message_forget(head);
    return verdict;
}

/* --- prepare --- */

static void prepares_that_no_root_sends_close_the_link(void **state)
{
    static const char *const ids[] = {"",
                                      "0",
                                      "x-0000004d-8",
                                      "1-0000004d-8",
                                      "0-4d-8",
                                      "0-0000004D-8",
                                      "0-0000004d-08",
                                      "0-0000004d-8 ",
                                      "00-0000004d-8",
                                      "0-0000004d--8",
                                      "0-0000004d-4294967304",
                                      "0-0000004d-8\n",
                                      "0-0000004d-8-with-much-more-than-any-id-could-ever-have"};
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        p.message.prepare.id = TEXT(ids[i]);
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("id \"%s\" was taken", ids[i]);
        assert_int_equal(known(&n), 0);
        xf_close(&n);
    }
    for (int kind = 0; kind < 6; kind++) {
        static const uint32_t roots[] = {1, 2, 3, UINT32_MAX};
        static const char *const root_ids[] = {"1-0000004d-8", "2-0000004d-8", "3-0000004d-8",
                                               "4294967295-0000004d-8"};
        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        if (kind < 4) {
            p.message.prepare.root = roots[kind];
            p.message.prepare.id = TEXT(root_ids[kind]);
        } else if (kind == 4) {
            p.message.prepare.dims = TEXT("3");
        } else {
            p.message.prepare.spec = NULL;
        }
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("kind %d was taken", kind);
        assert_int_equal(known(&n), 0);
        xf_close(&n);
    }
    open_node(&n, 1);
    xf_prepare_init(&p, &n);
    assert_false(xf_say(&n, CHILD, &p.message)); /* from the side that node 0 is not on */
    xf_close(&n);
    for (int kind = 0; kind < 3; kind++) { /* it is for node 0 to begin that */
        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        p.spec.operation = kind < 2 ? OPERATION_GROUP : OPERATION_BARRIER;
        p.spec.barrier = TEXT("g");
        p.spec.shrink = kind == 0;
        p.message.prepare.root = 2;
        p.message.prepare.id = TEXT("2-0000004d-8");
        assert_false(xf_say(&n, CHILD, &p.message));
        assert_int_equal(known(&n), 0);
        xf_close(&n);
    }
}

/* Links that are down, says the root: of the line of three nodes there are 0 (from node 0 to 1) and 1. */
static void a_prepare_says_what_is_down(void **state)
{
    static uint32_t there_is_none[] = {2}, huge[] = {UINT32_MAX}, twice[] = {1, 1},
                    falls[] = {1, 0}, its_own[] = {0}, beyond[] = {1};
    static const struct {
        uint32_t *links;
        size_t count;
    } wrong[] = {{there_is_none, 1}, {huge, 1}, {twice, 2}, {falls, 2}, {its_own, 1}};
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        p.message.prepare.without = wrong[i].links;
        p.message.prepare.n_without = wrong[i].count;
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("list %zu was taken", i);
        assert_int_equal(known(&n), 0);
        xf_close(&n);
    }
    open_node(&n, 1); /* which knows better: the root may, too, when it begins anew */
    xf_prepare_init(&p, &n);
    p.message.prepare.without = beyond;
    p.message.prepare.n_without = 1;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(known(&n), 0);
    hears_objection(&n, ERROR_BUSY, "links that are down: none, says node 1; 1:+0, says the root");
    xf_close(&n);
}

/* Nodes that are missing, says the root: of the line there are 0, which is the root, 1 and 2. */
static void a_prepare_says_who_is_missing(void **state)
{
    static uint32_t root[] = {0}, there_is_none[] = {3}, twice[] = {2, 2}, itself[] = {1},
                    last[] = {2}, its_link[] = {1};
    static const struct {
        uint32_t *nodes, *links;
        size_t count, link_count;
        bool fails; /* not spec.shrink */
    } wrong[] = {{root, NULL, 1, 0, false},     {there_is_none, NULL, 1, 0, false},
                 {twice, NULL, 2, 0, false},    {itself, NULL, 1, 0, false},
                 {last, its_link, 1, 1, false}, {last, NULL, 1, 0, true}};
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        p.spec.algorithm = TEXT("auto");
        p.spec.shrink = !wrong[i].fails;
        p.message.prepare.missing = wrong[i].nodes;
        p.message.prepare.n_missing = wrong[i].count;
        p.message.prepare.without = wrong[i].links;
        p.message.prepare.n_without = wrong[i].link_count;
        if (xf_say(&n, PARENT, &p.message))
            fail_msg("list %zu was taken", i);
        assert_int_equal(known(&n), 0);
        xf_close(&n);
    }
    open_node(&n, 1); /* which knows better */
    xf_prepare_init(&p, &n);
    p.spec.algorithm = TEXT("auto");
    p.spec.shrink = true;
    p.message.prepare.missing = last;
    p.message.prepare.n_missing = 1;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(known(&n), 0);
    hears_objection(&n, ERROR_BUSY,
                    "links and nodes that are down: none, says node 1; 2, says the root");
    xf_close(&n);
}

static void a_prepare_comes_once(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    open_node(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_false(xf_say(&n, PARENT, &p.message));
    xf_close(&n);

    open_node(&n, 1); /* when it has ended it may be on its way */
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_FAILED);
    assert_int_equal(known(&n), 1);
    xf_close(&n);
}

/* Handles come round again: a root that has been restarted knows nothing of the old ones. */
static void a_handle_that_is_in_use_is_a_matter_of_time(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    open_node(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    (void)xf_drain(&n);
    p.message.prepare.id = TEXT(OTHER_ID);
    assert_true(xf_say(&n, PARENT, &p.message));
    hears_objection(&n, ERROR_BUSY, "node 1 is busy");
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_OPENING);
    assert_int_equal(known(&n), 1);

    n.closes_at_once = false; /* of one that has ended, but whose disk is slow */
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "over", 0));
    (void)xf_drain(&n);
    assert_true(xf_say(&n, PARENT, &p.message));
    hears_objection(&n, ERROR_BUSY, "node 1 is busy");
    xf_closed(&n);
    xf_settle(&n);
    n.closes_at_once = true;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, OTHER_ID), EXCHANGE_OPENING);
    assert_int_equal(xf_state_of(&n, XF_ID), EXCHANGE_STATES);
    xf_close(&n);
}

static void what_a_node_cannot_do_it_objects_to(void **state)
{
    enum {
        OPERATION,
        ALGORITHM,
        OTHER_ALGORITHM,
        AUTO,
        BEST,
        MANY_PACKETS,
        NO_MODE,
        MODE,
        HALF_FOLDERS,
        LONG_PATH,
        LARGE_BLOCK,
        REPEATED_FOLDERS,
        LONG_SESSION,
        NO_ROUND,
        EARLY_ROUND,
        ROUND_OF_REST,
        REST_OF_ALLGATHER,
        REST_OF_SESSION,
        REST_OF_OTHERS,
        LONG_ROUND,
        NO_WINDOW,
        WIDE_WINDOW,
        BARRIER_WITHOUT_ROUND,
        NEVER_MEMORY,
        KINDS
    };
    static const struct {
        enum error_code code;
        const char *reason;
    } expected[KINDS] = {
        [OPERATION] = {ERROR_USAGE, "operation 4294967295 does not exist"},
        [ALGORITHM] = {ERROR_USAGE, "no algorithm \"no?e\""},
        [OTHER_ALGORITHM] = {ERROR_USAGE, "is not an algorithm for operation broadcast"},
        [AUTO] = {ERROR_USAGE, "algorithm or mode is missing"},
        [BEST] = {ERROR_USAGE, "algorithm or mode is missing"},
        [MANY_PACKETS] = {ERROR_REFUSED, "cccube"},
        [NO_MODE] = {ERROR_USAGE, "algorithm or mode is missing"},
        [MODE] = {ERROR_USAGE, "mode \"dreaming\""},
        [HALF_FOLDERS] = {ERROR_USAGE, "a source folder needs a target folder"},
        [LONG_PATH] = {ERROR_USAGE, "a path is longer than"},
        [LARGE_BLOCK] = {ERROR_USAGE, "blocks are larger than"},
        [REPEATED_FOLDERS] = {ERROR_USAGE, "can be repeated"},
        [LONG_SESSION] = {ERROR_USAGE, "1000001 exchanges back to back"},
        [NO_ROUND] = {ERROR_PROTOCOL, "round size is missing"},
        [EARLY_ROUND] = {ERROR_PROTOCOL, "round size is said too early"},
        [ROUND_OF_REST] = {ERROR_PROTOCOL, "round size is said too early"},
        [REST_OF_ALLGATHER] = {ERROR_PROTOCOL, "cannot go on where another one was"},
        [REST_OF_SESSION] = {ERROR_PROTOCOL, "cannot go on where another one was"},
        [REST_OF_OTHERS] = {ERROR_PROTOCOL, "cannot go on where another one was"},
        [LONG_ROUND] = {ERROR_PROTOCOL, "round size of 18446744073709551615 bytes"},
        [NO_WINDOW] = {ERROR_PROTOCOL, "invalid window of 0"},
        [WIDE_WINDOW] = {ERROR_PROTOCOL, "invalid window of 4294967295"},
        [BARRIER_WITHOUT_ROUND] = {ERROR_PROTOCOL, "round size is missing"},
        [NEVER_MEMORY] = {ERROR_MEMORY, "bytes of memory on node 1, whose budget is"},
    };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        char path[SPEC_PATH_SIZE + 1];
        struct exchange_client_seen seen;
        struct exchange_fixture n;
        struct xf_prepare p;
        struct error e;

        open_node(&n, 1);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        memset(path, 'x', sizeof path);
        path[SPEC_PATH_SIZE] = '\0';
        switch (kind) {
        case OPERATION:
            p.spec.operation = UINT32_MAX;
            break;
        case ALGORITHM:
            p.spec.algorithm = TEXT("no\ne");
            break;
        case OTHER_ALGORITHM:
            p.spec.operation = OPERATION_BROADCAST;
            break;
        case AUTO:
            p.spec.algorithm = TEXT(SPEC_AUTO);
            break;
        case BEST: /* of what a family has, the root has to say which one */
            p.spec.algorithm = TEXT("cccube-best");
            break;
        case MANY_PACKETS:
            p.spec.algorithm = TEXT("cccube-q524288");
            break;
        case NO_MODE:
            p.spec.mode = TEXT("");
            break;
        case MODE:
            p.spec.mode = TEXT("dreaming");
            break;
        case HALF_FOLDERS:
            p.spec.from = TEXT("/in");
            break;
        case LONG_PATH:
            p.spec.from = p.spec.to = path;
            break;
        case LARGE_BLOCK:
            p.spec.block_bytes = UINT64_MAX;
            break;
        case REPEATED_FOLDERS:
            p.spec.from = p.spec.to = TEXT("/x");
            p.spec.repeat = 2;
            break;
        case LONG_SESSION:
            p.spec.repeat = SPEC_REPEAT_MOST + 1;
            break;
        case NO_ROUND:
            p.message.prepare.round_bytes = 0;
            break;
        case EARLY_ROUND: /* of which nobody has chosen an algorithm yet */
            p.spec.algorithm = TEXT(SPEC_AUTO);
            p.spec.mode = TEXT("");
            p.spec.from = p.spec.to = TEXT("/x");
            p.spec.block_bytes = 0;
            break;
        case ROUND_OF_REST:
            p.message.prepare.around = true;
            p.message.prepare.resumes = TEXT(XF_ID);
            break;
        case REST_OF_ALLGATHER:
            p.message.prepare.around = true;
            p.message.prepare.resumes = TEXT(XF_ID);
            p.spec.operation = OPERATION_ALLGATHER;
            p.spec.algorithm = TEXT("balanced");
            p.spec.mode = TEXT("streaming");
            p.spec.from = p.spec.to = TEXT("/x");
            p.spec.block_bytes = p.message.prepare.round_bytes = 0;
            break;
        case REST_OF_SESSION:
            p.message.prepare.around = true;
            p.message.prepare.resumes = TEXT(XF_ID);
            p.spec.repeat = 2;
            p.message.prepare.round_bytes = 0;
            break;
        case REST_OF_OTHERS:
            p.message.prepare.around = true;
            p.message.prepare.resumes = TEXT("7-00000001-1");
            p.message.prepare.round_bytes = 0;
            break;
        case LONG_ROUND:
            p.message.prepare.round_bytes = UINT64_MAX;
            break;
        case NO_WINDOW:
            p.message.prepare.window = 0;
            break;
        case WIDE_WINDOW:
            p.message.prepare.window = UINT32_MAX;
            break;
        case BARRIER_WITHOUT_ROUND: { /* of a barrier that a client has entered here */
            const struct spec barrier = {
                .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
            assert_non_null(xf_start(&n, &barrier, &seen, &e));
            xf_settle(&n);
            p.spec.operation = OPERATION_BARRIER;
            p.spec.barrier = TEXT("b");
            p.spec.algorithm = TEXT("saadschultz");
            p.message.prepare.round_bytes = 0;
            break;
        }
        default:
            p.spec.block_bytes = p.message.prepare.round_bytes = 2 * EXCHANGE_FIXTURE_BUDGET;
            break;
        }
        assert_true(xf_say(&n, PARENT, &p.message)); /* no fault of the neighbour */
        hears_objection(&n, expected[kind].code, expected[kind].reason);
        assert_int_equal(exchanges_reserved(core_exchanges(n.core)), 0);
        assert_int_equal(family_made_count(), 0); /* what is impossible costs no memory */
        (void)xf_drain(&n);
        xf_close(&n);
    }
}

/* The root has been restarted, which is heard of later than its prepare. That a client has entered the
 * barrier here long before is no reason to take the start that is known for the later one. */
static void of_a_start_that_is_heard_of_later(void **state)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    (void)state;
    for (int entered = 0; entered < 2; entered++) {
        open_node(&n, 2);
        if (entered == 1)
            assert_non_null(xf_start(&n, &barrier, &seen, &e));
        xf_pass(&n, 10 * SECONDS);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        p.message.prepare.id = TEXT("0-0000004e-8");
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
static void who_objects_to_a_root_that_was_restarted_says_so_in_the_end(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    open_node(&n, 2);
    xf_prepare_init(&p, &n);
    xf_prepare_generated(&p);
    p.message.prepare.id = TEXT("0-0000004e-8");
    p.message.prepare.round_bytes = UINT64_MAX;
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILING);
    xf_pass(&n, 10 * SECONDS);
    assert_int_equal(xf_state_of(&n, "0-0000004e-8"), EXCHANGE_FAILED);
    assert_string_equal(xf_info(&n).reason, "node 0, where the exchange began, went down");
    (void)xf_drain(&n);
    xf_close(&n);
}

/* The root of a barrier is found to have gone; before the client here is told, it is heard that this
 * root was to begin anew. */
static void a_root_that_is_gone_does_not_begin_anew(void **state)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct peer_link_state_entry entry = {0};
    struct peer_link_state link_state = {0};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;

    (void)state;
    open_node(&n, 2);
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

/* Prepares exchange number i of a root behind this port, as that one names it. */
static bool prepare_of(struct exchange_fixture *n, unsigned port, uint32_t root, uint32_t i,
                       uint64_t block_bytes)
{
    char id[EXCHANGE_ID_SIZE];
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    (void)snprintf(id, sizeof id, "%u-0000004d-%u", root, i);
    p.message.prepare.id = id;
    p.message.prepare.root = root;
    p.message.prepare.user = root; /* each has a user of its own */
    p.message.prepare.exchange = n->f.torus.nodes * i + root;
    p.spec.block_bytes = block_bytes;
    p.message.prepare.round_bytes = block_bytes > 0 ? block_bytes : 1;
    return xf_say(n, port, &p.message);
}

static bool prepare_another(struct exchange_fixture *n, uint32_t i, uint64_t block_bytes)
{
    return prepare_of(n, PARENT, 0, i, block_bytes);
}

static void what_does_not_fit_now_is_busy(void **state)
{
    struct exchange_fixture n;
    uint32_t i = 0;

    (void)state;
    open_node(&n, 1); /* memory */
    do
        assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    while (xf_hear(&n, PARENT) == PEER_NOTHING && i < 20);
    assert_in_range(i, 2, 9);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8));
    hears_objection(&n, ERROR_BUSY, "node 1 is busy: the exchange needs");
    assert_true(xf_say_verdict(&n, PARENT, 3, "0-0000004d-1", ERROR_CANCELLED, "over", 0));
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 8)); /* there is room again */
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_close(&n);

    open_node(&n, 1); /* number */
    for (i = 0; i < 16; i++)
        assert_true(prepare_another(&n, 1 + i, 0));
    assert_int_equal(known(&n), 16);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, 1 + i, 0));
    hears_objection(&n, ERROR_BUSY,
                    "node 1 is busy: 16 exchanges are under way there, 16 of them of node 0");
    assert_int_equal(known(&n), 16);
    assert_true(prepare_of(&n, CHILD, 2, 1, 0)); /* what one root has leaves places for others */
    assert_int_equal(known(&n), 17);
    xf_close(&n);
}

/* All roots together have so many places; but each has one. */
static void each_root_has_a_place(void **state)
{
    static const struct spec own = {
        .algorithm = "direct", .mode = MODE_STEPPED, .from = "", .to = ""};
    struct exchange_client_seen seen;
    struct exchange_fixture n;
    uint32_t prepared = 0;
    struct error e;

    (void)state;
    xf_init(&n);
    xf_open(&n, "40m", 1);
    for (uint32_t root = 2; root < 2 + 256 / 16; root++)
        for (uint32_t i = 1; i <= 16; i++, prepared++)
            assert_true(prepare_of(&n, CHILD, root, i, 0));
    assert_int_equal(known(&n), prepared);
    for (uint32_t root = 30; root < 40; root++) {
        assert_true(prepare_of(&n, CHILD, root, 1, 0));
        assert_int_equal(known(&n), ++prepared);
        assert_true(prepare_of(&n, CHILD, root, 2, 0));
        assert_int_equal(known(&n), prepared);
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

/* However much one root prepares, and does not go on with, it leaves a share. */
static void one_root_does_not_take_all_memory(void **state)
{
    struct exchange_fixture n;
    uint32_t i = 0;

    (void)state;
    open_node(&n, 1);
    do
        assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    while (xf_hear(&n, PARENT) == PEER_NOTHING && i < 16);
    assert_in_range(i, 3, 15);
    assert_in_range(exchanges_reserved(core_exchanges(n.core)), EXCHANGE_FIXTURE_BUDGET / 2,
                    EXCHANGE_FIXTURE_BUDGET / 4 * 3);
    (void)xf_drain(&n);
    assert_true(prepare_another(&n, ++i, EXCHANGE_FIXTURE_BUDGET / 16));
    hears_objection(&n, ERROR_BUSY, "that node 0 has not begun have");
    assert_true(prepare_of(&n, CHILD, 2, 1, EXCHANGE_FIXTURE_BUDGET / 16));
    assert_int_equal(xf_state_of(&n, "2-0000004d-1"), EXCHANGE_PREPARING);
    xf_close(&n);
}

/* However many nodes one user asks, others find some memory. */
static void one_user_does_not_take_all_memory(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    char id[EXCHANGE_ID_SIZE];
    uint32_t i = 0;

    (void)state;
    open_node(&n, 1);
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
    assert_true(prepare_of(&n, CHILD, 2, ++i, EXCHANGE_FIXTURE_BUDGET / 32)); /* of another user */
    (void)snprintf(id, sizeof id, "2-0000004d-%u", i);
    assert_int_equal(xf_state_of(&n, id), EXCHANGE_PREPARING);
    xf_close(&n);
}

/* What waits for disks that are slow takes a place, also when it is over. */
static void what_is_still_closing_has_a_place(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    unsigned i;

    (void)state;
    open_node(&n, 1);
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
    hears_objection(&n, ERROR_BUSY, "16 of them of node 0");
    n.closes_at_once = true;
    xf_closed(&n);
    xf_settle(&n);
    assert_true(prepare_another(&n, i + 1, 0));
    assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
    xf_close(&n);
}

/* --- what had arrived before --- */

#define SPANS_MOST 6000u

static bool say_arrived(struct exchange_fixture *n, unsigned port, uint32_t node, uint64_t *spans,
                        size_t count)
{
    struct peer_arrived message = {0};

    message.exchange = XF_HANDLE;
    message.node = node;
    message.spans = spans;
    message.n_spans = 3 * count;
    const struct peer_message head = {.kind = PEER_ARRIVED, .arrived = message};
    return xf_say(n, port, &head);
}

static void open_resumed(struct exchange_fixture *n)
{
    struct xf_prepare p;

    open_node(n, 1);
    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.message.prepare.round_bytes = 0;
    p.message.prepare.around = true;
    p.message.prepare.resumes = TEXT("0-0000004d-5");
    p.spec.block_bytes = 1000000;
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(xf_state(n), EXCHANGE_OPENING);
    (void)xf_drain(n);
}

/* So many spans of a byte, of the block from this node. */
static size_t fill_spans(uint64_t *spans, uint32_t source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spans[3 * i] = source;
        spans[3 * i + 1] = 2 * i;
        spans[3 * i + 2] = 1;
    }
    return count;
}

static void what_had_arrived_is_said_once_from_where_it_was(void **state)
{
    static uint64_t spans[3 * SPANS_MOST];
    struct exchange_fixture n;

    (void)state;
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

static void spans_are_bounded(void **state)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;

    (void)state;
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
static void spans_of_all_exchanges_are_bounded(void **state)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;
    struct xf_prepare p;
    size_t held = 0;
    bool busy = false;

    (void)state;
    (void)fill_spans(spans, 1, most);
    open_node(&n, 1);
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
        p.message.prepare.around = true;
        p.spec.block_bytes = 1000000;
        assert_true(xf_say(&n, root == 0 ? PARENT : CHILD, &p.message));
        for (uint32_t node = 0; node < 3 && !busy; node++) {
            struct peer_arrived message = {0};
            message.exchange = XF_HANDLE + i;
            message.node = node;
            message.spans = spans;
            message.n_spans = 3 * most;
            const struct peer_message head = {.kind = PEER_ARRIVED, .arrived = message};
            assert_true(xf_say(&n, root == 0 ? PARENT : CHILD, &head));
            busy = xf_state_of(&n, id) == EXCHANGE_FAILING;
            held += busy ? 0 : most;
        }
        (void)xf_drain(&n);
    }
    assert_true(busy);
    assert_in_range(held, 200 * 1024, 256 * 1024);
    xf_close(&n);
}

/* --- objections and verdicts --- */

struct root {
    struct exchange_fixture f;
    struct exchange_client_seen client;
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
};

static const struct spec generated = {
    .algorithm = "direct", .mode = MODE_STEPPED, .from = "", .to = "", .timeout_ns = 30 * SECONDS};

/* The prepare that the root sends names the exchange. */
static bool learn(struct root *r)
{
    struct peer_message *head = xf_next(&r->f, CHILD);
    bool prepared = head != NULL && head->kind == PEER_PREPARE;

    if (prepared) {
        r->handle = head->prepare.exchange;
        (void)snprintf(r->id, sizeof r->id, "%s", head->prepare.id);
    }
    if (head != NULL)
        message_forget(head);
    return prepared;
}

static void open_root(struct root *r)
{
    struct error e;

    open_node(&r->f, 0);
    assert_non_null(xf_start(&r->f, &generated, &r->client, &e));
    xf_settle(&r->f);
    assert_true(learn(r));
}

static bool object(struct root *r, uint32_t code, const char *reason)
{
    return xf_say_objection(&r->f, CHILD, r->handle, r->id, 0, code, reason);
}

static void an_objection_ends_it_everywhere(void **state)
{
    static const uint32_t codes[] = {0, ERROR_IO, ERROR_BUSY + 1, UINT32_MAX};
    struct root r;

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        open_root(&r);
        /* Not this one: another handle, another id, another root. */
        assert_true(xf_say_objection(&r.f, CHILD, r.handle + 1, r.id, 0, ERROR_IO, "no"));
        assert_true(xf_say_objection(&r.f, CHILD, r.handle, XF_ID, 0, ERROR_IO, "no"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
        assert_true(object(&r, codes[i], "node 2 says:\n\x1b[2Jno"));
        assert_int_equal(xf_state(&r.f), EXCHANGE_FAILED);
        assert_true(hears_verdict(&r.f, CHILD, ERROR_IO));
        assert_int_equal(r.client.told, 1);
        assert_int_equal(r.client.e.code, ERROR_IO);
        assert_string_equal(r.client.e.text, "node 2 says:??[2Jno");
        /* Who has not heard that hears it again. */
        assert_true(object(&r, ERROR_IO, "again"));
        assert_true(hears_verdict(&r.f, CHILD, ERROR_IO));
        assert_int_equal(xf_drain(&r.f), 0);
        xf_close(&r.f);
    }
    open_root(&r); /* who names nobody that it comes from is named */
    assert_true(object(&r, ERROR_IO, "node 0 is down, not node 12"));
    assert_string_equal(r.client.e.text, "node 1 says: node 0 is down, not node 12");
    xf_close(&r.f);
    open_root(&r); /* for nodes that there are not */
    assert_false(xf_say_objection(&r.f, CHILD, r.handle, r.id, 3, ERROR_IO, "no"));
    xf_close(&r.f);
    open_root(&r); /* from the root's own side: its sender knows of other links that are down */
    assert_true(xf_say_objection(&r.f, CHILD, r.handle, r.id, 2, ERROR_IO, "no"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_PREPARING);
    assert_int_equal(xf_drain(&r.f), 0);
    xf_close(&r.f);
}

static void objections_pass_through(void **state)
{
    struct exchange_fixture n;

    (void)state;
    open_node(&n, 1); /* an exchange that is not known here */
    assert_true(xf_say_objection(&n, CHILD, 77, "0-0000004d-\x01", 0, ERROR_REFUSED, "no\x7f"));
    hears_objection(&n, ERROR_REFUSED, "no?");
    assert_true(xf_say_objection(&n, PARENT, 77, XF_ID, 0, ERROR_REFUSED, "no"));
    assert_int_equal(xf_drain(&n), 0);
    xf_close(&n);
}

static void verdicts_end_it_and_go_on(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;

    (void)state;
    open_node(&n, 1);
    xf_prepare_init(&p, &n);
    assert_true(xf_say(&n, PARENT, &p.message));
    (void)xf_drain(&n);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, OTHER_ID, ERROR_IO, "another", 0));
    assert_int_equal(xf_state(&n), EXCHANGE_OPENING);
    assert_int_equal(xf_drain(&n), 0);
    assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, UINT32_MAX, "the\nroot's", 0));
    assert_string_equal(xf_info(&n).reason, "the?root's");
    assert_true(hears_verdict(&n, CHILD, ERROR_IO));
    for (int i = 0; i < 5; i++)
        assert_true(xf_say_verdict(&n, PARENT, XF_HANDLE, XF_ID, ERROR_IO, "again", UINT32_MAX));
    assert_int_equal(xf_drain(&n), 0);
    assert_string_equal(xf_info(&n).reason, "the?root's");
    xf_close(&n);
}

/* It may come before the prepare where links are down: it is passed on once, and heeded. */
static void a_verdict_before_the_prepare(void **state)
{
    struct exchange_fixture n;
    struct xf_prepare p;
    struct peer_message *head;
    size_t passed = 0;

    (void)state;
    open_node(&n, 1);
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
    hears_objection(&n, ERROR_BUSY, "node 1 has heard that this attempt is over");
    assert_int_equal(xf_drain(&n), 0);
    assert_int_equal(known(&n), 0);
    /* Thousands more do not make it forget this one, and are not all passed on. */
    for (unsigned i = 0; i < 3000; i++) {
        char id[EXCHANGE_ID_SIZE];
        (void)snprintf(id, sizeof id, "0-0000004d-%u", 100 + i);
        assert_true(xf_say_verdict(&n, PARENT, i, id, ERROR_LINK, "cut", 1));
        passed += xf_drain(&n);
    }
    assert_in_range(passed, 1, 1000);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(known(&n), 0);
    /* But it is not remembered for ever: it may have been invented. */
    xf_pass(&n, 10 * SECONDS);
    assert_true(xf_say(&n, PARENT, &p.message));
    assert_int_equal(known(&n), 1);
    xf_close(&n);
}

/* --- busy --- */

static void the_root_begins_anew(void **state)
{
    struct root r;
    char first[EXCHANGE_ID_SIZE];
    unsigned attempts = 1;

    (void)state;
    open_root(&r);
    (void)snprintf(first, sizeof first, "%s", r.id);
    assert_true(object(&r, ERROR_BUSY, "node 2 is busy"));
    assert_true(hears_verdict(&r.f, CHILD, ERROR_BUSY));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    /* Several nodes may be busy; and what else they say is about the attempt that was taken back. */
    assert_true(object(&r, ERROR_BUSY, "node 1 is busy"));
    assert_true(object(&r, ERROR_REFUSED, "node 1 refuses"));
    assert_int_equal(xf_state(&r.f), EXCHANGE_WAITING);
    assert_int_equal(r.client.told, 0);
    while (r.client.told == 0) {
        xf_pass(&r.f, 10 * MILLISECONDS);
        if (!learn(&r))
            continue;
        attempts++;
        assert_string_not_equal(r.id, first);
        assert_true(object(&r, ERROR_BUSY, "node 2 is busy"));
        assert_true(hears_verdict(&r.f, CHILD, ERROR_BUSY));
        assert_true(attempts < 200); /* with pauses that grow */
    }
    if (attempts <= 10)
        fail_msg("%u attempts, then: %s", attempts, r.client.e.text);
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_TIMEOUT);
    assert_non_null(strstr(r.client.e.text, "node 2 is busy"));
    xf_close(&r.f);

    open_root(&r); /* and is done when there is room */
    assert_true(object(&r, ERROR_BUSY, "node 2 is busy"));
    (void)xf_drain(&r.f);
    for (int i = 0; i < 100 && !learn(&r); i++)
        xf_pass(&r.f, 10 * MILLISECONDS);
    assert_true(xf_say_handle(&r.f, CHILD, PEER_READY, r.handle));
    (void)xf_drain(&r.f);
    xf_say_all_data(&r.f, r.handle, 0, false);
    assert_true(xf_say_done(&r.f, CHILD, r.handle, 1, 2));
    assert_int_equal(r.client.told, 1);
    assert_int_equal(r.client.e.code, ERROR_NONE);
    xf_close(&r.f);
}

/* Without a timeout of its own it waits for an hour, and its client is told so, not what is enough for it to
 * run. */
static void the_time_that_it_has_waited_is_told(void **state)
{
    struct spec spec = generated;
    struct root r;
    struct error e;

    (void)state;
    spec.timeout_ns = 0;
    open_node(&r.f, 0);
    assert_non_null(xf_start(&r.f, &spec, &r.client, &e));
    xf_settle(&r.f);
    for (int second = 0; second < 3610 && r.client.told == 0; second++) {
        if (learn(&r))
            assert_true(object(&r, ERROR_BUSY, "node 2 is busy"));
        (void)xf_drain(&r.f);
        xf_pass(&r.f, 2 * SECONDS);
    }
    assert_int_equal(r.client.told, 1);
    if (strstr(r.client.e.text, "within 3600.0 s: node 2 is busy") == NULL)
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

/* An exchange that waits for memory is not overtaken, whatever begins in between. */
static void a_barrier_lets_nobody_overtake(void **state)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct spec large = generated;
    struct exchange_client_seen seen[3];
    struct job *waits, *enters, *later;
    struct exchange_fixture n;
    struct xf_prepare p;
    struct error e;
    char id[EXCHANGE_ID_SIZE];
    uint32_t counter;

    (void)state;
    open_node(&n, 0);
    xf_prepare_init(&p, &n); /* of another root: what is left does not hold the large one's share */
    xf_prepare_generated(&p);
    p.message.prepare.root = 1;
    p.message.prepare.id = TEXT("1-0000004d-2");
    p.message.prepare.exchange = 7;
    p.spec.block_bytes = p.message.prepare.round_bytes = EXCHANGE_FIXTURE_BUDGET / 8 * 5;
    assert_true(xf_say(&n, CHILD, &p.message));
    assert_int_equal(xf_state(&n), EXCHANGE_READY);
    assert_true(prepare_of(&n, CHILD, 2, 9, EXCHANGE_FIXTURE_BUDGET / 4)); /* and of a third */
    assert_int_equal(xf_state_of(&n, "2-0000004d-9"), EXCHANGE_READY);
    large.block_bytes = EXCHANGE_FIXTURE_BUDGET;
    waits = xf_start(&n, &large, &seen[0], &e);
    enters = xf_start(&n, &barrier, &seen[1], &e);
    later = xf_start(&n, &generated, &seen[2], &e);
    xf_settle(&n);
    assert_int_equal(state_of(enters), EXCHANGE_PREPARING);
    (void)xf_drain(&n); /* the barrier has to begin anew, while others wait for memory before it */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepares_that_no_root_sends_close_the_link),
        cmocka_unit_test(a_prepare_says_what_is_down),
        cmocka_unit_test(a_prepare_says_who_is_missing),
        cmocka_unit_test(a_prepare_comes_once),
        cmocka_unit_test(a_handle_that_is_in_use_is_a_matter_of_time),
        cmocka_unit_test(what_a_node_cannot_do_it_objects_to),
        cmocka_unit_test(of_a_start_that_is_heard_of_later),
        cmocka_unit_test(who_objects_to_a_root_that_was_restarted_says_so_in_the_end),
        cmocka_unit_test(a_root_that_is_gone_does_not_begin_anew),
        cmocka_unit_test(what_does_not_fit_now_is_busy),
        cmocka_unit_test(each_root_has_a_place),
        cmocka_unit_test(one_root_does_not_take_all_memory),
        cmocka_unit_test(one_user_does_not_take_all_memory),
        cmocka_unit_test(what_is_still_closing_has_a_place),
        cmocka_unit_test(what_had_arrived_is_said_once_from_where_it_was),
        cmocka_unit_test(spans_are_bounded),
        cmocka_unit_test(spans_of_all_exchanges_are_bounded),
        cmocka_unit_test(an_objection_ends_it_everywhere),
        cmocka_unit_test(objections_pass_through),
        cmocka_unit_test(verdicts_end_it_and_go_on),
        cmocka_unit_test(a_verdict_before_the_prepare),
        cmocka_unit_test(the_root_begins_anew),
        cmocka_unit_test(the_time_that_it_has_waited_is_told),
        cmocka_unit_test(a_barrier_lets_nobody_overtake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
