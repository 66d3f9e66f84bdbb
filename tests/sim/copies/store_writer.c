/* How a simulated node puts what has arrived in place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/store.h"
#include "tests/sim/internal.h"

enum writer_stage { WRITER_OPEN, WRITER_COMPARED, WRITER_KNOWS, WRITER_FINISHED, WRITER_FAILED };

/* An entry of the manifest at this node. */
struct wanted_file {
    bool needed;              /* its data have to be moved, as far as nothing is kept */
    struct staged_file *file; /* of needed files */
};

struct tree_writer {
    struct tree_writer *next;
    struct tree_disk *disk;
    char *path, **pattern;
    uint32_t patterns;
    bool into, delete, checksum, as_it_comes, look_only;
    enum writer_stage stage;
    struct error why; /* it has failed */
    struct tree_bytes document[TREE_DOCUMENTS], wanted;
    struct sim_manifest manifest;
    struct wanted_file *entry;        /* by entry of the manifest */
    struct staged_file *only_looking; /* files that are not in the disk's list */
    struct sim_spans missing, spans;
    struct tree_report report;
};

static const struct tree_item *tree_writer_present(const struct tree_writer *writer,
                                                   const struct sim_entry *entry);

static void tree_writer_rule(const struct tree_writer *writer, bool holds, const char *what);

static int tree_writer_fail(struct tree_writer *writer, const struct error *e);

/* The manifest as a tree: with the contents that have arrived, or are there already. */
static void source_of(const struct tree_writer *w, struct sim_tree *source)
{
    *source = (struct sim_tree){0};
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        const struct sim_entry *entry = &w->manifest.entry[i];
        const struct tree_item *old = tree_writer_present(w, entry);
        struct tree_item item = {
            .kind = entry->kind, .modified = entry->modified, .link = entry->link};
        if (w->entry[i].needed)
            item.content = tree_content_new(w->entry[i].file->bytes, entry->size);
        else if (entry->kind == SIM_TREE_FILE)
            item.content = tree_content_use(old->content);
        sim_tree_put(source, entry->path, &item);
        tree_content_release(item.content);
    }
}

static struct tree_overlay overlay_of(const struct tree_writer *w)
{
    return (struct tree_overlay){.pattern = (const char *const *)w->pattern,
                                 .patterns = w->patterns,
                                 .into = w->into,
                                 .delete = w->delete};
}

static uint64_t tree_writer_count_removed(const struct tree_writer *w)
{
    struct tree_overlay how = overlay_of(w);
    struct sim_tree target, source = {0};

    sim_tree_below(&target, &w->disk->tree, w->path);
    for (uint32_t i = 0; i < w->manifest.entries; i++)
        sim_tree_put_folder(&source, w->manifest.entry[i].path, 0);
    size_t before = target.count;
    for (uint32_t i = 0; i < w->manifest.entries; i++) /* what is there, the others do not count */
        before += sim_tree_find(&target, w->manifest.entry[i].path) == NULL;
    before += w->into && sim_tree_find(&target, "") == NULL && source.count > 0;
    sim_tree_overlay(&target, &source, &how);
    uint64_t removed = before - target.count;
    sim_tree_free(&target);
    sim_tree_free(&source);
    return removed;
}

static void tree_writer_install_folders(struct tree_writer *w)
{
    if (w->into && w->manifest.entries > 0 && sim_tree_find(&w->disk->tree, w->path) == NULL)
        sim_tree_put_folder(&w->disk->tree, w->path, 0);
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        char *path = tree_join(w->path, w->manifest.entry[i].path);
        if (w->manifest.entry[i].kind == SIM_TREE_FOLDER)
            sim_tree_put_folder(&w->disk->tree, path, w->manifest.entry[i].modified);
        free(path);
    }
}

static void tree_writer_install_file(struct tree_writer *w, const struct sim_entry *entry,
                                     const struct staged_file *file)
{
    char *path = tree_join(w->path, entry->path);
    struct tree_content *content = tree_content_new(file->bytes, file->size);

    sim_tree_put_file(&w->disk->tree, path, entry->modified, content);
    tree_content_release(content);
    free(path);
}

static bool staged_file_is_complete(const struct staged_file *file)
{
    return sim_spans_bytes(&file->have) == file->size;
}

static void note_finished(struct tree_writer *w)
{
    struct finished_copy *f = sim_alloc(sizeof *f);

    *f = (struct finished_copy){
        .next = w->disk->finished, .target = tree_join(w->path, ""), .report = w->report};
    w->disk->finished = f;
}

