/* The reader of text files: its limit, encodings, formats, and files that it does not wait for. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder_fixture.h"
#include "proto/text_file.h"
#include "proto/text_format.h"
#include "tests/support/cmocka.h"

static const struct text_kind kind = {.name = "a test", .most = 64u << 10};

static void check_read(const char *path, const char *expected, size_t length)
{
    struct error e;
    size_t size;
    char *text;

    assert_success(text_file_read(path, &kind, &text, &size, &e), e);
    assert_int_equal(size, length);
    assert_memory_equal(text, expected, length);
    assert_int_equal(text[size], '\0');
    free(text);
}

static void check_refused(const char *path, enum error_code code, const char *why)
{
    struct error e;
    size_t length;
    char *text;

    assert_int_equal(text_file_read(path, &kind, &text, &length, &e), -1);
    assert_null(text);
    assert_int_equal(e.code, code);
    if (strncmp(e.text, path, strlen(path)) != 0 || strstr(e.text, why) == NULL)
        fail_msg("\"%s\", expected \"%s: ...%s...\"", e.text, path, why);
}

#define CHECK_BYTES_REFUSED(bytes, why)                                                            \
    do {                                                                                           \
        make_file(at(state, "file"), bytes, sizeof(bytes) - 1);                                    \
        check_refused(at(state, "file"), ERROR_REFUSED, why);                                      \
    } while (0)

FOLDER_TEST(a_byte_order_mark_is_not_part_of_the_text)
{
    static const char text[] = "\xef\xbb\xbfone\r\ntwo";

    make_file(at(state, "file"), text, sizeof text - 1);
    check_read(at(state, "file"), text + 3, sizeof text - 4);
    make_file(at(state, "file"), text, 3);
    check_read(at(state, "file"), "", 0);
    make_file(at(state, "file"), text + 3, sizeof text - 4);
    check_read(at(state, "file"), text + 3, sizeof text - 4);
    make_file(at(state, "file"), "", 0);
    check_read(at(state, "file"), "", 0);
    check_read("/dev/null", "", 0);
}

FOLDER_TEST(other_encodings_are_named)
{
    CHECK_BYTES_REFUSED("\xff\xfe[\0n\0", "this is UTF-16, and a test must be UTF-8");
    CHECK_BYTES_REFUSED("\xfe\xff\0[\0n", "iconv -f UTF-16 -t UTF-8");
    CHECK_BYTES_REFUSED("[\0n\0o\0", "this is UTF-16LE");
    CHECK_BYTES_REFUSED("\0[\0n\0o", "this is UTF-16BE");
    CHECK_BYTES_REFUSED("\xff\xfe\0\0[\0\0\0", "this is UTF-32");
    CHECK_BYTES_REFUSED("\0\0\xfe\xff\0\0\0[", "this is UTF-32");
    CHECK_BYTES_REFUSED("one\ntwo\nthr\0ee\n", "line 3 has a NUL byte, so this is not a test");
    CHECK_BYTES_REFUSED("\0", "line 1 has a NUL byte");
}

FOLDER_TEST(formats_that_are_not_text_are_named)
{
    CHECK_BYTES_REFUSED("\x1f\x8b\x08\0",
                        "this is packed by gzip (unpack it with gunzip), not a test");
    CHECK_BYTES_REFUSED("\xfd"
                        "7zXZ\0",
                        "packed by xz");
    CHECK_BYTES_REFUSED("BZh91AY", "packed by bzip2");
    CHECK_BYTES_REFUSED("\x28\xb5\x2f\xfd", "packed by zstd");
    CHECK_BYTES_REFUSED("PK\x03\x04", "a zip archive");
    CHECK_BYTES_REFUSED("\x7f"
                        "ELF\x02",
                        "a program or library");
    CHECK_BYTES_REFUSED("\x89PNG\r\n", "a PNG picture");
    CHECK_BYTES_REFUSED("%PDF-1.7\n", "a PDF document");
}

FOLDER_TEST(a_limit_is_kept_and_named)
{
    char *text = malloc(kind.most + 4);

    assert_non_null(text);
    memcpy(text, "\xef\xbb\xbf", 3);
    memset(text + 3, 'a', kind.most + 1);
    make_file(at(state, "file"), text + 3, kind.most);
    check_read(at(state, "file"), text + 3, kind.most);
    make_file(at(state, "file"), text + 3, kind.most + 1);
    check_refused(at(state, "file"), ERROR_REFUSED, "longer than the 64 KiB that a test can have");
    make_file(at(state, "file"), text, kind.most - 1);
    check_read(at(state, "file"), text + 3, kind.most - 4);
    free(text);
}

/* Refusing a file that is too long takes no memory and no time: it is not read. */
FOLDER_TEST(endless_files_are_refused)
{
    make_file(at(state, "sparse"), "a", 1);
    assert_int_equal(truncate(at(state, "sparse"), (off_t)10 << 30), 0);
    check_refused(at(state, "sparse"), ERROR_REFUSED, "longer than the 64 KiB");
    check_refused("/dev/zero", ERROR_REFUSED, "line 1 has a NUL byte");
    check_refused("/proc/self/mem", ERROR_IO, "Input/output error");
    check_refused(*state, ERROR_IO, "a folder cannot be read as a test");
    check_refused(at(state, "missing"), ERROR_IO, "No such file or directory");
}

