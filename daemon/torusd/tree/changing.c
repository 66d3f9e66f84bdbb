#include "daemon/torusd/tree/changing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/tree/tree_files.h"

#define BLOCK (1u << 20) /* bytes of a file that are read at once; no note has more than LONGEST */
#define LONGEST (64u << 20)
#define RECENT 64u
#define SAMPLES 4u /* parts of a file */
#define SAMPLE_BYTES 4096u

void changing_init(struct changing *c, int file, bool skip)
{
    *c = (struct changing){.skip = skip, .file = file, .incomplete = file < 0};
    (void)pthread_mutex_init(&c->lock, NULL);
}

void changing_free(struct changing *c)
{
    file_close(&c->file);
    free(c->index);
    (void)pthread_mutex_destroy(&c->lock);
}

/* --- notes --- */

static void write_notes(struct changing *c)
{
    const size_t length = c->used * sizeof *c->note;

    if (!c->incomplete && file_write(c->file, c->note, length, c->written) != 0)
        c->incomplete = true;
    c->written += length;
    c->used = 0;
}

static void add_note(struct changing *c, struct read_note note)
{
    (void)pthread_mutex_lock(&c->lock);
    c->note[c->used++] = note;
    if (c->used == CHANGING_NOTES)
        write_notes(c);
    (void)pthread_mutex_unlock(&c->lock);
}

void changing_note(struct changing *c, uint64_t begin, const uint8_t *bytes, size_t length)
{
    if (length > LONGEST)
        c->incomplete = true;
    add_note(c, (struct read_note){begin, length, digest_bytes(bytes, length, 0)});
}

/* Computes the digest of some of the first `size` bytes of a file: of all, if they are few; otherwise of the first, the
 * last, and some between. Returns 0, or -1 with errno. */
static int sample(int file, uint64_t size, uint64_t *digest)
{
    uint8_t block[SAMPLES * SAMPLE_BYTES];
    size_t used = 0;

    if (size <= sizeof block) {
        used = (size_t)size;
        if (file_read(file, block, used, 0) != 0)
            return -1;
    }
    for (uint64_t i = 0; i < SAMPLES && size > sizeof block; i++, used += SAMPLE_BYTES)
        if (file_read(file, block + used, SAMPLE_BYTES,
                      (size - SAMPLE_BYTES) / (SAMPLES - 1) * i +
                          (i == SAMPLES - 1 ? (size - SAMPLE_BYTES) % (SAMPLES - 1) : 0)) != 0)
            return -1;
    *digest = digest_bytes(block, used, 0);
    return 0;
}

void changing_note_sample(struct changing *c, int file, const struct entry *entry)
{
    struct timespec now;
    uint64_t digest;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (c == NULL || entry->has_digest || entry->bytes == 0 ||
        now.tv_sec - entry->modified.tv_sec > CHANGING_RECENT ||
        sample(file, entry->size, &digest) != 0)
        return;
    add_note(c, (struct read_note){NOTE_SAMPLE | entry->index, entry->size, digest});
}

/* --- files that are left out --- */

/* Whether a file is among the last that were left out: large ones are read in many parts. */
static bool is_known(const struct changing *c, uint64_t index)
{
    for (uint32_t i = c->count > RECENT ? c->count - RECENT : 0; i < c->count; i++)
        if (c->index[i] == index && index != UINT64_MAX)
            return true;
    return false;
}

