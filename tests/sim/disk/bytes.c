#include "tests/sim/disk/bytes.h"

#include <errno.h>
#include <string.h>

#include "daemon/torusd/engine/generated_blocks.h"
#include "tests/sim/disk/inode.h"
#include "tests/sim/internal.h"

static ssize_t read_one(struct disk *disk, int file, void *data, size_t length, uint64_t offset)
{
    struct inode *inode = disk_at(disk, file);

    if (disk->dead)
        return -EIO;
    if (offset >= inode->size)
        return 0;
    if (length > inode->size - offset)
        length = (size_t)(inode->size - offset);
    if (disk->node->sim->set.chop && length > 1 &&
        (inode->contents == BYTES || chance_below(&disk->chance, 8) == 0))
        length = 1 + (size_t)chance_below(&disk->chance, length); /* a short count */
    if (inode->contents == BYTES) {
        memcpy(data, inode->bytes + offset, length);
        return (ssize_t)length;
    }
    if (disk_fault(disk, SIM_DISK_READ) != 0)
        return -EIO;
    inode->has_been_read = true;
    pattern_fill(data, (uint32_t)length, SIM_CONTENTS_SEED, inode->block[0], inode->block[1],
                 offset);
    return (ssize_t)length;
}

static ssize_t fs_read(void *context, int file, const struct iovec *piece, int count,
                       uint64_t offset)
{
    ssize_t done = 0;

    for (int i = 0; i < count; i++) {
        ssize_t result =
            read_one(context, file, piece[i].iov_base, piece[i].iov_len, offset + (uint64_t)done);
        if (result < 0)
            return done > 0 ? done : result;
        done += result;
        if ((size_t)result < piece[i].iov_len)
            break;
    }
    return done;
}

/* Some files cannot report holes; others sometimes have nothing in the page cache. */
static ssize_t fs_read_cached(void *context, int file, void *data, size_t length, uint64_t offset)
{
    struct disk *disk = context;
    const struct inode *inode = disk_at(disk, file);

    if (inode->number % 4 == 0)
        return -EOPNOTSUPP;
    if (disk->slowness > 0 || chance_below(&disk->chance, 4) == 0)
        return -EAGAIN;
    return read_one(disk, file, data, length, offset);
}

static bool fs_in_memory(void *context, int file)
{
    const struct disk *disk = context;

    return disk->slowness == 0 && disk_at(disk, file)->number % 8 == 4;
}

/* Returns false if some of these bytes were written before in the same attempt. */
static bool arrive(struct inode *f, uint64_t from, uint64_t to)
{
    unsigned attempt = f->folder->attempt;
    struct run *continued = NULL;

    for (size_t i = 0; i < f->runs; i++) {
        if (f->run[i].attempt != attempt)
            continue;
        if (from < f->run[i].to && to > f->run[i].from)
            return false;
        if (from == f->run[i].to)
            continued = &f->run[i];
    }
    if (continued != NULL) {
        continued->to = to;
        return true;
    }
    f->run = sim_grow(f->run, f->runs, sizeof *f->run);
    f->run[f->runs++] = (struct run){from, to, attempt};
    return true;
}

/* The destination of the bytes from an origin: this node, or the origin itself for blocks that go to all nodes. */
static uint32_t intended(const struct sim_request *r, uint32_t rank, uint32_t origin)
{
    return r == NULL || r->operation == OPERATION_EXCHANGE ? rank : origin;
}

/* Returns the number of wrong bytes. */
static size_t note_damage(struct inode *f, const uint8_t *bytes, size_t length,
                          uint32_t destination, uint64_t offset)
{
    size_t kept = 0, before;

    for (size_t i = 0; i < f->damages; i++)
        if (f->damaged[i] < offset || f->damaged[i] >= offset + length)
            f->damaged[kept++] = f->damaged[i];
    before = f->damages = kept;
    for (size_t at = 0; at < length; at++) {
        at += pattern_compare(bytes + at, (uint32_t)(length - at), SIM_CONTENTS_SEED, f->block[0],
                              destination, offset + at);
        if (at == length)
            break;
        f->damaged = sim_realloc(f->damaged, (f->damages + 1) * sizeof *f->damaged);
        f->damaged[f->damages++] = offset + at;
    }
    return f->damages - before;
}

