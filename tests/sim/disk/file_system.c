#include "tests/sim/disk/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/generated_blocks.h"
#include "tests/sim/internal.h"

#define OUTPUT_MARK ".torusd-" /* in the name of an output's temporary folder */
#define DECISION_MARK "committed-"

struct entry {
    char name[DISK_NAME];
    struct inode *inode;
};

struct entries {
    struct entry *entry;
    size_t count;
};

/* Of a folder: `to` has been put under a name, or taken away (NULL). A rename is two at once. */
struct change {
    char name[DISK_NAME];
    struct inode *inode;
    bool more; /* the next one belongs to it */
};

/* Bytes of a block that have come: one run if it comes front to back, several if in segments. */
struct run {
    uint64_t from, to;
    unsigned attempt;
};

enum contents { BYTES, SOURCE, OUTPUT };

struct inode {
    struct inode *next; /* of all */
    uint64_t number;
    enum file_kind kind;
    bool locked;
    /* A folder: */
    struct entries now, synced;
    struct change *change; /* since it was synced */
    size_t changes;
    char made_as[DISK_NAME]; /* the name of an output as one of its last attempt */
    unsigned attempt;        /* so many before that */
    struct sim_request *request;
    char source[64]; /* of blocks: "/random/1000" */
    /* A file: */
    enum contents contents;
    uint64_t size;
    uint8_t *bytes;
    bool dirty;
    uint8_t *synced_bytes;
    uint64_t synced_size;
    uint32_t block[2]; /* source and destination */
    bool has_been_read;
    uint64_t modified;
    const struct inode *folder; /* an output's */
    uint64_t *damaged; /* bytes that have been written are not what was sent, at these offsets */
    size_t damages;
    struct run *run;
    size_t runs;
};

struct descriptor {
    struct inode *inode; /* NULL: free */
    bool locks;
};

/* --- inodes --- */

static struct inode *new_inode(struct disk *disk, enum file_kind kind)
{
    struct inode *inode = sim_alloc(sizeof *inode);

    inode->number = ++disk->numbers;
    inode->kind = kind;
    inode->next = disk->all;
    disk->all = inode;
    return inode;
}

static struct entry *find(const struct entries *entries, const char *name)
{
    for (size_t i = 0; i < entries->count; i++)
        if (strcmp(entries->entry[i].name, name) == 0)
            return &entries->entry[i];
    return NULL;
}

/* NULL removes it. */
static void put(struct entries *entries, const char *name, struct inode *inode)
{
    struct entry *at = find(entries, name);

    if (inode == NULL) {
        if (at != NULL)
            *at = entries->entry[--entries->count];
        return;
    }
    if (at == NULL) {
        entries->entry = sim_realloc(entries->entry, (entries->count + 1) * sizeof *entries->entry);
        at = &entries->entry[entries->count++];
        (void)snprintf(at->name, sizeof at->name, "%s", name);
    }
    at->inode = inode;
}

static void copy(struct entries *to, const struct entries *from)
{
    to->count = from->count;
    to->entry = sim_realloc(to->entry, (from->count + 1) * sizeof *to->entry);
    if (from->count > 0)
        memcpy(to->entry, from->entry, from->count * sizeof *to->entry);
}

static void change(struct inode *folder, const char *name, struct inode *inode, bool more)
{
    put(&folder->now, name, inode);
    folder->change = sim_grow(folder->change, folder->changes, sizeof *folder->change);
    struct change *c = &folder->change[folder->changes++];
    *c = (struct change){.inode = inode, .more = more};
    (void)snprintf(c->name, sizeof c->name, "%s", name);
}

/* --- faults --- */

static int fault(struct disk *disk, enum sim_disk_fault which)
{
    if (!disk->fault[which])
        return 0;
    disk->fault[which] = false;
    return -EIO;
}

static bool is_output_name(const char *name)
{
    return name[0] == '.' && strstr(name, OUTPUT_MARK) != NULL;
}

static bool is_source(const char *path)
{
    return strncmp(path, "same/", 5) == 0 || strncmp(path, "random/", 7) == 0;
}

/* --- descriptors and paths --- */

static struct inode *at_descriptor(const struct disk *disk, int fd)
{
    if (fd == FILE_SYSTEM_TOP)
        return disk->root;
    if (fd < 0 || (size_t)fd >= disk->descriptors || disk->descriptor[fd].inode == NULL)
        sim_violated(disk->node->sim, "descriptors",
                     "node %u uses descriptor %d, which is not open", disk->node->rank, fd);
    return disk->descriptor[fd].inode;
}

