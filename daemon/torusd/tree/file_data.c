#include "daemon/torusd/tree/file_data.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/file_bytes.h"

#define BLOCK (256u * 1024)

struct file_data file_data_of(const struct entry *entry)
{
    return (struct file_data){.size = entry->size,
                              .bytes = entry->bytes,
                              .extent = entry->extent,
                              .extents = entry->extents};
}

/* --- holes --- */

struct finding {
    struct extent_of_file *extent;
    uint32_t count;
    size_t room;
    uint64_t least; /* smaller holes are taken for data */
};

/* Makes room by taking more holes for data, until only half of the extents is left. */
static void join(struct finding *f)
{
    while (f->count > MANIFEST_EXTENTS_MOST / 2) {
        uint32_t kept = 0;
        f->least = f->least == 0 ? 4096 : 2 * f->least;
        for (uint32_t i = 1; i < f->count; i++) {
            struct extent_of_file *last = &f->extent[kept], next = f->extent[i];
            if (next.offset - (last->offset + last->length) < f->least)
                last->length = next.offset + next.length - last->offset;
            else
                f->extent[++kept] = next;
        }
        f->count = kept + 1;
    }
}

static int add_extent(struct finding *f, uint64_t offset, uint64_t end)
{
    struct extent_of_file *last = f->count > 0 ? &f->extent[f->count - 1] : NULL;

    if (last != NULL && offset - (last->offset + last->length) <= f->least) {
        last->length = end - last->offset;
        return 0;
    }
    if (f->count == MANIFEST_EXTENTS_MOST)
        join(f);
    if (GROW(f->extent, f->count, f->room) != 0)
        return -1;
    f->extent[f->count++] = (struct extent_of_file){offset, end - offset};
    return 0;
}

