#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/generated_blocks.h"
#include "tests/sim/disk/file_system.h"
#include "tests/sim/disk/inode.h"
#include "tests/sim/internal.h"

static void disk_names_init(struct file_system *files);

static void disk_bytes_init(struct file_system *files);

static void disk_note_decisions(struct disk *disk)
{
    const struct entry *state = entries_find(&disk->root->now, "state");

    for (size_t i = 0; state != NULL && i < state->inode->now.count; i++) {
        const char *name = state->inode->now.entry[i].name;
        if (strncmp(name, DECISION_MARK, strlen(DECISION_MARK)) != 0)
            continue;
        name += strlen(DECISION_MARK);
        if (sim_decided(disk->node->sim, disk->node->rank, name))
            continue;
        disk->decision = sim_grow(disk->decision, disk->decisions, sizeof *disk->decision);
        struct decision *d = &disk->decision[disk->decisions++];
        (void)snprintf(d->id, sizeof d->id, "%s", name);
        if (disk->node->crash_when_decided)
            disk->node->doomed = true;
    }
}

static int fs_sync(void *context, int file)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);

    if (disk->dead)
        return -EIO;
    if ((inode->contents == OUTPUT || inode->made_as[0] != '\0') &&
        disk_fault(disk, SIM_DISK_SYNC) != 0)
        return -EIO;
    inode->dirty = false;
    if (inode->kind != FILE_FOLDER)
        return 0;
    entries_copy(&inode->synced, &inode->now);
    inode->changes = 0;
    disk_note_decisions(disk);
    return 0;
}

static void fs_start_sync(void *context, int file)
{
    (void)disk_at(context, file); /* it is open */
}

static int fs_lock(void *context, int file)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);

    if (disk->dead)
        return -EIO;
    if (inode->locked)
        return -EWOULDBLOCK;
    inode->locked = disk->descriptor[file].locks = true;
    return 0;
}

static int fs_is_volatile(void *context, int folder)
{
    return 0;
}

static void fs_close(void *context, int file)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);

    if (disk->descriptor[file].locks)
        inode->locked = false;
    disk->descriptor[file] = (struct descriptor){0};
}

void disk_init(struct disk *disk, struct node *node)
{
    disk->node = node;
    disk->root = inode_new(disk, FILE_FOLDER);
    disk->files = (struct file_system){
        .context = disk,
        .sync = fs_sync,
        .start_sync = fs_start_sync,
        .lock = fs_lock,
        .is_volatile = fs_is_volatile,
        .close = fs_close,
    };
    disk_names_init(&disk->files);
    disk_bytes_init(&disk->files);
}

void disk_free(struct disk *disk)
{
    struct inode *inode;

    while ((inode = disk->all) != NULL) {
        disk->all = inode->next;
        free(inode->now.entry);
        free(inode->synced.entry);
        free(inode->change);
        free(inode->bytes);
        free(inode->synced_bytes);
        free(inode->run);
        free(inode->damaged);
        free(inode);
    }
    free(disk->descriptor);
    free(disk->decision);
}

size_t disk_process_ended(struct disk *disk)
{
    size_t open = 0;

    disk_note_decisions(disk); /* one that was not synced has survived */
    for (size_t fd = 0; fd < disk->descriptors; fd++) {
        if (disk->descriptor[fd].inode == NULL)
            continue;
        open++;
        fs_close(disk, (int)fd);
    }
    return open;
}

static void lose_names(struct disk *disk, struct inode *folder)
{
    size_t survive = folder->changes;

    switch (chance_below(&disk->chance, 3)) {
    case 0:
        survive = 0;
        break;
    case 1:
        survive = chance_below(&disk->chance, folder->changes + 1);
        break;
    default:
        break;
    }
    while (survive > 0 && folder->change[survive - 1].more)
        survive--;
    entries_copy(&folder->now, &folder->synced);
    for (size_t i = 0; i < survive; i++)
        entries_put(&folder->now, folder->change[i].name, folder->change[i].inode);
    entries_copy(&folder->synced, &folder->now);
    folder->changes = 0;
}

static void lose_bytes(struct disk *disk, struct inode *f)
{
    uint64_t left = chance_below(&disk->chance, f->size + 1);

    if (chance_below(&disk->chance, 3) == 0)
        left = 0;
    if (f->contents == OUTPUT) { /* its remains are of no use */
        f->runs = 0;
        f->size = left;
    } else if (chance_below(&disk->chance, 2) == 0 || f->size == 0) {
        f->size = f->synced_size;
        if (f->size > 0)
            memcpy(f->bytes, f->synced_bytes, f->size);
    } else { /* the size is on the disk, and some of the bytes are not */
        memset(f->bytes + left, 0, f->size - left);
    }
    f->dirty = false;
}