static void check_output(struct disk *disk, struct inode *f, const uint8_t *bytes, size_t length,
                         uint64_t offset)
{
    const struct node *node = disk->node;
    const struct sim_request *r = f->folder->request;
    uint32_t origin = f->block[0], destination = intended(r, node->rank, origin);

    if (r == NULL || node->sim->lied)
        return;
    /* Damaged bytes are written again. */
    if (offset + length > sim_block_size(r->from, origin, destination) ||
        (!arrive(f, offset, offset + length) && !node->sim->flipped))
        sim_violated(node->sim, "once", "block %u to %u: %zu bytes at %llu come twice or too many",
                     origin, node->rank, length, (unsigned long long)offset);
    if (note_damage(f, bytes, length, destination, offset) == 0)
        return;
    if (!node->sim->flipped) /* only digests can show that */
        sim_violated(node->sim, "bytes", "node %u writes wrong bytes from node %u at %llu",
                     node->rank, origin, (unsigned long long)offset);
}

static void keep_bytes(struct inode *f, const uint8_t *bytes, size_t length, uint64_t offset)
{
    if (!f->dirty && f->size > 0) {
        f->synced_bytes = sim_realloc(f->synced_bytes, f->size);
        memcpy(f->synced_bytes, f->bytes, f->size);
        f->synced_size = f->size;
    }
    if (offset + length > f->size) {
        f->bytes = sim_realloc(f->bytes, offset + length);
        if (offset > f->size)
            memset(f->bytes + f->size, 0, offset - f->size);
    }
    memcpy(f->bytes + offset, bytes, length);
}

static ssize_t fs_write(void *context, int file, const struct iovec *piece, int count,
                        uint64_t offset)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);
    size_t done = 0;

    if (disk->dead)
        return -EIO;
    if (disk->full)
        return -ENOSPC;
    if (inode->contents == OUTPUT && disk_fault(disk, SIM_DISK_WRITE) != 0)
        return -EIO;
    for (int i = 0; i < count; i++) {
        size_t length = piece[i].iov_len;
        bool is_short = disk->node->sim->set.chop && chance_below(&disk->chance, 8) == 0;
        if (is_short && length > 1)
            length = 1 + (size_t)chance_below(&disk->chance, length);
        if (inode->contents == OUTPUT)
            check_output(disk, inode, piece[i].iov_base, length, offset + done);
        else
            keep_bytes(inode, piece[i].iov_base, length, offset + done);
        done += length;
        if (offset + done > inode->size)
            inode->size = offset + done;
        inode->dirty = true;
        if (is_short)
            break;
    }
    return (ssize_t)done;
}

static int fs_truncate(void *context, int file, uint64_t size)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);
    size_t kept = 0;

    if (disk->dead)
        return -EIO;
    if (inode->contents != OUTPUT || size > inode->size)
        sim_violated(disk->node->sim, "truncated", "node %u makes %llu bytes of %llu",
                     disk->node->rank, (unsigned long long)size, (unsigned long long)inode->size);
    for (size_t i = 0; i < inode->runs; i++) {
        struct run run = inode->run[i];
        run.to = run.to < size ? run.to : size;
        if (run.from < run.to)
            inode->run[kept++] = run;
    }
    inode->runs = kept;
    kept = 0;
    for (size_t i = 0; i < inode->damages; i++)
        if (inode->damaged[i] < size)
            inode->damaged[kept++] = inode->damaged[i];
    inode->damages = kept;
    inode->size = size;
    inode->dirty = true;
    return 0;
}

void disk_bytes_init(struct file_system *files)
{
    files->read = fs_read;
    files->read_cached = fs_read_cached;
    files->write = fs_write;
    files->truncate = fs_truncate;
    files->in_memory = fs_in_memory;
}
