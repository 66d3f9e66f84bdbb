#include "daemon/torusd/files/tasks/outcomes.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/target/target.h"
#include "daemon/torusd/files/tasks/tasks.h"

void outcomes_run(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct target target;

    target_init(&target, task->roots, &task->folders->journal, task->folders->made,
                task->output_mode, task->id);
    if (target_reopen(&target, &task->error) != 0)
        (void)0; /* ERROR_NONE: the outcome was applied before */
    else if (task->committed)
        (void)target_place(&target, &task->error);
    else
        (void)target_discard(&target, &task->error);
    target_close(&target);
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
