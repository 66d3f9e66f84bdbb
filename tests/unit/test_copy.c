/* Requests of copies: their codec, and the rules that they must keep. Bytes come from other nodes. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/copy/plan.h"
#include "daemon/torusd/copy/request.h"
#include "daemon/torusd/copy/step_reports.h"
#include "proto/copy.pb-c.h"
#include "tests/support/cmocka.h"

static char *sources[] = {"/a", "/b/\xff\x01", "/%%/c"};
static char *patterns[] = {"- *.o", "+ /keep/"};
static uint32_t nodes[] = {0, 3, 7};

static struct copy_request full(void)
{
    return (struct copy_request){.kind = COPY_TO_ALL,
                                 .node = 2,
                                 .source = sources,
                                 .sources = 3,
                                 .target = "/to/%r",
                                 .into = true,
                                 .nodes = nodes,
                                 .nodes_count = 3,
                                 .pattern = patterns,
                                 .patterns = 2,
                                 .delete = true,
                                 .checksum = true,
                                 .dry_run = true,
                                 .verify = true,
                                 .as_it_comes = true,
                                 .missing_ok = true,
                                 .trace = true,
                                 .delete_root = true,
                                 .copy_links = true,
                                 .told = true,
                                 .delete_most = UINT64_MAX,
                                 .wait = true,
                                 .timeout_ns = 5000000000,
                                 .user = 1000};
}

static char *tree_of_each[] = {"/a"};

static struct copy_request exchange_by(char *algorithm, enum mode mode)
{
    return (struct copy_request){.kind = COPY_EXCHANGE,
                                 .source = tree_of_each,
                                 .sources = 1,
                                 .target = "/b",
                                 .algorithm = algorithm,
                                 .mode = mode};
}

TEST(requests_survive_the_wire)
{
    const struct copy_request from = full();
    struct copy_request to;
    uint8_t *bytes;
    size_t length;
    struct error e;

    assert_int_equal(copy_request_pack(&from, &bytes, &length, &e), 0);
    assert_int_equal(copy_request_unpack(&to, bytes, length, &e), 0);
    assert_int_equal(to.kind, from.kind);
    assert_int_equal(to.node, 2);
    assert_int_equal(to.sources, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(to.source[i], sources[i]);
    assert_string_equal(to.target, "/to/%r");
    assert_int_equal(to.nodes_count, 3);
    assert_memory_equal(to.nodes, nodes, sizeof nodes);
    assert_int_equal(to.patterns, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_string_equal(to.pattern[i], patterns[i]);
    assert_true(to.into && to.delete &&to.checksum && to.dry_run && to.verify && to.as_it_comes &&
                to.missing_ok && to.trace && to.wait && !to.shrink);
    assert_true(to.delete_root && to.copy_links && to.told && !to.skip_changing);
    assert_true(to.delete_most == UINT64_MAX);
    assert_int_equal(to.timeout_ns, from.timeout_ns);
    assert_int_equal(to.user, 1000);
    assert_null(to.algorithm);
    copy_request_free(&to);
    free(bytes);
}

TEST(algorithms_survive_the_wire)
{
    static char *const names[] = {"at2", "auto", ""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool named = i == 0;
        const struct copy_request from =
            exchange_by(names[i], named ? MODE_STREAMING : MODE_OF_ALGORITHM);
        struct copy_request to;
        struct error e;
        assert_success(copy_request_copy(&to, &from, &e), e);
        assert_int_equal(to.mode, from.mode);
        if (named)
            assert_string_equal(to.algorithm, "at2");
        else
            assert_null(to.algorithm);
        copy_request_free(&to);
    }
}

static void refused(struct copy_request r, enum error_code code)
{
    struct copy_request to;
    uint8_t *bytes;
    size_t length;
    struct error e;

    assert_int_equal(copy_request_pack(&r, &bytes, &length, &e), 0);
    assert_fails(copy_request_unpack(&to, bytes, length, &e), e, code, "");
    free(bytes);
}

TEST(rules_are_checked)
{
    static char *relative[] = {"a"}, *ranked[] = {"/a/%r"}, *percent[] = {"/a%d"},
                *plain[] = {"/a"};
    static char *bad_pattern[] = {"*.o"};
    static uint32_t falling[] = {3, 1}, own[] = {1, 2};
    struct copy_request r;

#define REFUSED(...) (r = full(), __VA_ARGS__, refused(r, ERROR_USAGE))
    REFUSED(r.skip_changing = true); /* with as_it_comes */
    REFUSED(r.kind = COPY_KINDS);
    REFUSED(r.sources = 0);
    REFUSED(r.into = false);
    REFUSED(r.source = relative, r.sources = 1);
    REFUSED(r.source = ranked, r.sources = 1);
    REFUSED(r.source = percent, r.sources = 1);
    REFUSED(r.target = "to");
    REFUSED(r.target = "");
    REFUSED(r.target = "/to/%");
    REFUSED(r.kind = COPY_GATHER, r.target = "/to");
    REFUSED(r.kind = COPY_SCATTER, r.source = plain, r.sources = 1);
    REFUSED(r.kind = COPY_EXCHANGE, r.into = false);
    REFUSED(r.kind = COPY_EXCHANGE, r.source = plain, r.sources = 1, r.into = true);
    REFUSED(r.nodes = falling, r.nodes_count = 2);
    REFUSED(r.nodes = own, r.nodes_count = 2);
    REFUSED(r.pattern = bad_pattern, r.patterns = 1);
    REFUSED(r.shrink = true);
    REFUSED(r.algorithm = "at2");
    REFUSED(r.mode = MODE_STEPPED);
    REFUSED(r = exchange_by("at2", MODE_OF_ALGORITHM), r.shrink = true);
    REFUSED(r = exchange_by(NULL, MODE_STREAMING));
