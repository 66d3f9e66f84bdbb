/* Text files that people write: configurations, hosts files, schedules, keys. All of them are read and
 * checked here, so that the same limits, encodings and errors hold for each: UTF-8 with or without a
 * byte order mark; UTF-16, NUL bytes, and what never ends are refused. */
#ifndef TORUSD_PROTO_TEXT_FILE_H
#define TORUSD_PROTO_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/error.h"

struct text_kind {
    const char *name; /* what it is, in errors: "a configuration" */
    size_t most;      /* its bytes; a multiple of 1024 */
    bool xml;         /* XML in UTF-16 is passed on as it is: its readers know encodings */
};

/* Reads a whole file. Of pipes, terminals and devices it waits for what comes, and says on standard
 * error what it waits for if that takes long; if nothing comes for half a minute, it gives up. Returns
 * 0 with *text, which free() releases and which has a '\0' at text[length], or -1 with *e, which begins
 * with the path: it cannot be opened or read (ERROR_IO), or is not a text of this kind (ERROR_REFUSED). */
int text_file_read(const char *path, const struct text_kind *kind, char **text, size_t *length,
                   struct error *e);

/* Checks a text that has been read: moves *text and *length past a byte order mark. Returns 0, or -1
 * with *e (ERROR_REFUSED), which names the encoding, the format or the line: it is not UTF-8, it has a
 * NUL byte, or it is packed or another known format that is not text. */
int text_check(const char **text, size_t *length, const struct text_kind *kind, struct error *e);

/* Whether it begins as XML in UTF-16 does. */
bool text_is_wide_xml(const char *text, size_t length);

/* Reads from a descriptor, which should not block, until the file ends or `most` bytes are there.
 * Nothing may come for `patience_ms` before it gives up. Returns the number of bytes, or
 * -1 with *e. `name` is for the line on standard error. */
ssize_t text_file_fill(int fd, const char *name, char *text, size_t most, int patience_ms,
                       struct error *e);

#endif
