/* Text files that people write: configurations, hosts files, schedules, keys. All are read and
 * checked here, so that the same limits, encodings and errors hold for each of them. They must
 * be UTF-8, with or without a byte order mark; UTF-16, NUL bytes and files without an end are
 * refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/error.h"

struct text_kind {
    const char *name; /* what the file is, for errors: "a configuration" */
    size_t most;      /* bytes that it may have; a multiple of 1024 */
    bool xml;         /* XML in UTF-16 is passed on as it is, because XML readers know encodings */
};

/* Reads a whole file. With a pipe, terminal or device it waits for bytes, says on standard error
 * what it waits for if that takes long, and gives up if nothing comes for half a minute. Returns
 * 0 with *text, which the caller frees with free() and which has a '\0' at text[length]; or -1
 * with *e, whose text begins with the path: the file cannot be opened or read (ERROR_IO), or is
 * not a text of this kind (ERROR_REFUSED). */
int text_file_read(const char *path, const struct text_kind *kind, char **text, size_t *length,
                   struct error *e);

/* Checks a text that has been read, and moves *text and *length past a byte order mark. Returns
 * 0, or -1 with *e (ERROR_REFUSED), which names the encoding, the format or the line: the text
 * is not UTF-8, has a NUL byte, is packed, or is in another known format that is not text. */
int text_check(const char **text, size_t *length, const struct text_kind *kind, struct error *e);

/* Whether the text begins like XML in UTF-16. */
bool text_is_wide_xml(const char *text, size_t length);

/* Reads from a descriptor, which should not block, until the file ends or `most` bytes are
 * there. Gives up if nothing comes for `patience_ms`. Returns the number of bytes, or -1 with
 * *e. `name` is for the line on standard error. */
ssize_t text_file_fill(int fd, const char *name, char *text, size_t most, int patience_ms,
                       struct error *e);
