#include "daemon/torusd/tree/copy_data.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_bytes.h"

#define BLOCK 65536u
#define ALIGNMENT 4096u /* blocks that file systems can share begin at multiples */

/* Extents are few in most files; with many, a search by halves would need their places in the data. */
uint64_t copy_data_offset(const struct file_data *d, uint64_t place, uint64_t *run)
{
    uint64_t before = 0;

    if (d->extent == NULL) {
        *run = place < d->bytes ? d->bytes - place : 0;
        return place;
    }
    for (uint32_t i = 0; i < d->extents; i++) {
        const struct extent_of_file *x = &d->extent[i];
        if (place - before < x->length) {
            *run = x->length - (place - before);
            return x->offset + (place - before);
        }
        before += x->length;
    }
    *run = 0;
    return d->size;
}

static int copy_through_memory(int from, uint64_t from_offset, int to, uint64_t to_offset,
                               uint64_t length)
{
    uint8_t *block = malloc(BLOCK);
    int result = block != NULL ? 0 : -ENOMEM;

    while (length > 0 && result == 0) {
        size_t part = length < BLOCK ? (size_t)length : BLOCK;
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

int copy_data(int from, const struct file_data *from_data, uint64_t from_place, int to,
              const struct file_data *to_data, uint64_t to_place, uint64_t length)
{
    while (length > 0) {
        uint64_t from_run, to_run;
        uint64_t from_offset = copy_data_offset(from_data, from_place, &from_run);
        uint64_t to_offset = copy_data_offset(to_data, to_place, &to_run);
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

int copy_data_write(int file, const struct file_data *d, uint64_t place, const uint8_t *bytes,
                    size_t length)
{
    while (length > 0) {
        uint64_t run, offset = copy_data_offset(d, place, &run);
        size_t part = run < length ? (size_t)run : length;
        if (part == 0)
            return -EIO;
        if (file_write(file, bytes, part, offset) != 0)
            return -errno;
        place += part;
        bytes += part;
        length -= part;
    }
    return 0;
}