int changing_leave_out(struct changing *c, uint64_t index, const char *above, const char *below)
{
    int result = CHANGING_LEFT_OUT;

    if (c == NULL || !c->skip)
        return -1;
    (void)pthread_mutex_lock(&c->lock);
    const bool known = is_known(c, index);
    if (c->first.text[0] == '\0')
        (void)show_path(&c->first, above, below);
    if (!known && GROW(c->index, c->count, c->room) == 0)
        c->index[c->count++] = index;
    else if (!known)
        result = -1;
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void changing_finish(struct changing *c)
{
    uint32_t kept = 0;

    if (c->count > 0)
        qsort(c->index, c->count, sizeof *c->index, compare_numbers);
    for (uint32_t i = 0; i < c->count; i++) /* files that nobody can name differ, though */
        if (kept == 0 || c->index[i] == UINT64_MAX || c->index[i] != c->index[kept - 1])
            c->index[kept++] = c->index[i];
    c->count = kept;
}

/* --- files that have grown --- */

struct checking {
    const struct changing_sources *sources;
    const struct entry *entry;
    struct file_data data;
    int file;
    uint8_t *block;
};

static int unreadable(struct error *e)
{
    if (errno == ECANCELED)
        return error_set(e, ERROR_CANCELLED, "the copy was stopped");
    return error_set(e, ERROR_IO, "a file that has grown cannot be read: %s", strerror(errno));
}

/* Reads a piece of the file's data. Returns 1; 0: it is not there any more; -1 with *e. */
static int read_piece(struct checking *k, uint64_t place, size_t length, struct error *e)
{
    if (length > LONGEST || place > k->entry->bytes || length > k->entry->bytes - place)
        return error_set(e, ERROR_PROTOCOL, "a note about the tree does not belong to it");
    if (length > BLOCK) {
        uint8_t *more = realloc(k->block, length);
        if (more == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory to check files");
        k->block = more;
    }
    if (file_data_read(k->file, &k->data, place, k->block, length) == 0)
        return 1;
    return errno == 0 ? 0
                      : error_set(e, ERROR_IO, "a file that has grown cannot be read: %s",
                                  strerror(errno));
}

static int check_notes(struct checking *k, const struct read_note *note, size_t notes,
                       struct error *e)
{
    int result = 1;

    for (size_t i = 0; i < notes && result == 1; i++) {
        result = read_piece(k, note[i].begin - k->entry->begin, (size_t)note[i].length, e);
        if (result == 1)
            result = digest_bytes(k->block, (size_t)note[i].length, 0) == note[i].digest;
    }
    return result;
}

/* Compares the file with the chunks that were told about it. */
static int check_chunks(struct checking *k, struct digests_cursor *digests, struct error *e)
{
    const struct chunk_digests how = digests_how(digests);
    uint8_t digest[FILE_DIGEST];
    uint64_t place = 0;
    struct chunk chunk;
    int result = 1, found = 1;

    while (result == 1 && (found = digests_next_chunk(digests, &chunk, e)) == 1) {
        result = read_piece(k, place, chunk.length, e);
        if (result != 1)
            break;
        chunk_digest(&how, k->block, chunk.length, digest);
        result = memcmp(digest, chunk.digest, sizeof digest) == 0;
        place += chunk.length;
    }
    return found < 0 ? -1 : result;
}

/* Whether the file still has the bytes of its sample. Without a sample its old contents are unknown. */
static int check_sample(struct checking *k, const struct read_note *noted, struct error *e)
{
    uint64_t digest;

    if (noted == NULL)
        return k->entry->has_digest;
    if (sample(k->file, k->entry->size, &digest) == 0)
        return digest == noted->digest;
    return errno == 0 ? 0 : unreadable(e);
}

static int check_whole(struct checking *k, struct error *e)
{
    uint8_t digest[FILE_DIGEST];

    if (!k->entry->has_digest)
        return 1;
    if (file_data_digest(k->file, &k->data, k->sources->progress, digest) != 0)
        return errno == 0 ? 0 : unreadable(e);
    return memcmp(digest, k->entry->digest, sizeof digest) == 0;
}

/* Looks at one file. `digests` is where the chunks of this file begin; NULL: it has none. */
static int check_one(struct checking *k, const struct read_note *sample_note,
                     const struct read_note *note, size_t notes, struct digests_cursor *digests,
                     struct error *e)
{
    const struct changing_sources *s = k->sources;

    k->file = s->open(s->context, k->entry, e);
    if (k->file < 0)
        return k->file == CHANGING_LEFT_OUT ? 0 : -1;
    k->data = file_data_of(k->entry);
    int result = check_sample(k, sample_note, e);
    if (result == 1)
        result = check_notes(k, note, notes, e);
    if (result == 1 && digests != NULL)
        result = check_chunks(k, digests, e);
    if (result == 1)
        result = check_whole(k, e);
    (void)close(k->file);
    if (result == 0)
        result = s->differs(s->context, k->entry, e);
    else if (result == 1)
        result = 0;
    return result == CHANGING_LEFT_OUT ? 0 : result;
}

static int compare_notes(const void *a, const void *b)
{
    const struct read_note *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Whether a note is about one of these files. */
static bool is_about(const struct read_note *note, const struct grown *grown, size_t count)
{
    const bool samples = (note->begin & NOTE_SAMPLE) != 0;
    const uint64_t number = note->begin & ~NOTE_SAMPLE;
    size_t low = 0, high = count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if ((samples ? grown[middle].index : grown[middle].begin) <= number)
            low = middle;
        else
            high = middle;
    }
    return samples ? number == grown[low].index
                   : number >= grown[low].begin && number < grown[low].end;
}

/* Reads the notes about these files, by their place. Returns 0 with *list, which the caller frees, or -1 with *e. */
static int collect(struct changing *c, const struct grown *grown, size_t count,
                   struct read_note **list, size_t *notes, struct error *e)
{
    size_t room = 0;

    *list = NULL;
    *notes = 0;
    for (uint64_t at = 0; at < c->written; at += c->used * sizeof *c->note) {
        const uint64_t left = (c->written - at) / sizeof *c->note;
        c->used = left < CHANGING_NOTES ? (unsigned)left : CHANGING_NOTES;
        if (file_read(c->file, c->note, c->used * sizeof *c->note, at) != 0)
            return tree_files_temporary_failed(e);
        for (unsigned i = 0; i < c->used; i++) {
            if (!is_about(&c->note[i], grown, count))
                continue;
            if (GROW(*list, *notes, room) != 0)
                return error_set(e, ERROR_MEMORY, "out of memory to check files");
            (*list)[(*notes)++] = c->note[i];
        }
    }
    c->used = 0;
    if (*notes > 0)
        qsort(*list, *notes, sizeof **list, compare_notes);
    return 0;
}

static int check_all(struct checking *k, const struct grown *grown, size_t count,
                     const struct read_note *note, size_t notes, struct error *e)
{
    const struct changing_sources *s = k->sources;
    struct manifest_cursor *entries = manifest_cursor_new(s->manifest);
    struct digests_cursor *digests =
        s->digests >= 0 ? digests_cursor_new(s->digests, s->digests_size) : NULL;
    uint64_t chunks_of = UINT64_MAX;
    struct entry entry;
    int result = entries == NULL || (s->digests >= 0 && digests == NULL)
                     ? error_set(e, ERROR_MEMORY, "out of memory to check files")
                     : 0;
    bool more = digests != NULL && result == 0;
    size_t at = 0, sampled = notes; /* samples are behind all others */

    while (sampled > 0 && (note[sampled - 1].begin & NOTE_SAMPLE) != 0)
        sampled--;
    const size_t end = sampled;
    for (size_t i = 0; i < count && result == 0; i++) {
        const size_t first = at;
        while (at < end && note[at].begin < grown[i].end)
            at++;
        while (sampled < notes && (note[sampled].begin & ~NOTE_SAMPLE) < grown[i].index)
            sampled++;
        const bool has_sample =
            sampled < notes && (note[sampled].begin & ~NOTE_SAMPLE) == grown[i].index;
        while (more && result == 0 && (chunks_of == UINT64_MAX || chunks_of < grown[i].index)) {
            const int found = digests_next_file(digests, &chunks_of, e);
            result = found < 0 ? -1 : 0;
            more = found == 1;
        }
        if (result == 0 && (manifest_seek_index(entries, grown[i].index, e) != 0 ||
                            manifest_next(entries, &entry, e) != 1))
            result = -1;
        k->entry = &entry;
        if (result == 0)
            result = check_one(k, has_sample ? &note[sampled] : NULL, note + first, at - first,
                               more && chunks_of == grown[i].index ? digests : NULL, e);
    }
    manifest_cursor_free(entries);
    digests_cursor_free(digests);
    return result;
}

int changing_check_grown(struct changing *c, const struct grown *grown, size_t count,
                         const struct changing_sources *sources, struct error *e)
{
    struct checking k = {.sources = sources};
    struct read_note *list = NULL;
    size_t notes = 0;
    int result = 0;

    if (count == 0)
        return 0;
    write_notes(c);
    if (c->incomplete)
        return error_set(e, ERROR_IO,
                         "files have grown, and what was read of them could not be noted in the "
                         "state folder: copy again when it has room");
    k.block = malloc(BLOCK);
    if (k.block == NULL)
        result = error_set(e, ERROR_MEMORY, "out of memory to check files");
    if (result == 0)
        result = collect(c, grown, count, &list, &notes, e);
    if (result == 0)
        result = check_all(&k, grown, count, list, notes, e);
    free(list);
    free(k.block);
    return result;
}