static void *write_endlessly(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)signal(SIGPIPE, SIG_IGN);
    assert_true(fd >= 0);
    while (write(fd, "yes\n", 4) == 4) /* until the reader has closed it */
        ;
    (void)close(fd);
    return NULL;
}

FOLDER_TEST(a_pipe_that_never_ends_is_refused)
{
    char path[FIXTURE_PATH];
    pthread_t writer;

    (void)strcpy(path, at(state, "fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_endlessly, path), 0);
    check_refused(path, ERROR_REFUSED, "longer than the 64 KiB");
    assert_int_equal(pthread_join(writer, NULL), 0);
}

static void *write_late(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)signal(SIGPIPE, SIG_IGN);
    assert_true(fd >= 0 && write(fd, "one\n", 4) == 4);
    (void)usleep(
        1000); /* nothing depends on how long: the reader waits in between, or it does not */
    assert_true(write(fd, "two\n", 4) == 4);
    (void)close(fd);
    return NULL;
}

FOLDER_TEST(a_pipe_is_read_to_its_end)
{
    char path[FIXTURE_PATH];
    pthread_t writer;

    (void)strcpy(path, at(state, "fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_late, path), 0);
    check_read(path, "one\ntwo\n", 8);
    assert_int_equal(pthread_join(writer, NULL), 0);
}

FOLDER_TEST(it_gives_up_if_nothing_comes)
{
    char text[16], path[FIXTURE_PATH];
    struct error e;
    int fd;

    (void)strcpy(path, at(state, "fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_fails(text_file_fill(fd, path, text, sizeof text, 20, &e), e, ERROR_IO, "0.02 s");
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(writer >= 0 && write(writer, "one", 3) == 3);
    assert_int_equal(text_file_fill(fd, path, text, sizeof text, 20, &e), -1); /* not all of it */
    (void)close(writer);
    (void)close(fd);
}

static void check_format(const char *text, const char *expected)
{
    char room[TEXT_FORMAT_SIZE];
    const char *format = text_format(text, strlen(text), room);

    if (expected == NULL ? format != NULL : format == NULL || strcmp(format, expected) != 0)
        fail_msg("\"%s\" is %s, expected %s", text, format != NULL ? format : "unknown",
                 expected != NULL ? expected : "unknown");
}

TEST(formats_of_text_are_recognised)
{
    check_format("num_ranks 4\n\nrank 0 {\n", "a GOAL schedule");
    check_format("// made by hand\nnum_ranks 4\n", "a GOAL schedule");
    check_format("\n <svg xmlns=\"x\">", "an SVG picture");
    check_format("<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<!-- <algo> --><svg/>",
                 "an SVG picture");
    check_format("<!DOCTYPE html>\n<html>", "an HTML page");
    check_format("<algo name=\"a\">", TEXT_FORMAT_MSCCL);
    check_format("<a:b c='d'>", "XML with <a:b> as its outermost element");
    check_format("<", "XML");
    check_format("<!-- ", "XML");
    check_format("<?xml?> nothing", "XML");
    check_format("{\"dims\":\"3\",\"schedule\":1}\n", TEXT_FORMAT_SCHEDULE);
    check_format("{\"src\":1}\n{\"schedule\":1}", TEXT_FORMAT_ROUTES);
    check_format("{\n  \"schedule\": 1\n}\n", "JSON with objects of several lines");
    check_format("{\"nodes\":3}", "JSON of another kind");
    check_format("{", "JSON of another kind");
    check_format("[\n 1 ]", "a JSON array");
    check_format("[{}]", "a JSON array");
    check_format("[", "a JSON array");
    check_format("[node]\n", TEXT_FORMAT_INI);
    check_format("; a node\n\n# of two\n  [node]", TEXT_FORMAT_INI);
    check_format("; a node", NULL);
    check_format("torusd-key-1 0011\n", "a cluster key");
    check_format("#!/bin/sh\n", "a script");
    check_format("", NULL);
    check_format("hello\n", NULL);
}