static int tree_writer_finish(struct tree_writer *w, struct tree_progress *progress,
                              struct error *e)
{
    struct tree_overlay how = overlay_of(w);
    struct sim_tree target, source;

    tree_writer_rule(w, w->stage == WRITER_KNOWS, "finish() at the wrong time");
    if (tree_disk_check(w->disk, SIM_TREE_FINISH, progress, w->path, e) != 0)
        return tree_writer_fail(w, e);
    for (uint32_t i = 0; i < w->manifest.entries && !w->look_only; i++) {
        if (!w->entry[i].needed || staged_file_is_complete(w->entry[i].file))
            continue;
        tree_writer_rule(w, false, "finish() before everything has arrived");
        return error_set(e, ERROR_PROTOCOL, "%s is not complete", w->entry[i].file->path),
               tree_writer_fail(w, e);
    }
    w->stage = WRITER_FINISHED;
    note_finished(w);
    if (w->look_only)
        return 0;
    sim_tree_below(&target, &w->disk->tree, w->path);
    source_of(w, &source);
    sim_tree_overlay(&target, &source, &how);
    sim_tree_remove(&w->disk->tree, w->path);
    for (size_t i = 0; i < target.count; i++) {
        char *path = tree_join(w->path, target.item[i].path);
        sim_tree_put(&w->disk->tree, path, &target.item[i]);
        free(path);
    }
    sim_tree_free(&target);
    sim_tree_free(&source);
    tree_disk_tidy_staged(w->disk, w->path, true);
    return 0;
}

/* Writing the trees of a simulated node. */

/* Fails the test if a rule of tree_store.h does not hold, unless a node has lied. */
static void tree_writer_rule(const struct tree_writer *w, bool holds, const char *what)
{
    struct sim *sim = w->disk->node->sim;

    if (!holds && !sim_has_lied(sim))
        sim_violated(sim, "tree rules", "node %u, %s: %s", w->disk->node->rank, w->path, what);
}

/* From now on the writer can only be closed. Returns -1. */
static int tree_writer_fail(struct tree_writer *w, const struct error *e)
{
    w->why = *e;
    w->stage = WRITER_FAILED;
    return -1;
}

static int write_open(void *context, const struct tree_write_options *o, struct tree_writer **out,
                      struct error *e)
{
    struct tree_disk *disk = context;
    struct tree_writer *w = disk->writers;

    while (w != NULL && strcmp(w->path, o->path) != 0)
        w = w->next;
    if (tree_disk_check(disk, SIM_TREE_WRITE_OPEN, NULL, o->path, e) != 0)
        return -1;
    if (w != NULL)
        return error_set(e, ERROR_BUSY, "%s: another copy writes there", o->path);
    w = sim_alloc(sizeof *w);
    *w = (struct tree_writer){.next = disk->writers,
                              .disk = disk,
                              .path = tree_join(o->path, ""),
                              .patterns = o->patterns,
                              .into = o->into,
                              .delete = o->delete,
                              .checksum = o->checksum,
                              .as_it_comes = o->as_it_comes,
                              .look_only = o->look_only};
    w->pattern = sim_alloc(o->patterns * sizeof *w->pattern);
    for (uint32_t i = 0; i < o->patterns; i++)
        w->pattern[i] = tree_join(o->pattern[i], "");
    disk->writers = w;
    disk->writers_open++;
    *out = w;
    return 0;
}

static int write_document(struct tree_writer *w, enum tree_document which, const uint8_t *bytes,
                          size_t length, struct error *e)
{
    tree_writer_rule(w, w->stage == (which == TREE_MANIFEST ? WRITER_OPEN : WRITER_COMPARED),
                     "write_document() at the wrong time");
    if (tree_disk_check(w->disk, SIM_TREE_DOCUMENT, NULL, w->path, e) != 0)
        return tree_writer_fail(w, e);
    tree_bytes_add(&w->document[which], bytes, length);
    return 0;
}

/* --- comparing --- */

/* What the target has at the place of an entry; NULL: nothing. */
static const struct tree_item *tree_writer_present(const struct tree_writer *w,
                                                   const struct sim_entry *entry)
{
    char *path = tree_join(w->path, entry->path);
    const struct tree_item *item = sim_tree_find(&w->disk->tree, path);

    free(path);
    return item;
}

