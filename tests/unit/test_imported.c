/* Schedules from files: accepted files, and errors that name the line, block, step and node. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "proto/sha256.h"
#include "tests/support/cmocka.h"

#define HEADER "{\"schedule\":1,\"dims\":\"3m\"}\n"

struct file {
    char *text;
    size_t length;
};

static struct file export_of(const char *dims, const char *algorithm, bool by_period)
{
    struct file f;
    struct torus t;
    FILE *out = open_memstream(&f.text, &f.length);

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    assert_int_equal(schedule_export(out, &t, algorithm_find(algorithm), by_period, NULL), 0);
    assert_int_equal(fclose(out), 0);
    return f;
}

/* Fails the test unless the file is refused with a reason that contains all of these texts, up to NULL. */
static void refused(const char *text, size_t length, ...)
{
    struct imported *s = NULL;
    struct error e;
    const char *part;
    va_list ap;

    if (imported_read(&s, text, length, NULL, NULL, &e) == 0)
        fail_msg("taken: %.*s", (int)(length < 200 ? length : 200), text);
    assert_int_equal(e.code, ERROR_REFUSED);
    va_start(ap, length);
    while ((part = va_arg(ap, const char *)) != NULL)
        assert_contains(e.text, part);
    va_end(ap);
}

TEST(digests_are_those_of_sha256sum)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char digest[SHA256_TEXT_SIZE];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sha256_text(known[i].text, strlen(known[i].text), digest);
        assert_string_equal(digest, known[i].digest);
    }
}

/* Walks all routes independently: every segment of every block ends at its destination. */
static void walk_all(const struct imported *s)
{
    const struct algorithm *a = imported_algorithm(s);
    const struct torus *t = imported_torus(s);
    struct leg *leg = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *leg);

    for (uint32_t source = 0; source < t->nodes; source++)
        for (uint32_t destination = 0; destination < t->nodes; destination++)
            for (uint32_t k = 0; k < a->segments && source != destination; k++) {
                uint32_t legs = algorithm_route(a, t, source, destination, k, leg), here = source;
                for (uint32_t i = 0; i < legs; i++)
                    for (uint32_t hop = 0; hop < leg[i].hops; hop++)
                        here =
                            torus_neighbour(t, here, torus_port(t, leg[i].dim, leg[i].direction));
                assert_int_equal(here, destination);
            }
    free(leg);
}

TEST(every_algorithm_is_read_back)
{
    static const char *const tori[] = {"1", "2", "4m", "2x3", "3x5", "4x4", "3mx4", "2x2x2", "16"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++)
        for (size_t k = 0; k < 2 * algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k / 2);
            struct schedule_report wanted, report;
            struct imported *s;
            struct error e;
            struct torus t;
            assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
            if (algorithm_accepts(a, &t, NULL) != 0)
                continue;
            struct file f = export_of(tori[i], a->name, k % 2 == 1);
            if (imported_read(&s, f.text, f.length, &t, &report, &e) != 0)
                fail_msg("%s on %s: %s", a->name, tori[i], e.text);
            assert_int_equal(schedule_verify(&t, a, &wanted, NULL), 0);
            assert_int_equal(report.startups, wanted.startups);
            assert_int_equal(report.transmission, wanted.transmission);
            assert_int_equal(report.critical_path, wanted.critical_path);
            assert_int_equal(report.contended_steps, wanted.contended_steps);
            assert_true(report.bound == wanted.bound);
            assert_int_equal(imported_algorithm(s)->streaming, a->streaming);
            assert_string_equal(imported_name(s), a->name);
            assert_memory_equal(imported_algorithm(s)->name, a->name, strlen(a->name));
            walk_all(s);

            char *again;
            size_t length;
            FILE *out = open_memstream(&again, &length);
            assert_int_equal(schedule_export(out, &t, imported_algorithm(s), k % 2 == 1, NULL), 0);
            assert_int_equal(fclose(out), 0);
            assert_int_equal(length, f.length);
            assert_memory_equal(again, f.text, length);
            imported_free(s);
            free(again);
            free(f.text);
        }
}

