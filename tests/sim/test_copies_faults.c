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
SEED_TEST(seeds, full_disks)
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

/* Each fault of a writer fails the copy there only, each of the reader fails it everywhere. */
SEED_TEST(seeds / 4 + 1, faults_of_trees)
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

static void names_the_file(struct sim *sim, const struct error *e)
{
    if (strstr(e->text, "/from/large") == NULL)
        sim_violated(sim, "errors", "a file has changed, and the error is: %s", e->text);
}

/* A file that changes while it is read: the copy fails everywhere, with an error that names it, or has one of the
 * states. */
SEED_TEST(seeds, files_that_change)
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
SEED_TEST(seeds / 4 + 1, interruptions)
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

/* Cancelled at any moment: nothing changes at any node, and nothing is left. */
SEED_TEST(seeds, cancelled_copies)
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

/* Cancelled when nodes put it in place, or are about to: either nothing has changed at any node, or it was too late. */
SEED_TEST(4 * seeds, copies_cancelled_late)
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

/* A copy that takes too long fails in time, and leaves what has arrived for the next one. */
SEED_TEST(seeds / 4 + 1, timeouts)
{
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

/* A node whose trees lie in a copy: its manifest, sizes, ranges, answers and reports may be anything. The other nodes
 * end the copy, read and write nothing outside of the stream, and make copies again afterwards. */

#define LIES 12u
#define MANIFEST_MOST (8u << 20) /* bytes of a manifest that is not one */

/* The functions of the store of the node that lies, and what it lies about. One at a time. */
static struct {
    struct tree_store honest;
    struct chance chance;
    unsigned lie;
    struct interval span[3];
    uint8_t wanted[TREE_WANTED_MOST];
} liar;

static uint64_t any_number(void)
{
    static const uint64_t numbers[] = {
        0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 34, UINT64_C(1) << 45,
    };

    return numbers[chance_below(&liar.chance, sizeof numbers / sizeof *numbers)];
}

static struct tree_facts lie_facts(const struct tree_reader *r)
{
    static const uint64_t sizes[] = {0, 1, MANIFEST_MOST, UINT64_MAX, TREE_DOCUMENT_MOST + 1};
    struct tree_facts facts = liar.honest.facts(r);

    if (liar.lie == 0)
        facts.stream = chance_below(&liar.chance, 2) == 0 ? any_number() : facts.stream + 1;
    for (unsigned i = 0; i < TREE_DOCUMENTS && liar.lie == 1; i++)
        facts.size[i] = sizes[chance_below(&liar.chance, sizeof sizes / sizeof *sizes)];
    if (liar.lie == 4) {
        facts.left_out = UINT64_MAX;
        facts.first_left_out = "/\x1b[2J\nnode 2 is down %s%n";
    }
    return facts;
}

static int lie_read_document(struct tree_reader *r, enum tree_document which, uint64_t offset,
                             uint8_t *bytes, size_t length, struct error *e)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)chance_word(&liar.chance);
    return 0;
}

static int lie_read(struct tree_reader *r, uint64_t offset, uint8_t *bytes, size_t length,
                    struct error *e)
{
    memset(bytes, 0x55, length);
    return 0;
}

static int lie_compare(struct tree_writer *w, struct tree_progress *progress,
                       const uint8_t **wanted, size_t *length, struct error *e)
{
    if (liar.honest.compare(w, progress, wanted, length, e) != 0)
        return -1;
    for (size_t i = 0; i < sizeof liar.wanted; i++)
        liar.wanted[i] = (uint8_t)chance_word(&liar.chance);
    *wanted = liar.wanted;
    *length = liar.lie == 5 ? sizeof liar.wanted : 3;
    return 0;
}

