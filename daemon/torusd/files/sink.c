#include "daemon/torusd/files/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/staging.h"
#include "daemon/torusd/files/outcomes.h"
#include "daemon/torusd/files/target.h"

/* Jobs that together make or sync all files of an output. */

#define PART_LEAST 16u /* files */

static void on_part_done(struct work *work);

/* Gives files to jobs, while there are free jobs and memory. */
static void start_parts(struct folder_sink *s)
{
    uint32_t nodes = s->request.nodes, each = (nodes + PARTS - 1) / PARTS;

    if (each < PART_LEAST)
        each = PART_LEAST;
    for (unsigned i = 0; i < PARTS && s->next_file < nodes; i++) {
        struct part *part = &s->part[i];
        if (part->owner != NULL)
            continue;
        *part = (struct part){.owner = s, .first = s->next_file};
        part->end = nodes - part->first > each ? part->first + each : nodes;
        part->work.run = s->run_part;
        part->work.done = on_part_done;
        if (!jobs_submit(&s->jobs, &part->work)) {
            part->owner = NULL;
            return;
        }
        s->parts++;
        s->next_file = part->end;
    }
}

/* Runs `run` in several jobs, each for a part of the files, and calls over() on the loop if all succeeded.
 * Returns 0, or -1 if there is no memory. */
static int parts_begin(struct folder_sink *s, void (*run)(struct work *work),
                       int (*over)(struct folder_sink *s))
{
    s->run_part = run;
    s->parts_over = over;
    s->next_file = 0;
    start_parts(s);
    return s->parts > 0 ? 0 : -1;
}

static void on_part_done(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);
    struct folder_sink *s = part->owner;

    part->owner = NULL;
    s->parts--;
    if (!jobs_over(&s->jobs))
        return;
    if (part->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &part->error);
    if (s->jobs.failed || attempt_start_next(s))
        return;
    start_parts(s);
    if (s->parts > 0 || (s->next_file == s->request.nodes && s->parts_over(s) == 0))
        return;
    (void)error_set(&part->error, ERROR_MEMORY, "out of memory to write files");
    jobs_fail(&s->jobs, &part->error);
}

/* Makes all files of an output before bytes arrive. */

static void run_make(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);
    struct folder_sink *s = part->owner;

    for (uint32_t i = part->first; i < part->end; i++) {
        if (!output_has_block(s, i))
            continue;
        int fd = output_open(s, i, &part->error);
        if (fd < 0)
            return;
        int result = output_limit(s, i, fd, &part->error);
        output_leave(s, i, fd);
        if (result != 0)
            return;
    }
}

static int on_made(struct folder_sink *s)
{
    s->state = FILLING;
    s->jobs.events.wake(s->jobs.events.context);
    return 0;
}

/* As sink_ops.lay_out(). */
static int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    (void)round_bytes, (void)segments;
    if (parts_begin(s, run_make, on_made) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    s->state = MAKING;
    return 0;
}

/* Brings all files to the disk, and then records in the journal that the output is finished. */

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
            return error_set(&part->error, ERROR_IO, "%s/%u cannot be synced: %s",
                             s->target.staging.path, i, strerror(-result));
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

    for (uint32_t i = 0; i < s->request.nodes; i++)
        if (s->output[i].made && output_is_there(s, i, &kind) != 1) {
            (void)target_file_differs(&s->target, target_name(i).text, kind, e);
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

/* As sink_ops.finish(). */
static bool sink_finish(struct sink *base)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->state == FILLING && s->pending == 0 && !s->jobs.failed &&
        parts_begin(s, run_sync, on_synced) == 0)
        s->state = SYNCING; /* otherwise there is no memory, and the caller asks again */
    return s->state > SYNCING;
}

/* Gives the output its final name. */

static void run_place(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    (void)target_install(&s->target, &s->jobs.error);
    s->not_removed = s->target.old_result_remains;
}

