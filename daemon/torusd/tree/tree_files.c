#include "daemon/torusd/tree/tree_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/tree/staging.h"
#include "daemon/torusd/tree/writer.h"
#include "proto/text.h"

/* --- what interrupted copies have left, when the daemon starts --- */

static void log_resumed(const struct staging *s, uint64_t changed, const char *first)
{
    if (changed > 0)
        log_warning("the copy to %s is in place, except for %llu %s that somebody has changed "
                    "meanwhile, first %s: copy again",
                    s->path, (unsigned long long)changed, text_plural(changed, "file", "files"),
                    first);
    else
        log_info("the copy to %s, which was interrupted at its end, is in place", s->path);
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
    uint64_t changed;
    char first[256];
    int result = install_resume(s, &changed, first, e);

    if (result < 0 || (result == 0 && !is_old(s)))
        return result;
    if (result == 1)
        log_resumed(s, changed, first);
    else
        log_info("what an interrupted copy to %s has left is removed, after a day", s->path);
    return staging_remove(s, e) == 0 ? 1 : -1;
}

struct recovering {
    struct tree_files *files;
    const struct roots *roots;
};

static void recover_one(void *context, const char *path)
{
    const struct recovering *r = context;
    struct staging s;
    struct error e;
    int result = staging_find(&s, r->roots, atomic_load(&r->files->output_mode), path, NULL, &e);

    if (result == 0 && s.above < 0)
        result = error_set(&e, ERROR_REFUSED, "the folder above it does not exist");
    else if (result == 0 && staging_open(&s, false, 0, &e) != 0) {
        result = e.code == ERROR_NONE || e.code == ERROR_BUSY ? 0 : -1;
        if (e.code == ERROR_NONE) /* there is none */
            staging_forget(&s, &r->files->copies);
    } else if (result == 0) {
        result = recover_staging(&s, &e);
        if (result == 1)
            staging_forget(&s, &r->files->copies);
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

    if (journal_each_copy(&files->copies, recover_one, &r, &e) != 0)
        log_warning("%s", e.text);
    tree_files_leave(files);
}

/* --- the store --- */

#define PATIENCE_MS                                                                                \
    10000u /* some writers take seconds to notice that they shall stop, and to close */

void tree_files_init(struct tree_files *files, const char *state_folder, const struct roots *roots)
{
    *files = (struct tree_files){
        .state_folder = state_folder, .copies.folder = -1, .patience_ms = PATIENCE_MS};
    atomic_init(&files->roots, roots);
    atomic_init(&files->users, 0);
    made_folders_init(&files->made);
    files->store.context = files;
    atomic_init(&files->output_mode, 0755);
    tree_reader_add(&files->store);
    tree_writer_add(&files->store);
}

int tree_files_open(struct tree_files *files, struct error *e)
{
    return journal_open_copies(&files->copies, files->copies_path, files->state_folder, e);
}

void tree_files_free(struct tree_files *files)
{
    /* Without entries it goes: the folder of a job is to be empty in the end. */
    if (files->copies.folder >= 0)
        (void)rmdir(files->copies_path);
    journal_close(&files->copies);
    made_folders_free(&files->made);
}

const struct tree_store *tree_files_store(struct tree_files *files)
{
    return &files->store;
}
