#include "tests/sim/disk/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/inode.h"
#include "tests/sim/internal.h"

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

void disk_names_init(struct file_system *files)
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
