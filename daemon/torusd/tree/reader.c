#include "daemon/torusd/tree/tree_files.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/sources.h"
#include "daemon/torusd/tree/stream.h"

/* --- digests of chunks --- */

/* Which files are wanted: answers of compare(), which may contain anything. Entries that are not files are ignored. */
struct wanted_answers {
    const uint8_t *const *bytes;
    const size_t *length;
    uint32_t count;
    bool sizes; /* tree_read_options.sizes */
};

struct wanted_size {
    uint64_t index, size;
};

struct digesting {
    const struct sources *sources;
    struct digests_maker *maker;
    struct chunk_digests how;
    struct tree_progress *progress;
    struct error *e;          /* what the maker says */
    uint64_t told;            /* bytes of the file, in chunks */
    struct wanted_size *size; /* where chunks of files have to end, by number and size */
    size_t sizes, sizes_room, next;
};

static int on_chunk(void *context, uint64_t place, const struct chunk *chunk)
{
    struct digesting *d = context;

    d->told = place + chunk->length;
    if (digests_maker_chunk(d->maker, chunk, d->e) == 0)
        return 0;
    errno = EIO;
    return -1;
}

/* A file has changed halfway, and is left out: tells chunks that no file has for the rest. */
static int fill_up(struct digesting *d, const struct entry *entry, struct error *e)
{
    struct chunk none = {0};

    for (; d->told < entry->bytes; d->told += none.length) {
        const uint64_t left = entry->bytes - d->told;
        none.length = left < CHUNK_MOST ? (uint32_t)left : CHUNK_MOST;
        if (digests_maker_chunk(d->maker, &none, e) != 0)
            return -1;
    }
    return 0;
}

static int add_chunks(struct digesting *d, const struct entry *entry, int file, struct error *e)
{
    struct file_data data = file_data_of(entry);
    struct error of_maker = {0};

    d->e = &of_maker;
    d->told = 0;
    if (digests_maker_file(d->maker, entry->index, e) != 0)
        return -1;
    while (d->next < d->sizes && d->size[d->next].index < entry->index)
        d->next++;
    int result = 0;
    for (; d->next < d->sizes && d->size[d->next].index == entry->index && result == 0; d->next++)
        if (d->size[d->next].size > d->told && d->size[d->next].size < entry->bytes)
            result = chunks_of_range(file, &data, &d->how, d->told, d->size[d->next].size,
                                     d->progress, on_chunk, d);
    if (result == 0)
        result =
            chunks_of_range(file, &data, &d->how, d->told, entry->bytes, d->progress, on_chunk, d);
    if (result == 0)
        return 0;
    if (of_maker.code != ERROR_NONE)
        return *e = of_maker, -1;
    return source_failed(d->sources, entry, e) == CHANGING_LEFT_OUT ? fill_up(d, entry, e) : -1;
}

static int add_file(struct digesting *d, const struct entry *entry, struct error *e)
{
    int file = source_open_file(d->sources, entry, e);
    bool grown;

    if (file < 0)
        return file == CHANGING_LEFT_OUT ? 0 : -1;
    int result = add_chunks(d, entry, file, e);
    (void)close(file);
    /* What was read while the file was being changed is useless. Whether it has only grown is found at the end of the
     * copy. */
    return result == 0 ? source_check(d->sources, entry, &grown, e) : -1;
}

