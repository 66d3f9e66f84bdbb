#include "tests/sim/disk/inode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

struct inode *inode_new(struct disk *disk, enum file_kind kind)
{
    struct inode *inode = sim_alloc(sizeof *inode);

    inode->number = ++disk->numbers;
    inode->kind = kind;
    inode->next = disk->all;
    disk->all = inode;
    return inode;
}

struct entry *entries_find(const struct entries *entries, const char *name)
{
    for (size_t i = 0; i < entries->count; i++)
        if (strcmp(entries->entry[i].name, name) == 0)
            return &entries->entry[i];
    return NULL;
}

void entries_put(struct entries *entries, const char *name, struct inode *inode)
{
    struct entry *at = entries_find(entries, name);

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

void entries_copy(struct entries *to, const struct entries *from)
{
    to->count = from->count;
    to->entry = sim_realloc(to->entry, (from->count + 1) * sizeof *to->entry);
    if (from->count > 0)
        memcpy(to->entry, from->entry, from->count * sizeof *to->entry);
}

void inode_change(struct inode *folder, const char *name, struct inode *inode, bool more)
{
    entries_put(&folder->now, name, inode);
    folder->change = sim_grow(folder->change, folder->changes, sizeof *folder->change);
    struct change *c = &folder->change[folder->changes++];
    *c = (struct change){.inode = inode, .more = more};
    (void)snprintf(c->name, sizeof c->name, "%s", name);
}

int disk_fault(struct disk *disk, enum sim_disk_fault which)
{
    if (!disk->fault[which])
        return 0;
    disk->fault[which] = false;
    return -EIO;
}

bool disk_is_output_name(const char *name)
{
    return name[0] == '.' && strstr(name, OUTPUT_MARK) != NULL;
}

void disk_copy_id(char *id, const char *name)
{
    const char *from = strstr(name, OUTPUT_MARK) + strlen(OUTPUT_MARK);
    const char *end = strrchr(from, '-'); /* followed by the rank */

    (void)snprintf(id, EXCHANGE_ID_SIZE, "%.*s", end != NULL ? (int)(end - from) : 40, from);
}

static bool is_source(const char *path)
{
    return strncmp(path, "same/", 5) == 0 || strncmp(path, "random/", 7) == 0;
}

struct inode *disk_at(const struct disk *disk, int fd)
{
    if (fd == FILE_SYSTEM_TOP)
        return disk->root;
    if (fd < 0 || (size_t)fd >= disk->descriptors || disk->descriptor[fd].inode == NULL)
        sim_violated(disk->node->sim, "descriptors",
                     "node %u uses descriptor %d, which is not open", disk->node->rank, fd);
    return disk->descriptor[fd].inode;
}

int disk_open(struct disk *disk, struct inode *inode)
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

/* A folder of sources or one of its files; they are created when they are looked up. */
static struct inode *look_up_source(struct disk *disk, const char *path)
{
    struct entry *at = entries_find(&disk->root->now, path);

    if (at != NULL)
        return at->inode;
    const char *file = strchr(strchr(path, '/') + 1, '/');
    char source[64];
    (void)snprintf(source, sizeof source, "/%.*s", (int)(file != NULL ? file - path : 60), path);
    struct inode *inode = inode_new(disk, file != NULL ? FILE_REGULAR : FILE_FOLDER);
    if (file != NULL) {
        inode->contents = SOURCE;
        inode->block[0] = disk->node->rank;
        inode->block[1] = (uint32_t)strtoul(file + 1, NULL, 10);
        inode->size = sim_block_size(source, inode->block[0], inode->block[1]);
    }
    entries_put(&disk->root->now, path, inode);
    entries_put(&disk->root->synced, path, inode);
    return inode;
}

struct inode *disk_look_up(struct disk *disk, struct inode *folder, const char *path)
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
        struct entry *at = entries_find(&folder->now, name);
        folder = at != NULL ? at->inode : NULL;
    }
    return folder;
}
