/* Copies of trees without faults: on all kinds of networks, of all kinds, with all options. */
#include <malloc.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/frame.h"
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

static struct sim_copy *must_succeed(struct sim *sim, const struct copy_request *request)
{
    struct sim_copy *c = sim_copy_whole(sim, request->node, request);

    sim_copy_must_succeed(c);
    assert_int_equal(c->result.attempts, 1);
    /* whoever is told that the copy is done can unmount its disks */
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        assert_int_equal(sim->node[rank].trees.readers, 0);
        assert_int_equal(sim->node[rank].trees.writers_open, 0);
    }
    return c;
}

/* A second copy moves nothing, a third one what has changed. */
TEST(only_what_is_missing_moves)
{
    static const char *const networks[] = {"4x4", "5x7", "3mx4m", "complete:4", "5 x complete:3"};

    for (size_t i = 0; i < sizeof networks / sizeof *networks; i += one_in(2)) {
        struct sim *sim = copy_begin_on(networks[i], first_seed + i);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        r.delete = true;
        struct sim_tree *tree = &sim->node[r.node].trees.tree;
        copy_tree(sim, r.node, "/from", 300000);
        struct sim_copy *first = must_succeed(sim, &r);
        assert_int_equal(first->result.bytes_sent, first->result.bytes_all);
        struct sim_copy *second = must_succeed(sim, &r);
        assert_int_equal(second->result.bytes_sent, 0);
        assert_int_equal(second->result.bytes_all, first->result.bytes_all);
        struct tree_content *content = tree_content_draw(2, 1000);
        sim_tree_put_file(tree, "/from/new", 1, content);
        tree_content_release(content);
        struct tree_item *large = (struct tree_item *)(uintptr_t)sim_tree_find(tree, "/from/large");
        content = tree_content_new(large->content->bytes, large->content->size);
        content->bytes[100000] ^= 1;
        content->hash = tree_hash(content->bytes, content->size);
        tree_content_release(large->content);
        large->content = content;
        large->modified++;
        struct sim_copy *third = must_succeed(sim, &r);
        assert_int_equal(third->result.bytes_sent, 1000 + SIM_TREE_PIECE);
        copy_end(sim);
    }
}

/* Random copies, several at a time; some are made a second time. */
SEED_TEST(seeds, copies_of_all_kinds)
{
    struct sim *sim = copy_begin(seed);
    uint32_t copies = 1 + sim_any(sim, 3);
    struct copy_request *r[3];
    struct sim_copy *c[3];

    for (uint32_t i = 0; i < copies; i++) {
        r[i] = sim_copy_draw(sim, i, 60, 20000, sim_chance(sim));
        c[i] = sim_copy_start(
            sim, sim_any(sim, 2) == 0 ? r[i]->node : sim_any(sim, sim_torus(sim)->nodes), r[i]);
        sim_pass(sim, sim_any(sim, 20) * MILLISECONDS);
    }
    for (uint32_t i = 0; i < copies; i++) {
        sim_copy_run(c[i], 60 * SECONDS);
        sim_copy_must_succeed(c[i]);
        if (c[i]->request.dry_run || c[i]->request.verify) {
            assert_int_equal(c[i]->result.bytes_sent, 0);
            r[i]->dry_run = r[i]->verify = false;
        }
        struct sim_copy *again = sim_copy_whole(sim, r[i]->node, r[i]);
        sim_copy_must_succeed(again);
        if (!c[i]->request.dry_run && !c[i]->request.verify)
            assert_int_equal(again->result.bytes_sent, 0);
        sim_copy_draw_free(r[i]);
    }
    copy_end(sim);
}

