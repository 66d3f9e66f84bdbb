#include "daemon/torusd/files/sink/placing.h"

#include "daemon/torusd/files/target/target.h"

static void run_place(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    (void)target_place(&s->target, &s->jobs.error);
    s->not_removed = s->target.old_result_remains;
}

static void on_placed(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    s->state = s->jobs.error.code == ERROR_NONE ? PLACED : FINISHED;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

int sink_commit(struct sink *base, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->not_placed =
        s->state != PLACED; /* closing must not remove the output: it is complete, and can still
                                         * be put in place */
    if (s->state == FINISHED && s->jobs.error.code != ERROR_NONE) {
        *e = s->jobs.error;
        s->jobs.error = (struct error){0};
        return -1;
    }
    if (s->state == FINISHED && jobs_begin(&s->jobs, run_place, on_placed))
        s->state = PLACING;
    return s->state == PLACED ? 1 : 0;
}