static int compare_sizes(const void *a, const void *b)
{
    const struct wanted_size *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Without memory, a chunk does not end there, and a file that has grown only differs. */
static void add_size(struct digesting *d, uint64_t index, uint64_t size)
{
    if (size != 0 && GROW(d->size, d->sizes, d->sizes_room) == 0)
        d->size[d->sizes++] = (struct wanted_size){index, size};
}

/* A bit for each entry. */
static uint8_t *collect(struct digesting *d, const struct wanted_answers *answers, uint64_t entries)
{
    uint8_t *bits = calloc(1, (size_t)(entries / 8 + 1));
    uint64_t index, size;

    for (uint32_t i = 0; i < answers->count && bits != NULL; i++) {
        struct wanted_numbers n = {
            .bytes = answers->bytes[i], .left = answers->length[i], .sizes = answers->sizes};
        while (wanted_next(&n, &index, &size) && index < entries) {
            bits[index / 8] |= (uint8_t)(1u << index % 8);
            add_size(d, index, size);
        }
    }
    if (d->sizes > 0)
        qsort(d->size, d->sizes, sizeof *d->size, compare_sizes);
    return bits;
}

static int add_files(struct digesting *d, const struct manifest *manifest, const uint8_t *bits,
                     struct manifest_cursor *c, struct error *e)
{
    struct entry entry;

    for (uint64_t i = 0; i < manifest->entries; i++) {
        if ((bits[i / 8] >> i % 8 & 1) == 0)
            continue;
        if (manifest_seek_index(c, i, e) != 0 || manifest_next(c, &entry, e) < 0)
            return -1;
        if (entry.kind == ENTRY_FILE && entry.bytes > 0 && add_file(d, &entry, e) != 0)
            return -1;
    }
    return 0;
}

/* Cuts these files into chunks, and writes the document to an open, empty file. Returns 0 with its size, or -1 with
 * *e. */
static int reader_digests_make(const struct manifest *manifest, const struct sources *sources,
                               const struct wanted_answers *answers, bool fast,
                               struct tree_progress *progress, int file, uint64_t *size,
                               struct error *e)
{
    struct digesting d = {.sources = sources, .progress = progress};
    uint8_t *bits = collect(&d, answers, manifest->entries);
    struct manifest_cursor *c = manifest_cursor_new(manifest);
    int result = -1;

    d.how.fast = fast;
    randombytes_buf(&d.how.seed, sizeof d.how.seed);
    d.maker = digests_maker_new(file, &d.how, e);
    if (bits == NULL || c == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for digests of files");
    else if (d.maker != NULL)
        result = add_files(&d, manifest, bits, c, e);
    if (result == 0)
        result = digests_maker_finish(d.maker, size, e);
    digests_maker_free(d.maker);
    manifest_cursor_free(c);
    free(bits);
    free(d.size);
    return result;
}

/* --- readers --- */

#define SECOND INT64_C(1000000000)
#define CLOCK_STEP                                                                                 \
    (SECOND / 100) /* in which file systems that store nanoseconds count time, at most */
#define WAIT_STEP (SECOND / 20)

struct tree_reader {
    struct tree_files *files;
    struct sources sources;
    int document[TREE_DOCUMENTS]; /* files, or -1 */
    uint64_t size[TREE_DOCUMENTS];
    struct manifest manifest;
    struct stream *stream;
    struct changing changing;
    bool sizes;        /* answers have sizes */
    bool fast_digests; /* tree_read_options */
    uint64_t place[TREE_PLACES_MOST];
    uint32_t places;
    struct timespec latest, latest_coarse; /* as in struct entry_builder */
    uint64_t left_out, links_out;
    struct shown_path first_left_out, first_link_out;
};

static int refuse_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory to read a tree");
}

static void on_read_close(struct tree_reader *r)
{
    stream_free(r->stream);
    sources_close(&r->sources);
    changing_free(&r->changing);
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        file_close(&r->document[i]);
    tree_files_leave(r->files);
    free(r);
}

/* --- the manifest --- */

static int make_numbers(struct tree_reader *r, struct error *e)
{
    int file = tree_files_temporary(r->files, e);

    if (file < 0)
        return -1;
    r->sources.numbers = entry_numbers_new(file);
    if (r->sources.numbers != NULL)
        return 0;
    (void)close(file);
    return refuse_memory(e);
}

/* Walks the sources with everything that the walk needs. */
static int walk_all(struct tree_reader *r, struct walk *w, const struct tree_read_options *options,
                    struct error *e)
{
    struct patterns *patterns = patterns_new(options->pattern, options->patterns, e);

    if (patterns == NULL)
        return -1;
    w->system = r->sources.system;
    w->source = r->sources.source;
    w->sources = r->sources.count;
    w->patterns = patterns;
    w->into = options->into;
    w->follow = options->copy_links ? source_follow : NULL;
    w->context = &r->sources;
    w->builder.numbers = r->sources.numbers;
    w->builder.digests = options->digests;
    w->builder.changing = &r->changing;
    w->builder.links = file_links_new(r->files);
    int result = w->builder.links != NULL ? walk(w, e) : refuse_memory(e);
    if (result == 0)
        result = entry_numbers_finish(r->sources.numbers, e);
    file_links_free(w->builder.links);
    attribute_reader_free(&w->builder.attributes);
    patterns_free(patterns);
    r->latest = w->builder.latest;
    r->latest_coarse = w->builder.latest_coarse;
    r->links_out = w->links_out;
    r->first_link_out = w->first_link_out;
    r->left_out = w->left_out;
    r->first_left_out = w->first_left_out;
    return result;
}

static int make_manifest(struct tree_reader *r, const struct tree_read_options *options,
                         struct tree_progress *progress, struct error *e)
{
    struct walk *w = calloc(1, sizeof *w);
    uint64_t stream;
    int result = -1;

    if (w == NULL)
        return refuse_memory(e);
    w->builder.progress = progress;
    w->builder.maker = manifest_maker_new(r->document[TREE_MANIFEST], e);
    if (w->builder.maker != NULL && make_numbers(r, e) == 0)
        result = walk_all(r, w, options, e);
    if (result == 0)
        result = manifest_maker_finish(w->builder.maker, &r->size[TREE_MANIFEST], &stream, e);
    manifest_maker_free(w->builder.maker);
    free(w);
    if (result == 0 && r->size[TREE_MANIFEST] > TREE_DOCUMENT_MOST)
        result =
            error_set(e, ERROR_REFUSED, "the tree has too many files for one copy: copy its parts");
    return result;
}

static int open_all(struct tree_reader *r, const struct roots *roots,
                    const struct tree_read_options *options, struct tree_progress *progress,
                    struct error *e)
{
    if (sources_open(&r->sources, roots, options, e) != 0)
        return -1;
    r->sources.changing = &r->changing;
    r->document[TREE_MANIFEST] = tree_files_temporary(r->files, e);
    if (r->document[TREE_MANIFEST] < 0 || make_manifest(r, options, progress, e) != 0 ||
        manifest_open(&r->manifest, r->document[TREE_MANIFEST], r->size[TREE_MANIFEST], e) != 0)
        return -1;
    for (uint32_t i = 0; i < r->sources.count; i++)
        r->places = location_ids_add_source(r->place, r->places, r->sources.source[i].path);
    r->stream = stream_new(&r->manifest, &r->sources);
    return r->stream != NULL ? 0 : refuse_memory(e);
}

static int on_read_open(void *context, const struct tree_read_options *options,
                        struct tree_progress *progress, struct tree_reader **reader,
                        struct error *e)
{
    struct tree_files *files = context;
    struct tree_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return refuse_memory(e);
    r->files = files;
    r->sizes = options->sizes;
    r->fast_digests = options->fast_digests;
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        r->document[i] = -1;
    const struct roots *roots = tree_files_enter(files);
    struct error of_notes; /* matters only if files grow */
    changing_init(&r->changing, tree_files_temporary(files, &of_notes), options->skip_changing);
    if (open_all(r, roots, options, progress, e) != 0) {
        on_read_close(r);
        return -1;
    }
    *reader = r;
    return 0;
}

static struct tree_facts on_facts(const struct tree_reader *r)
{
    return (struct tree_facts){.size = {r->size[TREE_MANIFEST], r->size[TREE_DIGESTS]},
                               .stream = r->manifest.stream,
                               .left_out = r->left_out,
                               .first_left_out = r->first_left_out.text,
                               .links_out = r->links_out,
                               .first_link_out = r->first_link_out.text,
                               .place = r->place,
                               .places = r->places,
                               .changed = r->changing.index,
                               .changes = r->changing.count,
                               .first_changed = r->changing.first.text};
}

/* --- times --- */

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* How long it takes until a change has another time than this one, in steps of `granularity`. */
static int64_t wait_for(struct timespec latest, int64_t granularity, int64_t now)
{
    const int64_t at = latest.tv_sec < INT64_MAX / SECOND - 10 ? nanoseconds(latest) : INT64_MAX;

    if (latest.tv_sec == 0 || at > now) /* the clock is wrong, or the file comes from elsewhere */
        return 0;
    return at - at % granularity + granularity - now;
}

static void on_settle(struct tree_reader *r, uint64_t granularity, struct tree_progress *progress)
{
    const int64_t asked = granularity < 2 * SECOND ? (int64_t)granularity : 2 * SECOND;
    const int64_t coarse = asked > SECOND ? asked : SECOND,
                  fine = asked > CLOCK_STEP ? asked : CLOCK_STEP;
    struct timespec now;

    for (;;) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        int64_t left = wait_for(r->latest_coarse, coarse, nanoseconds(now));
        const int64_t other = wait_for(r->latest, fine, nanoseconds(now));
        left = other > left ? other : left;
        if (left <= 0 || (progress != NULL && atomic_load(&progress->stop)))
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)(left < WAIT_STEP ? left : WAIT_STEP)},
                        NULL);
    }
}

