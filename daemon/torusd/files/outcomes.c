#include "daemon/torusd/files/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/jobs.h"
#include "daemon/torusd/files/target.h"
#include "proto/text_file.h"

/* --- tasks --- */

#define TASKS_KEPT 64

struct task {
    struct work work;
    struct folders *folders;   /* NULL: in the reserve, and not in use */
    const struct roots *roots; /* this and the mode: those of the time when it began */
    mode_t output_mode;
    char id[128];
    bool committed;
    struct calibration calibration;
    storage_done_fn *told; /* NULL: nobody waits for the end */
    void *argument;
    struct error error;
};

static void free_task(struct folders *folders, struct task *task)
{
    if (task >= folders->task_reserve && task < folders->task_reserve + TASKS_KEPT)
        task->folders = NULL;
    else
        free(task);
}

static struct task *take_task(struct folders *folders)
{
    struct task *task = malloc(sizeof *task);

    for (unsigned i = 0; task == NULL && i < TASKS_KEPT; i++)
        if (folders->task_reserve[i].folders == NULL)
            task = &folders->task_reserve[i];
    return task;
}

void tasks_free(struct folders *folders)
{
    free(folders->task_reserve);
    folders->task_reserve = NULL;
}

int tasks_init(struct folders *folders)
{
    folders->task_reserve = calloc(TASKS_KEPT, sizeof *folders->task_reserve);
    return folders->task_reserve != NULL ? 0 : -1;
}

static void on_task_done(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct folders *folders = task->folders;

    if (task->told != NULL && !folders->closed)
        task->told(task->argument, task->id, task->error.code != ERROR_NONE ? &task->error : NULL);
    free_task(folders, task);
    folders_remove_user(folders);
}

/* Runs a task with these values. Returns NULL if there is no memory and the reserve is used up; then `told`
 * is not called. */
static struct task *tasks_begin(struct folders *folders, void (*run)(struct work *work),
                                const struct task *values)
{
    struct task *task = take_task(folders);

    if (task != NULL) {
        *task = *values;
        task->folders = folders;
        task->roots = folders->roots;
        task->output_mode = folders->output_mode;
        task->work.run = run;
        task->work.done = on_task_done;
        if (workers_submit(folders->workers, &task->work) == 0) {
            folders->users++;
            return task;
        }
        free_task(folders, task);
    }
    log_error("out of memory to write to state folder %s", folders->state_folder);
    return NULL;
}

/* Returns the values of a task for tasks_begin(); `told` may be NULL. */
static struct task tasks_values(const char *id, storage_done_fn *told, void *argument)
{
    struct task task = {.told = told, .argument = argument};

    (void)snprintf(task.id, sizeof task.id, "%s", id);
    return task;
}

/* --- the file of the calibration --- */

#define NAME "calibration"

/* Removes the carriage returns that an editor on another system adds at line ends. */
static void drop_carriage_returns(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (from[0] != '\r' || from[1] != '\n')
            *to++ = *from;
    *to = '\0';
}

int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e)
{
    static const struct text_kind calibration = {.name = "a calibration", .most = 1024};
    char bytes[CALIBRATION_TEXT_SIZE + 64], text[sizeof bytes];
    ssize_t fetched = journal_fetch(j, NAME, bytes, sizeof bytes - 1, e);
    const char *begin = bytes;
    size_t length = (size_t)fetched;

    if (fetched < 0)
        return e->code == ERROR_NONE ? 0 : -1;
    bytes[fetched] = '\0';
    if (text_check(&begin, &length, &calibration, e) != 0)
        return error_wrap(e, "%.200s/" NAME, j->path);
    (void)strcpy(text, begin);
    drop_carriage_returns(text);
    if (calibration_parse(text, c) != 0)
        return error_set(e, ERROR_IO,
                         "file %.200s/" NAME " is damaged: remove it, and run torusctl calibrate",
                         j->path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%.200s/" NAME, j->path);
    return 1;
}

int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e)
{
    char text[CALIBRATION_TEXT_SIZE];

    (void)calibration_format(c, text);
    /* Not synced, because neighbours send the calibration again. */
    return journal_replace(j, NAME, text, strlen(text), false, e);
}

/* --- the calibration --- */

static void run_store(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    (void)calibration_file_write(&task->folders->journal, &task->calibration, &task->error);
}

