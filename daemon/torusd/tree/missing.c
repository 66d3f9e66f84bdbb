/* What has to come from the reader, and whether there is room for it: missing(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/torusd/tree/writer_record.h"

#define BLOCK 4096u       /* in which file systems store files */
#define LINK_IN_INODE 60u /* bytes of a symbolic link that need a block of their own */
#define SPANS_ROOM 65536u /* more spans are joined on the way */

struct need {
    uint64_t bytes, files, largest;
};

/* Calls each() for every entry that is new or has other contents. */
static int each_new(struct tree_writer *w, struct tree_progress *progress,
                    int (*each)(struct tree_writer *w, const struct entry *entry, void *context,
                                struct error *e),
                    void *context, struct error *e)
{
    struct manifest_cursor *cursor = manifest_cursor_new(&w->manifest);
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory") : 1;

    while (result == 1) {
        result = manifest_next(cursor, &entry, e);
        if (result == 1 && state_of(w->state, entry.index) == STATE_NEW &&
            (writer_stopped(progress, e) || each(w, &entry, context, e) != 0))
            result = -1;
    }
    manifest_cursor_free(cursor);
    return result;
}

/* --- room --- */

/* A number of bytes in whole blocks. */
static uint64_t in_blocks(uint64_t bytes)
{
    return bytes > 0 && bytes < UINT64_MAX - BLOCK ? (bytes + BLOCK - 1) / BLOCK * BLOCK : bytes;
}

static void add_bytes(struct need *need, uint64_t bytes)
{
    need->bytes = bytes > UINT64_MAX - need->bytes ? UINT64_MAX : need->bytes + bytes;
}

static void add_file(struct tree_writer *w, const struct entry *entry, struct need *need)
{
    const struct partial *partial = arrivals_find(&w->arrivals, entry->index);
    uint64_t here = partial != NULL ? spans_bytes(&partial->spans) : 0;

    if (arrivals_whole(&w->arrivals, entry->index))
        return;
    uint64_t bytes = in_blocks(entry->bytes - (here < entry->bytes ? here : entry->bytes));
    add_bytes(need, bytes);
    need->files += partial == NULL;
    if (bytes > need->largest)
        need->largest = bytes;
}

static int add_need(struct tree_writer *w, const struct entry *entry, void *context,
                    struct error *e)
{
    struct need *need = context;

    (void)e;
    if (entry->kind == ENTRY_FILE)
        add_file(w, entry, need);
    /* what is replaced by a folder or link goes first, or at once */
    if ((w->state[entry->index] & STATE_ABSENT) != 0 &&
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
    struct need need = {0};
    struct statvfs room;
    char needs[32], has[32];

    if (each_new(w, progress, add_need, &need, e) != 0)
        return -1;
    if (need.files > 0) /* the folders in which new files are, until they are put in place */
        need.files += w->manifest.entries / 1024 + 2;
    if (fstatvfs(s->folder, &room) != 0)
        return staging_failed(s, "given room", errno, e);
    uint64_t free_bytes = (geteuid() == 0 ? room.f_bfree : room.f_bavail) * room.f_frsize;
    w->tight = need.bytes > free_bytes;
    if (w->rules.as_it_comes) { /* older versions go as new ones come */
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

static int add_missing(struct tree_writer *w, const struct entry *entry, void *context,
                       struct error *e)
{
    static const struct spans none = {0};
    const struct partial *partial = arrivals_find(&w->arrivals, entry->index);
    const struct spans *here = partial != NULL ? &partial->spans : &none;
    uint32_t most = *(const uint32_t *)context;
    uint64_t until;

    if (entry->kind != ENTRY_FILE || arrivals_whole(&w->arrivals, entry->index))
        return 0;
    for (uint64_t at = 0; (at = spans_gap(here, at, entry->bytes, &until)) < entry->bytes;
         at = until) {
        w->report.bytes_missing += until - at;
        if (spans_add(&w->missing, entry->begin + at, entry->begin + until) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory");
    }
    if (w->missing.count > (size_t)most + SPANS_ROOM && spans_join(&w->missing, most) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return 0;
}

/* Each file is put in place when it is complete: then the folders must be there. */
static int prepare_placing(struct tree_writer *w, struct error *e)
{
    if (!w->rules.as_it_comes || w->look_only)
        return 0;
    w->placing = (struct placing){.staging = &w->staging,
                                  .manifest = &w->manifest,
                                  .rules = &w->rules,
                                  .patterns = w->patterns,
                                  .metadata = &w->metadata,
                                  .state = w->state};
    placing_init(&w->placing);
    w->placing_open = true;
    return placing_make_folders(&w->placing, e);
}

int writer_missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct tree_span **span, uint32_t *spans, struct error *e)
{
    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    if ((!w->look_only && check_room(w, progress, e) != 0) ||
        (w->document[TREE_DIGESTS] >= 0 && !w->tight && writer_use_old(w, progress, e) != 0) ||
        each_new(w, progress, add_missing, &most, e) != 0 || prepare_placing(w, e) != 0)
        return -1;
    if (spans_join(&w->missing, most > 0 ? most : 1) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    if (w->missing.count > 0 && !w->look_only)
        arrivals_reserve(&w->arrivals, &w->staging, w->report.bytes_missing);
    *span = w->missing.span;
    *spans = (uint32_t)w->missing.count;
    return 0;
}
