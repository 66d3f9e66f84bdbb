/* The archive of torusctl support-bundle: nothing in it looks like a key, and it is written whole or not at all. */
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/bundle/bundle.h"
#include "daemon/lib/host/run.h"
#include "tests/support/cmocka.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(masks_what_may_be_a_key)
{
    static const struct {
        const char *text, *masked;
    } cases[] = {
        {"", ""},
        {"key id 5116fde15c87cdc3, alpha", "key id 5116fde15c87cdc3, alpha"},
        {"a " KEY " b", "a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx b"},
        {"0123456789abcdef0123456789abcdef", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
        {"0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcde"},
        {"k=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=;",
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;"},
        {"/var/lib/torusd/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s",
         "/var/lib/torusd/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s"},
        {"fe80::1234:5678:9abc:def0/64", "fe80::1234:5678:9abc:def0/64"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "%s", cases[i].text);
        bundle_mask(text);
        assert_string_equal(text, cases[i].masked);
    }
}

TEST(the_archive_has_its_parts)
{
    static const char *const echo[] = {"echo", "printed " KEY, NULL};
    static const char *const nothing[] = {"true", NULL};
    static const char *const missing[] = {"/nowhere/program", NULL};
    char folder[] = "/tmp/test-bundle-XXXXXX", path[64], text[8192];
    struct bundle b;
    struct error e = {.code = ERROR_NONE};
    struct stat s;
    int status;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.tar.gz", folder);
    assert_int_equal(bundle_begin(&b, "all", &e), 0);
    bundle_add(&b, "one.txt", "the first", "one\n");
    bundle_add(&b, "here/two.txt", "the second", "two " KEY "\n");
    bundle_add(&b, "empty.txt", "nothing", "");
    bundle_add_json(&b, "three.json", "the third", json_pack("{s:i}", "three", 3));
    bundle_add_output(&b, "here/four.txt", "the fourth", echo);
    bundle_add_output(&b, "five.txt", "nothing", nothing);
    bundle_add_output(&b, "six.txt", "nothing", missing);
    assert_int_equal(bundle_write(&b, path, &e), 0);
    assert_int_equal(json_array_size(b.parts), 5);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    bundle_free(&b);

    const char *const list[] = {"tar", "-tzf", path, NULL}, *const show[] = {"tar", "-xzOf", path,
                                                                             NULL};
    assert_true(host_run(list, 10000, text, sizeof text, &status) && status == 0);
    assert_contains(text, "all/here/two.txt");
    assert_contains(text, "all/README.txt");
    assert_null(strstr(text, "empty.txt"));
    assert_true(host_run(show, 10000, text, sizeof text, &status) && status == 0);
    assert_contains(text, "one\n");
    assert_contains(text, "printed xxx");
    assert_contains(text, "the second");
    assert_null(strstr(text, "0123456789abcdef0123"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left */
}

TEST(an_archive_that_cannot_be_written)
{
    struct bundle b;
    struct error e = {.code = ERROR_NONE};
    char folder[sizeof b.folder];

    assert_int_equal(bundle_begin(&b, "all", &e), 0);
    (void)strcpy(folder, b.folder);
    bundle_add(&b, "one.txt", "the first", "one\n");
    assert_fails(bundle_write(&b, "/nowhere/at/all.tar.gz", &e), e, ERROR_IO, "");
    bundle_free(&b);
    assert_int_equal(access(folder, F_OK), -1);
}

TEST(a_program_that_does_not_end)
{
    static const char *const endless[] = {"sh", "-c", "echo first; exec sleep 1000", NULL};
    static const char *const fails[] = {"sh", "-c", "exit 3", NULL};
    char text[100];
    int status;

    assert_true(host_run(endless, 300, text, sizeof text, &status));
    assert_string_equal(text, "first\n");
    assert_int_equal(status, -1);
    assert_false(host_run(fails, 10000, text, sizeof text, &status));
    assert_int_equal(status, 3);
}
