#include "daemon/torusd/tree/compare_contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_bytes.h"

#define BLOCK 65536u

/* Whether a part of a file is zeros; parts that are holes are not read. Returns 1, 0 or -errno. */
static int is_zero(int file, uint64_t begin, uint64_t end)
{
    static const uint8_t zeros[BLOCK];
    uint8_t *block = malloc(BLOCK);
    int result = block != NULL ? 1 : -ENOMEM;

    while (begin < end && result == 1) {
        off_t data = lseek(file, (off_t)begin, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data > 0 && (uint64_t)data > begin)
            begin = (uint64_t)data;
        if (begin >= end)
            break;
        size_t length = end - begin < BLOCK ? (size_t)(end - begin) : BLOCK;
        if (file_read(file, block, length, begin) != 0)
            result = errno == 0 ? 0 : -errno;
        else if (memcmp(block, zeros, length) != 0)
            result = 0;
        begin += length;
    }
    free(block);
    return result;
}

static int holes_are_zero(int file, const struct entry *entry)
{
    uint64_t at = 0;

    if (entry->extent == NULL)
        return 1;
    for (uint32_t i = 0; i < entry->extents; i++) {
        int result = is_zero(file, at, entry->extent[i].offset);
        if (result != 1)
            return result;
        at = entry->extent[i].offset + entry->extent[i].length;
    }
    return is_zero(file, at, entry->size);
}

int compare_contents_of(int file, const struct entry *entry, struct tree_progress *progress)
{
    uint8_t digest[FILE_DIGEST];
    struct file_data data = file_data_of(entry);
    int result = holes_are_zero(file, entry);

    if (result != 1)
        return result;
    if (file_data_digest(file, &data, progress, digest) != 0)
        return errno == 0 ? 0 : -errno; /* 0: it has become shorter */
    return memcmp(digest, entry->digest, sizeof digest) == 0;
}

int compare_contents(int folder, const char *name, const struct entry *entry,
                     struct tree_progress *progress)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (file < 0)
        return -errno;
    int result = compare_contents_of(file, entry, progress);
    (void)close(file);
    return result;
}