void disk_power_failure(struct disk *disk)
{
    for (struct inode *inode = disk->all; inode != NULL; inode = inode->next) {
        if (inode->kind == FILE_FOLDER)
            lose_names(disk, inode);
        else if (inode->dirty)
            lose_bytes(disk, inode);
    }
    disk_note_decisions(disk);
}

static int fs_resolve(void *context, const char *path, char *out)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    if (disk_look_up(disk, disk->root, path) == NULL)
        return -ENOENT;
    (void)snprintf(out, PATH_MAX, "%s", path);
    return 0;
}

static int fs_open_folder(void *context, int folder, const char *path)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    struct inode *inode = disk_look_up(disk, disk_at(disk, folder), path);
    if (inode == NULL)
        return -ENOENT;
    return inode->kind == FILE_FOLDER ? disk_open(disk, inode) : -ENOTDIR;
}

static int fs_open_file(void *context, int folder, const char *path)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    struct inode *inode = disk_look_up(disk, disk_at(disk, folder), path);
    if (inode == NULL)
        return -ENOENT;
    if (inode->contents == SOURCE && disk_fault(disk, SIM_DISK_OPEN) != 0)
        return -EIO;
    return disk_open(disk, inode);
}

/* Whether a name can be added. */
static int may_create(struct disk *disk, const struct inode *folder, const char *name)
{
    if (disk->dead)
        return -EIO;
    if (disk->full)
        return -ENOSPC;
    if (strstr(name, DECISION_MARK) != NULL && disk_fault(disk, SIM_DISK_RECORD) != 0)
        return -EIO;
    return entries_find(&folder->now, name) != NULL ? -EEXIST : 0;
}

static int fs_create_file(void *context, int folder, const char *name, mode_t mode)
{
    struct disk *disk = context;
    struct inode *in = disk_at(disk, folder);
    int result = may_create(disk, in, name);

    if (result != 0)
        return result;
    struct inode *inode = inode_new(disk, FILE_REGULAR);
    if (disk_is_output_name(in->made_as)) {
        inode->contents = OUTPUT;
        inode->folder = in;
        inode->block[0] = (uint32_t)strtoul(name, NULL, 10);
        inode->block[1] = disk->node->rank;
    }
    inode->dirty = true;
    inode_change(in, name, inode, false);
    return disk_open(disk, inode);
}

static void call_output(struct disk *disk, struct inode *folder, const char *name)
{
    disk_copy_id(folder->made_for, name);
    (void)snprintf(folder->made_as, sizeof folder->made_as, "%s", name);
    folder->request = sim_request_by_id(disk->node->sim, folder->made_for);
}

static int fs_reopen_file(void *context, int folder, const char *name)
{
    struct disk *disk = context;
    const struct entry *at = entries_find(&disk_at(disk, folder)->now, name);

    if (disk->dead)
        return -EIO;
    return at != NULL ? disk_open(disk, at->inode) : -ENOENT;
}

static int fs_make_folder(void *context, int folder, const char *name, mode_t mode)
{
    struct disk *disk = context;
    struct inode *in = disk_at(disk, folder);
    int result;

    name += folder == FILE_SYSTEM_TOP && name[0] == '/';
    result = may_create(disk, in, name);
    if (result != 0)
        return result;
    struct inode *inode = inode_new(disk, FILE_FOLDER);
    if (disk_is_output_name(name))
        call_output(disk, inode, name);
    inode_change(in, name, inode, false);
    return 0;
}

/* An output gets its final name. */
static void check_place(struct disk *disk, const struct inode *folder)
{
    const struct node *node = disk->node;
    const char *id = folder->made_for;

    for (size_t i = 0; i < folder->now.count; i++)
        if (folder->now.entry[i].inode->damages > 0)
            sim_violated(node->sim, "bytes", "node %u puts damaged blocks of %s in place",
                         node->rank, id);
    if (!node->sim->lied && !sim_decided(node->sim, (uint32_t)strtoul(id, NULL, 10), id))
        sim_violated(node->sim, "decision",
                     "node %u puts the output of %s in place, which its root never decided",
                     node->rank, id);
}

static int fs_rename(void *context, int folder, const char *from, const char *to)
{
    struct disk *disk = context;
    struct inode *in = disk_at(disk, folder);
    struct entry *source = entries_find(&in->now, from), *target = entries_find(&in->now, to);

    if (disk->dead)
        return -EIO;
    if (source == NULL)
        return -ENOENT;
    if (target != NULL && target->inode->kind == FILE_FOLDER && target->inode->now.count > 0)
        return -ENOTEMPTY;
    struct inode *moved = source->inode;
    if (moved->made_as[0] != '\0' && disk_is_output_name(to)) {
        call_output(disk, moved, to);
        moved->attempt++;
    } else if (moved->made_as[0] != '\0') {
        if (disk_fault(disk, SIM_DISK_COMMIT) != 0)
            return -EIO;
        check_place(disk, moved);
    }
    inode_change(in, to, moved, true);
    inode_change(in, from, NULL, false);
    return 0;
}