static bool is_needed(const struct tree_writer *w, const struct sim_entry *entry,
                      const struct tree_item *item)
{
    if (entry->kind != SIM_TREE_FILE)
        return false;
    if (item == NULL || item->kind != SIM_TREE_FILE || item->content->size != entry->size)
        return true;
    return w->checksum ? item->content->hash != entry->hash : item->modified != entry->modified;
}

static bool is_equal(const struct sim_entry *entry, const struct tree_item *item)
{
    return item->kind == entry->kind && item->modified == entry->modified &&
           (entry->kind != SIM_TREE_LINK || strcmp(item->link, entry->link) == 0);
}

static void count_entry(struct tree_writer *w, const struct sim_entry *entry, bool needed,
                        const struct tree_item *item)
{
    struct tree_report *r = &w->report;

    r->files += entry->kind == SIM_TREE_FILE;
    r->folders += entry->kind == SIM_TREE_FOLDER;
    r->links += entry->kind == SIM_TREE_LINK;
    bool same = item != NULL && !needed && is_equal(entry, item);
    r->added += item == NULL;
    r->changed += item != NULL && !same;
    r->unchanged += same;
    if (!same && r->first[0] == '\0')
        (void)snprintf(r->first, sizeof r->first, "%s", entry->path[0] != '\0' ? entry->path : ".");
}

static struct staged_file *find_file(struct staged_file *file, const struct sim_entry *entry)
{
    while (file != NULL && (strcmp(file->path, entry->path) != 0 || file->size != entry->size ||
                            file->modified != entry->modified))
        file = file->next;
    return file;
}

static struct staged_file *new_file(const struct sim_entry *entry)
{
    struct staged_file *file = sim_alloc(sizeof *file);

    file->path = tree_join(entry->path, "");
    file->size = entry->size;
    file->modified = entry->modified;
    file->bytes = sim_alloc(entry->size);
    return file;
}

/* What an interrupted copy has left of a file; otherwise an empty file. A writer that only looks keeps files of its
 * own. */
static struct staged_file *file_of(struct tree_writer *w, const struct sim_entry *entry)
{
    struct staged *staged = tree_disk_find_staged(w->disk, w->path);
    struct staged_file *kept = staged != NULL ? find_file(staged->file, entry) : NULL, *file;

    if (kept != NULL && !w->look_only)
        return kept;
    file = new_file(entry);
    for (size_t i = 0; kept != NULL && i < kept->have.count; i++)
        sim_spans_add(&file->have, kept->have.span[i].begin, kept->have.span[i].end);
    if (w->look_only) {
        file->next = w->only_looking;
        w->only_looking = file;
        return file;
    }
    if (staged == NULL) {
        staged = sim_alloc(sizeof *staged);
        *staged = (struct staged){.next = w->disk->staged, .target = tree_join(w->path, "")};
        w->disk->staged = staged;
    }
    file->next = staged->file;
    staged->file = file;
    return file;
}

static int compare(struct tree_writer *w, struct tree_progress *progress, const uint8_t **wanted,
                   size_t *length, struct error *e)
{
    tree_writer_rule(w, w->stage == WRITER_OPEN, "compare() at the wrong time");
    if (tree_disk_check(w->disk, SIM_TREE_COMPARE, progress, w->path, e) != 0 ||
        sim_manifest_read(&w->manifest, &w->document[TREE_MANIFEST], e) != 0) {
        tree_writer_rule(w, e->code != ERROR_PROTOCOL, e->text);
        return tree_writer_fail(w, e);
    }
    tree_writer_rule(w, w->manifest.has_digests || !w->checksum,
                     "checksums are compared without digests");
    w->entry = sim_alloc(w->manifest.entries * sizeof *w->entry);
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        const struct sim_entry *entry = &w->manifest.entry[i];
        const struct tree_item *item = tree_writer_present(w, entry);
        bool needed = is_needed(w, entry, item);
        count_entry(w, entry, needed, item);
        w->entry[i].needed = needed;
        if (!needed)
            continue;
        w->entry[i].file = file_of(w, entry);
        if (entry->size >= SIM_TREE_LARGE && item != NULL && item->kind == SIM_TREE_FILE &&
            w->wanted.length + 4 <= TREE_WANTED_MOST)
            tree_bytes_add(&w->wanted, &i, sizeof i);
    }
    w->report.bytes = w->manifest.stream;
    progress->files = w->manifest.entries;
    *wanted = w->wanted.bytes;
    *length = w->wanted.length;
    w->stage = WRITER_COMPARED;
    return 0;
}

/* --- what is missing --- */

