/* Copies of trees with faults of disks and trees, and clients that cancel: what has failed at a node changes nothing
 * there. */
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

#define LARGE 600000u

static void must_fail_only_at(const struct sim_copy *c, uint32_t node, enum error_code code)
{
    if (c->error.code != ERROR_NONE)
        sim_violated(c->sim, "fails at one node", "%s", c->error.text);
    for (uint32_t i = 0; i < c->result.outcomes; i++) {
        const struct copy_outcome *o = &c->result.outcome[i];
        if (o->error.code != (o->node == node ? code : ERROR_NONE))
            sim_violated(c->sim, "fails at one node", "node %u: %s", o->node,
                         o->error.code != ERROR_NONE ? o->error.text : "success");
    }
}

/* A disk that is full from the start, or that becomes full; the other nodes get their trees. */
static void one_full_disk(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t victim = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", LARGE);
    if (seed % 2 == 0)
        sim->node[victim].trees.room = LARGE / 2;
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    if (seed % 2 == 1 && copy_reaches(c, COPY_MOVING, LARGE / 4))
        sim->node[victim].trees.room = 0;
    sim_copy_run(c, 60 * SECONDS);
    if (seed % 2 == 0 || c->result.outcomes == 0 ||
        sim_copy_outcome(c, victim, r.node)->error.code != ERROR_NONE)
        must_fail_only_at(c, victim, ERROR_IO);
    sim_copies_check(sim);
    sim->node[victim].trees.room = UINT64_MAX;
    struct sim_copy *again = sim_copy_whole(sim, r.node, &r);
    sim_copy_must_succeed(again);
    copy_end(sim);
}

TEST(full_disks)
{
    with_seeds(seeds, one_full_disk);
}

/* Each fault of a writer fails the copy there only, each of the reader fails it everywhere. */
static void one_fault(uint64_t seed)
{
    for (enum sim_tree_fault fault = 0; fault < SIM_TREE_FAULTS; fault++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        bool reads = fault < SIM_TREE_WRITE_OPEN || (fault == SIM_TREE_DOCUMENT && seed % 2 == 0);
        uint32_t victim = reads ? r.node : copy_other(sim, r.node);
        copy_tree(sim, r.node, "/from", LARGE);
        if (fault == SIM_TREE_DIGEST) { /* an older version of a large file is there */
            sim_copy_must_succeed(sim_copy_whole(sim, r.node, &r));
            sim_copies_settle(sim);
            struct tree_content *older = tree_content_draw(3, LARGE - 1);
            sim_tree_put_file(&sim->node[copy_other(sim, r.node)].trees.tree, "/to/large", 1,
                              older);
            tree_content_release(older);
        }
        sim->node[victim].trees.fault[fault] = true;
        struct sim_copy *c = sim_copy_whole(sim, r.node, &r);
        if (!reads)
            must_fail_only_at(c, victim, ERROR_IO);
        for (uint32_t i = 0; reads && i < c->result.outcomes; i++)
            assert_int_equal(c->result.outcome[i].error.code, ERROR_IO);
        if (c->error.code != ERROR_NONE)
            assert_int_equal(c->error.code, ERROR_IO);
        assert_false(sim->node[victim].trees.fault[fault]);
        sim_copies_check(sim);
        sim_copy_must_succeed(sim_copy_whole(sim, r.node, &r));
        copy_end(sim);
    }
}

TEST(faults_of_trees)
{
    with_seeds(seeds / 4 + 1, one_fault);
}

static void names_the_file(struct sim *sim, const struct error *e)
{
    if (strstr(e->text, "/from/large") == NULL)
        sim_violated(sim, "errors", "a file has changed, and the error is: %s", e->text);
}

/* A file that changes while it is read: the copy fails everywhere, with an error that names it, or has one of the
 * states. */
static void one_change(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));

    copy_tree(sim, r.node, "/from", LARGE);
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    enum copy_phase phase = (enum copy_phase)sim_any(sim, COPY_PHASES);
    if (copy_reaches(c, phase, phase == COPY_MOVING ? sim_any(sim, LARGE) : 0)) {
        struct tree_content *new = tree_content_draw(seed + 1, LARGE);
        sim_tree_put_file(&sim->node[r.node].trees.tree, "/from/large", 2000, new);
        tree_content_release(new);
        sim_copies_sources_changed(sim);
    }
    sim_copy_run(c, 60 * SECONDS);
    for (uint32_t i = 0; i < c->result.outcomes; i++) {
        const struct copy_outcome *o = &c->result.outcome[i];
        assert_int_equal(o->error.code, c->result.outcome[0].error.code);
        if (o->error.code != ERROR_NONE)
            names_the_file(sim, &o->error);
    }
    if (c->error.code != ERROR_NONE)
        names_the_file(sim, &c->error);
    sim_copies_check(sim);
    sim_copy_must_succeed(sim_copy_whole(sim, r.node, &r));
    copy_end(sim);
}

