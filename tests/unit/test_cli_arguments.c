/* Sizes, times, numbers and folders as people write them. */
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/terminal/arguments.h"
#include "tests/support/cmocka.h"

TEST(test_sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"512B", 512},
        {"64KiB", 65536},
        {"64K", 65536},
        {"64k", 65536},
        {"64kib", 65536},
        {"1KB", 1000},
        {"1MB", 1000000},
        {"2MiB", 2u << 20},
        {"2M", 2u << 20},
        {"3G", UINT64_C(3) << 30},
        {"3GiB", UINT64_C(3) << 30},
        {"3GB", UINT64_C(3000000000)},
        {"9223372036854775807", INT64_MAX},
        {"007", 7},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct error e;
        uint64_t bytes = 42;
        assert_int_equal(parse_size(good[i].text, &bytes, &e), 0);
        assert_true(bytes == good[i].bytes);
    }
}

TEST(test_no_sizes)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"", "whole number"},
        {"KiB", "whole number"},
        {"x", "whole number"},
        {"+5", "whole number"},
        {" 5", "whole number"},
        {"0x10", "the units are"},
        {"1.5M", "the units are"},
        {"1e6", "the units are"},
        {"12Q", "the units are"},
        {"1KiBB", "the units are"},
        {"5 apples and some more of them", "the units are"},
        {"-1", "negative"},
        {"-1K", "negative"},
        {"9223372036854775808", "too large: at most 9223372036854775807 bytes"},
        {"18446744073709551616", "too large: at most 9223372036854775807 bytes"},
        {"99999999999999999999999999999999999999", "too large: at most 9223372036854775807 bytes"},
        {"8589934592G", "too large: at most 9223372036854775807 bytes"},
        {"99999999999999999999G", "too large: at most 9223372036854775807 bytes"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error e = {0};
        uint64_t bytes;
        assert_int_equal(parse_size(bad[i].text, &bytes, &e), -1);
        assert_int_equal(e.code, ERROR_USAGE);
        assert_non_null(strstr(e.text, bad[i].complaint));
    }
}

TEST(test_seconds)
{
    static const char *const bad[] = {"",   "0",   "0.0", "-1",  "1.",          "1.2345", ".5",
                                      "1s", "1e3", "nan", "1,5", "99999999999", "inf"};
    struct error e;
    uint64_t ms;

    assert_int_equal(parse_seconds("30", &ms, &e), 0);
    assert_int_equal(ms, 30000);
    assert_int_equal(parse_seconds("0.5", &ms, &e), 0);
    assert_int_equal(ms, 500);
    assert_int_equal(parse_seconds("30.0", &ms, &e), 0);
    assert_int_equal(ms, 30000);
    assert_int_equal(parse_seconds("2.25", &ms, &e), 0);
    assert_int_equal(ms, 2250);
    assert_int_equal(parse_seconds("0.001", &ms, &e), 0);
    assert_int_equal(ms, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse_seconds(bad[i], &ms, &e), -1);
        assert_int_equal(e.code, ERROR_USAGE);
    }
}

TEST(test_numbers)
{
    static const char *const bad[] = {
        "", "16", "-1", "5x", "x", "4294967296", "99999999999999999999"};
    struct error e;
    uint32_t n;

    assert_int_equal(parse_number("0", 15, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(parse_number("15", 15, &n, &e), 0);
    assert_int_equal(n, 15);
    assert_int_equal(parse_number("3", 1, &n, &e), -1);
    assert_int_equal(parse_number("1", 0, &n, &e), -1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse_number(bad[i], 15, &n, &e), -1);
}

TEST(test_micros)
{
    static const char *const bad[] = {"",    "x",   "-1",   "+1", " 1",    "1 ", "1us", "0x10",
                                      "inf", "nan", "2e99", "1e", "1.2.3", ".",  "e3",  "1,5"};
    struct error e;
    double micros;

    assert_int_equal(parse_micros("75", &micros, &e), 0);
    assert_true(micros == 75);
    assert_int_equal(parse_micros("0.011", &micros, &e), 0);
    assert_true(micros == 0.011);
    assert_int_equal(parse_micros("0", &micros, &e), 0);
    assert_true(micros == 0);
    assert_int_equal(parse_micros("1e-3", &micros, &e), 0);
    assert_true(micros == 0.001);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse_micros(bad[i], &micros, &e), -1);
        assert_int_equal(e.code, ERROR_USAGE);
    }
}

