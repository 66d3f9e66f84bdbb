#include "daemon/torusd/files/folders.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/outcomes.h"

static void close_journal(struct folders *folders)
{
    tasks_free(folders);
    unremoved_free(folders);
    journal_close(&folders->journal);
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    *source = folder_source(context, request, events);
    *sink = *source != NULL ? folder_sink(context, request, events) : NULL;
    if (*sink != NULL)
        return 0;
    if (*source != NULL)
        folder_source_disown(*source);
    *source = NULL;
    return error_set(e, ERROR_MEMORY, "out of memory for a folder");
}

static void close_storage(void *context)
{
    struct folders *folders = context;

    folders->closed = true;
    if (folders->users == 0)
        close_journal(folders);
}

int folders_check_roots(const struct folders *folders, const struct roots *roots, struct error *e)
{
    return roots_check_state_folder(roots, folders->state_folder, folders->journal.folder, e);
}

int folders_init(struct folders *folders, struct storage *storage, struct error *e)
{
    folders->sinks = NULL;
    folders->on_unused = close_journal;
    folders->task_reserve = NULL;
    folders->unremoved = NULL;
    folders->users = 0;
    folders->closed = folders->storing = folders->stored_late = false;
    if (folders->files->limitation != NULL && folders->roots->count > 0)
        log_info("%s", folders->files->limitation);
    if (journal_open(&folders->journal, folders->files, folders->state_folder, e) != 0)
        return -1;
    if (folders_check_roots(folders, folders->roots, e) != 0) {
        journal_close(&folders->journal);
        return error_wrap(e, "state folder");
    }
    if (tasks_init(folders) != 0) {
        close_journal(folders);
        return error_set(e, ERROR_MEMORY, "out of memory for a state folder");
    }
    if (journal_each(&folders->journal, outcomes_clean_up, folders, e) != 0) {
        close_journal(folders);
        return -1;
    }
    *storage = (struct storage){
        .context = folders,
        .open_folders = open_folders,
        .record_commit = commits_record,
        .forget_commit = commits_forget,
        .each_committed = commits_each,
        .each_in_doubt = outcomes_each_in_doubt,
        .resolve = outcomes_resolve,
        .load_calibration = calibrations_load,
        .store_calibration = calibrations_store,
        .close = close_storage,
    };
    return 0;
}