/* --- the rest --- */

static int on_digest(struct tree_reader *r, const uint8_t *const *wanted, const size_t *length,
                     uint32_t answers, struct tree_progress *progress, struct error *e)
{
    const struct wanted_answers all = {wanted, length, answers, r->sizes};

    file_close(&r->document[TREE_DIGESTS]);
    r->document[TREE_DIGESTS] = tree_files_temporary(r->files, e);
    if (r->document[TREE_DIGESTS] < 0 ||
        reader_digests_make(&r->manifest, &r->sources, &all, r->fast_digests, progress,
                            r->document[TREE_DIGESTS], &r->size[TREE_DIGESTS], e) != 0)
        return -1;
    if (r->size[TREE_DIGESTS] > TREE_DOCUMENT_MOST)
        return error_set(e, ERROR_REFUSED, "too much has changed for one copy: copy parts of it");
    return 0;
}

static int on_read_document(struct tree_reader *r, enum tree_document which, uint64_t offset,
                            uint8_t *bytes, size_t length, struct error *e)
{
    if (offset > r->size[which] || length > r->size[which] - offset)
        return error_set(e, ERROR_PROTOCOL, "a document of the tree has fewer than %llu bytes",
                         (unsigned long long)offset + length);
    if (file_read(r->document[which], bytes, length, offset) == 0)
        return 0;
    return tree_files_temporary_failed(e);
}