static int new_descriptor(struct disk *disk, struct inode *inode)
{
    size_t fd = 0;

    while (fd < disk->descriptors && disk->descriptor[fd].inode != NULL)
        fd++;
    if (fd == disk->descriptors)
        disk->descriptor =
            sim_realloc(disk->descriptor, ++disk->descriptors * sizeof *disk->descriptor);
    disk->descriptor[fd] = (struct descriptor){inode, false};
    return (int)fd;
}

/* A folder of sources or one of its files, which come into being when somebody looks. */
static struct inode *look_up_source(struct disk *disk, const char *path)
{
    struct entry *at = find(&disk->root->now, path);

    if (at != NULL)
        return at->inode;
    const char *file = strchr(strchr(path, '/') + 1, '/');
    char source[64];
    (void)snprintf(source, sizeof source, "/%.*s", (int)(file != NULL ? file - path : 60), path);
    struct inode *inode = new_inode(disk, file != NULL ? FILE_REGULAR : FILE_FOLDER);
    if (file != NULL) {
        inode->contents = SOURCE;
        inode->block[0] = disk->node->rank;
        inode->block[1] = (uint32_t)strtoul(file + 1, NULL, 10);
        inode->size = sim_block_size(source, inode->block[0], inode->block[1]);
    }
    put(&disk->root->now, path, inode);
    put(&disk->root->synced, path, inode);
    return inode;
}

static struct inode *look_up(struct disk *disk, struct inode *folder, const char *path)
{
    char name[DISK_NAME];

    if (folder == disk->root && is_source(path + strspn(path, "/")))
        return look_up_source(disk, path + strspn(path, "/"));
    while (folder != NULL && *(path += strspn(path, "/")) != '\0') {
        size_t length = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        path += length;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) { /* only ever used for the top level */
            folder = disk->root;
            continue;
        }
        struct entry *at = find(&folder->now, name);
        folder = at != NULL ? at->inode : NULL;
    }
    return folder;
}

/* --- the functions of daemon/files/file_system.h --- */

static int fs_resolve(void *context, const char *path, char *out)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    if (look_up(disk, disk->root, path) == NULL)
        return -ENOENT;
    (void)snprintf(out, PATH_MAX, "%s", path);
    return 0;
}

static int fs_open_folder(void *context, int folder, const char *path)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    struct inode *inode = look_up(disk, at_descriptor(disk, folder), path);
    if (inode == NULL)
        return -ENOENT;
    return inode->kind == FILE_FOLDER ? new_descriptor(disk, inode) : -ENOTDIR;
}

static int fs_open_file(void *context, int folder, const char *path)
{
    struct disk *disk = context;

    if (disk->dead)
        return -EIO;
    struct inode *inode = look_up(disk, at_descriptor(disk, folder), path);
    if (inode == NULL)
        return -ENOENT;
    if (inode->contents == SOURCE && fault(disk, SIM_DISK_OPEN) != 0)
        return -EIO;
    return new_descriptor(disk, inode);
}

/* Whether a name can be added. */
static int may_create(struct disk *disk, const struct inode *folder, const char *name)
{
    if (disk->dead)
        return -EIO;
    if (disk->full)
        return -ENOSPC;
    if (strstr(name, DECISION_MARK) != NULL && fault(disk, SIM_DISK_RECORD) != 0)
        return -EIO;
    return find(&folder->now, name) != NULL ? -EEXIST : 0;
}

static int fs_create_file(void *context, int folder, const char *name, mode_t mode)
{
    struct disk *disk = context;
    struct inode *in = at_descriptor(disk, folder);
    int result = may_create(disk, in, name);

    (void)mode;
    if (result != 0)
        return result;
    struct inode *inode = new_inode(disk, FILE_REGULAR);
    if (is_output_name(in->made_as)) {
        inode->contents = OUTPUT;
        inode->folder = in;
        inode->block[0] = (uint32_t)strtoul(name, NULL, 10);
        inode->block[1] = disk->node->rank;
    }
    inode->dirty = true;
    change(in, name, inode, false);
    return new_descriptor(disk, inode);
}

