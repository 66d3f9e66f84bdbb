/* The main() of programs of tests. */
#include <fnmatch.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

/* The linker defines these bounds of the sections. */
extern const struct test *const __start_torus_tests[] __attribute__((weak));
extern const struct test *const __stop_torus_tests[] __attribute__((weak));
extern uint64_t *const __start_torus_seeds[] __attribute__((weak));
extern uint64_t *const __stop_torus_seeds[] __attribute__((weak));

uint64_t first_seed;

void with_seeds(uint64_t count, void (*test)(uint64_t seed))
{
    for (uint64_t seed = first_seed; seed < first_seed + count; seed++)
        test(seed);
}

static char temporary[] = "/tmp/torus-test-XXXXXX";
static pid_t owner; /* the process that has made the temporary file; 0: none */

static void remove_temporary(void)
{
    if (getpid() == owner)
        (void)unlink(temporary);
}

const char *file_of(const void *bytes, size_t length)
{
    FILE *file;

    if (owner == 0) {
        int fd = mkstemp(temporary);
        assert_true(fd >= 0 && close(fd) == 0);
        owner = getpid();
        assert_int_equal(atexit(remove_temporary), 0);
    }
    assert_non_null(file = fopen(temporary, "wb"));
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return temporary;
}

const char *text_file(const char *text)
{
    return file_of(text, strlen(text));
}

/* By file, and as they stand there. */
static int by_place(const void *a, const void *b)
{
    const struct test *x = *(const struct test *const *)a, *y = *(const struct test *const *)b;
    int order = strcmp(x->file, y->file);

    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Whether a pattern matches the test's name, or that of its file without test_ and .c. */
static bool is_meant(const struct test *test, const char *pattern)
{
    const char *file = strrchr(test->file, '/') + 1;
    char stem[64];

    file += strncmp(file, "test_", 5) == 0 ? 5 : 0;
    (void)snprintf(stem, sizeof stem, "%.*s", (int)strcspn(file, "."), file);
    return fnmatch(pattern, test->unit.name, 0) == 0 || fnmatch(pattern, stem, 0) == 0;
}

size_t one_in(size_t n)
{
    return getenv("TORUS_FULL") != NULL ? 1 : n; /* scripts/testing sets it */
}

/* Reads FIRST COUNT. */
static void set_seeds(char **arguments)
{
    first_seed = strtoull(arguments[0], NULL, 10);
    for (uint64_t *const *seeds = __start_torus_seeds; seeds < __stop_torus_seeds; seeds++)
        **seeds = strtoull(arguments[1], NULL, 10);
}

int tests_main(int argc, char **argv)
{
    const size_t count = (size_t)(__stop_torus_tests - __start_torus_tests);
    const char *pattern = argc == 2 || argc == 4 ? argv[1] : NULL;
    const struct test *tests[count];
    struct CMUnitTest chosen[count];
    size_t n = 0;

    if (argc > 2)
        set_seeds(argv + argc - 2);
    memcpy(tests, __start_torus_tests, sizeof tests);
    qsort(tests, count, sizeof *tests, by_place);
    for (size_t i = 0; i < count; i++) {
        if (pattern == NULL || is_meant(tests[i], pattern))
            chosen[n++] = tests[i]->unit;
    }
    if (n > 0)
        return _cmocka_run_group_tests(pattern == NULL ? "tests" : pattern, chosen, n, NULL, NULL);
    (void)fprintf(stderr, "no test and no file of tests is called %s\n", pattern);
    return 2;
}

/* PROGRAM [PATTERN] [FIRST COUNT]: all tests, or those that a pattern means (see is_meant()); with COUNT seeds from FIRST
 * on. A program that needs more has a main() of its own. */
__attribute__((weak)) int main(int argc, char **argv)
{
    return tests_main(argc, argv);
}
