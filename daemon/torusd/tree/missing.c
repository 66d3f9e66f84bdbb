/* Pieces of new files that older versions have: they are copied here, and do not have to come from the reader. */
#include "daemon/torusd/tree/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/file_data.h"

/* Chunks of a new file that are looked for in one reading of the old version: a file of 64 GiB has about as many. */
#define CHUNKS_AT_ONCE (1u << 20)
#define BUCKETS (1u << 16)
#define NONE UINT32_MAX
#define MISSES_MOST 64u
#define FEW 32u /* at most this share of all chunks is sent without looking further */

struct wanted_chunk {
    struct chunk chunk;
    uint32_t next; /* in its bucket */
    uint64_t place;
};

struct using
{
    struct tree_writer *w;
    struct tree_progress *progress;
    const struct entry *entry;
    struct chunk_digests how;
    struct partial *partial;
    int old, new; /* new: -1 with look_only */
    struct file_data old_data, new_data;
    struct wanted_chunk *chunk;
    uint32_t chunks, bucket[BUCKETS];
    uint64_t run_old, run_new, run_length; /* found, and not copied yet */
};

static uint32_t bucket_of(const struct chunk *chunk)
{
    return (uint32_t)(chunk->digest[0] | chunk->digest[1] << 8) % BUCKETS;
}

/* Copies what has been found. Returns 0, or -1 with errno. */
static int copy_run(struct using *u)
{
    int result = u->new < 0 || u->run_length == 0
                     ? 0
                     : copy_data(u->old, &u->old_data, u->run_old, u->new, &u->new_data, u->run_new,
                                 u->run_length);

    if (result == 0 &&
        intervals_add(&u->partial->spans, u->run_new, u->run_new + u->run_length) != 0)
        result = -ENOMEM;
    u->run_length = 0;
    errno = -result;
    return result == 0 ? 0 : -1;
}

static int add_to_run(struct using *u, uint64_t old, uint64_t new, uint64_t length)
{
    if (u->run_length == 0 || u->run_old + u->run_length != old ||
        u->run_new + u->run_length != new) {
        if (copy_run(u) != 0)
            return -1;
        u->run_old = old;
        u->run_new = new;
    }
    u->run_length += length;
    return 0;
}

