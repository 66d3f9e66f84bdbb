#include "daemon/torusd/copy/agent_record.h"

#include "daemon/lib/base/log.h"

void agent_wake(struct agent *a)
{
    a->woken(a);
}

void agent_end_early(struct agent *a, const struct error *e)
{
    a->error = *e;
    a->refuses = !a->opened && a->asker != a->rank;
    a->step = STEP_ENDING;
    a->job_done = false;
    a->group = NULL;
    atomic_store(&a->progress.stop, true);
    agent_wake(a);
}

void agent_fail(struct agent *a, const struct error *e)
{
    struct group *group = a->group;

    if (a->step == STEP_ENDING)
        return;
    log_warning("copy %s.%u has failed here: %s", a->id_text, a->attempt, e->text);
    agent_end_early(a, e);
    if (group != NULL)
        group_abandon(group, e);
}

int agent_call(struct agent *a, const struct group_call *call, uint64_t name)
{
    struct error e;

    if (group_call(a->group, call, name, &e) == 0)
        return 0;
    (void)error_blame_node(&e, a->rank);
    agent_fail(a, &e);
    return -1;
}
