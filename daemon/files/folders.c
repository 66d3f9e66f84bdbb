#include "daemon/files/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/files/calibration_file.h"
#include "daemon/files/journal.h"

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    *source = folder_source(context, request, events, e);
    if (*source == NULL)
        return -1;
    *sink = folder_sink(context, request, events, e);
    if (*sink == NULL) {
        (*source)->ops->close(*source);
        *source = NULL;
        return -1;
    }
    return 0;
}

static int record_commit(void *context, const char *id, struct error *e)
{
    return journal_record_commit(((struct folders *)context)->state_folder, id, e);
}

static bool was_committed(void *context, const char *id)
{
    return journal_was_committed(((struct folders *)context)->state_folder, id);
}

static void forget_commit(void *context, const char *id)
{
    journal_forget_commit(((struct folders *)context)->state_folder, id);
}

static void each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                          void *argument)
{
    journal_each(((struct folders *)context)->state_folder, each, argument);
}

static int load_calibration(void *context, struct calibration *c, struct error *e)
{
    return calibration_file_read(((struct folders *)context)->state_folder, c, e);
}

static int store_calibration(void *context, const struct calibration *c, struct error *e)
{
    return calibration_file_write(((struct folders *)context)->state_folder, c, e);
}

/* The daemon died after it had put the output in place, and before it had noted that. */
static bool is_in_place(const struct journal_entry *entry)
{
    return access(entry->temporary, F_OK) != 0 && errno == ENOENT &&
           access(entry->final, F_OK) == 0;
}

static int resolve(void *context, const char *id, bool committed, struct error *e)
{
    const struct folders *folders = context;
    struct journal_entry entry;

    if (journal_read(folders->state_folder, id, &entry, e) != 0)
        return -1;
    if (!committed)
        folder_remove_output(entry.temporary);
    else if (!is_in_place(&entry) && folder_publish(entry.temporary, entry.final, e) != 0)
        return -1;
    journal_remove(folders->state_folder, id);
    return 0;
}

static void clean_up(void *context, const char *id)
{
    const struct folders *folders = context;
    struct journal_entry entry;
    struct error e;

    if (journal_read(folders->state_folder, id, &entry, &e) != 0) {
        log_warning("%s", e.text);
        journal_remove(folders->state_folder, id);
    } else if (!entry.finished) {
        log_info("removing what exchange %s left behind unfinished: %s", id, entry.temporary);
        folder_remove_output(entry.temporary);
        journal_remove(folders->state_folder, id);
    }
}

int folders_init(struct folders *folders, struct storage *storage, struct error *e)
{
    if (journal_open(folders->state_folder, e) != 0)
        return error_wrap(e, "state folder");
    journal_each(folders->state_folder, clean_up, folders);
    *storage = (struct storage){
        .context = folders,
        .open_folders = open_folders,
        .record_commit = record_commit,
        .was_committed = was_committed,
        .forget_commit = forget_commit,
        .each_in_doubt = each_in_doubt,
        .load_calibration = load_calibration,
        .store_calibration = store_calibration,
        .resolve = resolve,
    };
    return 0;
}
