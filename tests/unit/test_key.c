/* The file of the cluster key. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/key.h"
#include "tests/support/cmocka.h"

static char folder[64], path[96];

static int begin(void **state)
{
    (void)strcpy(folder, "/tmp/torus-key-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/key", folder);
    return 0;
}

static int end(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void check_refused(const char *text)
{
    struct key key;
    struct error e;

    assert_int_equal(key_read(path, &key, &e), -1);
    assert_int_not_equal(errno, ENOENT);
    if (strstr(e.text, text) == NULL || strstr(e.text, path) == NULL)
        fail_msg("\"%s\" and the path are not in \"%s\"", text, e.text);
}

TEST_WITH(begin, end, generated_keys_can_be_read)
{
    struct key made, read;
    struct error e;
    struct stat st;
    char one[KEY_ID_TEXT_SIZE];
    mode_t before = umask(0);
    assert_int_equal(key_generate(path, &made, &e), 0);
    (void)umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(key_read(path, &read, &e), 0);
    assert_memory_equal(&made, &read, sizeof made);
    assert_int_equal(strlen(key_id_text(made.id, one)), 16);
    assert_memory_not_equal(made.id, made.bytes, KEY_ID_SIZE);
    /* Keys never repeat, and never overwrite an existing file. */
    assert_int_equal(key_generate(path, &made, &e), -1);
    assert_contains(e.text, "exists");
    assert_int_equal(key_read(path, &made, &e), 0);
    assert_memory_equal(&made, &read, sizeof made);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(key_generate(path, &made, &e), 0);
    assert_memory_not_equal(made.bytes, read.bytes, KEY_SIZE);
    key_forget(&made);
    assert_int_equal(made.bytes[0] | made.bytes[KEY_SIZE - 1] | made.id[0], 0);
}

TEST_WITH(begin, end, a_link_is_not_followed_to_where_it_leads)
{
    struct key key;
    struct error e;

    assert_int_equal(symlink("elsewhere", path), 0);
    assert_int_equal(key_generate(path, &key, &e), -1);
    assert_contains(e.text, "exists");
}

TEST_WITH(begin, end, files_that_others_can_use_are_refused)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0644, 0660, 0666};
    struct key key;
    struct error e;

    assert_int_equal(key_generate(path, &key, &e), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char text[32];
        assert_int_equal(chmod(path, modes[i]), 0);
        (void)snprintf(text, sizeof text, "has mode %04o", (unsigned)modes[i]);
        check_refused(text);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(key_read(path, &key, &e), 0);
}

TEST_WITH(begin, end, files_of_other_users_are_refused)
{
    struct key key;
    struct error e;

    if (geteuid() != 0)
        skip();
    assert_int_equal(key_generate(path, &key, &e), 0);
    assert_int_equal(chown(path, 4711, 4711), 0);
    check_refused("belongs to user 4711");
    assert_int_equal(key_read_as_root(path, &key, &e), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(key_read_as_root(path, &key, &e), -1);
}

TEST_WITH(begin, end, malformed_keys_are_refused)
{
    static const char *const texts[] = {
        "",
        "\n",
        "torusd-key-1 \n",
        "torusd-key-1 00\n",
        "torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1\n",
        "torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g\n",
        "torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0\n",
        "torusd-key-2 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n",
        "torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n",
    };
    struct key key;
    struct error e;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_file(texts[i], 0600);
        check_refused("does not hold a key");
    }
    write_file("torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
               0600);
    assert_int_equal(key_read(path, &key, &e), 0);
    for (unsigned i = 0; i < KEY_SIZE; i++)
        assert_int_equal(key.bytes[i], i);
}

/* As editors on other systems write it. */
TEST_WITH(begin, end, marks_and_line_ends_of_editors_are_no_part_of_it)
{
#define DIGITS "torusd-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    static const char *const texts[] = {DIGITS "\r\n", "\xef\xbb\xbf" DIGITS "\r\n",
                                        "\xef\xbb\xbf" DIGITS};
    struct key key;
    struct error e;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_file(texts[i], 0600);
        if (key_read(path, &key, &e) != 0)
            fail_msg("%zu: %s", i, e.text);
        assert_int_equal(key.bytes[31], 31);
    }
    write_file(DIGITS "\r\n\n", 0600);
    check_refused("does not hold a key");
    write_file("\xff\xfet", 0600);
    check_refused("UTF-16");
    write_file("\x1f\x8b", 0600);
    check_refused("gzip");
#undef DIGITS
}

TEST_WITH(begin, end, paths_of_no_file_are_refused)
{
    struct key key;
    struct error e;

    assert_int_equal(key_read(path, &key, &e), -1);
    assert_int_equal(errno, ENOENT);
    assert_contains(e.text, path);
    assert_int_equal(mkfifo(path, 0600), 0); /* it has no writer: reading must not wait */
    check_refused("is not a file");
}
