/* A node's trees: faults, and what survives its process. */
#include "tests/sim/copies/store.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define STOP_SHARE 2u /* one in so many functions notices that it shall stop */

void tree_disk_init(struct tree_disk *disk, struct node *node, struct chance chance)
{
    *disk = (struct tree_disk){.node = node, .chance = chance, .room = UINT64_MAX};
}

static void free_file(struct staged_file *file)
{
    sim_spans_free(&file->have);
    free(file->bytes);
    free(file->path);
    free(file);
}

struct staged *tree_disk_find_staged(const struct tree_disk *disk, const char *target)
{
    struct staged *staged = disk->staged;

    while (staged != NULL && strcmp(staged->target, target) != 0)
        staged = staged->next;
    return staged;
}

void tree_disk_tidy_staged(struct tree_disk *disk, const char *target, bool all)
{
    struct staged **at = &disk->staged, *staged = tree_disk_find_staged(disk, target);

    if (staged == NULL)
        return;
    for (struct staged_file **f = &staged->file; *f != NULL;) {
        struct staged_file *file = *f;
        if (!all && file->have.count > 0) {
            f = &file->next;
            continue;
        }
        *f = file->next;
        free_file(file);
    }
    if (staged->file != NULL)
        return;
    while (*at != staged)
        at = &(*at)->next;
    *at = staged->next;
    free(staged->target);
    free(staged);
}

void tree_disk_lose_staged(struct tree_disk *disk)
{
    while (disk->staged != NULL)
        tree_disk_tidy_staged(disk, disk->staged->target, true);
}

uint64_t tree_disk_staged(const struct tree_disk *disk, const char *target)
{
    const struct staged *staged = tree_disk_find_staged(disk, target);
    uint64_t bytes = 0;

    for (struct staged_file *f = staged != NULL ? staged->file : NULL; f != NULL; f = f->next)
        bytes += sim_spans_bytes(&f->have);
    return bytes;
}

void tree_disk_power_failure(struct tree_disk *disk)
{
    if (chance_below(&disk->chance, 2) == 0)
        tree_disk_lose_staged(disk);
}

void tree_disk_free(struct tree_disk *disk)
{
    tree_disk_lose_staged(disk);
    while (disk->finished != NULL) {
        struct finished_copy *finished = disk->finished;
        disk->finished = finished->next;
        free(finished->target);
        free(finished);
    }
    sim_tree_free(&disk->tree);
}

struct tree_store tree_disk_store(struct tree_disk *disk)
{
    struct tree_store store = tree_reading;

    store.context = disk;
    store.write_open = tree_writing.write_open;
    store.write_document = tree_writing.write_document;
    store.compare = tree_writing.compare;
    store.missing = tree_writing.missing;
    store.write = tree_writing.write;
    store.leave = tree_writing.leave;
    store.granularity = tree_writing.granularity;
    store.going = tree_writing.going;
    store.check_places = tree_writing.check_places;
    store.finish = tree_writing.finish;
    store.report = tree_writing.report;
    store.write_close = tree_writing.write_close;
    return store;
}

/* Faults of the disk that exchanges use, as far as they have a meaning for trees. */
static bool disk_fails(struct tree_disk *disk, enum sim_tree_fault fault)
{
    static const enum sim_disk_fault like[SIM_TREE_FAULTS] = {
        [SIM_TREE_READ_OPEN] = SIM_DISK_OPEN,  [SIM_TREE_DIGEST] = SIM_DISK_READ,
        [SIM_TREE_READ] = SIM_DISK_READ,       [SIM_TREE_CHECK] = SIM_DISK_CHECK,
        [SIM_TREE_WRITE_OPEN] = SIM_DISK_OPEN, [SIM_TREE_DOCUMENT] = SIM_DISK_WRITE,
        [SIM_TREE_COMPARE] = SIM_DISK_READ,    [SIM_TREE_MISSING] = SIM_DISK_READ,
        [SIM_TREE_WRITE] = SIM_DISK_WRITE,     [SIM_TREE_FINISH] = SIM_DISK_COMMIT,
    };
    bool *other = &disk->node->disk.fault[like[fault]], fails = *other || disk->fault[fault];

    *other = disk->fault[fault] = false;
    return fails;
}

int tree_disk_check(struct tree_disk *disk, enum sim_tree_fault fault,
                    const struct tree_progress *progress, const char *path, struct error *e)
{
    if (disk->node->disk.dead)
        return error_set(e, ERROR_IO, "%s: the process ends", path);
    if (progress != NULL && progress->stop && chance_below(&disk->chance, STOP_SHARE) == 0)
        return error_set(e, ERROR_CANCELLED, "stopped");
    if (disk_fails(disk, fault))
        return error_set(e, ERROR_IO, "%s: Input/output error", path);
    return 0;
}

/* --- the manifest --- */

