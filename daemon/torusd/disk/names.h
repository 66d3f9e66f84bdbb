/* The names in a folder, sorted as a manifest sorts them. Memory is that of the names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/torusd/disk/file_system.h"

struct names {
    char *bytes;      /* each name: a byte with its type (as d_type), the name, a 0 byte */
    uint32_t *offset; /* of each name in `bytes` */
    size_t count, used, room, offsets;
};

/* Reads all names of a folder (which may be O_PATH), except "." and "..". Returns 0 or -errno; the caller calls names_free() in
 * both cases. */
int names_read(struct names *n, int folder);
/* The same, of a folder that has just been opened for reading. */
int names_read_opened(struct names *n, int folder);
/* The same, of an open folder of any file system; types are not known. */
int names_list(struct names *n, const struct file_system *files, int folder);
void names_free(struct names *n);

static inline const char *names_get(const struct names *n, size_t i)
{
    return n->bytes + n->offset[i] + 1;
}

/* Type of a name as d_type in readdir(3); DT_UNKNOWN: the file system does not say it. */
static inline unsigned char names_type(const struct names *n, size_t i)
{
    return (unsigned char)n->bytes[n->offset[i]];
}
