#include "daemon/torusd/tree/folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 65536u

/* Bytes of a name while they are collected: its type, the name, and a 0 byte. */
struct collected {
    char *bytes;
    size_t used, room, count;
};

static int collect(struct collected *c, const struct dirent64 *d)
{
    size_t length = strlen(d->d_name) + 1;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    if (c->used + length + 1 > c->room) {
        size_t room = 2 * c->room + 4096;
        char *bytes = realloc(c->bytes, room);
        if (bytes == NULL)
            return -1;
        c->bytes = bytes;
        c->room = room;
    }
    c->bytes[c->used] = (char)d->d_type;
    memcpy(c->bytes + c->used + 1, d->d_name, length);
    c->used += length + 1;
    c->count++;
    return 0;
}

static int collect_all(struct collected *c, int folder, char *block)
{
    ssize_t n;

    while ((n = getdents64(folder, block, BLOCK)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(const void *)(block + at);
            if (collect(c, d) != 0)
                return -1;
            at += d->d_reclen;
        }
    return n < 0 ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct folder_name *)a)->name, ((const struct folder_name *)b)->name);
}

int folder_names_read(struct folder_names *names, int folder)
{
    struct collected c = {0};
    char *block = malloc(BLOCK);
    int result = block != NULL ? collect_all(&c, folder, block) : -1;
    int error = errno;

    free(block);
    *names = (struct folder_names){.bytes = c.bytes, .count = c.count};
    if (result == 0 && c.count > 0) {
        names->name = calloc(c.count, sizeof *names->name);
        error = ENOMEM;
        result = names->name != NULL ? 0 : -1;
    }
    if (result != 0) {
        folder_names_free(names);
        errno = error;
        return -1;
    }
    const char *at = c.bytes;
    for (size_t i = 0; i < c.count; i++) {
        names->name[i] = (struct folder_name){at + 1, (unsigned char)*at};
        at += strlen(at + 1) + 2;
    }
    if (c.count > 1)
        qsort(names->name, c.count, sizeof *names->name, compare);
    return 0;
}

void folder_names_free(struct folder_names *names)
{
    free(names->name);
    free(names->bytes);
    *names = (struct folder_names){0};
}
