#include "tests/sim/disk/file_system.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/disk/inode.h"

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

bool disk_output(const struct disk *disk, const char *id, size_t index, struct disk_output *out)
{
    for (const struct inode *inode = disk->all; inode != NULL; inode = inode->next) {
        if (inode->made_as[0] == '\0' || (id != NULL && strcmp(inode->made_for, id) != 0) ||
            index-- > 0)
            continue;
        *out = (struct disk_output){.id = inode->made_for,
                                    .name = name_of(disk->root, inode),
                                    .request = inode->request,
                                    .folder = inode};
        out->temporary = disk_is_output_name(out->name);
        return true;
    }
    return false;
}

int64_t disk_output_size(const struct disk_output *output, uint32_t origin)
{
    char name[16];
    uint64_t bytes = 0;

    (void)snprintf(name, sizeof name, "%u", origin);
    const struct entry *at = entries_find(&output->folder->now, name);
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
    const struct entry *at = folder[0] != '\0' ? entries_find(&disk->root->now, folder) : NULL;
    const struct entries *names = folder[0] == '\0' ? &disk->root->now
                                  : at != NULL      ? &at->inode->now
                                                    : NULL;

    for (size_t i = 0; names != NULL && i < names->count; i++)
        each(context, names->entry[i].name);
}