#undef REFUSED
}

/* Checks a request on a ring of this many nodes. */
static int check_on_ring(const struct copy_request *r, uint32_t nodes_of_ring, struct error *e)
{
    char dims[16];
    struct torus t;

    (void)snprintf(dims, sizeof dims, "%u", nodes_of_ring);
    assert_success(torus_parse(&t, dims, e), *e);
    return copy_request_check(r, &t, e);
}

TEST(ranks_are_checked)
{
    struct copy_request r = full();
    struct error e;

    assert_int_equal(check_on_ring(&r, 8, &e), 0);
    assert_fails(check_on_ring(&r, 7, &e), e, ERROR_USAGE, "");
    r.nodes_count = 0;
    assert_int_equal(check_on_ring(&r, 3, &e), 0);
    assert_int_equal(check_on_ring(&r, 2, &e), -1);
    assert_true(copy_request_takes_part(&r, 1));
    r = full();
    assert_true(copy_request_takes_part(&r, 2) && copy_request_takes_part(&r, 7));
    assert_false(copy_request_takes_part(&r, 1));
}

/* What names an algorithm on which torus, in which mode; and what does not. */
TEST(algorithms_are_checked)
{
    static const struct {
        const char *dims, *algorithm;
        enum mode mode, runs;
        bool refused;
    } cases[] = {
        {"4x4", "at2", MODE_OF_ALGORITHM, MODE_STEPPED, false},
        {"4x4", "at2", MODE_STREAMING, MODE_STREAMING, false},
        {"4x4", "stream", MODE_OF_ALGORITHM, MODE_STREAMING, false},
        {"4x4", "cccube-q3", MODE_OF_ALGORITHM, MODE_STEPPED, false},
        {"8x8", "at2-1port", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, true},
        {"4x4", "cccube-best", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, true},
        {"2x2x2", "at2", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, true},
        {"4x4", "balanced", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, true}, /* of allgathers */
        {"4x4", "nonsense", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, true},
        {"complete:4", "stream", MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, false}, /* found */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct copy_request r =
            exchange_by((char *)(uintptr_t)cases[i].algorithm, cases[i].mode);
        const struct algorithm *a;
        enum mode mode = MODE_OF_ALGORITHM;
        struct torus t;
        struct error e = {0};
        assert_success(torus_parse(&t, cases[i].dims, &e), e);
        if ((copy_request_check(&r, &t, &e) != 0) != cases[i].refused)
            fail_msg("%s on %s: %s", cases[i].algorithm, cases[i].dims, e.text);
        a = copy_request_algorithm(&r, &t, &mode);
        if (cases[i].runs == MODE_OF_ALGORITHM) {
            assert_null(a);
            continue;
        }
        assert_string_equal(a->name, cases[i].algorithm);
        assert_int_equal(mode, cases[i].runs);
    }
}

