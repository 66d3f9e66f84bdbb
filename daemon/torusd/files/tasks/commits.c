#include "daemon/torusd/files/tasks/commits.h"

#include "daemon/torusd/files/tasks/tasks.h"

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
