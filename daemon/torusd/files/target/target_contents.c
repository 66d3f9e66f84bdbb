#include "daemon/torusd/files/target/target_contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/torusd/files/system/file_stamp.h"
#include "daemon/torusd/files/target/old_result.h"
#include "daemon/torusd/files/target/target.h"

#define AGAIN "start the exchange again"

struct adding {
    const struct target *t;
    uint64_t sum;
    struct error *error;
    bool failed;
};

static mode_t mode_of(enum file_kind kind)
{
    return kind == FILE_REGULAR  ? S_IFREG
           : kind == FILE_FOLDER ? S_IFDIR
           : kind == FILE_LINK   ? S_IFLNK
                                 : 0;
}

uint64_t target_stamp_of(uint32_t name, const struct file_status *status)
{
    return file_stamp(name, status->number, status->size, status->changed);
}

int target_file_differs(const struct target *t, const char *name, enum file_kind kind,
                        struct error *e)
{
    char path[PATH_MAX + 2 * NAME_MAX + 3];

    (void)snprintf(path, sizeof path, "%s/%s/%s", t->entry.folder, t->entry.temporary, name);
    return kind == FILE_REGULAR && old_result_is_name(name)
               ? file_stamp_changed(path, AGAIN, e)
               : file_stamp_refuse(path, mode_of(kind), AGAIN, e);
}

static void add_file(void *argument, const char *name)
{
    struct adding *a = argument;
    const struct file_system *files = target_files(a->t);
    const struct journal_entry *entry = &a->t->entry;
    struct file_status status;

    if (a->failed)
        return;
    int result = files->status_at(files->context, a->t->folder, name, &status);
    a->failed = result < 0 || status.kind != FILE_REGULAR || !old_result_is_name(name);
    if (result < 0)
        (void)error_set(a->error, ERROR_IO, "%s/%s/%s cannot be examined: %s", entry->folder,
                        entry->temporary, name, strerror(-result));
    else if (a->failed)
        (void)target_file_differs(a->t, name, status.kind, a->error);
    else
        a->sum += target_stamp_of((uint32_t)strtoul(name, NULL, 10), &status);
}

int target_contents(const struct target *t, uint64_t *contents, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct adding a = {.t = t, .error = e};
    int result = files->list(files->context, t->folder, add_file, &a);

    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be read: %s", t->entry.folder,
                         t->entry.temporary, strerror(-result));
    *contents = a.sum | 1; /* never 0 */
    return a.failed ? -1 : 0;
}

int target_check_contents(const struct target *t, uint64_t contents, struct error *e)
{
    uint64_t now;

    if (target_contents(t, &now, e) != 0)
        return -1;
    if (now == (contents | 1))
        return 0;
    return error_set(e, ERROR_DAMAGED,
                     "somebody has changed files in %s/%s after they had arrived: remove it, "
                     "and " AGAIN,
                     t->entry.folder, t->entry.temporary);
}
