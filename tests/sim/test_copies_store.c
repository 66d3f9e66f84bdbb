/* The trees of simulated nodes, on which the tests of copies rely: copies by hand, from one node's trees to another's. */
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

SEEDS(100);

struct by_hand {
    struct sim *sim;
    struct tree_disk *from, *to;
    struct tree_store reading, writing;
    struct tree_reader *r;
    struct tree_writer *w;
    struct tree_progress progress;
    const struct interval *span;
    uint32_t spans;
    uint64_t moved;
};

static struct by_hand start(uint64_t seed)
{
    const struct sim_setup setup = {.dims = "2", .seed = seed};
    struct by_hand b = {.sim = sim_new(&setup)};

    b.from = &b.sim->node[0].trees;
    b.to = &b.sim->node[1].trees;
    b.reading = tree_disk_store(b.from);
    b.writing = tree_disk_store(b.to);
    return b;
}

static const struct tree_read_options sources = {.path = (const char *const[]){"/a/x"}, .paths = 1};
static const struct tree_write_options target = {.id = "0-1", .path = "/b"};

static void carry_document(struct by_hand *b, enum tree_document which, size_t part)
{
    uint64_t size = b->reading.facts(b->r).size[which];
    uint8_t *bytes = sim_alloc(part);
    struct error e;

    for (uint64_t at = 0; at < size; at += part) {
        size_t length = size - at < part ? (size_t)(size - at) : part;
        assert_int_equal(b->reading.read_document(b->r, which, at, bytes, length, &e), 0);
        assert_int_equal(b->writing.write_document(b->w, which, bytes, length, &e), 0);
    }
    free(bytes);
}

/* Opens both sides, and finds out what is missing. */
static void open_both(struct by_hand *b, const struct tree_read_options *from,
                      const struct tree_write_options *to, uint32_t most_spans)
{
    const uint8_t *wanted;
    size_t length;
    struct error e;

    b->moved = 0;
    assert_int_equal(b->reading.read_open(b->reading.context, from, &b->progress, &b->r, &e), 0);
    assert_int_equal(b->writing.write_open(b->writing.context, to, &b->w, &e), 0);
    carry_document(b, TREE_MANIFEST, 1 + sim_any(b->sim, 3000));
    assert_int_equal(b->writing.compare(b->w, &b->progress, &wanted, &length, &e), 0);
    if (length > 0) {
        assert_int_equal(b->reading.digest(b->r, &wanted, &length, 1, &b->progress, &e), 0);
        carry_document(b, TREE_DIGESTS, 1000);
    }
    assert_int_equal(b->writing.missing(b->w, most_spans, &b->progress, &b->span, &b->spans, &e),
                     0);
    assert_true(b->spans <= most_spans);
}

/* Moves parts of the ranges, until at most `most` bytes have been moved. */
static void move(struct by_hand *b, uint64_t most)
{
    uint8_t bytes[5000];
    struct error e;

    for (uint32_t i = 0; i < b->spans; i++)
        for (uint64_t at = b->span[i].begin; at < b->span[i].end && b->moved < most;) {
            uint64_t part = 1 + sim_any(b->sim, sizeof bytes);
            part = part < b->span[i].end - at ? part : b->span[i].end - at;
            assert_int_equal(b->reading.read(b->r, at, bytes, part, &e), 0);
            assert_int_equal(b->writing.write(b->w, at, bytes, part, &e), 0);
            at += part;
            b->moved += part;
        }
}

static void close_both(struct by_hand *b)
{
    b->reading.read_close(b->r);
    b->writing.write_close(b->w);
}

static void end(struct by_hand *b, const struct sim_tree *wanted)
{
    struct tree_report report;
    struct sim_tree there;
    struct error e;

    assert_int_equal(b->reading.check(b->r, &b->progress, &e), 0);
    assert_int_equal(b->writing.finish(b->w, &b->progress, &e), 0);
    b->writing.report(b->w, &report);
    assert_int_equal(report.files + report.folders + report.links,
                     report.added + report.changed + report.unchanged);
    close_both(b);
    sim_tree_below(&there, &b->to->tree, "/b");
    const char *path = sim_tree_differs(&there, wanted);
    if (path != NULL)
        fail_msg("seed %llu: \"%s\" differs", (unsigned long long)b->sim->set.seed, path);
    sim_tree_free(&there);
}

/* What a copy shall make of the target. */
static void expect(struct by_hand *b, const struct tree_read_options *from,
                   const struct tree_write_options *to, struct sim_tree *wanted)
{
    const struct tree_overlay how = {to->pattern, to->patterns, to->into, to->delete};
    struct tree_sources s;
    struct error e;

    assert_int_equal(tree_sources_read(&s, &b->from->tree, from, &e), 0);
    sim_tree_below(wanted, &b->to->tree, to->path);
    sim_tree_overlay(wanted, &s.tree, &how);
    tree_sources_free(&s);
}

static void copy(struct by_hand *b, const struct tree_read_options *from,
                 const struct tree_write_options *to, uint32_t most_spans)
{
    struct sim_tree wanted;

    expect(b, from, to, &wanted);
    open_both(b, from, to, most_spans);
    move(b, UINT64_MAX);
    end(b, &wanted);
    sim_tree_free(&wanted);
}

