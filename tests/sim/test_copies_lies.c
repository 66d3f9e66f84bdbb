/* A node whose trees lie in a copy: its manifest, sizes, ranges, answers and reports may be anything. The other nodes
 * end the copy, read and write nothing outside of the stream, and make copies again afterwards. */
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

#define LIES 12u
#define MANIFEST_MOST (8u << 20) /* bytes of a manifest that is not one */

/* The functions of the store of the node that lies, and what it lies about. One at a time. */
static struct {
    struct tree_store honest;
    struct chance chance;
    unsigned lie;
    struct tree_span span[3];
    uint8_t wanted[TREE_WANTED_MOST];
} liar;

static uint64_t any_number(void)
{
    static const uint64_t numbers[] = {
        0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 34, UINT64_C(1) << 45,
    };

    return numbers[chance_below(&liar.chance, sizeof numbers / sizeof *numbers)];
}

static uint64_t lie_stream_size(const struct tree_reader *r)
{
    uint64_t size = liar.honest.stream_size(r);

    return chance_below(&liar.chance, 2) == 0 ? any_number() : size + 1;
}

static uint64_t lie_document_size(const struct tree_reader *r, enum tree_document which)
{
    static const uint64_t sizes[] = {0, 1, MANIFEST_MOST, UINT64_MAX, TREE_DOCUMENT_MOST + 1};

    return sizes[chance_below(&liar.chance, sizeof sizes / sizeof *sizes)];
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

static uint64_t lie_left_out(const struct tree_reader *r, const char **first)
{
    *first = "/\x1b[2J\nnode 2 is down %s%n";
    return UINT64_MAX;
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
                       const struct tree_span **span, uint32_t *spans, struct error *e)
{
    static const struct tree_span strange[][3] = {
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
        store->stream_size = lie_stream_size;
        break;
    case 1:
        store->document_size = lie_document_size;
        store->read_document = lie_read_document;
        break;
    case 2:
        store->read_document = lie_read_document;
        break;
    case 3:
        store->read = lie_read;
        break;
    case 4:
        store->left_out = lie_left_out;
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
