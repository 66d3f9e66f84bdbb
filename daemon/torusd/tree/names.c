#include "daemon/torusd/tree/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int read_all(struct names *n, DIR *stream)
{
    struct dirent *entry;

    while (errno = 0, (entry = readdir(stream)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int result = reserve(n, length + 2);
        if (result < 0)
            return result;
        n->offset[n->count++] = (uint32_t)n->used;
        n->bytes[n->used] = (char)entry->d_type;
        memcpy(n->bytes + n->used + 1, entry->d_name, length + 1);
        n->used += length + 2;
    }
    return -errno;
}

int names_read(struct names *n, int folder)
{
    *n = (struct names){0};
    int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = file < 0 ? NULL : fdopendir(file);
    if (stream == NULL) {
        int error = errno;
        if (file >= 0)
            (void)close(file);
        return -error;
    }
    int result = read_all(n, stream);
    (void)closedir(stream);
    if (result == 0 && n->count > 1)
        qsort_r(n->offset, n->count, sizeof *n->offset, compare, n->bytes);
    return result;
}

void names_free(struct names *n)
{
    free(n->bytes);
    free(n->offset);
    *n = (struct names){0};
}
