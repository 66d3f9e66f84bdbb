#include "daemon/torusd/files/sink/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/sink/output_file.h"
#include "daemon/torusd/files/target/target.h"

static void run_prepare(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (s->jobs.error.code == ERROR_NONE && target_prepare(&s->target, &s->place, s->request.rank,
                                                           s->request.replace, &s->jobs.error) == 0)
        s->in_memory = sink_files(s)->in_memory(sink_files(s)->context, s->target.folder);
}

static void on_prepared(struct work *work);

/* Keeps a file that is as the last attempt has left it, and has a block in the next one. Returns 0, or -1 with *e. */
static int take_over_file(struct folder_sink *s, uint32_t i, struct error *e)
{
    struct output *o = &s->output[i];
    enum file_kind kind = FILE_REGULAR;
    char name[16];
    int there = output_is_there(s, i, &kind);

    if (there < 0 && there != -ENOENT)
        return output_cannot_write(s, i, there, e);
    if (there == 1 && output_has_block(s, i))
        return 0;
    (void)snprintf(name, sizeof name, "%u", i);
    if (there == 0) {
        (void)target_file_differs(&s->target, name, kind, e);
        if (kind != FILE_REGULAR)
            return -1;
        log_warning("exchange %s: %s; the block arrives again", s->open.id, e->text);
        *e = (struct error){0};
    }
    output_close(s, i);
    if (there != -ENOENT && target_remove_file(&s->target, i, e) != 0)
        return -1;
    o->made = o->written = false;
    return 0;
}

static void run_take_over(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error *e = &s->jobs.error;

    if (target_rename(&s->target, s->open.next_id, s->request.rank, e) != 0)
        return;
    for (uint32_t i = 0; i < s->request.nodes; i++)
        if (s->output[i].made && take_over_file(s, i, e) != 0)
            return;
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

bool sink_lost(struct sink *base, uint32_t origin)
{
    /* An attempt may be withdrawn after it has removed the file, and before its node has told that. */
    return !((struct folder_sink *)base)->output[origin].made;
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