/* What a dry run says, the copy does. */
SEED_TEST(seeds, dry_runs)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request *r = sim_copy_draw(sim, 0, 60, 20000, sim_chance(sim));

    r->verify = r->as_it_comes = false;
    r->dry_run = true;
    struct sim_copy *dry = sim_copy_whole(sim, r->node, r);
    sim_copy_must_succeed(dry);
    r->dry_run = false;
    struct sim_copy *wet = sim_copy_whole(sim, r->node, r);
    sim_copy_must_succeed(wet);
    assert_int_equal(dry->result.bytes_all, wet->result.bytes_all);
    for (uint32_t i = 0; i < wet->result.outcomes; i++) {
        const struct copy_outcome *o = &wet->result.outcome[i];
        const struct copy_outcome *d = sim_copy_outcome(dry, o->node, o->from);
        assert_non_null(d);
        assert_memory_equal(&d->report, &o->report, offsetof(struct tree_report, first));
        assert_string_equal(d->report.first, o->report.first);
    }
    sim_copy_draw_free(r);
    copy_end(sim);
}

/* A file with other contents and the same size and time is found by --verify, and replaced with --checksum only. */
TEST(contents_are_compared_on_request)
{
    struct sim *sim = copy_begin_on("3x3", 1);
    struct copy_request r = copy_default(4);
    const uint32_t wrong = 7;

    copy_tree(sim, r.node, "/from", 100000);
    (void)must_succeed(sim, &r);
    sim_copies_settle(sim);
    struct tree_item *large =
        (struct tree_item *)(uintptr_t)sim_tree_find(&sim->node[wrong].trees.tree, "/to/large");
    struct tree_content *other = tree_content_draw(99, large->content->size);
    tree_content_release(large->content);
    large->content = other;
    /* Everything looks equal; so the target stays as it is, and the check of the target is told so. */
    r.dry_run = true;
    struct sim_copy *fast = must_succeed(sim, &r);
    assert_int_equal(sim_copy_outcome(fast, wrong, 4)->report.changed, 0);
    r.dry_run = false;
    r.verify = true;
    struct sim_copy *verified = must_succeed(sim, &r);
    for (uint32_t i = 0; i < verified->result.outcomes; i++) {
        const struct copy_outcome *o = &verified->result.outcome[i];
        assert_int_equal(o->report.changed, o->node == wrong ? 1 : 0);
        assert_string_equal(o->report.first, o->node == wrong ? "large" : "");
    }
    r.verify = false;
    r.checksum = true;
    struct sim_copy *repaired = must_succeed(sim, &r);
    assert_int_equal(repaired->result.bytes_sent, 100000);
    copy_end(sim);
}

/* Nodes that do not take part have nothing afterwards. */
SEED_TEST(seeds, parts)
{
    struct sim *sim = copy_begin(seed);
    uint32_t nodes = sim_torus(sim)->nodes;
    struct copy_request r = copy_default(sim_any(sim, nodes));
    uint32_t only = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 50000);
    r.nodes = &only;
    r.nodes_count = 1;
    struct sim_copy *c = must_succeed(sim, &r);
    assert_int_equal(c->result.outcomes, 1);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const struct tree_disk *trees = &sim->node[rank].trees;
        assert_int_equal(sim_tree_find(&trees->tree, "/to") != NULL, rank == only);
        if (rank != only)
            assert_int_equal(trees->bytes_written + trees->bytes_ignored, 0);
    }
    copy_end(sim);
}

/* Two clients at once, with the same target: at each node one of the copies is in place, and the other is told that the
 * target is busy, or has come later. */
