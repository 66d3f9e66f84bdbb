#include "daemon/torusd/files/target/target_temporary.h"

#include <errno.h>

#include "daemon/torusd/files/target/old_result.h"

int target_check_temporary(const struct target *t)
{
    const struct file_system *files = target_files(t);
    struct file_status open, named;
    int result = files->status(files->context, t->folder, &open);

    if (result == 0)
        result = files->status_at(files->context, t->parent, t->entry.temporary, &named);
    if (result == 0 && (open.device != named.device || open.number != named.number))
        result = -ESTALE;
    return result == -ENOENT ? -ESTALE : result;
}

struct removal {
    const struct target *t;
    int error;
};

static void remove_file(void *argument, const char *name)
{
    struct removal *r = argument;
    const struct file_system *files = target_files(r->t);
    int result =
        old_result_is_name(name) ? files->remove_file(files->context, r->t->folder, name) : 0;

    if (result < 0 && r->error == 0)
        r->error = result;
}

int target_remove_temporary(const struct target *t)
{
    const struct file_system *files = target_files(t);
    struct removal r = {t, 0};
    int result = files->list(files->context, t->folder, remove_file, &r);

    if (result < 0 || r.error < 0)
        return result < 0 ? result : r.error;
    result = attributes_clean_up(files, t->folder);
    if (result == 0)
        result = target_check_temporary(t);
    if (result < 0)
        return result;
    return files->remove_folder(files->context, t->parent, t->entry.temporary);
}

void target_forget(struct target *t)
{
    if (t->has_entry)
        journal_remove(t->journal, t->id);
    t->has_entry = false;
}
