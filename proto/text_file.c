#include "proto/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/text_format.h"

#define FIRST_ROOM (64u << 10)
#define NOTICE_MS 1000
#define PATIENCE_MS 30000

/* --- what a text is like --- */

static int bad_encoding(const char *encoding, const struct text_kind *kind, struct error *e)
{
    return error_set(e, ERROR_REFUSED,
                     "this is %s, and %s must be UTF-8: convert it with iconv -f %s -t UTF-8",
                     encoding, kind->name, encoding);
}

static bool begins_with(const char *text, size_t length, const char *bytes, size_t count)
{
    return length >= count && memcmp(text, bytes, count) == 0;
}

/* Reports a text with a NUL byte: in UTF-16, every other byte of English is NUL. */
static int bad_byte(const char *text, size_t length, const char *nul, const struct text_kind *kind,
                    struct error *e)
{
    size_t line = 1;

    if (length >= 4 && text[0] != '\0' && text[1] == '\0' && text[2] != '\0' && text[3] == '\0')
        return bad_encoding("UTF-16LE", kind, e);
    if (length >= 4 && text[0] == '\0' && text[1] != '\0' && text[2] == '\0' && text[3] != '\0')
        return bad_encoding("UTF-16BE", kind, e);
    for (const char *at = text; at < nul; at++)
        line += *at == '\n';
    return error_set(e, ERROR_REFUSED, "line %zu has a NUL byte, so this is not %s", line,
                     kind->name);
}

bool text_is_wide_xml(const char *text, size_t length)
{
    return begins_with(text, length, "\xff\xfe<\0", 4) ||
           begins_with(text, length, "\xfe\xff\0<", 4) || begins_with(text, length, "<\0?\0", 4) ||
           begins_with(text, length, "\0<\0?", 4);
}

int text_check(const char **text, size_t *length, const struct text_kind *kind, struct error *e)
{
    const char *format = text_format_binary(*text, *length);
    const char *nul;

    if (format != NULL)
        return error_set(e, ERROR_REFUSED, "this is %s, not %s", format, kind->name);
    if (kind->xml && text_is_wide_xml(*text, *length))
        return 0;
    if (begins_with(*text, *length, "\xff\xfe\0\0", 4) ||
        begins_with(*text, *length, "\0\0\xfe\xff", 4))
        return bad_encoding("UTF-32", kind, e);
    if (begins_with(*text, *length, "\xff\xfe", 2) || begins_with(*text, *length, "\xfe\xff", 2))
        return bad_encoding("UTF-16", kind, e);
    nul = memchr(*text, '\0', *length);
    if (nul != NULL)
        return bad_byte(*text, *length, nul, kind, e);
    if (begins_with(*text, *length, "\xef\xbb\xbf", 3)) {
        *text += 3;
        *length -= 3;
    }
    return 0;
}

/* --- reading --- */

static int wait_for(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready;

    while ((ready = poll(&p, 1, timeout_ms)) < 0 && errno == EINTR)
        ;
    return ready;
}

/* Waits until there is something to read; a file on a disk never makes it wait. */
static int await_input(int fd, const char *name, int patience_ms, struct error *e)
{
    int notice_ms = patience_ms < NOTICE_MS ? patience_ms : NOTICE_MS;
    int ready = wait_for(fd, notice_ms);

    if (ready == 0 && patience_ms > notice_ms) {
        (void)fprintf(stderr, "%s: waiting for data from %s\n", program_invocation_short_name,
                      name);
        ready = wait_for(fd, patience_ms - notice_ms);
    }
    if (ready == 0)
        return error_set(e, ERROR_IO, "no data arrived from it for %g s", patience_ms / 1e3);
    return ready > 0 ? 0 : error_set(e, ERROR_IO, "%s", strerror(errno));
}

ssize_t text_file_fill(int fd, const char *name, char *text, size_t most, int patience_ms,
                       struct error *e)
{
    size_t done = 0;

    while (done < most) {
        if (await_input(fd, name, patience_ms, e) != 0)
            return -1;
        ssize_t n = read(fd, text + done, most - done);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return error_set(e, ERROR_IO, "%s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)done;
}

static int too_long(const struct text_kind *kind, struct error *e)
{
    bool mib = kind->most % (1u << 20) == 0;

    return error_set(e, ERROR_REFUSED, "longer than the %zu %s that %s can have",
                     kind->most >> (mib ? 20 : 10), mib ? "MiB" : "KiB", kind->name);
}

/* Opens a file that may be read. Returns the descriptor, or -1 with *e. */
static int open_file(const char *path, const struct text_kind *kind, struct error *e)
{
    /* Opening a FIFO must not wait for somebody who writes. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    int rc = 0;

    if (fd < 0)
        return error_set(e, ERROR_IO, "%s", strerror(errno));
    if (fstat(fd, &st) != 0)
        rc = error_set(e, ERROR_IO, "%s", strerror(errno));
    else if (S_ISDIR(st.st_mode))
        rc = error_set(e, ERROR_IO, "a folder cannot be read as %s", kind->name);
    else if (S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size > kind->most)
        rc = too_long(kind, e);
    if (rc == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Reads the whole file, or returns -1 with *e and *text to be freed. There is room for one byte
 * more than the file may have, which shows that it is too long, and for the '\0'. */
static int read_all(int fd, const char *path, const struct text_kind *kind, char **text,
                    size_t *length, struct error *e)
{
    size_t limit = kind->most + 1, room = 0, want;
    ssize_t n;

    *length = 0;
    do {
        room = room == 0 ? FIRST_ROOM : 2 * room;
        want = (room < limit ? room : limit) - *length;
        char *more = realloc(*text, *length + want + 1);
        if (more == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for the file");
        *text = more;
        n = text_file_fill(fd, path, more + *length, want, PATIENCE_MS, e);
        if (n < 0)
            return -1;
        *length += (size_t)n;
        more[*length] = '\0';
    } while ((size_t)n == want && *length < limit);
    return 0;
}

/* Checks the text, and removes what is not part of it. */
static int check_all(char *text, size_t *length, const struct text_kind *kind, struct error *e)
{
    const char *begin = text;

    if (text_check(&begin, length, kind, e) != 0)
        return -1;
    if (*length > kind->most)
        return too_long(kind, e);
    memmove(text, begin, *length + 1);
    return 0;
}

int text_file_read(const char *path, const struct text_kind *kind, char **text, size_t *length,
                   struct error *e)
{
    int fd = open_file(path, kind, e), rc = -1;

    *text = NULL;
    if (fd >= 0) {
        rc = read_all(fd, path, kind, text, length, e);
        (void)close(fd);
    }
    if (rc == 0)
        rc = check_all(*text, length, kind, e);
    if (rc == 0)
        return 0;
    free(*text);
    *text = NULL;
    return error_wrap(e, "%.200s", path);
}
