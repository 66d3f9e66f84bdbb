/* Requests of copies: their codec, and the rules that they must keep. Bytes come from other nodes. */
#include "daemon/torusd/copy/request.h"
#include "proto/copy.pb-c.h"
#include "tests/support/cmocka.h"
#include <stdlib.h>
#include <string.h>

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
    copy_request_free(&to);
    free(bytes);
}

static void refused(struct copy_request r, enum error_code code)
{
    struct copy_request to;
    uint8_t *bytes;
    size_t length;
    struct error e;

    assert_int_equal(copy_request_pack(&r, &bytes, &length, &e), 0);
    assert_int_equal(copy_request_unpack(&to, bytes, length, &e), -1);
    assert_int_equal(e.code, code);
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
#undef REFUSED
}

TEST(ranks_are_checked)
{
    struct copy_request r = full();
    struct error e;

    assert_int_equal(copy_request_check(&r, 8, &e), 0);
    assert_int_equal(copy_request_check(&r, 7, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
    r.nodes_count = 0;
    assert_int_equal(copy_request_check(&r, 3, &e), 0);
    assert_int_equal(copy_request_check(&r, 2, &e), -1);
    assert_true(copy_request_takes_part(&r, 1));
    r = full();
    assert_true(copy_request_takes_part(&r, 2) && copy_request_takes_part(&r, 7));
    assert_false(copy_request_takes_part(&r, 1));
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
        const int result = copy_request_check(&r, 4, &e);
        if ((result != 0) != cases[i].refused)
            fail_msg("%s to %s: %d", from, to, result);
        if (result != 0)
            assert_int_equal(e.code, ERROR_USAGE);
        r.kind = COPY_SCATTER;
        assert_int_equal(copy_request_check(&r, 4, &e), 0);
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
    assert_int_equal(copy_request_pack(&r, &bytes, &length, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
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
