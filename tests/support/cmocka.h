/* What every program of tests in C includes: cmocka, what its header needs, and TEST(). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A test; tests_main() finds those of all files of a program. */
struct test {
    const char *file;
    int line;
    struct CMUnitTest unit;
};

/* With scripts/test --full 1, otherwise n: tests take one in that many of their cases. */
size_t one_in(size_t n);

/* TEST(name) { ... } is a test. The last argument of each macro here is the name of the test. */
#define TEST(name) TEST_WITH(NULL, NULL, name)

/* A test between functions for setup and teardown, each of which may be NULL. In the test, as in them, `*state` is what
 * setup left there. */
#define TEST_WITH(setup, teardown, name)                                                           \
    static void name(void **state);                                                                \
    static const struct test test_of_##name = {                                                    \
        __FILE__, __LINE__, {#name, name, setup, teardown, NULL}};                                 \
    static const struct test *const entry_of_##name                                                \
        __attribute__((used, section("torus_tests"))) = &test_of_##name;                           \
    static void name(void **state)

/* TEST_BETWEEN(TYPE, VARIABLE, BEGIN, END, NAME) { ... }: a test with a fixture, a TYPE *VARIABLE, between two expressions
 * that know it as `fixture`. FIXTURE_TEST() is the same between BEGIN(VARIABLE) and END(VARIABLE). */
#define TEST_BETWEEN(type, variable, begin, end, name)                                             \
    static void name##_with(type *variable);                                                       \
    TEST(name)                                                                                     \
    {                                                                                              \
        static type fixture;                                                                       \
        (void)(begin);                                                                             \
        name##_with(&fixture);                                                                     \
        (void)(end);                                                                               \
    }                                                                                              \
    static void name##_with(type *variable)
#define FIXTURE_TEST(type, variable, begin, end, name)                                             \
    TEST_BETWEEN(type, variable, begin(&fixture), end(&fixture), name)

/* OBJECT_TEST(TYPE, VARIABLE, BEGIN, END, NAME) { ... }: a test with the object that BEGIN returns, before END. */
#define OBJECT_TEST(type, variable, begin, end, name)                                              \
    static void name##_with(type variable);                                                        \
    TEST(name)                                                                                     \
    {                                                                                              \
        type variable = begin;                                                                     \
        name##_with(variable);                                                                     \
        end;                                                                                       \
    }                                                                                              \
    static void name##_with(type variable)

/* Fails the test, and prints the text, unless it contains `part`. Not inline: gcc would warn of texts that an assertion
 * before it has shown to be there. */
#define assert_contains(text, part) check_contains(text, part, __FILE__, __LINE__)
static __attribute__((noinline, unused)) void check_contains(const char *text, const char *part,
                                                             const char *file, int line)
{
    if (strstr(text, part) != NULL)
        return;
    print_error("\"%s\" is not in \"%s\"\n", part, text);
    _fail(file, line);
}

/* Fails the test, and prints the error (a struct with a code and a text), unless the result is 0. */
#define assert_success(result, error) check_success_of(result, (error).text, __FILE__, __LINE__)
static inline void check_success_of(int result, const char *text, const char *file, int line)
{
    if (result == 0)
        return;
    print_error("%s\n", text);
    _fail(file, line);
}

/* Fails the test unless the result is -1, with this code of the error, whose text contains `part`. */
#define assert_fails(result, error, wanted, part)                                                  \
    do {                                                                                           \
        assert_int_equal(result, -1);                                                              \
        assert_int_equal((error).code, wanted);                                                    \
        assert_contains((error).text, part);                                                       \
    } while (0)

/* SEEDS(COUNT); defines `seeds`, how many seeds the tests of a file play: COUNT, unless the program's arguments say
 * another number. They begin at first_seed. */
#define SEEDS(count)                                                                               \
    static uint64_t seeds = (count);                                                               \
    static uint64_t *const entry_of_seeds __attribute__((used, section("torus_seeds"))) = &seeds

extern uint64_t first_seed;

/* Plays a test with that many seeds from first_seed on. */
void with_seeds(uint64_t count, void (*test)(uint64_t seed));

/* SEED_TEST(COUNT, NAME) { ... }: a test that is played with that many seeds from first_seed on, each as `seed`. */
#define SEED_TEST(count, name)                                                                     \
    static void name##_with(uint64_t seed);                                                        \
    TEST(name)                                                                                     \
    {                                                                                              \
        with_seeds(count, name##_with);                                                            \
    }                                                                                              \
    static void name##_with(uint64_t seed)

/* Writes a temporary file, the same in each call. Returns its path. The file is removed at the program's end. */
const char *file_of(const void *bytes, size_t length);
const char *text_file(const char *text);

/* Runs the tests of the program, or those that its arguments name: see main() in tests/support/cmocka.c. Returns how
 * many failed. */
int tests_main(int argc, char **argv);