SEED_TEST(seeds, two_copies_to_one_target)
{
    struct sim *sim = copy_begin(seed);
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct copy_request a = copy_default(sim_any(sim, nodes)), b = a;
    uint32_t busy = 0;

    if (nodes < 3) {
        sim_free(sim);
        return;
    }
    a.delete = b.delete = true;
    b.node = copy_other(sim, a.node);
    copy_tree(sim, a.node, "/from", 500000);
    copy_tree(sim, b.node, "/from", 500000);
    struct sim_copy *first = sim_copy_start(sim, a.node, &a);
    struct sim_copy *second = sim_copy_start(sim, b.node, &b);
    sim_copy_run(first, 60 * SECONDS);
    sim_copy_run(second, 60 * SECONDS);
    assert_int_equal(first->error.code, ERROR_NONE);
    assert_int_equal(second->error.code, ERROR_NONE);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const struct copy_outcome *x = sim_copy_outcome(first, rank, a.node);
        const struct copy_outcome *y = sim_copy_outcome(second, rank, b.node);
        if (x == NULL || y == NULL)
            continue;
        assert_true(x->error.code == ERROR_NONE || y->error.code == ERROR_NONE);
        assert_true(x->error.code == ERROR_NONE || x->error.code == ERROR_BUSY);
        assert_true(y->error.code == ERROR_NONE || y->error.code == ERROR_BUSY);
        busy += x->error.code == ERROR_BUSY || y->error.code == ERROR_BUSY;
    }
    assert_true(busy > 0);
    copy_end(sim);
}

TEST(sockets_are_left_out_and_counted)
{
    struct sim *sim = copy_begin_on("4x4", 3);
    struct copy_request r = copy_default(5);
    struct sim_tree *tree = &sim->node[5].trees.tree;
    const struct tree_item socket = {.kind = SIM_TREE_SOCKET};

    sim_tree_put_folder(tree, "/from", 1);
    sim_tree_put(tree, "/from/a", &socket);
    sim_tree_put(tree, "/from/b", &socket);
    struct sim_copy *c = must_succeed(sim, &r);
    assert_int_equal(c->result.left_out, 2);
    assert_string_equal(c->result.first_left_out, "/from/a");
    copy_end(sim);
}

/* Documents and files that need many calls; the memory of all nodes together stays far below what they move. */
struct peak {
    uint64_t before, most;
};

static bool watch_heap(struct sim *sim, void *context)
{
    struct peak *peak = context;
    const struct mallinfo2 now = mallinfo2();
    uint64_t staged = 0;

    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        for (const struct staged *s = sim->node[rank].trees.staged; s != NULL; s = s->next)
            for (const struct staged_file *f = s->file; f != NULL; f = f->next)
                staged += f->size;
    uint64_t used = now.uordblks + now.hblkhd - tree_contents_bytes() - staged;
    peak->most = used > peak->most ? used : peak->most;
    return false;
}

TEST(large_trees_in_little_memory)
{
    struct sim *sim = copy_begin_on("3", 4);
    struct copy_request r = copy_default(1);
    struct peak peak = {0};

    copy_tree(sim, 1, "/from", 150u << 20);
    sim->node[1].trees.padding = 20u << 20;
    (void)watch_heap(sim, &peak);
    peak.before = peak.most;
    sim_watch(sim, watch_heap, &peak);
    (void)must_succeed(sim, &r);
    sim_watch(sim, NULL, NULL);
    /* The documents are in the memory of this simulator: at the reader, and at both writers. */
    uint64_t documents = 3 * (32u << 20);
    if (peak.most - peak.before > documents + 3 * (32u << 20))
        fail_msg("%llu MiB are used at the same time",
                 (unsigned long long)(peak.most - peak.before) >> 20);
    copy_end(sim);
}

/* --- what is refused --- */

TEST(requests_that_are_refused)
{
    struct sim *sim = copy_begin_on("4", 5);
    struct copy_request r = copy_default(9);
    uint32_t outside = 17;

    copy_tree(sim, 1, "/from", 0);
    sim_copy_must_fail(sim_copy_start(sim, 1, &r), ERROR_USAGE); /* there is no node 9 */
    r = copy_default(1);
    r.nodes = &outside;
    r.nodes_count = 1;
    sim_copy_must_fail(sim_copy_start(sim, 1, &r), ERROR_USAGE);
    copy_end(sim);
}