static int fs_swap(void *context, int folder, const char *one, const char *other)
{
    struct disk *disk = context;
    struct inode *in = disk_at(disk, folder);
    const struct entry *first = entries_find(&in->now, one),
                       *second = entries_find(&in->now, other);

    if (disk->dead)
        return -EIO;
    if (first == NULL || second == NULL)
        return -ENOENT;
    struct inode *moved = first->inode, *replaced = second->inode;
    inode_change(in, other, moved, true);
    inode_change(in, one, replaced, false);
    return 0;
}

static int remove_entry(struct disk *disk, int folder, const char *name, enum file_kind kind)
{
    struct inode *in = disk_at(disk, folder);
    struct entry *at = entries_find(&in->now, name);

    if (disk->dead)
        return -EIO;
    if (at == NULL)
        return -ENOENT;
    if (at->inode->kind != kind)
        return kind == FILE_FOLDER ? -ENOTDIR : -EISDIR;
    if (at->inode->now.count > 0)
        return -ENOTEMPTY;
    inode_change(in, name, NULL, false);
    return 0;
}

static int fs_remove_file(void *context, int folder, const char *name)
{
    return remove_entry(context, folder, name, FILE_REGULAR);
}

static int fs_remove_folder(void *context, int folder, const char *name)
{
    return remove_entry(context, folder, name, FILE_FOLDER);
}

static int fs_list(void *context, int folder, void (*each)(void *argument, const char *name),
                   void *argument)
{
    struct disk *disk = context;
    struct entries names = {0};

    if (disk->dead)
        return -EIO;
    entries_copy(&names, &disk_at(disk, folder)->now);
    for (size_t i = 0; i < names.count; i++)
        each(argument, names.entry[i].name);
    free(names.entry);
    return 0;
}

static void tell_status(const struct inode *inode, struct file_status *out)
{
    *out = (struct file_status){
        .kind = inode->kind,
        .size = inode->size,
        .modified = {.tv_sec = (time_t)inode->modified},
        .changed = {.tv_sec = (time_t)inode->modified},
        .device = 1,
        .number = inode->number,
        .mode = 0700,
    };
}

static int fs_status(void *context, int file, struct file_status *out)
{
    struct disk *disk = context;
    struct inode *inode = disk_at(disk, file);

    if (disk->dead)
        return -EIO;
    if (inode->has_been_read && disk_fault(disk, SIM_DISK_CHECK) != 0)
        inode->modified++; /* a process has written to it */
    tell_status(inode, out);
    return 0;
}

static int fs_status_at(void *context, int folder, const char *name, struct file_status *out)
{
    struct disk *disk = context;
    const struct entry *at = entries_find(&disk_at(disk, folder)->now, name);

    if (disk->dead)
        return -EIO;
    if (at == NULL)
        return -ENOENT;
    tell_status(at->inode, out);
    return 0;
}

/* Everything belongs to the node, with one mode and without access-control lists. */
static int alive(void *context)
{
    return ((const struct disk *)context)->dead ? -EIO : 0;
}

static int fs_set_owner(void *context, int file, uid_t owner, gid_t group)
{
    return alive(context);
}

static int fs_set_mode(void *context, int file, mode_t mode)
{
    return alive(context);
}

static ssize_t fs_read_acl(void *context, int file, enum acl which, void *bytes, size_t most)
{
    return alive(context);
}

static int fs_write_acl(void *context, int file, enum acl which, const void *bytes, size_t length)
{
    return alive(context);
}

static int fs_check_removable(void *context, int folder, const char *name, const char **why)
{
    *why = "is on a disk that is dead";
    return alive(context);
}

static int fs_check_writable(void *context, int folder)
{
    return alive(context);
}

/* Sets these functions. */
static void disk_names_init(struct file_system *files)
{
    files->resolve = fs_resolve;
    files->open_folder = fs_open_folder;
    files->open_file = fs_open_file;
    files->create_file = fs_create_file;
    files->reopen_file = fs_reopen_file;
    files->make_folder = fs_make_folder;
    files->rename = fs_rename;
    files->remove_file = fs_remove_file;
    files->remove_folder = fs_remove_folder;
    files->list = fs_list;
    files->status = fs_status;
    files->status_at = fs_status_at;
    files->swap = fs_swap;
    files->set_owner = fs_set_owner;
    files->set_mode = fs_set_mode;
    files->read_acl = fs_read_acl;
    files->write_acl = fs_write_acl;
    files->check_removable = fs_check_removable;
    files->check_writable = fs_check_writable;
}

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

/* Sets these functions. */
static void disk_bytes_init(struct file_system *files)
{
    files->read = fs_read;
    files->read_cached = fs_read_cached;
    files->write = fs_write;
    files->truncate = fs_truncate;
    files->in_memory = fs_in_memory;
}