static void take_from_older(struct tree_writer *w, uint32_t index, const uint64_t *hash,
                            uint64_t pieces)
{
    struct staged_file *file = w->entry[index].file;
    const struct tree_item *old = tree_writer_present(w, &w->manifest.entry[index]);

    if (!w->entry[index].needed || old == NULL || old->kind != SIM_TREE_FILE)
        return;
    for (uint64_t p = 0; p < pieces; p++) {
        uint64_t at = p * SIM_TREE_PIECE, end = at + SIM_TREE_PIECE;
        end = end < file->size ? end : file->size;
        if (at >= end || end > old->content->size ||
            tree_hash(old->content->bytes + at, end - at) != hash[p])
            continue;
        memcpy(file->bytes + at, old->content->bytes + at, end - at);
        sim_spans_add(&file->have, at, end);
    }
}

static int read_digests(struct tree_writer *w, struct error *e)
{
    const struct tree_bytes *d = &w->document[TREE_DIGESTS];
    uint64_t check, head[2];
    size_t at = 0;

    if (d->length == 0)
        return 0;
    if (d->length < sizeof check)
        return error_set(e, ERROR_PROTOCOL, "digests of %zu bytes", d->length);
    size_t end = d->length - sizeof check;
    memcpy(&check, d->bytes + end, sizeof check);
    if (check != tree_hash(d->bytes, end))
        return error_set(e, ERROR_PROTOCOL, "the digests are damaged");
    while (end - at >= sizeof head) {
        memcpy(head, d->bytes + at, sizeof head);
        at += sizeof head;
        if (head[0] >= w->manifest.entries || head[1] > (end - at) / 8)
            return error_set(e, ERROR_PROTOCOL, "wrong digests");
        uint64_t *hash = sim_alloc(head[1] * 8);
        if (head[1] > 0)
            memcpy(hash, d->bytes + at, head[1] * 8);
        take_from_older(w, (uint32_t)head[0], hash, head[1]);
        free(hash);
        at += head[1] * 8;
    }
    return 0;
}

static int missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct interval **span, uint32_t *spans, struct error *e)
{
    tree_writer_rule(w, w->stage == WRITER_COMPARED, "missing() at the wrong time");
    tree_writer_rule(w, most > 0, "missing() of no spans");
    if (tree_disk_check(w->disk, SIM_TREE_MISSING, progress, w->path, e) != 0 ||
        read_digests(w, e) != 0) {
        tree_writer_rule(w, e->code != ERROR_PROTOCOL, e->text);
        return tree_writer_fail(w, e);
    }
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        const struct sim_entry *entry = &w->manifest.entry[i];
        if (w->entry[i].needed)
            sim_spans_lack(&w->entry[i].file->have, 0, entry->size, entry->begin, &w->missing);
    }
    w->report.bytes_missing = sim_spans_bytes(&w->missing);
    w->report.removed = tree_writer_count_removed(w);
    uint64_t room = w->disk->node->disk.full ? 0 : w->disk->room;
    if (!w->look_only && w->report.bytes_missing > room)
        return error_set(e, ERROR_IO, "%s: No space left on device", w->path),
               tree_writer_fail(w, e);
    for (size_t i = 0; i < w->missing.count; i++)
        sim_spans_add(&w->spans, w->missing.span[i].begin, w->missing.span[i].end);
    sim_spans_join(&w->spans, most);
    *span = w->spans.span;
    *spans = (uint32_t)w->spans.count;
    w->stage = WRITER_KNOWS;
    if (w->as_it_comes && !w->look_only)
        tree_writer_install_folders(w);
    return 0;
}

/* --- what arrives --- */

/* Takes the part of the bytes that belongs to a file and is missing there. */
static uint64_t fill(struct tree_writer *w, uint32_t index, const struct interval *arrived,
                     const uint8_t *bytes)
{
    const struct sim_entry *entry = &w->manifest.entry[index];
    struct staged_file *file = w->entry[index].file;
    uint64_t begin = arrived->begin > entry->begin ? arrived->begin - entry->begin : 0, taken;
    uint64_t end = arrived->end - entry->begin;
    struct sim_spans lacks = {0};

    end = end < entry->size ? end : entry->size;
    sim_spans_lack(&file->have, begin, end, 0, &lacks);
    taken = sim_spans_bytes(&lacks);
    for (size_t i = 0; i < lacks.count; i++) {
        const struct interval *s = &lacks.span[i];
        memcpy(file->bytes + s->begin, bytes + (entry->begin + s->begin - arrived->begin),
               s->end - s->begin);
    }
    tree_writer_rule(w,
                     memcmp(file->bytes + begin, bytes + (entry->begin + begin - arrived->begin),
                            end - begin) == 0,
                     "bytes that are here already arrive with other values");
    sim_spans_add(&file->have, begin, end);
    sim_spans_free(&lacks);
    if (taken > 0 && w->as_it_comes && staged_file_is_complete(file))
        tree_writer_install_file(w, entry, file);
    return taken;
}

