#include "daemon/torusd/files/sink/sealing.h"

#include <stdio.h>
#include <string.h>

#include "daemon/torusd/files/sink/attempt.h"
#include "daemon/torusd/files/sink/output_file.h"
#include "daemon/torusd/files/sink/parts.h"
#include "daemon/torusd/files/target/target.h"

/* Every file must be on the disk before the journal's entry says that the output is complete, so each file is
 * synced. All syncs are started before the first one is waited for: the disk then writes the files together,
 * and a journalling file system commits them together. A file without bytes is only a name, and reaches the
 * disk with the folder. */
static int sync_files(struct folder_sink *s, struct part *part, bool wait)
{
    const struct file_system *files = sink_files(s);

    for (uint32_t i = part->first; i < part->end; i++) {
        struct output *o = &s->output[i];
        int result = 0;
        if (o->written) {
            int fd = output_open(s, i, &part->error);
            if (fd < 0)
                return -1;
            if (wait)
                result = files->sync(files->context, fd);
            else
                output_start_sync(s, o, fd);
            output_leave(s, i, fd);
        }
        if (wait)
            output_close(s, i);
        if (result < 0)
            return error_set(&part->error, ERROR_IO, "%s/%s/%u cannot be synced: %s",
                             s->target.entry.folder, s->target.entry.final, i, strerror(-result));
    }
    return 0;
}

static void run_sync(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);

    if (sync_files(part->owner, part, false) == 0)
        (void)sync_files(part->owner, part, true);
}

/* Names the first file that somebody has changed, if there is one. */
static void name_changed(const struct folder_sink *s, struct error *e)
{
    enum file_kind kind = FILE_REGULAR;
    char name[16];

    for (uint32_t i = 0; i < s->request.nodes; i++) {
        const int there = s->output[i].made ? output_is_there(s, i, &kind) : 1;
        if (there == 1)
            continue;
        (void)snprintf(name, sizeof name, "%u", i);
        (void)target_file_differs(&s->target, name, kind, e);
        return;
    }
}

static void run_seal(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    uint64_t contents = 0;

    for (uint32_t i = 0; i < s->request.nodes; i++)
        contents += s->output[i].made ? s->output[i].stamp : 0;
    if (target_seal(&s->target, contents, &s->jobs.error) != 0 &&
        s->jobs.error.code == ERROR_DAMAGED)
        name_changed(s, &s->jobs.error);
}

static void on_sealed(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (!jobs_step_over(&s->jobs) || attempt_start_next(s))
        return;
    s->state = FINISHED;
    s->jobs.events.wake(s->jobs.events.context);
}

static int on_synced(struct folder_sink *s)
{
    return jobs_begin(&s->jobs, run_seal, on_sealed) ? 0 : -1;
}

bool sink_finish(struct sink *base)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->state == FILLING && s->pending == 0 && !s->jobs.failed &&
        parts_begin(s, run_sync, on_synced) == 0)
        s->state = SYNCING; /* otherwise there is no memory, and the caller asks again */
    return s->state > SYNCING;
}
