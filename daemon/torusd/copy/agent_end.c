#include "daemon/torusd/copy/agent.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"

/* --- memory for the calls of a group --- */

static void free_memory(struct program_memory *memory)
{
    free(memory->data);
    free(memory);
}

struct program_memory *copy_memory_new(uint64_t size)
{
    struct program_memory *memory = malloc(sizeof *memory);

    if (memory == NULL)
        return NULL;
    *memory = (struct program_memory){malloc(size > 0 ? size : 1), size, 1, free_memory};
    if (memory->data != NULL)
        return memory;
    free(memory);
    return NULL;
}

/* --- ending early --- */

void agent_wake(struct agent *a)
{
    a->woken(a);
}

void agent_end_early(struct agent *a, const struct error *e)
{
    a->error = *e;
    a->refuses = !a->opened && a->initiator != a->rank;
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

void agent_fail_for_memory(struct agent *a)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "node %u has no memory for the copy", a->rank);
    (void)error_blame_node(&e, a->rank);
    agent_fail(a, &e);
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
