#include "daemon/torusd/tree/inodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/manifest_format.h"

/* --- the number of each entry --- */

#define NUMBERS 4096u /* numbers */

struct entry_numbers {
    int file;
    uint64_t written; /* numbers */
    size_t used;
    uint64_t buffer[NUMBERS];
};

struct entry_numbers *entry_numbers_new(int file)
{
    struct entry_numbers *n = malloc(sizeof *n);

    if (n == NULL)
        return NULL;
    n->file = file;
    n->written = 0;
    n->used = 0;
    return n;
}

void entry_numbers_free(struct entry_numbers *n)
{
    if (n == NULL)
        return;
    (void)close(n->file);
    free(n);
}

int entry_numbers_finish(struct entry_numbers *n, struct error *e)
{
    if (file_write(n->file, n->buffer, n->used * sizeof *n->buffer,
                   n->written * sizeof *n->buffer) != 0)
        return tree_files_temporary_failed(e);
    n->written += n->used;
    n->used = 0;
    return 0;
}

int entry_numbers_add(struct entry_numbers *n, uint64_t number, struct error *e)
{
    n->buffer[n->used++] = number;
    return n->used < NUMBERS ? 0 : entry_numbers_finish(n, e);
}

int entry_numbers_get(const struct entry_numbers *n, uint64_t index, uint64_t *number,
                      struct error *e)
{
    return file_read(n->file, number, sizeof *number, index * sizeof *number) == 0
               ? 0
               : tree_files_temporary_failed(e);
}

/* --- files with several names --- */

#define BUFFER 65536u
#define RECORD 10u /* bytes before a path: u64 index, u16 length */

/* An open hash table; place 0 is free, so places are stored plus one. */
struct link {
    uint64_t device, number, place;
};

struct file_links {
    const struct tree_files *files;
    struct link *link;
    size_t count, room; /* room is a power of two */
    int file;           /* of paths; -1: none yet */
    uint64_t written;
    size_t used;
    uint8_t buffer[BUFFER];
};

struct file_links *file_links_new(const struct tree_files *files)
{
    struct file_links *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->files = files;
    l->file = -1;
    return l;
}

void file_links_free(struct file_links *l)
{
    if (l == NULL)
        return;
    file_close(&l->file);
    free(l->link);
    free(l);
}

static struct link *slot_of(const struct file_links *l, uint64_t device, uint64_t number)
{
    uint64_t hash = (number ^ device * UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (l->room - 1);

    while (l->link[at].place != 0 && (l->link[at].device != device || l->link[at].number != number))
        at = (at + 1) & (l->room - 1);
    return &l->link[at];
}

static int grow(struct file_links *l, struct error *e)
{
    size_t before = l->room;
    struct link *old = l->link;

    if (l->count * 4 < l->room * 3)
        return 0;
    size_t room = before == 0 ? 64 : 2 * before;
    struct link *link = calloc(room, sizeof *link);
    if (link == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for hard links");
    l->link = link;
    l->room = room;
    for (size_t i = 0; i < before; i++)
        if (old[i].place != 0)
            *slot_of(l, old[i].device, old[i].number) = old[i];
    free(old);
    return 0;
}

static int flush(struct file_links *l, struct error *e)
{
    if (l->file < 0)
        l->file = tree_files_temporary(l->files, e);
    if (l->file < 0)
        return -1;
    if (file_write(l->file, l->buffer, l->used, l->written) != 0)
        return tree_files_temporary_failed(e);
    l->written += l->used;
    l->used = 0;
    return 0;
}

int file_links_add(struct file_links *l, uint64_t device, uint64_t number, uint64_t index,
                   const char *path, struct error *e)
{
    size_t length = strlen(path);

    if (grow(l, e) != 0 || (l->used + RECORD + length > BUFFER && flush(l, e) != 0))
        return -1;
    *slot_of(l, device, number) = (struct link){device, number, l->written + l->used + 1};
    uint8_t *at = put_u16(put_u64(l->buffer + l->used, index), length);
    memcpy(at, path, length);
    l->used += RECORD + length;
    l->count++;
    return 0;
}

/* Reads bytes that were added, from the file or from the buffer. A record is never in both. */
static int fetch(const struct file_links *l, uint64_t place, void *bytes, size_t length,
                 struct error *e)
{
    if (place >= l->written) {
        memcpy(bytes, l->buffer + (place - l->written), length);
        return 0;
    }
    return file_read(l->file, bytes, length, place) == 0 ? 0 : tree_files_temporary_failed(e);
}

int file_links_find(struct file_links *l, uint64_t device, uint64_t number, uint64_t *index,
                    char *path, struct error *e)
{
    uint8_t head[RECORD];
    const struct link *link = l->room > 0 ? slot_of(l, device, number) : NULL;

    if (link == NULL || link->place == 0)
        return 0;
    if (fetch(l, link->place - 1, head, sizeof head, e) != 0)
        return -1;
    size_t length = get_u16(head + 8);
    if (fetch(l, link->place - 1 + RECORD, path, length, e) != 0)
        return -1;
    *index = get_u64(head);
    path[length] = '\0';
    return 1;
}
