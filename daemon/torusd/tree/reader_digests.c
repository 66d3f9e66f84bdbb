#include "daemon/torusd/tree/reader_digests.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

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
    size_t sizes, next;
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
    /* What was read while the file was being changed is worth nothing. If it has only grown, the end of the copy tells. */
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
    if (size == 0)
        return;
    if (d->sizes % 64 == 0) {
        struct wanted_size *more = reallocarray(d->size, d->sizes + 64, sizeof *more);
        if (more == NULL)
            return;
        d->size = more;
    }
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

int reader_digests_make(const struct manifest *manifest, const struct sources *sources,
                        const struct wanted_answers *answers, bool fast,
                        struct tree_progress *progress, int file, uint64_t *size, struct error *e)
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