static int on_read(struct tree_reader *r, uint64_t offset, uint8_t *bytes, size_t length,
                   struct error *e)
{
    if (offset > r->manifest.stream || length > r->manifest.stream - offset)
        return error_set(e, ERROR_PROTOCOL, "offset %llu is beyond the end of the tree",
                         (unsigned long long)offset + length - 1);
    return stream_read(r->stream, offset, bytes, length, e);
}

/* --- the end --- */

/* Files that have grown, in the order of their entries. */
struct grown_files {
    struct grown *file;
    size_t count, room;
};

static int add_grown(struct grown_files *g, const struct entry *entry, struct error *e)
{
    if (GROW(g->file, g->count, g->room) != 0)
        return refuse_memory(e);
    if (entry->bytes > 0)
        g->file[g->count++] =
            (struct grown){entry->index, entry->begin, entry->begin + entry->bytes};
    return 0;
}

static int open_grown(void *context, const struct entry *entry, struct error *e)
{
    return source_open_file(context, entry, e);
}

static int grown_differs(void *context, const struct entry *entry, struct error *e)
{
    errno = 0;
    return source_failed(context, entry, e);
}

static int check_grown(struct tree_reader *r, const struct grown_files *g,
                       struct tree_progress *progress, struct error *e)
{
    const struct changing_sources sources = {.context = &r->sources,
                                             .manifest = &r->manifest,
                                             .digests = r->document[TREE_DIGESTS],
                                             .digests_size = r->size[TREE_DIGESTS],
                                             .progress = progress,
                                             .open = open_grown,
                                             .differs = grown_differs};

    return changing_check_grown(&r->changing, g->file, g->count, &sources, e);
}

struct checking {
    struct tree_reader *r;
    struct grown_files grown;
    struct tree_progress *progress;
};

static int check_entry(void *context, const struct entry *entry, struct error *e)
{
    struct checking *k = context;
    bool grown = false;

    if (tree_stopped(k->progress, e) || source_check(&k->r->sources, entry, &grown, e) != 0 ||
        (grown && add_grown(&k->grown, entry, e) != 0))
        return -1;
    if (k->progress != NULL)
        (void)atomic_fetch_add(&k->progress->files, 1);
    return 0;
}

static int on_check(struct tree_reader *r, struct tree_progress *progress, struct error *e)
{
    struct checking k = {.r = r, .progress = progress};
    int result = manifest_each(&r->manifest, check_entry, &k, e);

    if (result == 0)
        result = check_grown(r, &k.grown, progress, e);
    free(k.grown.file);
    changing_finish(&r->changing);
    return result;
}

void tree_reader_add(struct tree_store *store)
{
    store->read_open = on_read_open;
    store->facts = on_facts;
    store->settle = on_settle;
    store->digest = on_digest;
    store->read_document = on_read_document;
    store->read = on_read;
    store->check = on_check;
    store->read_close = on_read_close;
}
