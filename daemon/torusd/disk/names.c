#include "daemon/torusd/disk/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 65536u

/* Makes room for one more. Returns 0 or -errno. */
static int reserve(struct names *n, size_t more)
{
    if (n->used + more > UINT32_MAX)
        return -EOVERFLOW;
    if (n->used + more > n->room) {
        size_t room = 2 * (n->used + more) + 1024;
        char *bytes = realloc(n->bytes, room);
        if (bytes == NULL)
            return -ENOMEM;
        n->bytes = bytes;
        n->room = room;
    }
    if (n->count == n->offsets) {
        size_t room = 2 * n->offsets + 64;
        uint32_t *offset = reallocarray(n->offset, room, sizeof *offset);
        if (offset == NULL)
            return -ENOMEM;
        n->offset = offset;
        n->offsets = room;
    }
    return 0;
}

static int compare(const void *a, const void *b, void *bytes)
{
    return strcmp((char *)bytes + *(const uint32_t *)a + 1,
                  (char *)bytes + *(const uint32_t *)b + 1);
}

/* Returns 0 or -errno. */
static int add(struct names *n, const char *name, unsigned char type)
{
    const size_t size = strlen(name) + 1;
    const int result = reserve(n, size + 1);

    if (result < 0)
        return result;
    n->offset[n->count++] = (uint32_t)n->used;
    n->bytes[n->used] = (char)type;
    memcpy(n->bytes + n->used + 1, name, size);
    n->used += size + 1;
    return 0;
}

/* Adds the names of a block that getdents64() has filled. Returns 0 or -errno. */
static int add_block(struct names *n, const char *block, ssize_t length)
{
    int result = 0;

    for (ssize_t at = 0; at < length && result == 0;) {
        const struct dirent64 *d = (const struct dirent64 *)(const void *)(block + at);
        at += d->d_reclen;
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            result = add(n, d->d_name, d->d_type);
    }
    return result;
}

static int sort(struct names *n, int result)
{
    if (result == 0 && n->count > 1)
        qsort_r(n->offset, n->count, sizeof *n->offset, compare, n->bytes);
    return result;
}

int names_read_opened(struct names *n, int folder)
{
    char *block = malloc(BLOCK);
    int result = block != NULL ? 0 : -ENOMEM;
    ssize_t length = 0;

    *n = (struct names){0};
    while (result == 0 && (length = getdents64(folder, block, BLOCK)) > 0)
        result = add_block(n, block, length);
    if (length < 0)
        result = -errno;
    free(block);
    return sort(n, result);
}

struct listing {
    struct names *names;
    int result;
};

static void note(void *argument, const char *name)
{
    struct listing *l = argument;

    if (l->result == 0)
        l->result = add(l->names, name, DT_UNKNOWN);
}

int names_list(struct names *n, const struct file_system *files, int folder)
{
    struct listing l = {.names = n};

    *n = (struct names){0};
    const int result = files->list(files->context, folder, note, &l);
    return sort(n, result < 0 ? result : l.result);
}

int names_read(struct names *n, int folder)
{
    *n = (struct names){0};
    int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int result = names_read_opened(n, file);
    (void)close(file);
    return result;
}

void names_free(struct names *n)
{
    free(n->bytes);
    free(n->offset);
    *n = (struct names){0};
}