static int write_stream(struct tree_writer *w, uint64_t offset, const uint8_t *bytes, size_t length,
                        struct error *e)
{
    const struct interval arrived = {offset, offset + length};
    struct sim_spans now = {0};
    uint64_t taken = 0;

    if (w->stage == WRITER_FAILED) /* others may have been under way */
        return *e = w->why, -1;
    tree_writer_rule(w, w->stage == WRITER_KNOWS, "write() at the wrong time");
    tree_writer_rule(w, !w->look_only, "write() of a writer that only looks");
    tree_writer_rule(w, offset <= w->manifest.stream && length <= w->manifest.stream - offset,
                     "write() behind the stream");
    for (size_t i = 0; i < w->missing.count; i++) { /* room is needed for what is missing */
        const struct interval *m = &w->missing.span[i];
        sim_spans_add(&now, m->begin > offset ? m->begin : offset,
                      m->end < arrived.end ? m->end : arrived.end);
    }
    uint64_t most = sim_spans_bytes(&now);
    sim_spans_free(&now);
    if (tree_disk_check(w->disk, SIM_TREE_WRITE, NULL, w->path, e) != 0)
        return tree_writer_fail(w, e);
    if (most > 0 && (w->disk->node->disk.full || most > w->disk->room))
        return error_set(e, ERROR_IO, "%s: No space left on device", w->path),
               tree_writer_fail(w, e);
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        const struct sim_entry *entry = &w->manifest.entry[i];
        if (w->entry[i].needed && entry->begin < arrived.end &&
            entry->begin + entry->size > arrived.begin)
            taken += fill(w, i, &arrived, bytes);
    }
    if (w->disk->room != UINT64_MAX)
        w->disk->room -= taken < w->disk->room ? taken : w->disk->room;
    w->disk->bytes_written += taken;
    w->disk->bytes_ignored += length - taken;
    return 0;
}

static void report(const struct tree_writer *w, struct tree_report *out)
{
    *out = w->report;
}

static void free_looked(struct tree_writer *w)
{
    while (w->only_looking != NULL) {
        struct staged_file *file = w->only_looking;
        w->only_looking = file->next;
        sim_spans_free(&file->have);
        free(file->bytes);
        free(file->path);
        free(file);
    }
}

static uint64_t granularity(const struct tree_writer *w)
{
    return 1;
}

/* No simulated nodes share a disk. */
static int check_places(struct tree_writer *w, const uint64_t *place, uint32_t count,
                        struct error *e)
{
    return 0;
}

static size_t going(const struct tree_writer *w, const uint8_t **paths)
{
    *paths = NULL;
    return 0;
}

/* No simulated node says that a file has changed. */
static int leave(struct tree_writer *w, const uint64_t *index, uint32_t count, struct error *e)
{
    if (count > 0)
        sim_violated(w->disk->node->sim, "tree rules", "node %u: files that have changed",
                     w->disk->node->rank);
    return 0;
}

static void write_close(struct tree_writer *w)
{
    struct tree_writer **at = &w->disk->writers;

    while (*at != NULL && *at != w)
        at = &(*at)->next;
    if (*at != NULL)
        *at = w->next;
    w->disk->writers_open--;
    if (!w->look_only)
        tree_disk_tidy_staged(w->disk, w->path, false);
    free_looked(w);
    sim_manifest_free(&w->manifest);
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        free(w->document[i].bytes);
    free(w->wanted.bytes);
    sim_spans_free(&w->missing);
    sim_spans_free(&w->spans);
    free(w->entry);
    for (uint32_t i = 0; i < w->patterns; i++)
        free(w->pattern[i]);
    free(w->pattern);
    free(w->path);
    free(w);
}

const struct tree_store tree_writing = {
    .write_open = write_open,
    .write_document = write_document,
    .compare = compare,
    .missing = missing,
    .write = write_stream,
    .leave = leave,
    .going = going,
    .check_places = check_places,
    .granularity = granularity,
    .finish = tree_writer_finish,
    .report = report,
    .write_close = write_close,
};