/* Where line `number` (from 0) begins; *length without its end. */
static char *line_of(const struct file *f, unsigned number, size_t *length)
{
    char *at = f->text;

    for (; number > 0; number--)
        at = strchr(at, '\n') + 1;
    *length = (size_t)(strchr(at, '\n') - at);
    return at;
}

/* Every line of `stream` on a torus, dropped, doubled, cut short, and sent to a wrong place. */
TEST(a_line_that_drops_doubles_or_misroutes_a_block_is_refused)
{
    for (unsigned line = 1; line <= 15 * 14 * 4; line++) {
        struct file f = export_of("3x5", "stream", false);
        size_t length;
        char *at = line_of(&f, line, &length), *copy = malloc(f.length + length + 2);
        unsigned source, destination, segment, end, step;
        char block[80], where[80], first[80];
        struct torus t;

        assert_int_equal(torus_parse(&t, "3x5", NULL), 0);
        assert_int_equal(
            sscanf(at, "{\"src\":%u,\"dst\":%u,\"segment\":%u", &source, &destination, &segment),
            3);
        (void)snprintf(block, sizeof block, "block %u -> %u, segment %u", source, destination,
                       segment);

        size_t before = (size_t)(at - f.text), rest = f.length - before - length - 1;
        memcpy(copy, f.text, before);
        memcpy(copy + before, at + length + 1, rest);
        refused(copy, before + rest, block, "has no route", NULL);

        memcpy(copy, f.text, f.length);
        memcpy(copy + f.length, at, length + 1);
        (void)snprintf(where, sizeof where, "it already has a route, in line %u", line + 1);
        (void)snprintf(first, sizeof first, "line %u:", 15 * 14 * 4 + 2);
        refused(copy, f.length + length + 1, first, block, where, NULL);

        /* Reverses the direction of the last leg. */
        char *leg = at + length;
        unsigned dim;
        int direction;
        while (*leg != '[')
            leg--;
        assert_int_equal(sscanf(leg, "[%u,%u,%d,1]", &step, &dim, &direction), 3);
        end = torus_walk(&t, destination, dim, -direction, 2);
        (void)snprintf(where, sizeof where, "it ends at node %u in step %u, not at node %u", end,
                       step, destination);
        char turned[f.length + 4];
        int used = snprintf(turned, sizeof turned, "%.*s[%u,%u,%d,1]%s", (int)(leg - f.text),
                            f.text, step, dim, -direction, strchr(leg, ']') + 1);
        refused(turned, (size_t)used, block, where, NULL);
        free(copy);
        free(f.text);
    }
}

