#include "daemon/torusd/tree/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/tree/listing.h"
#include "daemon/torusd/tree/writer_record.h"
#include "proto/text.h"

/* Checks that all new files that are not in place yet are as they were when the copy was complete. Returns 0, or -1 with
 * *e. */
static int check_files(const struct staging *s, const struct manifest *manifest, struct error *e)
{
    struct manifest_cursor *cursor = manifest_cursor_new(manifest);
    struct arrivals stamps = {.stamps = -1};
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory")
                                : arrivals_open_stamps(&stamps, s, e);

    while (result == 0 && (result = manifest_next(cursor, &entry, e)) == 1)
        result = entry.kind == ENTRY_FILE ? arrivals_check_staged(&stamps, s, &entry, e) : 0;
    if (stamps.stamps >= 0)
        (void)close(stamps.stamps);
    manifest_cursor_free(cursor);
    return result;
}

static int place(struct staging *s, const struct complete *rules, int file, struct placing *p,
                 struct error *e)
{
    struct metadata_rules metadata;
    struct stored stored;
    struct manifest manifest;
    struct stat st;

    if (fstat(file, &st) != 0)
        return staging_failed(s, "read", errno, e);
    if (manifest_open(&manifest, file, (uint64_t)st.st_size, e) != 0 ||
        check_files(s, &manifest, e) != 0)
        return -1;
    struct patterns *patterns =
        patterns_new((const char *const *)rules->pattern, rules->patterns, e);
    if (patterns == NULL)
        return -1;
    metadata_rules_init(&metadata);
    stored_open(&stored, s->above, s->folder);
    metadata.stored = &stored;
    *p = (struct placing){.staging = s,
                          .manifest = &manifest,
                          .rules = rules,
                          .patterns = patterns,
                          .metadata = &metadata};
    int result = placing_run(p, e);
    stored_close(&stored);
    patterns_free(patterns);
    return result;
}

int writer_place_staging(struct staging *s, const struct complete *rules, uint64_t *changed_since,
                         char first[256], struct error *e)
{
    struct placing p;
    int file = openat(s->folder, STAGING_MANIFEST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0)
        return staging_failed(s, "read", errno, e);
    int result = place(s, rules, file, &p, e);
    (void)close(file);
    if (result == 0) {
        *changed_since = p.changed_since;
        (void)strcpy(first, p.first_changed);
    }
    return result;
}

/* Completes a copy. Returns 0 if its staging is to be removed, or -1 with *e. */
static int complete_copy(struct staging *s, const struct complete *rules, struct error *e)
{
    uint64_t changed;
    char first[256];

    if (writer_place_staging(s, rules, &changed, first, e) != 0)
        return -1;
    if (syncfs(s->folder) != 0)
        return staging_failed(s, "synced", errno, e);
    if (changed > 0)
        log_warning("the copy to %s is in place, except for %llu %s that somebody has changed "
                    "meanwhile, first %s: copy again",
                    s->path, (unsigned long long)changed, text_plural(changed, "file", "files"),
                    first);
    else
        log_info("the copy to %s, which was interrupted at its end, is in place", s->path);
    return 0;
}

/* Whether nothing has arrived for so long that nobody will continue the copy. */
static bool is_old(const struct staging *s)
{
    struct stat folder, record;
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(s->folder, &folder) != 0)
        return false;
    time_t last = folder.st_mtim.tv_sec;
    if (fstatat(s->folder, STAGING_ARRIVED, &record, AT_SYMLINK_NOFOLLOW) == 0 &&
        record.st_mtim.tv_sec > last)
        last = record.st_mtim.tv_sec;
    return now.tv_sec - last > RECOVER_AGE;
}

/* Returns 1 if the staging has been dealt with, 0 if it stays, or -1 with *e. */
static int recover_staging(struct staging *s, struct error *e)
{
    struct complete rules;
    int found = complete_read(s, &rules, e);

    if (found < 0)
        return -1;
    if (found == 1) {
        int result = staging_check(s, e) == 0 ? complete_copy(s, &rules, e) : -1;
        complete_free(&rules);
        if (result != 0)
            return -1;
    } else if (!is_old(s)) {
        return 0;
    } else {
        log_info("what an interrupted copy to %s has left is removed, after a day", s->path);
    }
    return staging_remove(s, e) == 0 ? 1 : -1;
}

struct recovering {
    struct tree_files *files;
    const struct roots *roots;
};

static void recover_one(void *context, const char *path)
{
    const struct recovering *r = context;
    const char *state = r->files->state_folder;
    struct staging s;
    struct error e;
    int result = staging_find(&s, r->roots, atomic_load(&r->files->output_mode), path, NULL, &e);

    if (result == 0 && s.above < 0)
        result = error_set(&e, ERROR_REFUSED, "the folder above it does not exist");
    else if (result == 0 && staging_open(&s, false, 0, &e) != 0) {
        result = e.code == ERROR_NONE || e.code == ERROR_BUSY ? 0 : -1;
        if (e.code == ERROR_NONE) /* there is none */
            listing_remove(state, &s);
    } else if (result == 0) {
        result = recover_staging(&s, &e);
        if (result == 1)
            listing_remove(state, &s);
    }
    if (result < 0)
        log_warning("an interrupted copy to %s cannot be completed or removed: %s; torusd tries "
                    "again when it starts, and the next copy to this target does",
                    path, e.text);
    staging_close(&s);
}

void tree_files_recover(struct tree_files *files)
{
    struct recovering r = {files, tree_files_enter(files)};
    struct error e;

    if (listing_each(files->state_folder, recover_one, &r, &e) != 0)
        log_warning("%s", e.text);
    tree_files_leave(files);
}