static int lie_missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                       const struct interval **span, uint32_t *spans, struct error *e)
{
    static const struct interval strange[][3] = {
        {{0, UINT64_MAX}, {0, 0}, {0, 0}},        {{10, 5}, {5, 10}, {7, 8}},
        {{100, 200}, {100, 200}, {0, 50}},        {{UINT64_MAX - 1, UINT64_MAX}, {0, 1}, {1, 2}},
        {{5, 5}, {5, 6}, {6, UINT64_C(1) << 40}},
    };

    if (liar.honest.missing(w, most, progress, span, spans, e) != 0)
        return -1;
    memcpy(liar.span, strange[chance_below(&liar.chance, sizeof strange / sizeof *strange)],
           sizeof liar.span);
    *span = liar.span;
    *spans = 1 + (uint32_t)chance_below(&liar.chance, most < 3 ? most : 3);
    return 0;
}

static void lie_report(const struct tree_writer *w, struct tree_report *report)
{
    memset(report, 0xff, sizeof *report);
    (void)strcpy(report->first, "\x1b[2J\nnode 2 is down %s%n");
}

static int lie_finish(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    memset(e->text, 'x', sizeof e->text);
    (void)strcpy(e->text + sizeof e->text - 40, "\x1b[2J\nnode 2 is down %s%n");
    e->code = (enum error_code)77;
    e->culprit = (struct culprit){(enum culprit_kind)9, 12345, 999};
    return -1;
}

static void begin_to_lie(struct sim *sim, uint32_t node, unsigned lie)
{
    struct tree_store *store = &sim->node[node].tree_store;

    liar.honest = *store;
    liar.chance = *sim_chance(sim);
    liar.lie = lie;
    switch (lie) {
    case 0:
    case 4:
        store->facts = lie_facts;
        break;
    case 1:
        store->facts = lie_facts;
        store->read_document = lie_read_document;
        break;
    case 2:
        store->read_document = lie_read_document;
        break;
    case 3:
        store->read = lie_read;
        break;
    case 5:
    case 6:
        store->compare = lie_compare;
        break;
    case 7:
    case 8:
        store->missing = lie_missing;
        break;
    case 9:
        store->report = lie_report;
        break;
    default:
        store->finish = lie_finish;
    }
    sim_set_lying(sim, node, true);
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            return false;
    return true;
}

static void one_lie(uint64_t seed, unsigned lie)
{
    struct sim *sim = copy_begin_on("4", seed);
    struct copy_request r = copy_default(sim_any(sim, 4));
    const uint32_t node = lie < 5 ? r.node : copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 100000);
    r.timeout_ns = 20 * SECONDS;
    begin_to_lie(sim, node, lie);
    struct sim_copy *c = sim_copy_start(sim, copy_other(sim, node), &r);
    sim_copy_run(c, 30 * SECONDS);
    assert_true(is_printable(c->error.text));
    for (uint32_t i = 0; i < c->result.outcomes; i++) {
        const struct copy_outcome *o = &c->result.outcome[i];
        assert_true(is_printable(o->error.text) && is_printable(o->report.first));
        assert_true(o->error.code <= ERROR_BUSY);
        /* A lie of a writer concerns this writer only, as far as it can be told from a fault of its disk. */
        if (lie >= 9 && o->node != node)
            assert_int_equal(o->error.code, ERROR_NONE);
        if (lie == 1 || lie == 2)
            assert_int_not_equal(o->error.code, ERROR_NONE);
    }
    if (c->error.code == ERROR_NONE)
        assert_true(is_printable(c->result.first_left_out));
    sim->node[node].tree_store = liar.honest;
    sim_copies_check(sim);
    for (uint32_t rank = 0; rank < 4; rank++)
        if (rank != node)
            assert_true(sim_alive(sim, rank));
    sim_kill(sim, node, SIM_CRASH);
    sim_set_lying(sim, node, false);
    sim_restart(sim, node);
    sim_run_until_whole(sim);
    struct sim_copy *again = sim_copy_whole(sim, r.node, &r);
    sim_copy_must_succeed(again);
    copy_end(sim);
}

TEST(trees_that_lie)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2 + 1; seed++)
        for (unsigned lie = 0; lie < LIES; lie++)
            one_lie(seed, lie);
}