/* Finds the next data at or behind an offset. Returns 1 with *begin and *end; 0: there is none; -1 with errno. */
static int next_data(int file, uint64_t size, uint64_t from, uint64_t *begin, uint64_t *end)
{
    off_t data = lseek(file, (off_t)from, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? 0 : -1;
    if ((uint64_t)data >= size)
        return 0;
    off_t hole = lseek(file, data, SEEK_HOLE);
    if (hole < 0)
        return errno == ENXIO ? 0 : -1;
    *begin = (uint64_t)data;
    *end = (uint64_t)hole < size ? (uint64_t)hole : size;
    return *end > *begin;
}

int file_data_find(int file, uint64_t size, struct file_data *d)
{
    struct finding f = {0};
    uint64_t at = 0, begin, end;
    int result = 0;

    *d = (struct file_data){.size = size, .bytes = size};
    while (at < size && (result = next_data(file, size, at, &begin, &end)) == 1) {
        if (add_extent(&f, begin, end) != 0) {
            result = -1;
            break;
        }
        at = end;
    }
    /* A file system that cannot tell has no holes. */
    bool known = result >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
    bool whole = !known || size == 0 ||
                 (f.count == 1 && f.extent[0].offset == 0 && f.extent[0].length == size);
    if (result < 0 && known) {
        free(f.extent);
        return -1;
    }
    if (f.extent == NULL && !whole) /* nothing but a hole */
        f.extent = malloc(sizeof *f.extent);
    if (whole) {
        free(f.extent);
        return 0;
    }
    if (f.extent == NULL)
        return -1;
    d->extent = f.extent;
    d->extents = f.count;
    d->bytes = 0;
    for (uint32_t i = 0; i < f.count; i++)
        d->bytes += f.extent[i].length;
    return 0;
}

void file_data_free(struct file_data *d)
{
    free((void *)(uintptr_t)d->extent);
    d->extent = NULL;
}

/* --- data --- */

/* Finds where a place of the data is: returns its offset in the file, and sets *run to the bytes up to the next hole or the
 * end of the data. */
static uint64_t offset_of(struct file_data *d, uint64_t place, uint64_t *run)
{
    if (d->extent == NULL) {
        *run = place < d->bytes ? d->bytes - place : 0;
        return place;
    }
    if (place < d->before_last) {
        d->last = 0;
        d->before_last = 0;
    }
    for (; d->last < d->extents; d->before_last += d->extent[d->last++].length) {
        const struct extent_of_file *x = &d->extent[d->last];
        const uint64_t inside = place - d->before_last;
        if (inside < x->length) {
            *run = x->length - inside;
            return x->offset + inside;
        }
    }
    *run = 0;
    return d->size;
}

/* Reads or writes data. Returns 0, or -1 with errno; 0: the file ends too early. */
static int transfer(int file, struct file_data *d, uint64_t place, uint8_t *bytes, size_t length,
                    bool write)
{
    while (length > 0) {
        uint64_t run, offset = offset_of(d, place, &run);
        size_t part = run < length ? (size_t)run : length;
        errno = 0;
        if (part == 0 || (write ? file_write(file, bytes, part, offset)
                                : file_read(file, bytes, part, offset)) != 0)
            return -1;
        place += part;
        bytes += part;
        length -= part;
    }
    return 0;
}

int file_data_read(int file, struct file_data *d, uint64_t place, uint8_t *bytes, size_t length)
{
    return transfer(file, d, place, bytes, length, false);
}

int file_data_digest(int file, struct file_data *d, struct tree_progress *progress,
                     uint8_t digest[FILE_DIGEST])
{
    crypto_generichash_state state;
    uint8_t *block = malloc(BLOCK);
    int result = block != NULL ? 0 : -1;

    (void)crypto_generichash_init(&state, NULL, 0, FILE_DIGEST);
    for (uint64_t at = 0; at < d->bytes && result == 0;) {
        size_t length = d->bytes - at < BLOCK ? (size_t)(d->bytes - at) : BLOCK;
        if (progress != NULL && atomic_load(&progress->stop)) {
            errno = ECANCELED;
            result = -1;
            break;
        }
        result = file_data_read(file, d, at, block, length);
        if (result == 0)
            (void)crypto_generichash_update(&state, block, length);
        if (progress != NULL)
            (void)atomic_fetch_add(&progress->bytes, length);
        at += length;
    }
    (void)crypto_generichash_final(&state, digest, FILE_DIGEST);
    int error = errno;
    free(block);
    errno = error;
    return result;
}

/* --- copying --- */

#define COPY_BLOCK 65536u
#define ALIGNMENT 4096u /* blocks that file systems can share begin at multiples */

static int copy_through_memory(int from, uint64_t from_offset, int to, uint64_t to_offset,
                               uint64_t length)
{
    uint8_t *block = malloc(COPY_BLOCK);
    int result = block != NULL ? 0 : -ENOMEM;

    while (length > 0 && result == 0) {
        size_t part = length < COPY_BLOCK ? (size_t)length : COPY_BLOCK;
        if (file_read(from, block, part, from_offset) != 0 ||
            file_write(to, block, part, to_offset) != 0)
            result = errno != 0 ? -errno : -EIO;
        from_offset += part;
        to_offset += part;
        length -= part;
    }
    free(block);
    return result;
}

static int copy_range(int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t length)
{
    while (length > 0) {
        off_t in = (off_t)from_offset, out = (off_t)to_offset;
        ssize_t done = copy_file_range(from, &in, to, &out, (size_t)length, 0);
        if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            return -errno;
        if (done <= 0) /* this file system, or this kernel, cannot do it */
            return copy_through_memory(from, from_offset, to, to_offset, length);
        from_offset += (uint64_t)done;
        to_offset += (uint64_t)done;
        length -= (uint64_t)done;
    }
    return 0;
}

/* Copies bytes in such parts that whole blocks can be shared. */
static int copy_aligned(int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t length)
{
    uint64_t head = (ALIGNMENT - to_offset % ALIGNMENT) % ALIGNMENT;

    if (from_offset % ALIGNMENT != to_offset % ALIGNMENT || length < head + ALIGNMENT)
        return copy_range(from, from_offset, to, to_offset, length);
    uint64_t middle = (length - head) / ALIGNMENT * ALIGNMENT;
    int result = copy_range(from, from_offset, to, to_offset, head);
    if (result == 0)
        result = copy_range(from, from_offset + head, to, to_offset + head, middle);
    head += middle;
    return result != 0 ? result
                       : copy_range(from, from_offset + head, to, to_offset + head, length - head);
}

int copy_data(int from, struct file_data *from_data, uint64_t from_place, int to,
              struct file_data *to_data, uint64_t to_place, uint64_t length)
{
    while (length > 0) {
        uint64_t from_run, to_run;
        uint64_t from_offset = offset_of(from_data, from_place, &from_run);
        uint64_t to_offset = offset_of(to_data, to_place, &to_run);
        uint64_t part = from_run < to_run ? from_run : to_run;
        if (part == 0)
            return -EIO;
        if (part > length)
            part = length;
        int result = copy_aligned(from, from_offset, to, to_offset, part);
        if (result < 0)
            return result;
        from_place += part;
        to_place += part;
        length -= part;
    }
    return 0;
}

int copy_data_write(int file, struct file_data *d, uint64_t place, const uint8_t *bytes,
                    size_t length)
{
    if (transfer(file, d, place, (uint8_t *)(uintptr_t)bytes, length, true) == 0)
        return 0;
    return errno != 0 ? -errno : -EIO;
}

/* --- comparing --- */

/* Whether a part of a file is zeros; parts that are holes are not read. Returns 1, 0 or -errno. */
static int is_zero(int file, uint64_t begin, uint64_t end)
{
    static const uint8_t zeros[COPY_BLOCK];
    uint8_t *block = malloc(COPY_BLOCK);
    int result = block != NULL ? 1 : -ENOMEM;

    while (begin < end && result == 1) {
        off_t data = lseek(file, (off_t)begin, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data > 0 && (uint64_t)data > begin)
            begin = (uint64_t)data;
        if (begin >= end)
            break;
        size_t length = end - begin < COPY_BLOCK ? (size_t)(end - begin) : COPY_BLOCK;
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