/* A source that does not exist is named, and nothing changes anywhere. */
TEST(a_source_that_is_missing)
{
    struct sim *sim = copy_begin_on("3x3", 6);
    struct copy_request r = copy_default(2);

    for (uint32_t rank = 0; rank < 9; rank++)
        if (rank != 2)
            copy_tree(sim, rank, "/to", 0);
    struct sim_copy *c = sim_copy_whole(sim, 7, &r);
    if (c->error.code == ERROR_NONE) {
        for (uint32_t i = 0; i < c->result.outcomes; i++) {
            assert_int_not_equal(c->result.outcome[i].error.code, ERROR_NONE);
            assert_contains(c->result.outcome[i].error.text, "/from");
        }
    } else {
        assert_contains(c->error.text, "/from");
    }
    copy_end(sim);
}

static void restart_older(struct sim *sim, uint32_t rank, uint32_t minors_back)
{
    sim_kill(sim, rank, SIM_STOP);
    sim_set_minors_back(sim, rank, minors_back);
    sim_restart(sim, rank);
    sim_run_until_whole(sim);
}

/* Digests of chunks are of the new kind as soon as all nodes know it, and of the old kind before. */
TEST(fast_digests_wait_for_the_last_node)
{
    struct sim *sim = copy_begin_on("3x3", 8);
    struct copy_request r = copy_default(0);

    copy_tree(sim, 0, "/from", 0);
    (void)must_succeed(sim, &r);
    assert_true(sim->node[0].trees.fast_digests);
    for (uint32_t back = 1; back <= PROTOCOL_MINOR - COPY_FAST_MINOR; back++)
        for (uint32_t rank = 0; rank < 9; rank++)
            restart_older(sim, rank, back);
    restart_older(sim, 4, PROTOCOL_MINOR - COPY_FAST_MINOR + 1);
    sim_pass(sim, 1 * SECONDS);
    (void)must_succeed(sim, &r);
    assert_false(sim->node[0].trees.fast_digests);
    restart_older(sim, 4, PROTOCOL_MINOR - COPY_FAST_MINOR);
    sim_pass(sim, 1 * SECONDS);
    (void)must_succeed(sim, &r);
    assert_true(sim->node[0].trees.fast_digests);
    copy_end(sim);
}

/* While one node is of a release that does not know what a copy asks for, that is refused, and no link is lost; a copy that
 * asks for nothing new goes on. */
TEST(older_releases)
{
    struct sim *sim = copy_begin_on("3x3", 7);
    struct copy_request r = copy_default(0);

    copy_tree(sim, 0, "/from", 0);
    for (uint32_t back = 1; back <= PROTOCOL_MINOR - COPY_MORE_MINOR; back++)
        for (uint32_t rank = 0; rank < 9; rank++)
            restart_older(sim, rank, back);
    restart_older(sim, 4, PROTOCOL_MINOR - COPY_MORE_MINOR + 1);
    sim_pass(sim, 1 * SECONDS);
    sim_forget_frames(sim);
    r.skip_changing = true;
    struct sim_copy *c = sim_copy_start(sim, 0, &r);
    sim_copy_must_fail(c, ERROR_REFUSED);
    sim_pass(sim, 5 * SECONDS);
    for (uint32_t rank = 0; rank < 9; rank++)
        assert_int_equal(sim_frames_sent(sim, rank, PEER__HEAD__KIND_COPY_CALL), 0);
    r.skip_changing = false;
    (void)must_succeed(sim, &r);
    r.skip_changing = true;
    restart_older(sim, 4, PROTOCOL_MINOR - COPY_MORE_MINOR);
    sim_pass(sim, 1 * SECONDS);
    (void)must_succeed(sim, &r);
    copy_end(sim);
}

/* An exchange in which each node has a tree for each. */
static struct copy_request exchange_of_trees(struct sim *sim)
{
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    const uint32_t nodes = sim_torus(sim)->nodes;
    char path[32];

    r.kind = COPY_EXCHANGE;
    for (uint32_t from = 0; from < nodes; from++)
        for (uint32_t to = 0; to < nodes; to++) {
            (void)snprintf(path, sizeof path, "/from/%u", to);
            sim_tree_draw(&sim->node[from].trees.tree, path, 3, 5000, sim_chance(sim));
        }
    return r;
}