TEST(exchanges_do_not_replace_what_they_read)
{
    static const struct {
        const char *from, *to;
        bool refused;
    } cases[] = {
        {"/a/out", "/a/in", false},
        {"/a/out", "/a/out", true},
        {"/a/out", "/a//./out/", true},
        {"/a/out", "/a/out/1", true},
        {"/a/out", "/a/out/1/x", true},
        {"/a/out/1", "/a/out", true},
        {"/a/out", "/a/outer", false},
        {"/a/out", "/a/out/in", false},
        {"/a/out/x", "/a/out", false},
        {"/a/%r", "/a/%r/in", false},
        {"/a/%r", "/a/%r", true},
        {"/a/%r/x", "/a/2/x", true},
        {"/a/%r/x", "/a/1/x", false},
        {"/a/%%r", "/a/%r", false},
        {"/", "/in", false},
        {"/", "/7", true},
    };
    static uint32_t others[] = {0, 2};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char from[20], to[20], *source[] = {from};
        struct error e;
        (void)strcpy(from, cases[i].from);
        (void)strcpy(to, cases[i].to);
        struct copy_request r = {.kind = COPY_EXCHANGE,
                                 .node = 3,
                                 .source = source,
                                 .sources = 1,
                                 .target = to,
                                 .nodes = others,
                                 .nodes_count = 2};
        const int result = check_on_ring(&r, 4, &e);
        if ((result != 0) != cases[i].refused)
            fail_msg("%s to %s: %d", from, to, result);
        if (result != 0)
            assert_int_equal(e.code, ERROR_USAGE);
        r.kind = COPY_SCATTER;
        assert_int_equal(check_on_ring(&r, 4, &e), 0);
    }
}

TEST(requests_that_are_too_long)
{
    struct copy_request r = full(), to;
    char *long_path = malloc(COPY_PATH_MOST + 2), **many = calloc(COPY_SOURCES_MOST, sizeof *many);
    uint8_t *bytes;
    size_t length;
    struct error e;

    memset(long_path, 'x', COPY_PATH_MOST + 1);
    long_path[0] = '/';
    long_path[COPY_PATH_MOST + 1] = '\0';
    r.target = long_path;
    refused(r, ERROR_USAGE);
    long_path[COPY_PATH_MOST] = '\0';
    for (uint32_t i = 0; i < COPY_SOURCES_MOST; i++)
        many[i] = long_path;
    r.source = many;
    r.sources = COPY_SOURCES_MOST;
    assert_fails(copy_request_pack(&r, &bytes, &length, &e), e, ERROR_USAGE, "");
    bytes = calloc(1, COPY_REQUEST_MOST + 1);
    assert_int_equal(copy_request_unpack(&to, bytes, COPY_REQUEST_MOST + 1, &e), -1);
    free(bytes);
    free(long_path);
    free((void *)many);
}

/* Every byte of a request is replaced by every other one; what is accepted keeps the rules. */
TEST(altered_requests)
{
    const struct copy_request from = full();
    struct copy_request to, again;
    uint8_t *bytes;
    size_t length, accepted = 0;
    struct error e;

    assert_int_equal(copy_request_pack(&from, &bytes, &length, &e), 0);
    for (size_t i = 0; i < length; i++)
        for (unsigned value = 0; value < 256; value++) {
            const uint8_t was = bytes[i];
            bytes[i] = (uint8_t)value;
            if (copy_request_unpack(&to, bytes, length, &e) == 0) {
                accepted++;
                assert_int_equal(copy_request_copy(&again, &to, &e), 0);
                copy_request_free(&again);
                copy_request_free(&to);
            } else {
                assert_true(e.code == ERROR_USAGE || e.code == ERROR_PROTOCOL);
            }
            bytes[i] = was;
        }
    for (size_t cut = 0; cut < length; cut++)
        if (copy_request_unpack(&to, bytes, cut, &e) == 0)
            copy_request_free(&to);
    assert_true(accepted > length);
    free(bytes);
}

TEST(paths_with_ranks)
{
    const uint32_t below = 4000000000;
    char *path = copy_path_expand("/a/%r/b%%%r", 12, NULL);

    assert_string_equal(path, "/a/12/b%12");
    free(path);
    path = copy_path_expand("/%r", 4294967295u, &below);
    assert_string_equal(path, "/4294967295/4000000000");
    free(path);
}

/* What the members of a copy compute: which trees move, what each tells the others, and in which rounds. */

#define NODES 6u

static char *source[] = {"/a/%r"};