static void copy_id(char *id, const char *name)
{
    const char *from = strstr(name, OUTPUT_MARK) + strlen(OUTPUT_MARK);
    const char *end = strrchr(from, '-'); /* behind it, the rank */

    (void)snprintf(id, EXCHANGE_ID_SIZE, "%.*s", end != NULL ? (int)(end - from) : 40, from);
}

static void call_output(struct disk *disk, struct inode *folder, const char *name)
{
    char id[EXCHANGE_ID_SIZE];

    copy_id(id, name);
    (void)snprintf(folder->made_as, sizeof folder->made_as, "%s", name);
    folder->request = sim_request_by_id(disk->node->sim, id);
}

static int fs_reopen_file(void *context, int folder, const char *name)
{
    struct disk *disk = context;
    const struct entry *at = find(&at_descriptor(disk, folder)->now, name);

    if (disk->dead)
        return -EIO;
    return at != NULL ? new_descriptor(disk, at->inode) : -ENOENT;
}

static int fs_make_folder(void *context, int folder, const char *name, mode_t mode)
{
    struct disk *disk = context;
    struct inode *in = at_descriptor(disk, folder);
    int result;

    (void)mode;
    name += folder == FILE_SYSTEM_TOP && name[0] == '/';
    result = may_create(disk, in, name);
    if (result != 0)
        return result;
    struct inode *inode = new_inode(disk, FILE_FOLDER);
    if (is_output_name(name))
        call_output(disk, inode, name);
    change(in, name, inode, false);
    return 0;
}

/* An output gets its final name. */
static void check_place(struct disk *disk, const struct inode *folder)
{
    const struct node *node = disk->node;
    char id[EXCHANGE_ID_SIZE];

    copy_id(id, folder->made_as);
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
    struct inode *in = at_descriptor(disk, folder);
    struct entry *source = find(&in->now, from), *target = find(&in->now, to);

    if (disk->dead)
        return -EIO;
    if (source == NULL)
        return -ENOENT;
    if (target != NULL && target->inode->kind == FILE_FOLDER && target->inode->now.count > 0)
        return -ENOTEMPTY;
    struct inode *moved = source->inode;
    if (moved->made_as[0] != '\0' && is_output_name(to)) {
        call_output(disk, moved, to);
        moved->attempt++;
    } else if (moved->made_as[0] != '\0') {
        if (fault(disk, SIM_DISK_COMMIT) != 0)
            return -EIO;
        check_place(disk, moved);
    }
    change(in, to, moved, true);
    change(in, from, NULL, false);
    return 0;
}

static int fs_swap(void *context, int folder, const char *one, const char *other)
{
    struct disk *disk = context;
    struct inode *in = at_descriptor(disk, folder);
    const struct entry *first = find(&in->now, one), *second = find(&in->now, other);

    if (disk->dead)
        return -EIO;
    if (first == NULL || second == NULL)
        return -ENOENT;
    struct inode *moved = first->inode, *replaced = second->inode;
    change(in, other, moved, true);
    change(in, one, replaced, false);
    return 0;
}

static int remove_entry(struct disk *disk, int folder, const char *name, enum file_kind kind)
{
    struct inode *in = at_descriptor(disk, folder);
    struct entry *at = find(&in->now, name);

    if (disk->dead)
        return -EIO;
    if (at == NULL)
        return -ENOENT;
    if (at->inode->kind != kind)
        return kind == FILE_FOLDER ? -ENOTDIR : -EISDIR;
    if (at->inode->now.count > 0)
        return -ENOTEMPTY;
    change(in, name, NULL, false);
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
    copy(&names, &at_descriptor(disk, folder)->now);
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
        .device = 1,
        .number = inode->number,
        .mode = 0700,
    };
}

static int fs_status(void *context, int file, struct file_status *out)
{
    struct disk *disk = context;
    struct inode *inode = at_descriptor(disk, file);

    if (disk->dead)
        return -EIO;
    if (inode->has_been_read && fault(disk, SIM_DISK_CHECK) != 0)
        inode->modified++; /* somebody has written to it */
    tell_status(inode, out);
    return 0;
}

static int fs_status_at(void *context, int folder, const char *name, struct file_status *out)
{
    struct disk *disk = context;
    const struct entry *at = find(&at_descriptor(disk, folder)->now, name);

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
    (void)file, (void)owner, (void)group;
    return alive(context);
}