/* Every algorithm that exchanges blocks carries trees, in every mode that it has, and the result names it. */
TEST(exchanges_by_named_algorithms)
{
    static const char *const networks[] = {"2x2x2", "4x4", "4", "5x3", "3mx3m"};
    unsigned runs = 0;

    for (size_t i = 0; i < sizeof networks / sizeof *networks; i += one_in(2)) {
        struct sim *sim = copy_begin_on(networks[i], first_seed + i);
        struct copy_request r = exchange_of_trees(sim);
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            char to[48];
            struct error e;
            (void)snprintf(to, sizeof to, "/by-%s", a->name);
            r.target = to;
            r.algorithm = (char *)(uintptr_t)a->name;
            r.mode = sim_any(sim, 2) == 0 ? MODE_STREAMING : MODE_OF_ALGORITHM;
            if (copy_request_check(&r, sim_torus(sim), &e) != 0)
                continue;
            struct sim_copy *c = must_succeed(sim, &r);
            assert_int_equal(c->result.bytes_sent, c->result.bytes_all);
            assert_string_equal(c->result.by.algorithm, a->name);
            assert_int_equal(c->result.by.mode, r.mode == MODE_STREAMING || a->streaming
                                                    ? MODE_STREAMING
                                                    : MODE_STEPPED);
            runs++;
        }
        copy_end(sim);
    }
    assert_true(runs > 40 / one_in(2));
}

/* A named algorithm needs every link: without one the copy is refused or fails, or waits for the link. */
SEED_TEST(seeds / 4 + 1, a_named_algorithm_needs_every_link)
{
    struct sim *sim = copy_begin_on("3x3", seed);
    struct copy_request r = exchange_of_trees(sim);
    uint32_t rank;
    unsigned port;

    r.algorithm = (char *)(uintptr_t) "direct";
    copy_any_link(sim, &rank, &port);
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    if (copy_reaches(c, COPY_COMPARING, 0)) {
        sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
        sim_copy_run(c, 60 * SECONDS);
        if (c->error.code != ERROR_NONE)
            sim_copy_must_fail(c, ERROR_LINK);
    }
    sim_pass(sim, 2 * SECONDS);
    struct sim_copy *refused = sim_copy_start(sim, r.node, &r);
    sim_copy_must_fail(refused, ERROR_LINK);
    assert_contains(refused->error.text, "direct");
    r.wait = true;
    struct sim_copy *waits = sim_copy_start(sim, r.node, &r);
    sim_pass(sim, 5 * SECONDS);
    assert_false(waits->ended);
    sim_set_wire(sim, rank, port, SIM_WIRE_UP);
    sim_copy_run(waits, 60 * SECONDS);
    sim_copy_must_succeed(waits);
    copy_end(sim);
}

/* A node without trees passes data on, and says why it writes none. */
TEST(a_node_without_trees)
{
    struct sim *sim = copy_begin_on("5m", 8);
    struct copy_request r = copy_default(0);
    uint32_t others[] = {1, 3, 4};

    copy_tree(sim, 0, "/from", 0);
    sim_kill(sim, 2, SIM_STOP);
    sim->node[2].trees.absent = true;
    sim_restart(sim, 2);
    sim_run_until_whole(sim);
    struct sim_copy *c = sim_copy_whole(sim, 0, &r);
    assert_int_equal(c->error.code, ERROR_NONE);
    for (uint32_t rank = 1; rank < 5; rank++)
        assert_int_equal(sim_copy_outcome(c, rank, 0)->error.code != ERROR_NONE, rank == 2);
    r.nodes = others;
    r.nodes_count = 3;
    (void)must_succeed(sim, &r);
    sim_copies_check(sim);
    sim_free(sim);
}

/* Copies that cannot go on end anyway: nodes that they need are down, stopped or short of memory, or too many
 * copies are made at once. */

#define MANY 48u

