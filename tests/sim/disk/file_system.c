#include "tests/sim/disk/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/bytes.h"
#include "tests/sim/disk/inode.h"
#include "tests/sim/disk/names.h"
#include "tests/sim/internal.h"

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