static int fs_set_mode(void *context, int file, mode_t mode)
{
    (void)file, (void)mode;
    return alive(context);
}

static ssize_t fs_read_acl(void *context, int file, enum acl which, void *bytes, size_t most)
{
    (void)file, (void)which, (void)bytes, (void)most;
    return alive(context);
}

static int fs_write_acl(void *context, int file, enum acl which, const void *bytes, size_t length)
{
    (void)file, (void)which, (void)bytes, (void)length;
    return alive(context);
}

static int fs_check_removable(void *context, int folder, const char *name, const char **why)
{
    (void)folder, (void)name;
    *why = "is on a disk that is dead";
    return alive(context);
}

static int fs_check_writable(void *context, int folder)
{
    (void)folder;
    return alive(context);
}

static ssize_t read_one(struct disk *disk, int file, void *data, size_t length, uint64_t offset)
{
    struct inode *inode = at_descriptor(disk, file);

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
    if (fault(disk, SIM_DISK_READ) != 0)
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

/* Some files cannot tell, others sometimes have nothing in memory. */
static ssize_t fs_read_cached(void *context, int file, void *data, size_t length, uint64_t offset)
{
    struct disk *disk = context;
    const struct inode *inode = at_descriptor(disk, file);

    if (inode->number % 4 == 0)
        return -EOPNOTSUPP;
    if (disk->slowness > 0 || chance_below(&disk->chance, 4) == 0)
        return -EAGAIN;
    return read_one(disk, file, data, length, offset);
}

static bool fs_in_memory(void *context, int file)
{
    const struct disk *disk = context;

    return disk->slowness == 0 && at_descriptor(disk, file)->number % 8 == 4;
}

/* False if some of it has come before, in the same attempt. */
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

/* The destination of the bytes that come from an origin: those made for this node, or those that
 * the origin has for itself and for all. */
static uint32_t intended(const struct sim_request *r, uint32_t rank, uint32_t origin)
{
    return r == NULL || r->operation == OPERATION_EXCHANGE ? rank : origin;
}

/* Returns how many of these bytes are wrong. */
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
    /* What was damaged is written once more. */
    if (offset + length > sim_block_size(r->from, origin, destination) ||
        (!arrive(f, offset, offset + length) && !node->sim->flipped))
        sim_violated(node->sim, "once", "block %u to %u: %zu bytes at %llu come twice or too many",
                     origin, node->rank, length, (unsigned long long)offset);
    if (note_damage(f, bytes, length, destination, offset) == 0)
        return;
    if (!node->sim->flipped) /* only digests can tell */
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
    struct inode *inode = at_descriptor(disk, file);
    size_t done = 0;

    if (disk->dead)
        return -EIO;
    if (disk->full)
        return -ENOSPC;
    if (inode->contents == OUTPUT && fault(disk, SIM_DISK_WRITE) != 0)
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
    struct inode *inode = at_descriptor(disk, file);
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

static void note_decisions(struct disk *disk)
{
    const struct entry *state = find(&disk->root->now, "state");

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
    struct inode *inode = at_descriptor(disk, file);

    if (disk->dead)
        return -EIO;
    if ((inode->contents == OUTPUT || inode->made_as[0] != '\0') && fault(disk, SIM_DISK_SYNC) != 0)
        return -EIO;
    inode->dirty = false;
    if (inode->kind != FILE_FOLDER)
        return 0;
    copy(&inode->synced, &inode->now);
    inode->changes = 0;
    note_decisions(disk);
    return 0;
}

static void fs_start_sync(void *context, int file)
{
    (void)at_descriptor(context, file); /* it is open */
}

static int fs_lock(void *context, int file)
{
    struct disk *disk = context;
    struct inode *inode = at_descriptor(disk, file);

    if (disk->dead)
        return -EIO;
    if (inode->locked)
        return -EWOULDBLOCK;
    inode->locked = disk->descriptor[file].locks = true;
    return 0;
}

static int fs_is_volatile(void *context, int folder)
{
    (void)context, (void)folder;
    return 0;
}

static void fs_close(void *context, int file)
{
    struct disk *disk = context;
    struct inode *inode = at_descriptor(disk, file);

    if (disk->descriptor[file].locks)
        inode->locked = false;
    disk->descriptor[file] = (struct descriptor){0};
}

/* --- its life --- */

void disk_init(struct disk *disk, struct node *node)
{
    disk->node = node;
    disk->root = new_inode(disk, FILE_FOLDER);
    disk->files = (struct file_system){
        .context = disk,
        .resolve = fs_resolve,
        .open_folder = fs_open_folder,
        .open_file = fs_open_file,
        .create_file = fs_create_file,
        .reopen_file = fs_reopen_file,
        .make_folder = fs_make_folder,
        .rename = fs_rename,
        .remove_file = fs_remove_file,
        .remove_folder = fs_remove_folder,
        .list = fs_list,
        .status = fs_status,
        .status_at = fs_status_at,
        .swap = fs_swap,
        .set_owner = fs_set_owner,
        .set_mode = fs_set_mode,
        .read_acl = fs_read_acl,
        .write_acl = fs_write_acl,
        .check_removable = fs_check_removable,
        .check_writable = fs_check_writable,
        .read = fs_read,
        .read_cached = fs_read_cached,
        .write = fs_write,
        .truncate = fs_truncate,
        .sync = fs_sync,
        .start_sync = fs_start_sync,
        .lock = fs_lock,
        .is_volatile = fs_is_volatile,
        .in_memory = fs_in_memory,
        .close = fs_close,
    };
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

    note_decisions(disk); /* one that was not synced has survived */
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
    copy(&folder->now, &folder->synced);
    for (size_t i = 0; i < survive; i++)
        put(&folder->now, folder->change[i].name, folder->change[i].inode);
    copy(&folder->synced, &folder->now);
    folder->changes = 0;
}

static void lose_bytes(struct disk *disk, struct inode *f)
{
    uint64_t left = chance_below(&disk->chance, f->size + 1);

    if (chance_below(&disk->chance, 3) == 0)
        left = 0;
    if (f->contents == OUTPUT) { /* what is left of it is of no use */
        f->runs = 0;
        f->size = left;
    } else if (chance_below(&disk->chance, 2) == 0 || f->size == 0) {
        f->size = f->synced_size;
        if (f->size > 0)
            memcpy(f->bytes, f->synced_bytes, f->size);
    } else { /* the size has come to the disk and some of the bytes have not */
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
    note_decisions(disk);
}

/* --- for tests --- */

/* The name of a folder somewhere below another one, or "". */
static const char *name_of(const struct inode *in, const struct inode *folder)
{
    for (size_t i = 0; i < in->now.count; i++) {
        const struct entry *at = &in->now.entry[i];
        const char *below = at->inode == folder              ? at->name
                            : at->inode->kind == FILE_FOLDER ? name_of(at->inode, folder)
                                                             : "";
        if (below[0] != '\0')
            return below;
    }
    return "";
}

bool disk_output(const struct disk *disk, size_t index, struct disk_output *out)
{
    static char id[EXCHANGE_ID_SIZE];

    for (const struct inode *inode = disk->all; inode != NULL; inode = inode->next) {
        if (inode->made_as[0] == '\0' || index-- > 0)
            continue;
        copy_id(id, inode->made_as);
        *out = (struct disk_output){.id = id,
                                    .name = name_of(disk->root, inode),
                                    .request = inode->request,
                                    .folder = inode};
        out->temporary = is_output_name(out->name);
        return true;
    }
    return false;
}

int64_t disk_output_size(const struct disk_output *output, uint32_t origin)
{
    char name[16];
    uint64_t bytes = 0;

    (void)snprintf(name, sizeof name, "%u", origin);
    const struct entry *at = find(&output->folder->now, name);
    if (at == NULL)
        return -1;
    const struct inode *f = at->inode;
    for (size_t i = 0; i < f->runs;) /* runs of several attempts may overlap */
        if (f->run[i].from <= bytes && f->run[i].to > bytes) {
            bytes = f->run[i].to;
            i = 0;
        } else {
            i++;
        }
    return bytes == f->size ? (int64_t)bytes : -2;
}

void disk_each_name(const struct disk *disk, const char *folder,
                    void (*each)(void *context, const char *name), void *context)
{
    const struct entry *at = folder[0] != '\0' ? find(&disk->root->now, folder) : NULL;
    const struct entries *names = folder[0] == '\0' ? &disk->root->now
                                  : at != NULL      ? &at->inode->now
                                                    : NULL;

    for (size_t i = 0; names != NULL && i < names->count; i++)
        each(context, names->entry[i].name);
}
