#include "daemon/torusd/files/jobs.h"

bool jobs_submit(struct jobs *j, struct work *work)
{
    if (workers_submit(j->workers, work) != 0)
        return false;
    j->under_way++;
    return true;
}

bool jobs_begin(struct jobs *j, void (*run)(struct work *step), void (*done)(struct work *step))
{
    j->step.run = run;
    j->step.done = done;
    return jobs_submit(j, &j->step);
}

static void on_closed(struct work *step)
{
    struct jobs *j = JOB_OWNER(step, struct jobs, step);
    struct block_events events = j->events;

    j->release(j);
    events.closed(events.context);
}

/* Starts the closing step. Returns whether closing is already done. */
static bool begin_to_close(struct jobs *j)
{
    j->step.run = j->run_close;
    j->step.done = on_closed;
    if (workers_submit(j->workers, &j->step) == 0)
        return false;
    j->run_close(&j->step); /* there is no memory for a job */
    return true;
}

bool jobs_over(struct jobs *j)
{
    j->under_way--;
    if (!j->closing)
        return true;
    if (j->under_way == 0 && begin_to_close(j))
        on_closed(&j->step);
    return false;
}

bool jobs_step_over(struct jobs *j)
{
    if (!jobs_over(j))
        return false;
    if (j->error.code == ERROR_NONE)
        return true;
    jobs_fail(j, &j->error);
    return false;
}

void jobs_fail(struct jobs *j, const struct error *e)
{
    if (j->failed)
        return;
    j->failed = true;
    j->events.failed(j->events.context, e);
}

bool jobs_close(struct jobs *j)
{
    j->closing = true;
    if (j->under_way > 0 || !begin_to_close(j))
        return false;
    j->release(j);
    return true;
}