void tree_bytes_add(struct tree_bytes *to, const void *bytes, size_t length)
{
    size_t size = to->size > 0 ? to->size : 64;

    while (size < to->length + length)
        size *= 2;
    if (size != to->size)
        to->bytes = sim_realloc(to->bytes, size);
    to->size = size;
    if (length > 0)
        memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
}

unsigned tree_disk_process_ended(struct tree_disk *disk)
{
    unsigned open = disk->readers + disk->writers_open;

    disk->readers = disk->writers_open = 0;
    disk->writers = NULL;
    return open;
}

#define MAGIC UINT64_C(0x53494d5452454531)

struct entry_head {
    uint64_t size, modified, hash;
    uint32_t kind, path, link; /* lengths of the texts that follow */
};

void sim_manifest_write(struct tree_bytes *to, const struct sim_tree *tree, bool digests,
                        uint64_t padding)
{
    uint64_t head[4] = {MAGIC, tree->count, digests, padding};

    tree_bytes_add(to, head, sizeof head);
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_item *item = &tree->item[i];
        struct entry_head entry = {.modified = item->modified,
                                   .kind = (uint32_t)item->kind,
                                   .path = (uint32_t)strlen(item->path)};
        if (item->kind == SIM_TREE_FILE) {
            entry.size = item->content->size;
            entry.hash = digests ? item->content->hash : 0;
        }
        entry.link = item->link != NULL ? (uint32_t)strlen(item->link) : 0;
        tree_bytes_add(to, &entry, sizeof entry);
        tree_bytes_add(to, item->path, entry.path);
        if (entry.link > 0)
            tree_bytes_add(to, item->link, entry.link);
    }
    uint8_t zeros[256] = {0};
    for (uint64_t left = padding; left > 0; left -= left < sizeof zeros ? left : sizeof zeros)
        tree_bytes_add(to, zeros, left < sizeof zeros ? left : sizeof zeros);
    uint64_t hash = tree_hash(to->bytes, to->length);
    tree_bytes_add(to, &hash, sizeof hash);
}

/* Reads `length` bytes as a text; NULL if they are not there. */
static char *take_text(const struct tree_bytes *from, size_t *at, size_t length)
{
    if (from->length - *at < length || memchr(from->bytes + *at, 0, length) != NULL)
        return NULL;
    char *text = sim_alloc(length + 1);
    memcpy(text, from->bytes + *at, length);
    *at += length;
    return text;
}

static bool take_entry(struct sim_manifest *m, const struct tree_bytes *from, size_t *at)
{
    struct entry_head head;

    if (from->length - *at < sizeof head)
        return false;
    memcpy(&head, from->bytes + *at, sizeof head);
    *at += sizeof head;
    m->entry = sim_grow(m->entry, m->entries, sizeof *m->entry);
    struct sim_entry *entry = &m->entry[m->entries];
    *entry = (struct sim_entry){.kind = (enum sim_tree_kind)head.kind,
                                .size = head.size,
                                .modified = head.modified,
                                .hash = head.hash,
                                .begin = m->stream};
    entry->path = take_text(from, at, head.path);
    if (entry->path == NULL)
        return false;
    m->entries++;
    if (head.kind == SIM_TREE_LINK)
        entry->link = take_text(from, at, head.link);
    if ((head.kind == SIM_TREE_LINK && entry->link == NULL) || head.kind < SIM_TREE_FOLDER ||
        head.kind > SIM_TREE_LINK || (head.kind != SIM_TREE_FILE && head.size > 0) ||
        head.size > UINT32_MAX)
        return false;
    m->stream += head.size;
    return m->entries < 2 || tree_compare_paths(entry[-1].path, entry->path) < 0;
}

int sim_manifest_read(struct sim_manifest *m, const struct tree_bytes *from, struct error *e)
{
    uint64_t head[4], hash;
    size_t at = sizeof head;

    *m = (struct sim_manifest){0};
    if (from->length < sizeof head + sizeof hash)
        return error_set(e, ERROR_PROTOCOL, "a manifest of %zu bytes", from->length);
    memcpy(head, from->bytes, sizeof head);
    memcpy(&hash, from->bytes + from->length - sizeof hash, sizeof hash);
    if (head[0] != MAGIC || hash != tree_hash(from->bytes, from->length - sizeof hash))
        return error_set(e, ERROR_PROTOCOL, "the manifest is damaged");
    m->has_digests = head[2] != 0;
    for (uint64_t i = 0; i < head[1]; i++)
        if (!take_entry(m, from, &at)) {
            sim_manifest_free(m);
            return error_set(e, ERROR_PROTOCOL, "the manifest has a wrong entry");
        }
    return 0;
}

void sim_manifest_free(struct sim_manifest *m)
{
    for (uint32_t i = 0; i < m->entries; i++) {
        free(m->entry[i].path);
        free(m->entry[i].link);
    }
    free(m->entry);
    *m = (struct sim_manifest){0};
}