static void on_stored(void *argument, const char *id, const struct error *e)
{
    struct folders *folders = argument;

    (void)id;
    if (e != NULL)
        log_warning("the calibration cannot be written to the state folder: %s", e->text);
    folders->storing = false;
    if (folders->stored_late)
        calibrations_store(folders, &folders->calibration);
}

void calibrations_store(void *context, const struct calibration *c)
{
    struct folders *folders = context;
    struct task values = tasks_values("", on_stored, folders);

    if (folders->storing) {
        folders->calibration = *c;
        folders->stored_late = true;
        return;
    }
    folders->stored_late = false;
    values.calibration = *c;
    folders->storing = tasks_begin(folders, run_store, &values) != NULL;
}

int calibrations_load(void *context, struct calibration *c, struct error *e)
{
    return calibration_file_read(&((struct folders *)context)->journal, c, e);
}

/* --- decisions to commit --- */

static void run_record(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    if (journal_record_commit(&task->folders->journal, task->id, &task->error) != 0)
        (void)error_wrap(&task->error, "the decision to commit cannot be recorded");
}

void commits_record(void *context, const char *id, storage_done_fn *done, void *argument)
{
    const struct task values = tasks_values(id, done, argument);

    (void)tasks_begin(context, run_record, &values);
}

static void run_forget(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    journal_forget_commit(&task->folders->journal, task->id);
}

void commits_forget(void *context, const char *id)
{
    const struct task values = tasks_values(id, NULL, NULL);

    (void)tasks_begin(context, run_forget, &values);
}

int commits_each(void *context, void (*each)(void *argument, const char *id), void *argument,
                 struct error *e)
{
    return journal_each_committed(&((struct folders *)context)->journal, each, argument, e);
}

/* --- outcomes of outputs --- */

/* The job of outcomes_resolve() (outcomes.h). */
static void outcomes_run(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct target target;

    target_init(&target, task->roots, &task->folders->journal, task->folders->made,
                task->output_mode, task->id);
    if (target_reopen(&target, &task->error) != 0)
        (void)0; /* ERROR_NONE: the outcome was applied before */
    else if (task->committed)
        (void)target_install(&target, &task->error);
    else
        (void)target_discard(&target, &task->error);
    staging_close(&target.staging);
}

void outcomes_resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                      void *argument)
{
    struct task values = tasks_values(id, done, argument);

    values.committed = committed;
    (void)tasks_begin(context, outcomes_run, &values);
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
        /* an entry that cannot be read now may be that of a finished output */
        d->each(d->argument, id);
}

int outcomes_each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                           void *argument, struct error *e)
{
    struct in_doubt d = {&((struct folders *)context)->journal, each, argument};

    return journal_each(d.journal, note_in_doubt, &d, e);
}

void outcomes_clean_up(void *context, const char *id)
{
    const struct folders *folders = context;
    struct target target;
    struct error e = {0};

    target_init(&target, folders->roots, &folders->journal, folders->made, folders->output_mode,
                id);
    int result = target_reopen(&target, &e);
    if (result == 0 && !target.entry.finished) {
        log_info("removing the unfinished output of exchange %s: %s", id, target.staging.shown);
        if (target_discard(&target, &e) != 0)
            log_warning("%s at the next start", e.text);
    } else if (result != 0) {
        log_warning("%s", e.text);
        if (e.code == ERROR_DAMAGED)
            journal_remove(&folders->journal, id);
    }
    staging_close(&target.staging);
}

/* --- outputs that could not be removed --- */

#define UNREMOVED_MOST 64 /* most outputs in the list; the next start finds the others */

/* An output that could not be removed completely. */
struct unremoved {
    struct unremoved *next;
    char id[sizeof((struct target *)0)->id];
    bool trying;
};

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

void unremoved_add(struct folders *folders, const char *id)
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

void unremoved_retry(struct folders *folders)
{
    for (struct unremoved *u = folders->unremoved; u != NULL; u = u->next)
        if (!u->trying && !open_sinks_have(folders->sinks, u->id)) {
            const struct task values = tasks_values(u->id, on_removed, folders);
            u->trying = tasks_begin(folders, outcomes_run, &values) != NULL;
        }
}

void unremoved_free(struct folders *folders)
{
    while (folders->unremoved != NULL) {
        struct unremoved *u = folders->unremoved;
        folders->unremoved = u->next;
        free(u);
    }
}
