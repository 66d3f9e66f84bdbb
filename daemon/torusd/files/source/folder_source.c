#include "daemon/torusd/files/source/folder_source.h"

#include <stdlib.h>

#include "daemon/torusd/files/source/chunks.h"
#include "daemon/torusd/files/source/final_check.h"
#include "daemon/torusd/files/source/opening.h"
#include "daemon/torusd/files/source/reading.h"
#include "daemon/torusd/files/source/rereading.h"

static void run_close(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);

    for (uint32_t d = 0; d < s->request.nodes; d++)
        if (s->file[d].fd >= 0) {
            source_files(s)->close(source_files(s)->context, s->file[d].fd);
            folders_return_descriptor(s->folders);
        }
}

static void free_source(struct jobs *jobs)
{
    struct folder_source *s = JOB_OWNER(jobs, struct folder_source, jobs);
    struct folders *folders = s->folders;
    size_t readers = s->readers == NULL ? 0 : (size_t)s->request.nodes * s->segments.count;

    for (size_t i = 0; i < readers; i++)
        for (int c = 0; c < 2; c++)
            chunks_drop(&s->readers[i].chunk[c]);
    slab_writer_close(&s->writer);
    free(s->rereading.bytes);
    free(s->rereading.run);
    free(s->readers);
    free(s->file);
    free(s->gone);
    free(s);
    folders_remove_user(folders);
}

static bool source_close(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;

    return jobs_close(&s->jobs);
}

static void ignore(void *context)
{
    (void)context;
}

static void ignore_error(void *context, const struct error *e)
{
    (void)context, (void)e;
}

void folder_source_disown(struct source *source)
{
    struct folder_source *s = (struct folder_source *)source;

    s->jobs.events = (struct block_events){NULL, ignore, ignore_error, ignore};
    (void)source_close(source);
}

struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events)
{
    static const struct source_ops ops = {.opened = source_opened,
                                          .lay_out = source_lay_out,
                                          .size = source_size,
                                          .read = source_read,
                                          .reread = source_reread,
                                          .finish = source_finish,
                                          .close = source_close,
                                          .mark = source_mark};
    struct folder_source *s = calloc(1, sizeof *s);
    struct file *file = calloc(request->nodes, sizeof *file);
    bool *gone = calloc(request->nodes, sizeof *gone);

    if (s == NULL || file == NULL || gone == NULL)
        goto no_memory;
    for (uint32_t d = 0; d < request->nodes; d++)
        gone[d] = folder_is_gone(request, d);
    *s = (struct folder_source){.base = {&ops, true},
                                .folders = folders,
                                .roots = folders->roots,
                                .jobs = {.workers = folders->workers,
                                         .events = *events,
                                         .run_close = run_close,
                                         .release = free_source},
                                .request = *request,
                                .gone = gone,
                                .file = file};
    s->request.gone = gone;
    s->request.id = s->request.from = s->request.to = NULL;
    s->request.marks = NULL;
    s->request.kept_sink = NULL;
    s->queue_end = &s->queue;
    for (uint32_t d = 0; d < request->nodes; d++) {
        file[d].fd = -1;
        file[d].marked = request->marks != NULL ? request->marks[d] : 0;
    }
    /* An invalid path is reported like errors that jobs find. */
    (void)path_expand(request->from, request->rank, s->folder, &s->jobs.error);
    if (!source_open(s))
        goto no_memory;
    folders->users++;
    return &s->base;
no_memory:
    free(file);
    free(gone);
    free(s);
    return NULL;
}
