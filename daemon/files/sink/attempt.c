#include "daemon/files/sink/attempt.h"

#include <stdio.h>
#include <string.h>

#include "daemon/files/sink/output_file.h"
#include "daemon/files/target/target.h"

static void run_prepare(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (s->jobs.error.code == ERROR_NONE && target_prepare(&s->target, &s->place, s->request.rank,
                                                           s->request.replace, &s->jobs.error) == 0)
        s->in_memory = sink_files(s)->in_memory(sink_files(s)->context, s->target.folder);
}

static void on_prepared(struct work *work);

static void run_take_over(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error *e = &s->jobs.error;

    if (target_rename(&s->target, s->open.next_id, s->request.rank, e) != 0)
        return;
    for (uint32_t i = 0; i < s->request.nodes; i++) {
        struct output *o = &s->output[i];
        if (output_has_block(s, i) || !o->made)
            continue;
        output_close(s, i);
        if (target_remove_file(&s->target, i, e) != 0)
            return;
        o->made = o->written = false;
    }
}

/* Starts the next attempt, unless jobs of the last one are under way. Returns 0, or -1 with *e. */
static int start_next(struct folder_sink *s, struct error *e)
{
    if (s->jobs.under_way > 0 || s->pending > 0 || s->jobs.failed)
        return 0;
    memcpy(s->open.next_id, s->open.id, sizeof s->open.next_id);
    memcpy(s->gone, s->next_gone, s->request.nodes * sizeof *s->gone);
    for (uint32_t i = 0; i < s->request.nodes; i++)
        s->output[i].limit = 0;
    if (!jobs_begin(&s->jobs, run_take_over, on_prepared))
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    s->is_retried = false;
    s->state = OPENING;
    return 0;
}

bool attempt_start_next(struct folder_sink *s)
{
    struct error e;

    if (!s->is_retried)
        return false;
    if (start_next(s, &e) != 0)
        jobs_fail(&s->jobs, &e);
    return true;
}

static void on_prepared(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (!jobs_step_over(&s->jobs) || attempt_start_next(s))
        return;
    s->state = PREPARED;
    s->jobs.events.wake(s->jobs.events.context);
}

bool attempt_prepare(struct folder_sink *s)
{
    return jobs_begin(&s->jobs, run_prepare, on_prepared);
}

bool sink_keep_output(struct sink *base, const struct block_events *events)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->jobs.failed || s->state >= PLACING)
        return false;
    s->jobs.events = *events;
    return true;
}

void sink_limit(struct sink *base, uint32_t origin, uint64_t size)
{
    ((struct folder_sink *)base)->output[origin].limit = size;
}

struct sink *attempt_take_over(struct folder_sink *s, const struct folder_request *request,
                               const struct block_events *events)
{
    struct error e;

    for (uint32_t i = 0; i < request->nodes; i++)
        s->next_gone[i] = folder_is_gone(request, i);
    (void)snprintf(s->open.id, sizeof s->open.id, "%s", request->id);
    s->is_retried = true;
    if (start_next(s, &e) != 0)
        return NULL;
    s->jobs.events = *events;
    return &s->base;
}