/* Without the node that has the trees, nothing can be copied: the copy fails, even if it may leave nodes out. */
SEED_TEST(seeds, a_needed_node_dies)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t asked = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 3000000);
    r.shrink = true;
    struct sim_copy *c = sim_copy_start(sim, asked, &r);
    if (seed % 2 == 0)
        (void)copy_reaches(c, COPY_MOVING, sim_any(sim, 2000000));
    else
        sim_pass(sim, sim_any(sim, 5000) * MICROSECONDS);
    bool ended = c->ended;
    sim_kill(sim, r.node, (enum sim_death)sim_any(sim, 3));
    sim_copy_run(c, 120 * SECONDS);
    if (!ended && c->error.code == ERROR_NONE)
        for (uint32_t i = 0; i < c->result.outcomes; i++)
            assert_int_equal(c->result.outcome[i].error.code, ERROR_NONE);
    if (c->error.code != ERROR_NONE)
        sim_copy_must_fail(c, ERROR_LINK);
    sim_copies_check(sim);
    copy_end(sim);
}

/* A copy that waits for a node ends when its time is over, or when its client leaves; a node that is stopped is waited
 * for as well. */
SEED_TEST(seeds, waiting)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t victim = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 10000);
    r.wait = true;
    r.timeout_ns = seed % 3 == 0 ? 20 * SECONDS : 0;
    if (seed % 3 == 2)
        sim_freeze(sim, victim, 15 * SECONDS);
    else
        sim_kill(sim, victim, (enum sim_death)sim_any(sim, 3));
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    switch (seed % 3) {
    case 0:
        sim_copy_run(c, 30 * SECONDS);
        sim_copy_must_fail(c, ERROR_TIMEOUT);
        break;
    case 1:
        sim_pass(sim, sim_any(sim, 30000) * MILLISECONDS);
        sim_copy_cancel(c);
        break;
    default:
        sim_copy_run(c, 60 * SECONDS);
        sim_copy_must_succeed(c);
    }
    sim_copies_check(sim);
    copy_end(sim);
}

static bool all_have_ended(struct sim *sim, void *context)
{
    for (const struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        if (!c->ended)
            return false;
    return true;
}

/* More copies than nodes can take part in, from all nodes at once: some are told that a node is busy, and none waits for
 * ever because another one waits. */
SEED_TEST(seeds / 4 + 1, many_copies_at_once)
{
    struct sim *sim = copy_begin(seed);
    const uint32_t nodes = sim_torus(sim)->nodes;
    uint32_t done = 0;

    for (uint32_t rank = 0; rank < nodes; rank++)
        copy_tree(sim, rank, "/from", 100000);
    for (uint32_t i = 0; i < MANY; i++) {
        char target[] = "/to00";
        struct copy_request r = copy_default(i % nodes);
        target[3] = (char)('0' + i / 10);
        target[4] = (char)('0' + i % 10);
        r.target = target;
        r.user = 1000 + i % 3;
        (void)sim_copy_start(sim, r.node, &r);
    }
    if (!sim_run(sim, 200 * SECONDS, all_have_ended, NULL))
        sim_violated(sim, "ends", "many copies at once do not end");
    for (const struct sim_copy *c = sim->copies; c != NULL; c = c->next) {
        bool busy = c->error.code == ERROR_BUSY;
        if (!busy && c->error.code != ERROR_NONE)
            sim_violated(sim, "busy", "%s", c->error.text);
        done += c->error.code == ERROR_NONE;
    }
    assert_true(done > 0);
    copy_end(sim);
}

/* A budget that is too small for a group: the client is told so soon. */
SEED_TEST(seeds / 4 + 1, too_little_memory)
{
    const struct sim_setup setup = {.dims = "3x3",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = 16 * 1024,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);
    sim_run_until_whole(sim);
    struct copy_request r = copy_default(sim_any(sim, 9));
    copy_tree(sim, r.node, "/from", 0);
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    sim_copy_run(c, 60 * SECONDS);
    assert_true(c->error.code == ERROR_MEMORY || c->error.code == ERROR_REFUSED ||
                c->error.code == ERROR_BUSY);
    sim_copies_check(sim);
    sim_free(sim);
}
