#include "daemon/files/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/files/state/calibration_file.h"
#include "daemon/files/target/target.h"

#define TASKS_KEPT 64 /* for when there is no memory: a decision must be recorded or refused */

/* What is done for the core besides sources and sinks. */
struct task {
    struct work work;
    struct task *next; /* of those kept */
    struct folders *folders;
    char id[128];
    bool committed;
    struct calibration calibration;
    storage_done_fn *told; /* NULL: nobody */
    void *argument;
    struct error error;
};

#define UNREMOVED_MOST 64 /* that are tried again before the next start */

/* An output of which not all could be removed. */
struct unremoved {
    struct unremoved *next;
    char id[sizeof((struct target *)0)->id];
    bool trying;
};

static void free_task(struct folders *folders, struct task *task)
{
    if (folders->kept_count == TASKS_KEPT) {
        free(task);
        return;
    }
    task->next = folders->kept;
    folders->kept = task;
    folders->kept_count++;
}

static struct task *take_task(struct folders *folders)
{
    struct task *task = malloc(sizeof *task);

    if (task == NULL && folders->kept != NULL) {
        task = folders->kept;
        folders->kept = task->next;
        folders->kept_count--;
    }
    return task;
}

static void close_journal(struct folders *folders)
{
    while (folders->kept != NULL) {
        struct task *task = folders->kept;
        folders->kept = task->next;
        free(task);
    }
    folders->kept_count = 0;
    while (folders->unremoved != NULL) {
        struct unremoved *u = folders->unremoved;
        folders->unremoved = u->next;
        free(u);
    }
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

bool folders_flush(struct folders *folders)
{
    return folder_sinks_flush(folders);
}

/* --- tasks --- */

static void on_task_done(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct folders *folders = task->folders;

    if (task->told != NULL && !folders->closed)
        task->told(task->argument, task->id, task->error.code != ERROR_NONE ? &task->error : NULL);
    free_task(folders, task);
    folders_release(folders);
}

/* NULL without memory, beyond the tasks that are kept for that: nobody is told. */
static struct task *begin_task(struct folders *folders, void (*run)(struct work *work),
                               const struct task *values)
{
    struct task *task = take_task(folders);

    if (task != NULL) {
        *task = *values;
        task->folders = folders;
        task->work.run = run;
        task->work.done = on_task_done;
        if (workers_submit(folders->workers, &task->work) == 0) {
            folders->users++;
            return task;
        }
        free_task(folders, task);
    }
    log_error("out of memory to write to %s", folders->state_folder);
    return NULL;
}

static struct task task_for(const char *id, storage_done_fn *told, void *argument)
{
    struct task task = {.told = told, .argument = argument};

    (void)snprintf(task.id, sizeof task.id, "%s", id);
    return task;
}

static void run_record(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    if (journal_record_commit(&task->folders->journal, task->id, &task->error) != 0)
        (void)error_wrap(&task->error, "the decision to commit cannot be recorded");
}

static void record_commit(void *context, const char *id, storage_done_fn *done, void *argument)
{
    const struct task values = task_for(id, done, argument);

    (void)begin_task(context, run_record, &values);
}

static void run_forget(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    journal_forget_commit(&task->folders->journal, task->id);
}

static void forget_commit(void *context, const char *id)
{
    const struct task values = task_for(id, NULL, NULL);

    (void)begin_task(context, run_forget, &values);
}

static void run_resolve(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct target target;

    target_init(&target, task->folders->roots, &task->folders->journal, task->folders->output_mode,
                task->id);
    if (target_reopen(&target, &task->error) != 0)
        (void)0; /* ERROR_NONE: it has been settled already */
    else if (task->committed)
        (void)target_place(&target, &task->error);
    else
        (void)target_discard(&target, &task->error);
    target_close(&target);
}

static void resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument)
{
    struct task values = task_for(id, done, argument);

    values.committed = committed;
    (void)begin_task(context, run_resolve, &values);
}

/* --- what could not be removed --- */