/* The reason must contain both `a` and `b`. */
static const struct {
    const char *text, *a, *b;
} wrong_lines[] = {
    {"", "empty", "header"},
    {"\n \n", "empty", "header"},
    {"{\"src\":0,\"dst\":1,\"segment\":0,\"legs\":[]}", "line 1", "expected the header"},
    {"{}", "line 1", "no \"schedule\""},
    {"[]", "line 1, column 1", "'{'"},
    {"{\"schedule\":1}", "line 1", "no \"dims\""},
    {"\n{\"schedule\":2,\"dims\":\"3\"}", "line 2", "version"},
    {"{\"schedule\":01,\"dims\":\"3\"}", "line 1", "version"},
    {"{\"schedule\":1.0,\"dims\":\"3\"}", "line 1", "version"},
    {"{\"schedule\":1,\"schedule\":1,\"dims\":\"3\"}", "line 1", "appears twice"},
    {"{\"schedule\":1,\"dims\":\"3y\"}", "line 1", "dims"},
    {"{\"schedule\":1,\"dims\":\"3\",\"color\":\"red\"}", "unknown key", "color"},
    {"{\"schedule\":1,\"dims\":\"3\",\"name\":\"a b\"}", "line 1", "name"},
    {"{\"schedule\":1,\"dims\":\"3\",\"name\":\"\"}", "line 1", "name"},
    {"{\"schedule\":1,\"dims\":\"3\",\"name\":\"\\u0041\"}", "line 1", "character"},
    {"{\"schedule\":1,\"dims\":\"3\",\"name\":\"123456789012345678901\"}", "name", "longer"},
    {"{\"schedule\":1,\"dims\":\"3\",\"mode\":\"fast\"}", "line 1", "\"streaming\""},
    {"{\"schedule\":1,\"dims\":\"3\",\"ports\":\"two-port\"}", "line 1", "\"one-port\""},
    {"{\"schedule\":1,\"dims\":\"3\",\"operation\":\"barrier\"}", "line 1", "\"allgather\""},
    {"{\"schedule\":1,\"dims\":\"3\",\"mode\":\"streaming\",\"ports\":\"one-port\"}", "line 1",
     "all-port"},
    {"{\"schedule\":1,\"dims\":\"3\",\"segments\":0}", "segments", "1 to 256"},
    {"{\"schedule\":1,\"dims\":\"3\",\"segments\":257}", "segments", "1 to 256"},
    {"{\"schedule\":1,\"dims\":\"3\",\"period\":[2]}", "period 2", "divide"},
    {"{\"schedule\":1,\"dims\":\"4m\",\"period\":[2]}", "period 2", "must be its size 4"},
    {"{\"schedule\":1,\"dims\":\"3x3\",\"period\":[3]}", "period", "2 numbers"},
    {"{\"schedule\":1,\"dims\":\"3\",\"period\":[1,1]}", "period", "1 number"},
    {"{\"schedule\":1,\"dims\":\"3\"} x", "line 1, column 27", "the end of the line"},
    {"{\"schedule\":1,\"dims\":\"1024x1024\"}", "routes", "period"},
    {"{\"schedule\":1,\"dims\":\"3\"", "line 1", "'}'"},
    {HEADER "{\"src\":3,\"dst\":1,\"legs\":[]}", "line 2", "src must be a number from 0 to 2"},
    {HEADER "{\"src\":0,\"dst\":-1,\"legs\":[]}", "line 2", "dst must be"},
    {HEADER "{\"src\":-0,\"dst\":1,\"legs\":[]}", "line 2", "src must be"},
    {HEADER "{\"src\":99999999999999999999,\"dst\":1,\"legs\":[]}", "line 2", "src must be"},
    {HEADER "{\"src\":0,\"dst\":0,\"legs\":[]}", "line 2", "for itself"},
    {HEADER "{\"src\":0,\"dst\":1,\"segment\":1,\"legs\":[]}", "line 2", "segment must be"},
    {HEADER "{\"src\":0,\"dst\":1}", "line 2", "no \"legs\""},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[]}", "line 2: block 0 -> 1", "has no legs"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1]]}", "line 2", "','"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[0,0,0,1]]}", "line 2", "1 or -1"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[0,1,1,1]]}", "line 2", "dimension"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,0]]}", "line 2", "hops"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[65536,0,1,1]]}", "line 2", "step"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,3]]}", "in step 0 node 0", "3 nodes"},
    {HEADER "{\"src\":0,\"dst\":1,\"legs\":[[4,0,-1,1]]}", "block 0 -> 1, segment 0",
     "in step 4 node 0 sends it 1 hop by port -0: there is no link"},
    {HEADER "{\"src\":0,\"dst\":2,\"legs\":[[4,0,1,1],[4,0,1,1]]}", "node 1 receives it in step 4",
     "steps must rise"},
    {HEADER "{\"src\":0,\"dst\":2,\"legs\":[[4,0,1,1]]}", "line 2: block 0 -> 2, segment 0",
     "it ends at node 1 in step 4, not at node 2"},
    {"{\"schedule\":1,\"dims\":\"3\",\"period\":[1]}\n{\"src\":1,\"dst\":2,\"legs\":[[0,0,1,1]]"
     "}",
     "line 2: block 1 -> 2", "first box"},
    {"{\"schedule\":1,\"dims\":\"3\",\"ports\":\"one-port, single hops\",\"period\":[1]}\n"
     "{\"src\":0,\"dst\":2,\"legs\":[[0,0,1,2]]}",
     "line 2: block 0 -> 2", "single hops"},
    {"{\"schedule\":1,\"dims\":\"3\",\"ports\":\"one-port\",\"period\":[1]}\n"
     "{\"src\":0,\"dst\":1,\"legs\":[[7,0,1,1]]}\n{\"src\":0,\"dst\":2,\"legs\":[[7,0,-1,1]]}",
     "not one-port", "in step 7 node"},
    {"{\"schedule\":1,\"dims\":\"3\",\"operation\":\"allgather\",\"period\":[1]}\n"
     "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"
     "{\"src\":0,\"dst\":2,\"legs\":[[1,0,1,1],[2,0,1,1]]}",
     "line 3: block 0 -> 2", "in step 2 node 1 sends it on"},
    {"{\"schedule\":1,\"dims\":\"3\",\"operation\":\"allgather\",\"period\":[1]}\n"
     "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"
     "{\"src\":0,\"dst\":2,\"legs\":[[1,0,1,1],[2,0,-1,1],[3,0,-1,1]]}",
     "line 3: block 0 -> 2", "in step 2 it comes back to node 0"},
};

