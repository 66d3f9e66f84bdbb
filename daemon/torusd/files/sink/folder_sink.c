#include "daemon/torusd/files/sink/folder_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/sink/attempt.h"
#include "daemon/torusd/files/sink/lay_out.h"
#include "daemon/torusd/files/sink/output_file.h"
#include "daemon/torusd/files/sink/pieces.h"
#include "daemon/torusd/files/sink/placing.h"
#include "daemon/torusd/files/sink/sealing.h"
#include "daemon/torusd/files/sink/writing.h"
#include "daemon/torusd/files/target/target.h"
#include "daemon/torusd/files/tasks/unremoved.h"

static void run_close(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error e;

    for (uint32_t i = 0; i < s->request.nodes; i++)
        output_close(s, i);
    if (s->state == PLACED || s->keep_output) {
        target_close(&s->target);
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

    s->keep_output = keep || s->not_placed;
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
        if (!roots_same_place(other->target.roots, &other->place, s->target.roots, &s->place))
            continue;
        if (strcmp(open->id, id) == 0)
            return error_set(e, ERROR_REFUSED,
                             "target %s is also the target of another node: put %%r (the node's "
                             "rank) into its path",
                             path);
        return error_set(e, ERROR_BUSY, "another exchange is writing to target %s", path);
    }
    return 0;
}

/* Errors that are known now are reported like those that jobs find. */
static void find_place(struct folder_sink *s, const struct folder_request *request)
{
    struct error *e = &s->jobs.error;
    char path[PATH_MAX];

    if (path_expand(request->to, request->rank, path, e) == 0 &&
        roots_find_target(s->folders->roots, path, &s->place, e) == 0)
        (void)check_own_rivals(s, request->id, path, e);
    if (e->code != ERROR_NONE)
        s->place.path[0] = '\0'; /* no place: the path is invalid */
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