/* Uses a chunk of the old version wherever the new one has it; these places need not be found again. */
static int chunk_found(void *context, uint64_t place, const struct chunk *chunk)
{
    struct using *u = context;
    uint32_t *at = &u->bucket[bucket_of(chunk)];

    while (*at != NONE) {
        struct wanted_chunk *c = &u->chunk[*at];
        if (c->chunk.length != chunk->length ||
            memcmp(c->chunk.digest, chunk->digest, sizeof chunk->digest) != 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (add_to_run(u, place, c->place, chunk->length) != 0)
            return -1;
    }
    return 0;
}

/* Reads chunks of the new file, from *place on. Returns 1 if there are any to look for, 0, or -1 with *e. */
static int read_chunks(struct using *u, struct digests_cursor *cursor, uint64_t *place,
                       struct error *e)
{
    struct chunk chunk;
    int result = 1;

    u->chunks = 0;
    memset(u->bucket, 0xff, sizeof u->bucket);
    while (u->chunks < CHUNKS_AT_ONCE && (result = digests_next_chunk(cursor, &chunk, e)) == 1) {
        uint64_t begin = *place;
        *place += chunk.length;
        if (intervals_contain(&u->partial->spans, begin, *place))
            continue;
        if (u->chunks % 1024 == 0) {
            struct wanted_chunk *more = reallocarray(u->chunk, u->chunks + 1024, sizeof *u->chunk);
            if (more == NULL)
                return error_set(e, ERROR_MEMORY, "out of memory");
            u->chunk = more;
        }
        uint32_t *bucket = &u->bucket[bucket_of(&chunk)];
        u->chunk[u->chunks] = (struct wanted_chunk){chunk, *bucket, begin};
        *bucket = u->chunks++;
    }
    return result < 0 ? -1 : u->chunks > 0;
}

static int same_status(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Whether the old version has a chunk at the place of the new one. Returns 1, 0, or -1 with errno. */
static int is_in_place(struct using *u, const struct wanted_chunk *c, uint8_t *block)
{
    uint8_t digest[FILE_DIGEST];

    if (c->place + c->chunk.length > u->old_data.bytes)
        return 0;
    if (u->progress != NULL && atomic_load(&u->progress->stop)) {
        errno = ECANCELED;
        return -1;
    }
    if (file_data_read(u->old, &u->old_data, c->place, block, c->chunk.length) != 0)
        return -1;
    chunk_digest(&u->how, block, c->chunk.length, digest);
    return memcmp(digest, c->chunk.digest, sizeof digest) == 0;
}

/* Data that repeats itself has few places at which chunks end, so a change may shift all chunks behind it. Chunks that
 * were not found are therefore looked for where they are in the new file; not much longer than that has success. Returns
 * 0, or -1 with errno. */
static int use_in_place(struct using *u)
{
    uint8_t *block = malloc(CHUNK_MOST);
    uint32_t hits = 0, misses = 0;
    int result = block == NULL ? -1 : 0;

    for (uint32_t i = 0; i < u->chunks && result == 0 && misses <= MISSES_MOST + hits; i++) {
        const struct wanted_chunk *c = &u->chunk[i];
        if (intervals_contain(&u->partial->spans, c->place, c->place + c->chunk.length))
            continue;
        result = is_in_place(u, c, block);
        hits += result == 1;
        misses += result == 0;
        if (result == 1)
            result = add_to_run(u, c->place, c->place, c->chunk.length);
    }
    free(block);
    return result == 0 ? copy_run(u) : -1;
}

/* Leaves only chunks to be looked for that have not been found. Returns how many. */
static uint32_t keep_missing(struct using *u)
{
    uint32_t left = 0;

    memset(u->bucket, 0xff, sizeof u->bucket);
    for (uint32_t i = 0; i < u->chunks; i++) {
        struct wanted_chunk *c = &u->chunk[i];
        if (intervals_contain(&u->partial->spans, c->place, c->place + c->chunk.length))
            continue;
        uint32_t *bucket = &u->bucket[bucket_of(&c->chunk)];
        c->next = *bucket;
        *bucket = i;
        left++;
    }
    return left;
}

/* Finds chunks wherever they are. An old version as long as the new one has most of them at their places: then cutting
 * it into chunks is not worth the time. Returns 0, or -1 with errno. */
static int find_chunks(struct using *u, bool same_size)
{
    if (same_size) {
        if (use_in_place(u) != 0)
            return -1;
        if (keep_missing(u) <= u->chunks / FEW)
            return 0;
    }
    if (chunks_of_file(u->old, &u->old_data, &u->how, u->progress, chunk_found, u) != 0 ||
        copy_run(u) != 0)
        return -1;
    return same_size ? 0 : use_in_place(u);
}

/* Whether the old version has the chunks up to its end at their places. Returns 1, 0, or -1 with errno. */
static int is_beginning(struct using *u)
{
    uint8_t *block = malloc(CHUNK_MOST);
    int result = block == NULL ? -1 : 1;

    for (uint32_t i = 0; i < u->chunks && result == 1; i++)
        if (u->chunk[i].place < u->old_data.bytes)
            result = is_in_place(u, &u->chunk[i], block);
    free(block);
    return result;
}

/* Looks for all chunks of a file. Returns 0; 1: the old version cannot be used; -1 with *e. */
static int use_file(struct using *u, struct digests_cursor *cursor, struct error *e)
{
    struct stat before, after;
    uint64_t place = 0;
    int found;

    if (fstat(u->old, &before) != 0 || !S_ISREG(before.st_mode) ||
        file_data_find(u->old, (uint64_t)before.st_size, &u->old_data) != 0)
        return 1;
    bool grown = u->w->sizes && u->old_data.extent == NULL && u->entry->extent == NULL &&
                 u->old_data.bytes < u->entry->size;
    while ((found = read_chunks(u, cursor, &place, e)) == 1) {
        grown = grown && is_beginning(u) == 1;
        if (find_chunks(u, (uint64_t)before.st_size == u->entry->size) != 0) {
            if (errno == ECANCELED)
                return tree_stopped(u->progress, e) ? -1 : 1;
            if (errno == ENOSPC || errno == EDQUOT || errno == ENOMEM)
                return writer_file_failed(u->w, u->entry, "written", errno, e);
            return 1;
        }
    }
    if (found < 0)
        return -1;
    /* chunks that were read are those that were copied only if nobody has written to the file meanwhile */
    if (fstat(u->old, &after) != 0 || !same_status(&before, &after))
        return 1;
    u->w->report.grown += grown;
    return 0;
}

/* Opens the new file with its full length. Returns 0, or -1 with *e. */
static int open_new(struct using *u, struct error *e)
{
    u->partial = arrivals_find(&u->w->arrivals, u->entry->index);
    const bool begins = u->partial == NULL;
    if (begins)
        u->partial = arrivals_add(&u->w->arrivals, u->entry->index);
    if (u->partial == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    if (u->w->look_only)
        return 0;
    u->new = staging_open_file(&u->w->staging, u->entry->index, begins);
    if (u->new < 0 || ftruncate(u->new, (off_t)u->entry->size) != 0)
        return writer_file_failed(u->w, u->entry, "made", u->new < 0 ? -u->new : errno, e);
    return 0;
}

static int use_old_of(struct using *u, struct tree_at *target, struct digests_cursor *cursor,
                      struct error *e)
{
    const char *name;
    struct stat st;
    int folder = tree_at_parent(target, u->entry->path, &name);

    u->old = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (u->old < 0)
        return 0; /* the old version is gone, so all of the new file has to be sent */
    u->new = -1;
    u->new_data = file_data_of(u->entry);
    u->old_data = (struct file_data){0};
    int result = open_new(u, e);
    if (result == 0)
        result = use_file(u, cursor, e);
    if (result == 1) {
        arrivals_remove(&u->w->arrivals, u->partial);
        result = 0;
    } else if (u->new >= 0 && fstat(u->new, &st) == 0) {
        u->partial->stamp = arrivals_stamp_of(u->entry->index, &st);
    }
    file_data_free(&u->old_data);
    file_close(&u->new);
    (void)close(u->old);
    u->run_length = 0;
    return result;
}

static int use_all(struct using *u, struct digests_cursor *digests, struct manifest_cursor *entries,
                   struct tree_at *target, struct error *e)
{
    struct entry entry;
    uint64_t index;
    int result;

    while ((result = digests_next_file(digests, &index, e)) == 1) {
        if ((u->w->state[index] & STATE_OLD) == 0 || arrivals_whole(&u->w->arrivals, index))
            continue;
        if (manifest_seek_index(entries, index, e) != 0 || manifest_next(entries, &entry, e) != 1)
            return -1;
        u->entry = &entry;
        if (use_old_of(u, target, digests, e) != 0)
            return -1;
    }
    return result;
}

int writer_use_old(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    struct tree_at target;
    int file = w->document[TREE_DIGESTS];
    uint64_t size = w->document_size[TREE_DIGESTS];

    if (digests_check(file, size, &w->manifest, w->sizes ? DIGESTS_SHORTS_MOST : 0, e) != 0)
        return -1;
    struct digests_cursor *digests = digests_cursor_new(file, size);
    struct manifest_cursor *entries = manifest_cursor_new(&w->manifest);
    struct using *u = calloc(1, sizeof *u);
    int result = -1;
    if (digests == NULL || entries == NULL || u == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
    } else {
        u->w = w;
        u->progress = progress;
        u->how = digests_how(digests);
        tree_at_init(&target, w->staging.above, w->staging.target, w->staging.path);
        result = use_all(u, digests, entries, &target, e);
        tree_at_close(&target);
        free(u->chunk);
    }
    free(u);
    digests_cursor_free(digests);
    manifest_cursor_free(entries);
    return result;
}

/* What has to come from the reader, and whether there is room for it: missing(). */

#define BLOCK 4096u       /* in which file systems store files */
#define LINK_IN_INODE 60u /* bytes of a symbolic link that need a block of their own */
#define SPANS_ROOM 65536u /* more spans are joined on the way */

/* A pass through the entries that are new or have other contents. */
struct pass {
    struct tree_writer *w;
    struct tree_progress *progress;
    uint64_t bytes, files, largest; /* that are needed */
    uint32_t most;                  /* ranges */
};

/* Whether an entry is to be looked at. Returns 1, 0, or -1 with *e. */
static int is_new(const struct pass *p, const struct entry *entry, struct error *e)
{
    if (state_of(p->w->state, entry->index) != STATE_NEW)
        return 0;
    return tree_stopped(p->progress, e) ? -1 : 1;
}

/* --- room --- */

/* A number of bytes in whole blocks. */
static uint64_t in_blocks(uint64_t bytes)
{
    return bytes > 0 && bytes < UINT64_MAX - BLOCK ? (bytes + BLOCK - 1) / BLOCK * BLOCK : bytes;
}

static void add_bytes(struct pass *need, uint64_t bytes)
{
    need->bytes = bytes > UINT64_MAX - need->bytes ? UINT64_MAX : need->bytes + bytes;
}

static void add_file(struct pass *need, const struct entry *entry)
{
    const struct tree_writer *w = need->w;
    const struct partial *partial = arrivals_find(&w->arrivals, entry->index);
    uint64_t here = partial != NULL ? partial->spans.bytes : 0;

    if (arrivals_whole(&w->arrivals, entry->index))
        return;
    uint64_t bytes = in_blocks(entry->bytes - (here < entry->bytes ? here : entry->bytes));
    add_bytes(need, bytes);
    need->files += partial == NULL;
    if (bytes > need->largest)
        need->largest = bytes;
}

static int add_need(void *context, const struct entry *entry, struct error *e)
{
    struct pass *need = context;
    const int new = is_new(need, entry, e);

    if (new != 1)
        return new;
    if (entry->kind == ENTRY_FILE)
        add_file(need, entry);
    /* what is replaced by a folder or link goes first, or at once */
    if ((need->w->state[entry->index] & STATE_ABSENT) != 0 &&
        (entry->kind == ENTRY_FOLDER || entry->kind == ENTRY_SYMLINK))
        need->files++;
    if (entry->kind == ENTRY_FOLDER ||
        (entry->kind == ENTRY_SYMLINK && strlen(entry->link) >= LINK_IN_INODE))
        add_bytes(need, BLOCK);
    return 0;
}

/* Writes a number of bytes for people. */
static const char *show_bytes(uint64_t bytes, char out[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned i = 0;

    for (; value >= 1024 && i < 6; i++)
        value /= 1024;
    (void)snprintf(out, 32, i == 0 ? "%.0f %s" : "%.1f %s", value, unit[i]);
    return out;
}

static int check_room(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    const struct staging *s = &w->staging;
    struct pass need = {.w = w, .progress = progress};
    struct statvfs room;
    char needs[32], has[32];

    if (manifest_each(&w->manifest, add_need, &need, e) != 0)
        return -1;
    if (need.files > 0) /* the folders in which new files are, until they are put in place */
        need.files += w->manifest.entries / 1024 + 2;
    if (fstatvfs(s->folder, &room) != 0)
        return staging_failed(s, "given room", errno, e);
    uint64_t free_bytes = (geteuid() == 0 ? room.f_bfree : room.f_bavail) * room.f_frsize;
    w->tight = need.bytes > free_bytes;
    if (w->rules.as_it_comes) { /* each new file replaces its older version at once */
        uint64_t more = need.bytes > w->old_bytes ? need.bytes - w->old_bytes : 0;
        need.bytes = more > need.largest ? more : need.largest;
    }
    if (need.bytes > free_bytes)
        return error_set(e, ERROR_REFUSED,
                         "the copy to %s needs %s of room, and its file system has %s free%s",
                         s->printable, show_bytes(need.bytes, needs), show_bytes(free_bytes, has),
                         w->rules.as_it_comes ? ""
                                              : " (--as-it-comes needs less, if files are "
                                                "replaced)");
    if (room.f_files > 0 && need.files > room.f_ffree)
        return error_set(e, ERROR_REFUSED,
                         "the copy to %s makes %llu files, and its file system has room for %llu",
                         s->printable, (unsigned long long)need.files,
                         (unsigned long long)room.f_ffree);
    return 0;
}

/* --- ranges --- */

static int add_missing(void *context, const struct entry *entry, struct error *e)
{
    const struct pass *p = context;
    struct tree_writer *w = p->w;
    const int new = is_new(p, entry, e);
    static const struct intervals none = {0};
    const struct partial *partial = arrivals_find(&w->arrivals, entry->index);
    const struct intervals *here = partial != NULL ? &partial->spans : &none;
    uint64_t until;

    if (new != 1 || entry->kind != ENTRY_FILE || arrivals_whole(&w->arrivals, entry->index))
        return new < 0 ? -1 : 0;
    for (uint64_t at = 0; (at = intervals_gap(here, at, entry->bytes, &until)) < entry->bytes;
         at = until) {
        w->report.bytes_missing += until - at;
        if (intervals_add(&w->missing, entry->begin + at, entry->begin + until) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory");
    }
    if (w->missing.count > (size_t)p->most + SPANS_ROOM &&
        intervals_join(&w->missing, p->most) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return 0;
}

/* Each file is put in place when it is complete: then the folders must be there. */
static int prepare_install(struct tree_writer *w, struct error *e)
{
    if (!w->rules.as_it_comes || w->look_only)
        return 0;
    w->install = (struct install){.staging = &w->staging,
                                  .manifest = &w->manifest,
                                  .rules = &w->rules,
                                  .patterns = w->patterns,
                                  .metadata = &w->metadata,
                                  .state = w->state};
    install_init(&w->install);
    w->install_open = true;
    return install_make_folders(&w->install, e);
}

int writer_missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct interval **span, uint32_t *spans, struct error *e)
{
    struct pass pass = {.w = w, .progress = progress, .most = most};

    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    if ((!w->look_only && check_room(w, progress, e) != 0) ||
        (w->document[TREE_DIGESTS] >= 0 && !w->tight && writer_use_old(w, progress, e) != 0) ||
        manifest_each(&w->manifest, add_missing, &pass, e) != 0 || prepare_install(w, e) != 0)
        return -1;
    if (intervals_join(&w->missing, most > 0 ? most : 1) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    if (w->missing.count > 0 && !w->look_only)
        arrivals_reserve(&w->arrivals, &w->staging, w->report.bytes_missing);
    *span = w->missing.item;
    *spans = (uint32_t)w->missing.count;
    return 0;
}