TEST(lines_that_are_wrong_are_named)
{
    for (size_t i = 0; i < sizeof wrong_lines / sizeof *wrong_lines; i++)
        refused(wrong_lines[i].text, strlen(wrong_lines[i].text), wrong_lines[i].a,
                wrong_lines[i].b, NULL);
    refused(HEADER "\0", sizeof HEADER, "line 2", NULL);
}

TEST(optional_parts_may_be_left_out)
{
    static const char text[] = "\r\n\t{ \"dims\" : \"2\" , \"schedule\" : 1 } \r\n\n"
                               "{\"legs\":[[9,0,1,1]],\"dst\":0,\"src\":1}\n"
                               "{\"src\":0,\"dst\":1,\"legs\":[[0,0,-1,1]]}";
    struct schedule_report report;
    struct imported *s;
    struct error e;
    struct torus t;

    assert_int_equal(imported_read(&s, text, strlen(text), NULL, &report, &e), 0);
    assert_string_equal(imported_name(s), "imported");
    assert_int_equal(imported_algorithm(s)->segments, 1);
    assert_int_equal(imported_algorithm(s)->operation, OPERATION_EXCHANGE);
    assert_int_equal(imported_algorithm(s)->port_model, PORT_MODEL_ALL);
    assert_false(imported_algorithm(s)->streaming);
    assert_int_equal(report.startups, 2);
    imported_free(s);
    assert_int_equal(torus_parse(&t, "2m", NULL), 0);
    assert_fails(imported_read(&s, text, strlen(text), &t, NULL, &e), e, ERROR_REFUSED, "2m");
}

TEST(files_that_are_too_long_are_refused)
{
    size_t length = IMPORTED_BYTES_MOST + 1;
    char *text = calloc(length, 1);

    memset(text, ' ', length);
    refused(text, length, "16 MiB", NULL);
    refused(text, length - 1, "empty", NULL);
    free(text);
}

/* A file as editors on other systems write it. The digest covers all bytes of the file. */
TEST(marks_and_line_ends_of_editors_are_no_part_of_it)
{
    static const char text[] = "\xef\xbb\xbf {\"schedule\":1,\"dims\":\"2m\"}\r\n\r\n"
                               "\t{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]} \r\n"
                               "   {\"src\":1,\"dst\":0,\"legs\":[[0,0,-1,1]]}\r\n";
    static const char utf16[] = "\xff\xfe{\0\"\0",
                      bad_line[] = "\xef\xbb\xbf" HEADER "\r\n  nothing\r\n";
    char digest[SHA256_TEXT_SIZE];
    struct imported *s;
    struct error e;

    assert_success(imported_read(&s, text, sizeof text - 1, NULL, NULL, &e), e);
    sha256_text(text, sizeof text - 1, digest);
    assert_string_equal(imported_digest(s), digest);
    imported_free(s);
    refused(utf16, sizeof utf16 - 1, "this is UTF-16", NULL);
    refused(HEADER "\0", sizeof HEADER, "line 2 has a NUL byte", NULL);
    refused(bad_line, sizeof bad_line - 1, "line 3, column 3: expected '{'", NULL);
}
