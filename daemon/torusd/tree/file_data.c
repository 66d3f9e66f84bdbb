#include "daemon/torusd/tree/file_data.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_bytes.h"

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
    uint32_t count, room;
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
    if (f->count == f->room) {
        uint32_t room = f->room == 0 ? 16 : 2 * f->room;
        struct extent_of_file *extent = reallocarray(f->extent, room, sizeof *extent);
        if (extent == NULL)
            return -1;
        f->extent = extent;
        f->room = room;
    }
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

int file_data_read(int file, struct file_data *d, uint64_t place, uint8_t *bytes, size_t length)
{
    if (d->extent == NULL)
        return file_read(file, bytes, length, place);
    if (place < d->before_last) {
        d->last = 0;
        d->before_last = 0;
    }
    while (length > 0 && d->last < d->extents) {
        const struct extent_of_file *x = &d->extent[d->last];
        uint64_t inside = place - d->before_last;
        if (inside >= x->length) {
            d->before_last += x->length;
            d->last++;
            continue;
        }
        size_t part = x->length - inside < length ? (size_t)(x->length - inside) : length;
        if (file_read(file, bytes, part, x->offset + inside) != 0)
            return -1;
        bytes += part;
        place += part;
        length -= part;
    }
    errno = 0;
    return length == 0 ? 0 : -1;
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