TEST(files_that_change)
{
    with_seeds(seeds, one_change);
}

/* Adds what a node lacks of the large file. */
static void add_missing(const struct tree_disk *trees, struct sim_spans *missing)
{
    const struct staged *staged = tree_disk_find_staged(trees, "/to");
    const struct staged_file *f = staged != NULL ? staged->file : NULL;
    const struct sim_spans nothing = {0};

    while (f != NULL && strcmp(f->path, "large") != 0)
        f = f->next;
    sim_spans_lack(f != NULL ? &f->have : &nothing, 0, 40 * LARGE, 0, missing);
}

/* The next copy moves only what the interrupted one has not. */
static void one_interruption(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct copy_request r = copy_default(sim_any(sim, nodes));

    copy_tree(sim, r.node, "/from", 40 * LARGE);
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    if (!copy_reaches(c, COPY_MOVING, 20 * LARGE))
        fail_msg("seed %llu: the copy has ended already", (unsigned long long)seed);
    uint32_t how = sim_any(sim, 3), victim = copy_other(sim, r.node);
    if (how == 0)
        sim_copy_cancel(c);
    else
        sim_kill(sim, how == 1 ? victim : r.node, SIM_CRASH);
    if (how == 1)
        sim_copy_run(c, 60 * SECONDS);
    sim_restart(sim, victim);
    sim_restart(sim, r.node);
    sim_run_until_whole(sim);
    sim_copies_check(sim);
    uint64_t kept = 0;
    struct sim_spans missing = {0}; /* of the large file, at any node */
    for (uint32_t rank = 0; rank < nodes; rank++) {
        struct tree_disk *trees = &sim->node[rank].trees;
        kept += tree_disk_staged(trees, "/to");
        if (rank == victim && seed % 2 == 0)
            tree_disk_lose_staged(trees);
        if (rank != r.node)
            add_missing(trees, &missing);
    }
    assert_true(kept > 0);
    struct sim_copy *again = sim_copy_whole(sim, r.node, &r);
    sim_copy_must_succeed(again);
    uint64_t small = again->result.bytes_all - 40 * LARGE, most = small + sim_spans_bytes(&missing);
    if (again->result.bytes_sent > most)
        fail_msg("seed %llu: %llu bytes were sent, %llu are missing", (unsigned long long)seed,
                 (unsigned long long)again->result.bytes_sent, (unsigned long long)most);
    sim_spans_free(&missing);
    copy_end(sim);
}

TEST(interruptions)
{
    with_seeds(seeds / 4 + 1, one_interruption);
}

/* Cancelled at any moment: nothing changes at any node, and nothing is left. */
static void one_cancelled(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request *r = sim_copy_draw(sim, 0, 40, 40000, sim_chance(sim));
    uint32_t asked = sim_any(sim, sim_torus(sim)->nodes);
    struct sim_copy *c = sim_copy_start(sim, asked, r);

    if (seed % 2 == 0)
        (void)copy_reaches(c, (enum copy_phase)sim_any(sim, COPY_PHASES), sim_any(sim, 30000));
    else
        sim_pass(sim, sim_any(sim, 30000) * MICROSECONDS);
    sim_copy_cancel(c);
    sim_copies_check(sim);
    sim_copy_must_succeed(sim_copy_whole(sim, asked, r));
    sim_copy_draw_free(r);
    copy_end(sim);
}

TEST(cancelled_copies)
{
    with_seeds(seeds, one_cancelled);
}

/* Cancelled when nodes put it in place, or are about to: either nothing has changed at any node, or it was too late. */
static void one_cancelled_late(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));

    copy_tree(sim, r.node, "/from", 10000);
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    (void)copy_reaches(c, COPY_PLACING, 0);
    sim_pass(sim, sim_any(sim, 1u << (7 + sim_any(sim, 7))) * MICROSECONDS);
    sim_copy_cancel(c);
    sim_copies_check(sim);
    sim_copy_must_succeed(sim_copy_whole(sim, r.node, &r));
    copy_end(sim);
}

TEST(copies_cancelled_late)
{
    with_seeds(4 * seeds, one_cancelled_late);
}

/* A copy that takes too long fails in time, and leaves what has arrived for the next one. */
TEST(timeouts)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4 + 1; seed++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        copy_tree(sim, r.node, "/from", 100 * LARGE);
        r.timeout_ns = 100 * MILLISECONDS;
        struct sim_copy *c = sim_copy_whole(sim, r.node, &r);
        sim_copy_must_fail(c, ERROR_TIMEOUT);
        assert_true(c->ended_at - c->asked_at < 5 * SECONDS);
        sim_copies_check(sim);
        copy_end(sim);
    }
}