TEST(test_folders)
{
    char directory[] = "/tmp/torus-test-XXXXXX", percent[64], expected[128];
    char *path;
    struct error e;

    assert_int_equal(parse_folder("/data/%r", &path, &e), 0);
    assert_string_equal(path, "/data/%r");
    free(path);

    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(parse_folder("out/%r", &path, &e), 0);
    (void)snprintf(expected, sizeof expected, "%s/out/%%r", directory);
    assert_string_equal(path, expected);
    free(path);

    /* The daemon would take a part of this name for the rank. */
    (void)snprintf(percent, sizeof percent, "%s/%%r", directory);
    assert_int_equal(mkdir(percent, 0700), 0);
    assert_int_equal(chdir(percent), 0);
    assert_int_equal(parse_folder("out", &path, &e), 0);
    (void)snprintf(expected, sizeof expected, "%s/%%%%r/out", directory);
    assert_string_equal(path, expected);
    free(path);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(parse_folder("out", &path, &e), 0);
    assert_string_equal(path, "/out");
    free(path);
    assert_int_equal(parse_folder("", &path, &e), -1);
    assert_int_equal(rmdir(percent), 0);
    assert_int_equal(rmdir(directory), 0);
}

TEST(test_lists)
{
    const char *text = "at2,a-name-that-is-too-long";
    uint64_t sizes[3];
    struct error e;
    char item[8];
    size_t count;

    assert_int_equal(parse_item(&text, item, sizeof item, &e), 0);
    assert_string_equal(item, "at2");
    assert_int_equal(parse_item(&text, item, sizeof item, &e), -1);
    assert_non_null(strstr(e.text, "is too long: "));
    assert_non_null(strstr(e.text, " characters, at most 7 are possible"));
    text = "last";
    assert_int_equal(parse_item(&text, item, sizeof item, &e), 0);
    assert_string_equal(item, "last");
    assert_null(text);
    assert_int_equal(parse_sizes("0,1K,2MB", sizes, 3, &count, &e), 0);
    assert_int_equal(count, 3);
    assert_int_equal(sizes[1], 1024);
    assert_int_equal(sizes[2], 2000000);
    assert_int_equal(parse_sizes("2-32", sizes, 3, &count, &e), 0);
    assert_true(count == 3 && sizes[0] == 2 && sizes[1] == 8 && sizes[2] == 32);
    assert_int_equal(parse_sizes("0,8K-9K", sizes, 3, &count, &e), 0);
    assert_true(count == 3 && sizes[1] == 8192 && sizes[2] == 9216);
    assert_int_equal(parse_sizes("7-7", sizes, 3, &count, &e), 0);
    assert_true(count == 1 && sizes[0] == 7);
    assert_int_equal(parse_sizes("1-65", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1-", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("2-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("0-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1-2-3", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,2,3,4", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,,2", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,x", sizes, 3, &count, &e), -1);
}

TEST(test_named)
{
    const char *const names[] = {NULL, "one", "two", NULL};
    struct error e;
    size_t i;

    assert_int_equal(parse_named("two", names, &i, &e), 0);
    assert_int_equal(i, 2);
    assert_int_equal(parse_named("three", names, &i, &e), -1);
    assert_non_null(strstr(e.text, "'three'"));
    assert_non_null(strstr(e.text, "one, two"));
    assert_int_equal(parse_named("", names, &i, &e), -1);
}

TEST(test_dimensions)
{
    uint32_t dimensions;
    struct error e;

    assert_int_equal(parse_dimensions("0", 3, &dimensions, &e), 0);
    assert_int_equal(dimensions, 1);
    assert_int_equal(parse_dimensions("2,0", 3, &dimensions, &e), 0);
    assert_int_equal(dimensions, 5);
    assert_int_equal(parse_dimensions("3", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("1,", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("x", 3, &dimensions, &e), -1);
}