static struct copy_request request_of(enum copy_kind kind)
{
    return (struct copy_request){
        .kind = kind, .node = 2, .source = source, .sources = 1, .target = "/b/%r"};
}

static void make(struct copy_plan *p, enum copy_kind kind, const bool *gone)
{
    const struct copy_request r = request_of(kind);
    struct error e;

    assert_int_equal(copy_plan_make(p, &r, NODES, gone, &e), 0);
}

TEST(plans_have_a_tree_for_each_pair)
{
    struct copy_plan p;

    make(&p, COPY_TO_ALL, NULL);
    assert_int_equal(p.trees, 1);
    assert_int_equal(p.ends, NODES - 1);
    copy_plan_free(&p);
    make(&p, COPY_GATHER, NULL);
    assert_int_equal(p.trees, NODES - 1);
    for (uint32_t i = 0; i < p.trees; i++)
        assert_true(p.tree[i].writer == 2 && p.tree[i].reader != 2 && p.end[i].node == 2);
    copy_plan_free(&p);
    make(&p, COPY_SCATTER, NULL);
    assert_int_equal(p.trees, NODES - 1);
    for (uint32_t i = 0; i < p.trees; i++)
        assert_true(p.tree[i].reader == 2 && p.end[i].node == p.tree[i].writer);
    copy_plan_free(&p);
    make(&p, COPY_EXCHANGE, NULL);
    assert_int_equal(p.trees, NODES * NODES);
    copy_plan_free(&p);
}

TEST(plans_without_nodes_that_are_gone)
{
    const struct copy_request all = request_of(COPY_TO_ALL), exchange = request_of(COPY_EXCHANGE);
    bool gone[NODES] = {false, true, false, false, true, false};
    struct copy_plan p;
    struct error e;

    make(&p, COPY_TO_ALL, gone);
    assert_int_equal(p.ends, NODES - 3);
    assert_int_equal(p.absents, 2);
    assert_true(p.absent[0] == 1 && p.absent[1] == 4);
    copy_plan_free(&p);
    gone[2] = true;
    assert_fails(copy_plan_make(&p, &all, NODES, gone, &e), e, ERROR_LINK, "");
    assert_int_equal(e.culprit.node, 2);
    copy_plan_free(&p);
    assert_int_equal(copy_plan_make(&p, &exchange, NODES, gone, &e), 0);
    assert_int_equal(p.trees, 9);
    copy_plan_free(&p);
    gone[2] = false;
    gone[0] = gone[3] = gone[5] = true;
    assert_fails(copy_plan_make(&p, &all, NODES, gone, &e), e, ERROR_LINK, "");
    copy_plan_free(&p);
}

/* --- step reports --- */

static void exchange_records(struct copy_plan *at, struct copy_plan *to, enum step_report_kind kind)
{
    const struct step_report_of_node self = {COPY_CALL_LEAST, 3, "/a/socket", 2, "/a/link"};
    struct step_report_bytes report;
    struct error e;

    for (uint32_t node = 0; node < NODES; node++) {
        assert_int_equal(step_reports_write(at, kind, node, &self, &report, &e), 0);
        assert_int_equal(step_reports_read(to, kind, node, report.data, report.length, &e), 0);
        free(report.data);
    }
}

