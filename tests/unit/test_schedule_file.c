/* Files with schedules: finding their format, and files that are refused. */
#include <unistd.h>

#include "client/cli/schedule_files/schedule_file.h"
#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"

#define OWN                                                                                        \
    "{\"schedule\":1,\"dims\":\"2m\"}\n"                                                           \
    "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"                                                 \
    "{\"src\":1,\"dst\":0,\"legs\":[[0,0,-1,1]]}\n"

static const char *path;

static void taken(const char *text, size_t length, const char *dims)
{
    struct torus t = msccl_torus(dims);
    struct schedule_file file;
    struct error e;

    path = file_of(text, length);
    if (schedule_file_read(&file, path, &t, &e) != 0)
        fail_msg("%s", e.text);
    assert_non_null(strstr(file.text, "\"schedule\":1"));
    assert_int_equal(imported_torus(file.imported)->nodes, t.nodes);
    schedule_file_free(&file);
}

static void refused(const char *text, size_t length, const struct torus *t, const char *part)
{
    struct schedule_file file;
    struct error e;

    path = file_of(text, length);
    assert_int_equal(schedule_file_read(&file, path, t, &e), -1);
    assert_null(file.text);
    assert_null(file.imported);
    if (strncmp(e.text, path, strlen(path)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, e.text);
}

/* A text of ASCII characters in UTF-16, to be freed by the caller. */
static char *in_utf16(const char *text, bool big_endian, bool marked, size_t *length)
{
    char *wide = malloc(2 * strlen(text) + 2), *at = wide;

    assert_non_null(wide);
    if (marked) {
        *at++ = (char)(big_endian ? 0xfe : 0xff);
        *at++ = (char)(big_endian ? 0xff : 0xfe);
    }
    for (const char *p = text; *p != '\0'; p++) {
        *at++ = big_endian ? '\0' : *p;
        *at++ = big_endian ? *p : '\0';
    }
    *length = (size_t)(at - wide);
    return wide;
}

TEST(the_format_is_found_in_any_encoding)
{
    static const char marked[] = "\xef\xbb\xbf" BY_HAND, spaced[] = " \r\n\t<!-- -->" BY_HAND;
    const char *bare = strstr(BY_HAND, "<algo");

    taken(OWN, strlen(OWN), "2m");
    taken(BY_HAND, strlen(BY_HAND), "3");
    taken(marked, sizeof marked - 1, "3");
    for (int way = 0; way < 4; way++) {
        /* Without a mark, an XML declaration shows which byte comes first. */
        size_t length;
        char *wide = in_utf16(BY_HAND, way % 2 != 0, way < 2, &length);
        taken(wide, length, "3");
        free(wide);
    }
    taken(bare, strlen(bare), "3");
    refused(spaced, sizeof spaced - 1,
            &(struct torus){.dims = 1, .size = {3}, .wrap = {true}, .nodes = 3}, "not XML");
}

TEST(lines_that_make_no_schedule_are_refused)
{
    static const char marks[] = "\xef\xbb\xbf \n";
    struct torus t = msccl_torus("3");

    refused("", 0, &t, "the schedule is empty");
    refused("\0\0\0\0", 4, &t, "line 1");
    refused("\xff\xfe", 2, &t, "this is UTF-16");
    refused(marks, sizeof marks - 1, &t, "the schedule is empty");
    refused(BY_HAND, strlen(BY_HAND), NULL, "give --dims");
    refused(OWN, strlen(OWN), &t, "for a torus of 2m, not 3");
}

TEST(files_that_cannot_be_read_are_refused)
{
    struct torus t = msccl_torus("3");
    struct schedule_file file;
    struct error e;

    path = file_of("<", 1);
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_int_equal(schedule_file_read(&file, path, &t, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_non_null(strstr(e.text, "longer than the 64 MiB that a schedule can have"));
    assert_int_equal(schedule_file_read(&file, "/", &t, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    assert_string_equal(e.text, "/: a folder cannot be read as a schedule");
    assert_int_equal(schedule_file_read(&file, "/nothing/there", &t, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
}