static void on_installed(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    s->state = s->jobs.error.code == ERROR_NONE ? INSTALLED : FINISHED;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

/* As sink_ops.commit(). */
static int sink_commit(struct sink *base, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->not_installed =
        s->state != INSTALLED; /* closing must not remove the output: it is complete, and can still
                                         * be put in place */
    if (s->state == FINISHED && s->jobs.error.code != ERROR_NONE) {
        *e = s->jobs.error;
        s->jobs.error = (struct error){0};
        return -1;
    }
    if (s->state == FINISHED && jobs_begin(&s->jobs, run_place, on_installed))
        s->state = INSTALLING;
    return s->state == INSTALLED ? 1 : 0;
}

static void run_close(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error e;

    for (uint32_t i = 0; i < s->request.nodes; i++)
        output_close(s, i);
    if (s->state == INSTALLED || s->keep_output) {
        staging_close(&s->target.staging);
    } else if (target_discard(&s->target, &e) != 0) {
        log_warning("%s", e.text);
        s->not_removed = true;
    }
}

static void free_sink(struct jobs *jobs)
{
    struct folder_sink *s = JOB_OWNER(jobs, struct folder_sink, jobs);
    struct folders *folders = s->folders;
    struct open_sink **at = &folders->sinks;

    while (*at != &s->open)
        at = &(*at)->next;
    *at = s->open.next;
    if (s->not_removed)
        unremoved_add(folders, s->target.id);
    if (!folders->closed)
        unremoved_retry(folders);
    for (uint32_t i = 0; i < s->request.nodes; i++)
        pieces_drop(s, s->output[i].first);
    slab_writer_close(&s->kept);
    free(s->output);
    free(s->gone);
    free(s->next_gone);
    free(s);
    folders_remove_user(folders);
}

static bool sink_close(struct sink *base, bool keep)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->keep_output = keep || s->not_installed;
    return jobs_close(&s->jobs);
}

static bool sink_opened(struct sink *base)
{
    const struct folder_sink *s = (const struct folder_sink *)base;

    return s->state != OPENING && s->state != MAKING && !s->is_retried;
}

/* Checks that no other exchange of this node writes to the target. An exchange has its target until its sink
 * has no work left.
 */
static int check_own_rivals(const struct folder_sink *s, const char *id, const char *path,
                            struct error *e)
{
    for (struct open_sink *open = s->folders->sinks; open != NULL; open = open->next) {
        const struct folder_sink *other = JOB_OWNER(open, struct folder_sink, open);
        if (strcmp(other->target.staging.path, s->target.staging.path) != 0)
            continue;
        return strcmp(open->id, id) == 0 ? staging_shared(path, e)
                                         : staging_rival("another exchange", path, e);
    }
    return 0;
}

/* Errors that are known now are reported like those that jobs find. */
static void find_place(struct folder_sink *s, const struct folder_request *request)
{
    struct error *e = &s->jobs.error;
    char path[PATH_MAX];

    if (path_expand(request->to, request->rank, path, e) == 0 &&
        target_find(&s->target, path, request->rank, e) == 0)
        (void)check_own_rivals(s, request->id, path, e);
    if (e->code != ERROR_NONE)
        s->target.staging.path[0] = '\0'; /* it is nobody's rival */
}

struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events)
{
    static const struct sink_ops ops = {.opened = sink_opened,
                                        .lay_out = sink_lay_out,
                                        .write = sink_write,
                                        .pending = sink_pending,
                                        .finish = sink_finish,
                                        .commit = sink_commit,
                                        .close = sink_close,
                                        .keep_output = sink_keep_output,
                                        .lost = sink_lost,
                                        .limit = sink_limit};
    if (request->kept_sink != NULL)
        return attempt_take_over((struct folder_sink *)request->kept_sink, request, events);
    struct folder_sink *s = calloc(1, sizeof *s);
    struct output *output = calloc(request->nodes, sizeof *output);
    bool *gone = calloc(request->nodes, sizeof *gone);
    bool *next_gone = calloc(request->nodes, sizeof *next_gone);

    if (s == NULL || output == NULL || gone == NULL || next_gone == NULL)
        goto no_memory;
    s->base = (struct sink){&ops, true, CHECK_DIGEST};
    s->folders = folders;
    s->jobs = (struct jobs){.workers = folders->workers, .events = *events, .run_close = run_close};
    s->jobs.release = free_sink;
    s->request = *request;
    s->request.id = s->request.from = s->request.to = NULL;
    s->request.kept_sink = NULL;
    s->request.marks = NULL;
    s->request.gone = s->gone = gone;
    s->next_gone = next_gone;
    (void)snprintf(s->open.id, sizeof s->open.id, "%s", request->id);
    s->output = output;
    s->queue = NONE;
    for (uint32_t i = 0; i < request->nodes; i++) {
        output[i].fd = -1;
        gone[i] = folder_is_gone(request, i);
    }
    target_init(&s->target, folders->roots, &folders->journal, folders->made, folders->output_mode,
                request->id);
    find_place(s, request);
    if (!attempt_prepare(s))
        goto no_memory;
    s->open.next = folders->sinks;
    folders->sinks = &s->open;
    folders->users++;
    return &s->base;
no_memory:
    free(output);
    free(gone);
    free(next_gone);
    free(s);
    return NULL;
}
