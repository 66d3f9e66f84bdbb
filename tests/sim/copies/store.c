/* A node's trees: faults, and what survives its process. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/store.h"
#include "tests/sim/internal.h"

#define STOP_SHARE 2u /* one in this many functions notices that it must stop */

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

/* Reading the trees of a simulated node. */

struct tree_reader {
    struct tree_disk *disk;
    struct tree_sources sources;
    uint64_t *begin; /* in the stream, by item */
    uint64_t stream;
    struct tree_bytes document[TREE_DOCUMENTS];
    bool failed;
    struct error why; /* it has failed */
};

static struct tree_disk *disk_of(void *context)
{
    return context;
}

void tree_sources_free(struct tree_sources *s)
{
    for (size_t i = 0; i < s->tree.count; i++)
        free(s->origin[i]);
    free(s->origin);
    free(s->first_left_out);
    sim_tree_free(&s->tree);
}

/* Adds a source to the tree; `name` is "" or what it is called there. */
static int add_source(struct tree_sources *s, const struct sim_tree *disk, const char *path,
                      const struct tree_read_options *o, struct error *e)
{
    const char *name = o->into ? strrchr(path, '/') + 1 : "";
    struct sim_tree part;

    sim_tree_below(&part, disk, path);
    if (part.count == 0 && !o->missing_ok)
        return error_set(e, ERROR_REFUSED, "%s: No such file or directory", path);
    for (size_t i = 0; i < part.count; i++) {
        char *inside = tree_join(name, part.item[i].path);
        if (tree_left_out(o->pattern, o->patterns, inside)) {
            free(inside);
            continue;
        }
        if (part.item[i].kind == SIM_TREE_SOCKET) {
            if (s->left_out++ == 0)
                s->first_left_out = tree_join(path, part.item[i].path);
        } else {
            sim_tree_put(&s->tree, inside, &part.item[i]);
        }
        free(inside);
    }
    sim_tree_free(&part);
    return 0;
}

/* The path on the disk of an item of the manifest. */
static char *origin_of(const struct tree_read_options *o, const char *path)
{
    if (!o->into)
        return tree_join(o->path[0], path);
    for (uint32_t i = 0; i < o->paths; i++) {
        const char *name = strrchr(o->path[i], '/') + 1;
        if (!tree_is_below(path, name))
            continue;
        const char *rest = path + strlen(name);
        return tree_join(o->path[i], *rest == '/' ? rest + 1 : rest);
    }
    abort();
}

int tree_sources_read(struct tree_sources *s, const struct sim_tree *disk,
                      const struct tree_read_options *o, struct error *e)
{
    *s = (struct tree_sources){0};
    for (uint32_t i = 0; i < o->paths; i++)
        if (add_source(s, disk, o->path[i], o, e) != 0) {
            s->origin = sim_alloc(s->tree.count * sizeof *s->origin);
            tree_sources_free(s);
            return -1;
        }
    s->origin = sim_alloc(s->tree.count * sizeof *s->origin);
    for (size_t i = 0; i < s->tree.count; i++)
        s->origin[i] = origin_of(o, s->tree.item[i].path);
    return 0;
}

static void rule(const struct tree_reader *r, bool holds, const char *what)
{
    if (!holds)
        sim_violated(r->disk->node->sim, "tree rules", "node %u: %s", r->disk->node->rank, what);
}

static int read_open(void *context, const struct tree_read_options *o,
                     struct tree_progress *progress, struct tree_reader **out, struct error *e)
{
    struct tree_disk *disk = disk_of(context);
    struct tree_reader *r = sim_alloc(sizeof *r);

    r->disk = disk;
    disk->fast_digests = o->fast_digests;
    rule(r, o->paths > 0 && (o->into || o->paths == 1), "several sources without `into`");
    if (tree_disk_check(disk, SIM_TREE_READ_OPEN, progress, o->path[0], e) != 0 ||
        tree_sources_read(&r->sources, &disk->tree, o, e) != 0) {
        free(r);
        return -1;
    }
    r->begin = sim_alloc(r->sources.tree.count * sizeof *r->begin);
    for (size_t i = 0; i < r->sources.tree.count; i++) {
        r->begin[i] = r->stream;
        if (r->sources.tree.item[i].kind == SIM_TREE_FILE)
            r->stream += r->sources.tree.item[i].content->size;
    }
    sim_manifest_write(&r->document[TREE_MANIFEST], &r->sources.tree, o->digests, disk->padding);
    progress->files = r->sources.tree.count;
    disk->readers++;
    *out = r;
    return 0;
}

/* Files of simulated nodes change only where the copy fails for it. */
static struct tree_facts facts(const struct tree_reader *r)
{
    const char *first = r->sources.first_left_out;

    return (struct tree_facts){
        .size = {r->document[TREE_MANIFEST].length, r->document[TREE_DIGESTS].length},
        .stream = r->stream,
        .left_out = r->sources.left_out,
        .first_left_out = first != NULL ? first : "",
        .first_link_out = "",
        .first_changed = ""};
}

static void settle(struct tree_reader *r, uint64_t granularity, struct tree_progress *progress)
{
    rule(r, !r->failed && granularity > 0, "settle() after a failure, or for no time");
}

