#include "daemon/tree/reader_digests.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct digesting {
    const struct sources *sources;
    struct digests_maker *maker;
    struct tree_progress *progress;
    struct error *e; /* what the maker says */
};

static int on_chunk(void *context, uint64_t place, const struct chunk *chunk)
{
    struct digesting *d = context;

    (void)place;
    if (digests_maker_chunk(d->maker, chunk, d->e) == 0)
        return 0;
    errno = EIO;
    return -1;
}

static int add_file(struct digesting *d, const struct entry *entry, struct error *e)
{
    struct file_data data = file_data_of(entry);
    struct error of_maker = {0};
    int file = source_open_file(d->sources, entry, e);

    if (file < 0)
        return -1;
    d->e = &of_maker;
    int result = digests_maker_file(d->maker, entry->index, e);
    if (result == 0 && chunks_of_file(file, &data, d->progress, on_chunk, d) != 0) {
        result = -1;
        if (of_maker.code != ERROR_NONE)
            *e = of_maker;
        else
            (void)source_failed(d->sources, entry, e);
    }
    (void)close(file);
    /* What was read while the file was being changed is worth nothing. */
    return result == 0 ? source_check(d->sources, entry, e) : -1;
}

/* A bit for each entry. */
static uint8_t *collect(const struct wanted_answers *answers, uint64_t entries)
{
    uint8_t *bits = calloc(1, (size_t)(entries / 8 + 1));
    uint64_t index;

    for (uint32_t i = 0; i < answers->count && bits != NULL; i++) {
        struct wanted_numbers n = {.bytes = answers->bytes[i], .left = answers->length[i]};
        while (wanted_next(&n, &index) && index < entries)
            bits[index / 8] |= (uint8_t)(1u << index % 8);
    }
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
                        const struct wanted_answers *answers, struct tree_progress *progress,
                        int file, uint64_t *size, struct error *e)
{
    struct digesting d = {.sources = sources, .progress = progress};
    uint8_t *bits = collect(answers, manifest->entries);
    struct manifest_cursor *c = manifest_cursor_new(manifest);
    int result = -1;

    d.maker = digests_maker_new(file, e);
    if (bits == NULL || c == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for digests of files");
    else if (d.maker != NULL)
        result = add_files(&d, manifest, bits, c, e);
    if (result == 0)
        result = digests_maker_finish(d.maker, size, e);
    digests_maker_free(d.maker);
    manifest_cursor_free(c);
    free(bits);
    return result;
}
