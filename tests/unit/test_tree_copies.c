/* Copies from a reader to a writer. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "copying_fixture.h"

static void copy_how(struct copying *c, const struct how *how, struct copied *result)
{
    if (copying_run(c, how, result) != 0)
        fail_msg("%s", result->error.text);
}

static void a_new_tree_is_equal(void **state)
{
    struct copying c;

    for (unsigned seed = 1; seed <= 12; seed++) {
        copying_open(&c, state);
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 60);
        struct how how = {.from = from,
                          .to = to,
                          .piece = seed % 2 == 0 ? 5000 : 1000000,
                          .seed = seed % 3,
                          .threads = seed % 4};
        struct copied result;
        copy_how(&c, &how, &result);
        check_equal(from, to);
        assert_int_equal(result.moved, result.report.bytes);
        assert_int_equal(result.report.bytes_missing, result.report.bytes);
        assert_int_equal(result.report.unchanged + result.report.changed, 0);
        /* a second copy moves and changes nothing */
        copy_how(&c, &how, &result);
        assert_int_equal(result.moved, 0);
        assert_int_equal(result.report.added + result.report.changed, 0);
        assert_true(result.report.unchanged > 0);
        assert_int_equal(entries(at(state, "data")), 2 * seed); /* no staging is left */
        assert_int_equal(entries(at(state, "state/copies")), 0);
        copying_close(&c);
    }
}

static void a_changed_tree_is_equal_again(void **state)
{
    struct copying c;

    for (unsigned seed = 1; seed <= 25; seed++) {
        copying_open(&c, state);
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 40);
        (void)copying_well(&c, from, to);
        random_changes(from, seed);
        random_changes(to, seed + 1000);
        struct how how = {.from = from,
                          .to = to,
                          .seed = seed % 3,
                          .write = {.delete = true, .checksum = seed % 5 == 0}};
        struct copied result, looked;
        struct how look = how;
        look.write.look_only = true;
        copy_how(&c, &look, &looked);
        copy_how(&c, &how, &result);
        check_equal(from, to);
        assert_int_equal(looked.report.added, result.report.added);
        assert_int_equal(looked.report.changed, result.report.changed);
        assert_int_equal(looked.report.removed, result.report.removed);
        assert_int_equal(looked.report.bytes_missing, result.report.bytes_missing);
        copy_how(&c, &how, &result);
        assert_int_equal(result.report.added + result.report.changed + result.report.removed, 0);
        copying_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        COPYING_TEST(a_new_tree_is_equal),
        COPYING_TEST(a_changed_tree_is_equal_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