TEST(records_tell_everything)
{
    static const struct interval span[] = {{10, 20}, {30, 50}};
    struct copy_plan at, to;

    make(&at, COPY_SCATTER, NULL);
    make(&to, COPY_SCATTER, NULL);
    for (uint32_t i = 0; i < at.trees; i++) {
        at.tree[i].size[TREE_MANIFEST] = 100 + i;
        at.tree[i].stream = 1000 + i;
    }
    (void)error_set(&at.tree[3].failed, ERROR_IO, "cannot be read");
    exchange_records(&at, &to, STEP_REPORT_OPENED);
    for (uint32_t i = 0; i < at.trees; i++) {
        assert_int_equal(to.tree[i].size[TREE_MANIFEST], i == 3 ? 0 : 100 + i);
        assert_int_equal(to.tree[i].failed.code, i == 3 ? ERROR_IO : ERROR_NONE);
    }
    assert_string_equal(to.tree[3].failed.text, "cannot be read");
    assert_int_equal(to.call_bytes, COPY_CALL_LEAST);
    assert_int_equal(to.left_out, 3 * NODES);
    assert_string_equal(to.first_left_out, "/a/socket");

    at.end[1].wanted = (uint8_t *)strdup("wanted");
    at.end[1].wanted_length = 6;
    (void)error_set(&at.end[0].error, ERROR_BUSY, "another copy");
    exchange_records(&at, &to, STEP_REPORT_COMPARED);
    assert_true(to.wants);
    assert_int_equal(to.end[1].wanted_length, 6);
    assert_memory_equal(to.end[1].wanted, "wanted", 6);
    assert_int_equal(to.end[0].error.code, ERROR_BUSY);

    at.end[1].span = span;
    at.end[1].spans = 2;
    exchange_records(&at, &to, STEP_REPORT_MISSING);
    assert_int_equal(to.tree[1].missing.bytes, 30);

    at.end[1].report = (struct tree_report){.files = 7, .not_attributed = 9, .first = "x/y"};
    exchange_records(&at, &to, STEP_REPORT_FINISHED);
    assert_memory_equal(&to.end[1].report, &at.end[1].report, sizeof at.end[1].report);
    assert_null(copy_end_failed(&to, &to.end[1]));
    assert_int_equal(copy_end_failed(&to, &to.end[0])->code, ERROR_BUSY);
    assert_int_equal(copy_end_failed(&to, &to.end[3])->code, ERROR_IO);
    copy_plan_free(&at);
    copy_plan_free(&to);
}

/* What a newer release has added is in step reports only if all nodes know it. */
TEST(records_tell_more_to_newer_nodes)
{
    uint64_t changed[] = {3, 9, UINT64_MAX, UINT64_MAX};

    for (unsigned told = 0; told < 2; told++) {
        struct copy_plan at, to;
        make(&at, COPY_SCATTER, NULL);
        make(&to, COPY_SCATTER, NULL);
        at.told = to.told = told == 1;
        at.tree[2].changed = changed;
        at.tree[2].changes = 4;
        (void)strcpy(at.tree[2].first_changed, "/a/log");
        exchange_records(&at, &to, STEP_REPORT_CHECKED);
        assert_int_equal(to.tree[2].changes, told == 1 ? 4 : 0);
        if (told == 1)
            assert_memory_equal(to.tree[2].changed, changed, sizeof changed);
        assert_string_equal(to.tree[2].first_changed, told == 1 ? "/a/log" : "");
        uint64_t place[] = {10, 21};
        at.tree[1].place = place;
        at.tree[1].places = 2;
        at.end[4].granularity = 2000;
        exchange_records(&at, &to, STEP_REPORT_OPENED);
        assert_int_equal(to.tree[1].places, told == 1 ? 2 : 0);
        if (told == 1)
            assert_memory_equal(to.tree[1].place, place, sizeof place);
        assert_int_equal(to.end[4].granularity, told == 1 ? 2000 : 0);
        assert_int_equal(to.links_out, told == 1 ? 2 * NODES : 0);
        assert_string_equal(to.first_link_out, told == 1 ? "/a/link" : "");
        at.end[3].going = (uint8_t *)(uintptr_t) "a/b\0c";
        at.end[3].going_length = 6;
        exchange_records(&at, &to, STEP_REPORT_FINISHED);
        assert_int_equal(to.end[3].going_length, told == 1 ? 6 : 0);
        if (told == 1)
            assert_memory_equal(to.end[3].going, "a/b\0c", 6);
        at.tree[2].changed = at.tree[1].place = NULL;
        at.end[3].going = NULL;
        copy_plan_free(&at);
        copy_plan_free(&to);
    }
}