SEED_TEST(seeds, copies_make_the_target_equal)
{
    struct by_hand b = start(seed);
    struct chance *c = sim_chance(b.sim);
    struct tree_write_options to = target;
    sim_tree_draw(&b.from->tree, "/a/x", 60, 100000, c);
    if (sim_any(b.sim, 2) == 0)
        sim_tree_draw(&b.to->tree, "/b", 60, 10000, c);
    to.delete = sim_any(b.sim, 2) == 0;
    copy(&b, &sources, &to, 1 + sim_any(b.sim, 100));
    copy(&b, &sources, &to, 100);
    assert_int_equal(b.moved, 0);
    sim_tree_change(&b.from->tree, "/a/x", 1 + sim_any(b.sim, 10), c);
    copy(&b, &sources, &to, 1 + sim_any(b.sim, 100));
    sim_free(b.sim);
}

TEST(patterns_and_several_sources)
{
    static const char *const pattern[] = {"+ a b", "- cache", "- .hidden"};
    static const char *const path[] = {"/a/x", "/a/y", "/c/one"};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4; seed++) {
        struct by_hand b = start(seed);
        const struct tree_read_options from = {
            .path = path, .paths = 3, .into = true, .pattern = pattern, .patterns = 3};
        struct tree_write_options to = target;
        to.into = true;
        to.pattern = pattern;
        to.patterns = 3;
        to.delete = seed % 2 == 0;
        sim_tree_draw(&b.from->tree, "/a/x", 60, 1000, sim_chance(b.sim));
        sim_tree_draw(&b.from->tree, "/a/y", 60, 1000, sim_chance(b.sim));
        struct tree_content *one = tree_content_draw(1, 100);
        sim_tree_put_file(&b.from->tree, "/c/one", 3, one);
        tree_content_release(one);
        copy(&b, &from, &to, 10);
        sim_tree_draw(&b.to->tree, "/b/x", 20, 1000, sim_chance(b.sim));
        copy(&b, &from, &to, 10);
        sim_free(b.sim);
    }
}

/* What has arrived is there for the next copy, also for one that only looks; a power failure may take it. */
SEED_TEST(seeds, interrupted_copies_resume)
{
    struct by_hand b = start(seed);
    struct tree_write_options look = target;
    struct sim_tree before, after;
    look.look_only = true;
    sim_tree_draw(&b.from->tree, "/a/x", 40, 50000, sim_chance(b.sim));
    sim_tree_draw(&b.to->tree, "/b", 40, 50000, sim_chance(b.sim));
    sim_tree_below(&before, &b.to->tree, "/b");
    open_both(&b, &sources, &target, 50);
    uint64_t all = 0;
    for (uint32_t i = 0; i < b.spans; i++)
        all += b.span[i].end - b.span[i].begin;
    move(&b, all / 2);
    uint64_t moved = b.moved, kept = tree_disk_staged(b.to, "/b");
    close_both(&b);
    sim_tree_below(&after, &b.to->tree, "/b");
    assert_null(sim_tree_differs(&before, &after));
    open_both(&b, &sources, &look, 1000000);
    uint64_t left = 0;
    for (uint32_t i = 0; i < b.spans; i++)
        left += b.span[i].end - b.span[i].begin;
    close_both(&b);
    assert_int_equal(left, b.from->tree.count > 1 ? all - moved : left);
    assert_int_equal(tree_disk_staged(b.to, "/b"), kept);
    if (seed % 2 == 0)
        tree_disk_power_failure(b.to);
    copy(&b, &sources, &target, 50);
    assert_true(b.moved <= all);
    assert_int_equal(tree_disk_staged(b.to, "/b"), 0);
    sim_tree_free(&before);
    sim_tree_free(&after);
    sim_free(b.sim);
}

/* A file that changes is noticed by read() or check(). */
SEED_TEST(seeds, changes_are_noticed)
{
    struct by_hand b = start(seed);
    struct error e;
    sim_tree_draw(&b.from->tree, "/a/x", 40, 5000, sim_chance(b.sim));
    struct tree_content *more = tree_content_draw(seed, 10);
    sim_tree_put_file(&b.from->tree, "/a/x/changes", 1, more);
    open_both(&b, &sources, &target, 50);
    move(&b, sim_any(b.sim, 5000));
    sim_tree_put_file(&b.from->tree, "/a/x/changes", 2, more);
    assert_int_equal(b.reading.check(b.r, &b.progress, &e), -1);
    assert_contains(e.text, "/a/x/changes");
    close_both(&b);
    tree_content_release(more);
    sim_free(b.sim);
}

TEST(one_writer_a_target_and_full_disks)
{
    struct by_hand b = start(1);
    struct tree_writer *other;
    struct error e;

    sim_tree_draw(&b.from->tree, "/a/x", 40, 50000, sim_chance(b.sim));
    struct tree_content *large = tree_content_draw(1, 100000);
    sim_tree_put_file(&b.from->tree, "/a/x/large", 1, large);
    tree_content_release(large);
    open_both(&b, &sources, &target, 10);
    assert_fails(b.writing.write_open(b.writing.context, &target, &other, &e), e, ERROR_BUSY, "");
    b.to->room = 50000;
    uint8_t bytes[60000];
    assert_int_equal(b.reading.read(b.r, b.span[0].begin, bytes, sizeof bytes, &e), 0);
    assert_fails(b.writing.write(b.w, b.span[0].begin, bytes, sizeof bytes, &e), e, ERROR_IO, "");
    close_both(&b);
    assert_null(b.to->staged);
    sim_free(b.sim);
}