static int failed(struct tree_reader *r, const struct error *e)
{
    r->failed = true;
    r->why = *e;
    return -1;
}

/* An answer is a list of numbers of files; answers of other nodes may be anything. */
static int digest(struct tree_reader *r, const uint8_t *const *wanted, const size_t *length,
                  uint32_t answers, struct tree_progress *progress, struct error *e)
{
    struct tree_bytes *to = &r->document[TREE_DIGESTS];
    const struct sim_tree *tree = &r->sources.tree;
    bool *is_wanted = sim_alloc(tree->count + 1);

    rule(r, !r->failed && to->length == 0, "digest() after a failure, or twice");
    if (tree_disk_check(r->disk, SIM_TREE_DIGEST, progress, "digest", e) != 0) {
        free(is_wanted);
        return failed(r, e);
    }
    for (uint32_t a = 0; a < answers; a++) {
        rule(r, length[a] <= TREE_WANTED_MOST, "an answer that is too long");
        for (size_t at = 0; at + 4 <= length[a]; at += 4) {
            uint32_t index;
            memcpy(&index, wanted[a] + at, 4);
            if (index < tree->count && tree->item[index].kind == SIM_TREE_FILE)
                is_wanted[index] = true;
        }
    }
    for (size_t i = 0; i < tree->count; i++) {
        if (!is_wanted[i])
            continue;
        const struct tree_content *content = tree->item[i].content;
        uint64_t head[2] = {i, (content->size + SIM_TREE_PIECE - 1) / SIM_TREE_PIECE};
        tree_bytes_add(to, head, sizeof head);
        for (uint64_t at = 0; at < content->size; at += SIM_TREE_PIECE) {
            uint64_t left = content->size - at;
            uint64_t hash =
                tree_hash(content->bytes + at, left < SIM_TREE_PIECE ? left : SIM_TREE_PIECE);
            tree_bytes_add(to, &hash, sizeof hash);
        }
    }
    uint64_t hash = tree_hash(to->bytes, to->length);
    tree_bytes_add(to, &hash, sizeof hash);
    free(is_wanted);
    return 0;
}

static int read_document(struct tree_reader *r, enum tree_document which, uint64_t offset,
                         uint8_t *bytes, size_t length, struct error *e)
{
    const struct tree_bytes *document = &r->document[which];

    rule(r, !r->failed, "read_document() after a failure");
    rule(r, offset <= document->length && length <= document->length - offset,
         "bytes behind the end of a document");
    if (tree_disk_check(r->disk, SIM_TREE_DOCUMENT, NULL, "document", e) != 0)
        return failed(r, e);
    if (length > 0)
        memcpy(bytes, document->bytes + offset, length);
    return 0;
}

/* Whether an item is as it was when the tree was walked. */
static int check_item(struct tree_reader *r, size_t i, struct error *e)
{
    const struct tree_item *now = sim_tree_find(&r->disk->tree, r->sources.origin[i]);
    const struct tree_item *then = &r->sources.tree.item[i];

    if (now != NULL && now->kind == then->kind && now->modified == then->modified &&
        now->content == then->content)
        return 0;
    return error_set(e, ERROR_REFUSED, "%s has changed while it was copied", r->sources.origin[i]);
}

/* The last item that begins at `offset` or before it. */
static size_t item_at(const struct tree_reader *r, uint64_t offset)
{
    size_t low = 0, high = r->sources.tree.count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (r->begin[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int read_stream(struct tree_reader *r, uint64_t offset, uint8_t *bytes, size_t length,
                       struct error *e)
{
    rule(r, offset <= r->stream && length <= r->stream - offset, "bytes behind the stream");
    if (r->failed) /* others may have been under way */
        return *e = r->why, -1;
    if (tree_disk_check(r->disk, SIM_TREE_READ, NULL, "read", e) != 0)
        return failed(r, e);
    r->disk->bytes_read += length;
    for (size_t i = item_at(r, offset); length > 0; i++) {
        const struct tree_content *content = r->sources.tree.item[i].content;
        if (content == NULL || offset >= r->begin[i] + content->size)
            continue;
        if (check_item(r, i, e) != 0)
            return failed(r, e);
        uint64_t at = offset - r->begin[i], part = content->size - at;
        part = part < length ? part : length;
        memcpy(bytes, content->bytes + at, part);
        bytes += part;
        offset += part;
        length -= part;
    }
    return 0;
}

static int check(struct tree_reader *r, struct tree_progress *progress, struct error *e)
{
    rule(r, !r->failed, "check() after a failure");
    if (tree_disk_check(r->disk, SIM_TREE_CHECK, progress, "check", e) != 0)
        return failed(r, e);
    for (size_t i = 0; i < r->sources.tree.count; i++)
        if (check_item(r, i, e) != 0)
            return failed(r, e);
    return 0;
}

static void read_close(struct tree_reader *r)
{
    r->disk->readers--;
    tree_sources_free(&r->sources);
    free(r->begin);
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        free(r->document[i].bytes);
    free(r);
}

const struct tree_store tree_reading = {
    .read_open = read_open,
    .facts = facts,
    .settle = settle,
    .digest = digest,
    .read_document = read_document,
    .read = read_stream,
    .check = check,
    .read_close = read_close,
};