/* Each byte is altered, and each length is tried: a step report is taken, or refused as malformed. */
TEST(records_of_liars)
{
    static const struct interval span[] = {{10, 20}, {30, 50}};
    static const enum step_report_kind kinds[] = {STEP_REPORT_OPENED,   STEP_REPORT_COMPARED,
                                                  STEP_REPORT_DIGESTED, STEP_REPORT_MISSING,
                                                  STEP_REPORT_CHECKED,  STEP_REPORT_FINISHED};
    const struct step_report_of_node self = {COPY_CALL_LEAST, 3, "first", 1, "link"};

    for (size_t k = 0; k < 2 * sizeof kinds / sizeof *kinds; k++) {
        const enum step_report_kind kind = kinds[k / 2];
        struct copy_plan at, to;
        struct step_report_bytes report;
        struct error e;
        make(&at, COPY_TO_ALL, NULL);
        at.told = k % 2 == 1;
        at.tree[0].changed = calloc(2, sizeof *at.tree[0].changed);
        at.tree[0].changed[0] = 2;
        at.tree[0].changed[1] = 3;
        at.tree[0].changes = 2;
        at.tree[0].stream = 1000;
        at.end[1].span = span;
        at.end[1].spans = 2;
        at.end[1].wanted = (uint8_t *)strdup("wanted");
        at.end[1].wanted_length = 6;
        const uint32_t node =
            kind == STEP_REPORT_DIGESTED || kind == STEP_REPORT_CHECKED ? 2 : at.end[1].node;
        assert_int_equal(step_reports_write(&at, kind, node, &self, &report, &e), 0);
        for (size_t i = 0; i <= report.length; i++)
            for (unsigned bit = 0; bit < 9; bit++) {
                const bool cut = bit == 8 || i == report.length;
                make(&to, COPY_TO_ALL, NULL);
                to.told = at.told;
                to.tree[0].stream = 1000;
                if (!cut)
                    report.data[i] ^= (uint8_t)(1u << bit);
                if (step_reports_read(&to, kind, node, report.data, cut ? i : report.length, &e) !=
                    0) {
                    assert_int_equal(e.code, ERROR_PROTOCOL);
                    assert_int_equal(e.culprit.node, node);
                } else {
                    assert_false(cut && i < report.length);
                    for (uint32_t n = 1; n < to.tree[0].changes; n++)
                        assert_true(to.tree[0].changed[n - 1] <= to.tree[0].changed[n]);
                }
                for (uint32_t s = 0; s < to.tree[0].missing.count; s++)
                    assert_true(to.tree[0].missing.item[s].end <= 1000);
                if (!cut)
                    report.data[i] ^= (uint8_t)(1u << bit);
                copy_plan_free(&to);
            }
        free(report.data);
        copy_plan_free(&at);
    }
}

/* --- rounds --- */

/* All bytes are moved once, from front to back, and no node sends or receives more than it has room for. */
static void check_rounds(struct copy_plan *p, uint32_t call_bytes)
{
    uint64_t *moved = calloc(p->trees, sizeof *moved), rounds = 0, all = 0;
    const bool to_all = p->tree[0].writer == COPY_EVERY_NODE;
    struct copy_rounds r;

    assert_int_equal(copy_rounds_init(&r, p, MOVED_MANIFESTS, NODES, call_bytes), 0);
    while (copy_rounds_next(&r)) {
        uint64_t sends[NODES] = {0}, receives[NODES] = {0};
        assert_true(++rounds < 10000);
        for (uint32_t i = 0; i < r.pieces; i++) {
            const struct copy_piece *piece = &r.piece[i];
            const struct copy_tree *tree = &p->tree[piece->tree];
            assert_int_equal(piece->place, moved[piece->tree]);
            moved[piece->tree] += piece->length;
            all += piece->length;
            sends[tree->reader] += PIECE_HEAD + piece->length;
            if (!to_all)
                receives[tree->writer] += PIECE_HEAD + piece->length;
        }
        for (uint32_t node = 0; node < NODES; node++)
            assert_true(sends[node] <= (to_all ? call_bytes : call_bytes / 2) &&
                        receives[node] <= call_bytes / 2);
    }
    assert_int_equal(all, r.bytes);
    for (uint32_t i = 0; i < p->trees; i++)
        assert_int_equal(moved[i], p->tree[i].size[TREE_MANIFEST]);
    copy_rounds_free(&r);
    free(moved);
}

TEST(rounds_move_everything)
{
    static const enum copy_kind kinds[] = {COPY_TO_ALL, COPY_GATHER, COPY_SCATTER, COPY_EXCHANGE};

    for (unsigned seed = 1; seed < 40; seed++)
        for (size_t k = 0; k < 4; k++) {
            struct copy_plan p;
            uint32_t random = seed * 2654435761u;
            make(&p, kinds[k], NULL);
            for (uint32_t i = 0; i < p.trees; i++) {
                random = random * 1664525u + 1013904223u;
                p.tree[i].size[TREE_MANIFEST] =
                    random % 4 == 0 ? 0 : (random >> 8) % (seed % 3 == 0 ? 3000000 : 5000);
            }
            check_rounds(&p, seed % 2 == 0 ? COPY_CALL_LEAST : 500000);
            copy_plan_free(&p);
        }
}
