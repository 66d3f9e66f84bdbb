#include "daemon/torusd/files/target/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/target/target_above.h"
#include "daemon/torusd/files/target/target_contents.h"
#include "daemon/torusd/files/target/target_names.h"
#include "daemon/torusd/files/target/target_temporary.h"

void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 struct made_folders *made, mode_t output_mode, const char *id)
{
    *t = (struct target){.roots = roots,
                         .journal = journal,
                         .made = made,
                         .parent = -1,
                         .folder = -1,
                         .output_mode = output_mode};
    (void)snprintf(t->id, sizeof t->id, "%s", id);
}

void target_close(struct target *t)
{
    target_close_one(t, &t->folder);
    target_close_one(t, &t->parent);
    made_folders_leave(t->made, t->use, false);
    t->use = NULL;
}

int target_create(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file = target_files(t)->create_file(target_files(t)->context, t->folder, text,
                                            t->attributes.file_mode);
    int result = file < 0 ? file : attributes_set_file(target_files(t), file, &t->attributes);
    if (result < 0) {
        target_close_one(t, &file);
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be created: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    }
    return file;
}

int target_reopen_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file = target_files(t)->reopen_file(target_files(t)->context, t->folder, text);
    if (file < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be opened again: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-file));
    return file;
}

int target_find_file(const struct target *t, uint32_t name, struct file_status *status)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    return target_files(t)->status_at(target_files(t)->context, t->folder, text, status);
}

int target_remove_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int result = target_files(t)->remove_file(target_files(t)->context, t->folder, text);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be removed: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    return 0;
}

int target_seal(struct target *t, uint64_t contents, struct error *e)
{
    if (target_check_contents(t, contents, e) != 0)
        return -1;
    int result = target_sync_one(t, t->folder);

    if (result == 0)
        result = target_sync_one(t, t->parent);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be synced: %s", t->entry.folder,
                         t->entry.temporary, strerror(-result));
    t->entry.finished = true;
    t->entry.contents = contents | 1;
    return journal_write(t->journal, t->id, &t->entry, e);
}

/* The journal has an entry for each of the two names, so that the folder has an entry after a power failure,
 * whatever its name. */
static int rename_temporary(struct target *t, const struct target *former, struct error *e)
{
    const struct file_system *files = target_files(t);
    int result = target_check_temporary(former);

    if (result == 0 && journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    if (result == 0)
        result =
            files->rename(files->context, t->parent, former->entry.temporary, t->entry.temporary);
    if (result < 0)
        return error_set(
            e, ERROR_IO, "%s/%s cannot be renamed: %s", t->entry.folder, former->entry.temporary,
            result == -ESTALE ? "another process has moved or replaced it" : strerror(-result));
    return 0;
}

int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e)
{
    const struct target former = *t;

    if (!journal_id_is_valid(id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", id);
    t->entry.finished = false;
    t->entry.contents = 0;
    if (strcmp(t->id, id) == 0) /* retried before other nodes knew of this attempt */
        return former.entry.finished ? journal_write(t->journal, id, &t->entry, e) : 0;
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    if (target_set_temporary(t, t->entry.final, rank, e) != 0 ||
        rename_temporary(t, &former, e) != 0) {
        journal_remove(t->journal, t->id);
        *t = former;
        return -1;
    }
    int result = target_sync_one(t, t->parent);
    journal_remove(t->journal, former.id);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be synced: %s", t->entry.folder,
                         strerror(-result));
    return 0;
}

int target_discard(struct target *t, struct error *e)
{
    int result = 0;

    if (t->folder >= 0)
        result = target_remove_temporary(t);
    target_close_one(t, &t->folder);
    if (result == 0)
        target_remove_made(t);
    if (result == 0 && t->has_entry && t->parent >= 0)
        result = target_sync_one(t, t->parent);
    if (result == -ESTALE)
        log_warning("another process has moved or replaced %s/%s: torusd does not touch it",
                    t->entry.folder, t->entry.temporary);
    else if (result < 0)
        (void)error_set(e, ERROR_IO, "%s/%s cannot be removed: %s; torusd tries again",
                        t->entry.folder, t->entry.temporary, strerror(-result));
    if (result == 0 || result == -ESTALE)
        target_forget(t);
    target_close(t);
    return result == 0 || result == -ESTALE ? 0 : -1;
}

int target_reopen(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);

    if (journal_read(t->journal, t->id, &t->entry, e) != 0)
        return -1;
    t->has_entry = true;
    if (roots_find(t->roots, t->entry.folder, &t->above, e) != 0)
        return error_wrap(e, "output of exchange %s", t->id);
    t->parent = target_open_above(t, t->above.path);
    if (t->parent >= 0)
        t->folder = files->open_folder(files->context, t->parent, t->entry.temporary);
    int result = t->parent < 0 ? t->parent : t->folder;
    if (result < 0 && result != -ENOENT)
        return error_set(e, ERROR_IO, "%s/%s cannot be opened: %s", t->entry.folder,
                         t->parent < 0 ? "" : t->entry.temporary, strerror(-result));
    return 0;
}