static void on_removed(void *argument, const char *id, const struct error *e)
{
    struct folders *folders = argument;
    struct unremoved **at = &folders->unremoved, *u;

    while (strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    u = *at;
    u->trying = false;
    if (e != NULL) {
        log_warning("exchange %s: %s", id, e->text);
        return;
    }
    log_info("exchange %s: its unfinished output has been removed", id);
    *at = u->next;
    free(u);
}

void folders_not_removed(struct folders *folders, const char *id)
{
    struct unremoved *u = folders->unremoved;
    unsigned count = 0;

    for (; u != NULL && strcmp(u->id, id) != 0; u = u->next)
        count++;
    if (u != NULL || count == UNREMOVED_MOST || (u = calloc(1, sizeof *u)) == NULL)
        return; /* the next start finds it */
    (void)snprintf(u->id, sizeof u->id, "%s", id);
    u->next = folders->unremoved;
    folders->unremoved = u;
}

void folders_remove_again(struct folders *folders)
{
    for (struct unremoved *u = folders->unremoved; u != NULL; u = u->next)
        if (!u->trying && !folder_sink_of(folders, u->id)) {
            const struct task values = task_for(u->id, on_removed, folders);
            u->trying = begin_task(folders, run_resolve, &values) != NULL;
        }
}

/* --- calibration --- */

static void store_calibration(void *context, const struct calibration *c);

static void run_store(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    (void)calibration_file_write(&task->folders->journal, &task->calibration, &task->error);
}

/* One after the other, so that the last one is the one that stays. */
static void on_stored(void *argument, const char *id, const struct error *e)
{
    struct folders *folders = argument;

    (void)id;
    if (e != NULL)
        log_warning("the calibration cannot be kept: %s", e->text);
    folders->storing = false;
    if (folders->stored_late)
        store_calibration(folders, &folders->calibration);
}

static void store_calibration(void *context, const struct calibration *c)
{
    struct folders *folders = context;
    struct task values = task_for("", on_stored, folders);

    if (folders->storing) {
        folders->calibration = *c;
        folders->stored_late = true;
        return;
    }
    folders->stored_late = false;
    values.calibration = *c;
    folders->storing = begin_task(folders, run_store, &values) != NULL;
}

static int load_calibration(void *context, struct calibration *c, struct error *e)
{
    return calibration_file_read(&((struct folders *)context)->journal, c, e);
}

/* --- at start --- */

static int each_committed(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e)
{
    return journal_each_committed(&((struct folders *)context)->journal, each, argument, e);
}

struct in_doubt {
    const struct journal *journal;
    void (*each)(void *argument, const char *id);
    void *argument;
};

static void note_in_doubt(void *context, const char *id)
{
    const struct in_doubt *d = context;
    struct journal_entry entry;
    struct error e;

    if (journal_read(d->journal, id, &entry, &e) == 0 ? entry.finished : e.code == ERROR_IO)
        d->each(d->argument, id); /* what cannot be read now may be finished, too */
}

static int each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e)
{
    struct in_doubt d = {&((struct folders *)context)->journal, each, argument};

    return journal_each(d.journal, note_in_doubt, &d, e);
}

/* What was never finished is not committed. */
static void clean_up(void *context, const char *id)
{
    const struct folders *folders = context;
    struct target target;
    struct error e = {0};

    target_init(&target, folders->roots, &folders->journal, folders->output_mode, id);
    int result = target_reopen(&target, &e);
    if (result == 0 && !target.entry.finished) {
        log_info("removing the unfinished output of exchange %s: %s/%s", id, target.entry.folder,
                 target.entry.temporary);
        if (target_discard(&target, &e) != 0)
            log_warning("%s at the next start", e.text);
    } else if (result != 0) {
        log_warning("%s", e.text);
        if (e.code == ERROR_DAMAGED)
            journal_remove(&folders->journal, id);
    }
    target_close(&target);
}

static void close_storage(void *context)
{
    struct folders *folders = context;

    folders->closed = true;
    if (folders->users == 0)
        close_journal(folders);
}

int folders_init(struct folders *folders, struct storage *storage, struct error *e)
{
    folders->sinks = NULL;
    folders->unused = close_journal;
    folders->kept = NULL;
    folders->unremoved = NULL;
    folders->users = folders->kept_count = 0;
    folders->closed = folders->storing = folders->stored_late = false;
    if (folders->files->limitation != NULL && folders->roots->count > 0)
        log_info("%s", folders->files->limitation);
    if (journal_open(&folders->journal, folders->files, folders->state_folder, e) != 0)
        return -1;
    if (roots_check_state_folder(folders->roots, folders->state_folder, folders->journal.folder,
                                 e) != 0) {
        journal_close(&folders->journal);
        return error_wrap(e, "state folder");
    }
    for (unsigned i = 0; i < TASKS_KEPT; i++) {
        struct task *task = malloc(sizeof *task);
        if (task == NULL) {
            close_journal(folders);
            return error_set(e, ERROR_MEMORY, "out of memory for a state folder");
        }
        free_task(folders, task);
    }
    if (journal_each(&folders->journal, clean_up, folders, e) != 0) {
        close_journal(folders);
        return -1;
    }
    *storage = (struct storage){
        .context = folders,
        .open_folders = open_folders,
        .record_commit = record_commit,
        .forget_commit = forget_commit,
        .each_committed = each_committed,
        .each_in_doubt = each_in_doubt,
        .resolve = resolve,
        .load_calibration = load_calibration,
        .store_calibration = store_calibration,
        .close = close_storage,
    };
    return 0;
}
