#include "proto/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/text_file.h"

#define PREFIX "torusd-key-1 "
#define PREFIX_SIZE (sizeof PREFIX - 1)
#define LINE_SIZE (PREFIX_SIZE + 2 * KEY_SIZE + 1) /* including the newline */
#define LINE_ROOM (LINE_SIZE + 5) /* a byte order mark, a carriage return, one byte too many */
#define OTHERS (S_IRWXG | S_IRWXO)

void key_set(struct key *key, const uint8_t *bytes)
{
    static const uint8_t label[] = "torusd key id";
    uint8_t id[crypto_generichash_BYTES_MIN];

    _Static_assert(sizeof id >= KEY_ID_SIZE, "a part of the digest");
    memmove(key->bytes, bytes, KEY_SIZE);
    (void)crypto_generichash(id, sizeof id, label, sizeof label - 1, key->bytes, KEY_SIZE);
    memcpy(key->id, id, KEY_ID_SIZE);
}

void key_forget(struct key *key)
{
    sodium_memzero(key, sizeof *key);
}

char *key_id_text(const uint8_t id[KEY_ID_SIZE], char text[KEY_ID_TEXT_SIZE])
{
    return sodium_bin2hex(text, KEY_ID_TEXT_SIZE, id, KEY_ID_SIZE);
}

char *key_line(const struct key *key, char line[KEY_LINE_SIZE])
{
    (void)strcpy(line, PREFIX);
    (void)sodium_bin2hex(line + PREFIX_SIZE, 2 * KEY_SIZE + 1, key->bytes, KEY_SIZE);
    return strcat(line, "\n");
}

static int write_line(int fd, const struct key *key)
{
    char line[KEY_LINE_SIZE];
    size_t done = 0;

    (void)key_line(key, line);
    while (done < LINE_SIZE) {
        ssize_t n = write(fd, line + done, LINE_SIZE - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    sodium_memzero(line, sizeof line);
    return done == LINE_SIZE && fsync(fd) == 0 ? 0 : -1;
}

int key_make(struct key *key, struct error *e)
{
    uint8_t bytes[KEY_SIZE];

    if (sodium_init() < 0)
        return error_set(e, ERROR_IO, "libsodium cannot be used on this system");
    randombytes_buf(bytes, sizeof bytes);
    key_set(key, bytes);
    sodium_memzero(bytes, sizeof bytes);
    return 0;
}

/* Gives a file its name if no other one has it. Not all file systems can do that in the same way. */
static int name_file(const char *unfinished, const char *path)
{
    if (renameat2(AT_FDCWD, unfinished, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? link(unfinished, path) : -1;
}

int key_write(const char *path, const struct key *key, struct error *e)
{
    char *unfinished;
    int fd, why;
    bool done;

    if (asprintf(&unfinished, "%s.XXXXXX", path) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
    fd = mkostemp(unfinished, O_CLOEXEC); /* with mode 0600 */
    done = fd >= 0 && write_line(fd, key) == 0 && name_file(unfinished, path) == 0;
    why = done ? 0 : errno;
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(unfinished); /* it is gone, or has another name as well */
    }
    free(unfinished);
    if (done)
        return 0;
    if (why == EEXIST)
        return error_set(e, ERROR_REFUSED,
                         "%s exists; a key is never overwritten: name a new file, or remove it",
                         path);
    return error_set(e, ERROR_IO, "%s: %s", path, strerror(why));
}

int key_generate(const char *path, struct key *key, struct error *e)
{
    if (key_make(key, e) != 0)
        return -1;
    if (key_write(path, key, e) == 0)
        return 0;
    key_forget(key);
    return -1;
}

/* `root_may`: root may read the file of any user. */
static int check_file(const char *path, int fd, bool root_may, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return error_set(e, ERROR_IO, "key file %.200s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERROR_REFUSED, "key file %.200s is not a file", path);
    if ((st.st_mode & OTHERS) != 0)
        return error_set(
            e, ERROR_REFUSED,
            "key file %.200s has mode %04o: others than its owner can use it; make a new "
            "key if they may have read it, and run chmod 600",
            path, (unsigned)(st.st_mode & 07777));
    if (st.st_uid != geteuid() && st.st_uid != 0 && !(root_may && geteuid() == 0))
        return error_set(
            e, ERROR_REFUSED,
            "key file %.200s belongs to user %u; it must belong to root or to the user %u "
            "that reads it",
            path, (unsigned)st.st_uid, (unsigned)geteuid());
    return 0;
}

static int parse_key(const char *line, size_t length, struct key *key)
{
    uint8_t bytes[KEY_SIZE];
    size_t parsed;

    if (length > 0 && line[length - 1] == '\n')
        length--;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (length != LINE_SIZE - 1 || memcmp(line, PREFIX, PREFIX_SIZE) != 0 ||
        sodium_hex2bin(bytes, sizeof bytes, line + PREFIX_SIZE, length - PREFIX_SIZE, NULL, &parsed,
                       NULL) != 0 ||
        parsed != KEY_SIZE)
        return -1;
    key_set(key, bytes);
    sodium_memzero(bytes, sizeof bytes);
    return 0;
}

/* Reads from an open file. The bytes of the key stay on the stack, and only until the function
 * returns. */
static int read_line(int fd, struct key *key, struct error *e)
{
    static const struct text_kind key_file = {.name = "a key file", .most = 1024};
    char line[LINE_ROOM];
    const char *text = line;
    ssize_t n = text_file_fill(fd, "the key", line, sizeof line, 0, e);
    size_t length = (size_t)n;
    int result = n < 0 ? -1 : text_check(&text, &length, &key_file, e);

    if (result == 0 && parse_key(text, length, key) != 0)
        result = error_set(e, ERROR_REFUSED,
                           "it does not hold a key; make one with torusctl key generate");
    sodium_memzero(line, sizeof line);
    return result;
}

static int read_file(const char *path, bool root_may, struct key *key, struct error *e)
{
    int fd, result;

    errno = 0;
    if (sodium_init() < 0)
        return error_set(e, ERROR_IO, "libsodium cannot be used on this system");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int error = errno;
        (void)error_set(e, ERROR_IO, "key file %.200s: %s", path, strerror(error));
        errno = error;
        return -1;
    }
    result = check_file(path, fd, root_may, e);
    if (result == 0 && read_line(fd, key, e) != 0)
        result = error_wrap(e, "key file %.200s", path);
    (void)close(fd);
    errno = 0;
    return result;
}

int key_read(const char *path, struct key *key, struct error *e)
{
    return read_file(path, false, key, e);
}

int key_read_as_root(const char *path, struct key *key, struct error *e)
{
    return read_file(path, true, key, e);
}
