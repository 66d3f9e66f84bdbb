/* A folder with a file for each destination, named by its rank; or one file for all, which is that
 * for the node itself. Each segment of a file is read ahead in chunks, one that is being sent and
 * one behind it.
 *
 *     OPENING --files found--> OPEN --all read, finish()--> CHECKING --unchanged--> CHECKED
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/digests.h"
#include "daemon/files/jobs.h"

#define CHUNK_MOST SLAB_SIZE
#define CHUNK_LEAST (4u * 1024u)
#define FILE_PATH (PATH_MAX + 16)
#define READ_AHEAD (8u * 1024u * 1024u) /* of all files together */

enum source_state { OPENING, OPEN, CHECKING, CHECKED };

struct folder_source;

struct chunk {
    struct work work;
    struct folder_source *owner;
    struct extent bytes; /* slab NULL: not in use */
    uint64_t offset;
    uint32_t file;
    bool reading;
    ssize_t result;
};

/* A segment of a file: in each round one run of bytes. */
struct reader {
    uint64_t requested; /* where the next chunk begins */
    struct chunk chunk[2];
};

struct file {
    int fd; /* -1: missing, an empty block */
    struct file_status status;
    struct reader *reader; /* by segment, once laid out */
};

struct folder_source {
    struct source base;
    struct folders *folders;
    struct jobs jobs;              /* steps: opening, checking, closing */
    struct folder_request request; /* its strings are not kept: */
    char folder[PATH_MAX];
    bool single; /* it is the file itself */
    enum source_state state;
    uint32_t chunk_size;
    struct slab_writer writer;
    struct file *file;
    struct reader *readers; /* of all files */
    struct digests digests;
};

static const struct file_system *files_of(const struct folder_source *s)
{
    return s->folders->files;
}

/* The path of a block's file; `out` has room for FILE_PATH. */
static const char *file_path(const struct folder_source *s, uint32_t d, char *out)
{
    int n = snprintf(out, FILE_PATH, "%s", s->folder);
    if (!s->single)
        (void)snprintf(out + n, FILE_PATH - (size_t)n, "/%u", d);
    return out;
}

/* --- closing --- */

static void run_close(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);

    for (uint32_t d = 0; d < s->request.nodes; d++)
        if (s->file[d].fd >= 0)
            files_of(s)->close(files_of(s)->context, s->file[d].fd);
}

static void release(struct jobs *jobs)
{
    struct folder_source *s = JOB_OWNER(jobs, struct folder_source, jobs);
    struct folders *folders = s->folders;
    size_t readers = s->readers == NULL ? 0 : (size_t)s->request.nodes * s->digests.segments;

    for (size_t i = 0; i < readers; i++)
        for (int c = 0; c < 2; c++)
            if (s->readers[i].chunk[c].bytes.slab != NULL)
                slab_unref(s->readers[i].chunk[c].bytes.slab);
    digests_free(&s->digests);
    slab_writer_close(&s->writer);
    free(s->readers);
    free(s->file);
    free(s);
    folders_release(folders);
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

/* --- opening --- */

static int open_file(struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file_system *files = files_of(s);
    struct file *f = &s->file[d];
    struct place place;
    char path[FILE_PATH];

    f->fd = roots_open(s->folders->roots, file_path(s, d, path), &place, &f->status, e);
    if (f->fd >= 0 && f->status.kind == FILE_REGULAR)
        return 0;
    if (f->fd >= 0) {
        files->close(files->context, f->fd);
        f->fd = -1;
        return error_set(e, ERROR_REFUSED, "%s is not a regular file", path);
    }
    f->status = (struct file_status){0};
    if (e->code != ERROR_NONE)
        return -1;
    if (s->request.missing_ok)
        return 0;
    return error_set(
        e, ERROR_REFUSED,
        "missing source file %s (the block %s node %u); --missing-ok treats it as empty", path,
        s->request.operation == OPERATION_EXCHANGE ? "for" : "of", d);
}

/* Whether the source is a folder of files or, where that is possible, the file itself. */
static int look_at(struct folder_source *s, const char *from, struct error *e)
{
    const struct file_system *files = files_of(s);
    struct place place;
    struct file_status status = {.kind = FILE_OTHER};
    int file = roots_open(s->folders->roots, from, &place, &status, e);
    bool exchange = s->request.operation == OPERATION_EXCHANGE;

    if (file >= 0)
        files->close(files->context, file);
    else if (e->code != ERROR_NONE || exchange) {
        if (e->code == ERROR_NONE)
            e->code = ERROR_IO;
        return -1;
    }
    if (exchange && status.kind != FILE_FOLDER)
        return error_set(e, ERROR_REFUSED, "%s is not a folder", from);
    s->single = status.kind != FILE_FOLDER;
    return 0;
}

static void run_open(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);
    bool exchange = s->request.operation == OPERATION_EXCHANGE;
    uint32_t first = exchange ? 0 : s->request.rank, end = exchange ? s->request.nodes : first + 1;
    struct error *e = &s->jobs.error;

    if (e->code != ERROR_NONE || !folder_sends(&s->request, s->request.rank))
        return;
    if (look_at(s, s->folder, e) != 0)
        return;
    for (uint32_t d = first; d < end; d++)
        if (open_file(s, d, e) != 0)
            return;
    e->code = ERROR_NONE; /* missing files have filled it in */
}

/* Opening or checking is over: on to `state`, or it has failed. */
static void step_over(struct folder_source *s, enum source_state state)
{
    if (!jobs_step_over(&s->jobs))
        return;
    s->state = state;
    s->jobs.events.wake(s->jobs.events.context);
}

static void on_opened(struct work *work)
{
    step_over(JOB_OWNER(work, struct folder_source, jobs.step), OPEN);
}

static bool source_opened(struct source *base)
{
    return ((struct folder_source *)base)->state != OPENING;
}

static uint64_t source_size(struct source *base, uint32_t destination)
{
    return ((struct folder_source *)base)->file[destination].status.size;
}

static int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    uint32_t nodes = s->request.nodes;
    bool one = s->request.operation != OPERATION_EXCHANGE;

    if (digests_init(&s->digests, &s->request, true, round_bytes, segments) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    s->readers = calloc((size_t)nodes * s->digests.segments, sizeof *s->readers);
    if (s->readers == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    for (uint32_t d = 0; d < nodes; d++) {
        s->file[d].reader = &s->readers[(size_t)d * s->digests.segments];
        for (uint32_t i = 1; i < s->digests.segments; i++)
            s->file[d].reader[i].requested = i * s->digests.run_bytes;
    }
    s->chunk_size =
        READ_AHEAD / 2 / (one ? 1 : nodes) / s->digests.segments / CHUNK_LEAST * CHUNK_LEAST;
    if (s->chunk_size < CHUNK_LEAST)
        s->chunk_size = CHUNK_LEAST;
    if (s->chunk_size > CHUNK_MOST)
        s->chunk_size = CHUNK_MOST;
    return 0;
}

/* --- reading --- */

static void run_read(struct work *work)
{
    struct chunk *c = JOB_OWNER(work, struct chunk, work);
    const struct file_system *files = files_of(c->owner);

    ssize_t result = 1;

    c->result = 0;
    while (result > 0 && c->result < (ssize_t)c->bytes.length) {
        uint64_t done = (uint64_t)c->result;
        result = files->read(files->context, c->owner->file[c->file].fd,
                             (uint8_t *)(uintptr_t)c->bytes.data + done, c->bytes.length - done,
                             c->offset + done);
        c->result = result < 0 ? result : c->result + result;
    }
}

static void on_read(struct work *work)
{
    struct chunk *c = JOB_OWNER(work, struct chunk, work);
    struct folder_source *s = c->owner;

    c->reading = false;
    if (!jobs_over(&s->jobs))
        return;
    if (c->result != (ssize_t)c->bytes.length) {
        char path[FILE_PATH];
        struct error e;
        (void)file_path(s, c->file, path);
        if (c->result < 0)
            (void)error_set(&e, ERROR_IO, "%s cannot be read: %s", path, strerror((int)-c->result));
        else
            (void)error_set(&e, ERROR_IO, "%s has become shorter while it was being sent", path);
        jobs_fail(&s->jobs, &e);
        return;
    }
    s->jobs.events.wake(s->jobs.events.context);
}

/* Where the run of bytes that contains `offset` ends. */
static uint64_t run_end(const struct folder_source *s, const struct file *f, uint64_t offset)
{
    const struct digests *d = &s->digests;
    uint64_t end = f->status.size;

    if (d->segments > 1) {
        uint64_t round = offset - offset % d->round_bytes;
        uint64_t run = (digests_segment(d, offset) + 1) * d->run_bytes;
        run = round + (run < d->round_bytes ? run : d->round_bytes);
        end = run < end ? run : end;
    }
    return end;
}

/* Starts to read the next chunk of a segment into `c`. */
static int start_read(struct folder_source *s, const struct file *f, struct reader *r,
                      struct chunk *c, struct error *e)
{
    uint64_t end = run_end(s, f, r->requested), left = end - r->requested;
    uint32_t length = left < s->chunk_size ? (uint32_t)left : s->chunk_size;

    if (slab_writer_take(&s->writer, s->folders->pool, length, &c->bytes) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    c->owner = s;
    c->offset = r->requested;
    c->file = (uint32_t)(f - s->file);
    c->work.run = run_read;
    c->work.done = on_read;
    if (!jobs_submit(&s->jobs, &c->work)) {
        slab_unref(c->bytes.slab);
        c->bytes.slab = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    }
    c->reading = true;
    r->requested += length;
    if (r->requested == end &&
        end < f->status.size) /* on to this segment's run of the next round */
        r->requested = end - end % s->digests.round_bytes +
                       (end % s->digests.round_bytes != 0 ? s->digests.round_bytes : 0) +
                       (uint64_t)(r - f->reader) * s->digests.run_bytes;
    return 0;
}

static struct chunk *chunk_at(struct reader *r, uint64_t offset)
{
    for (int i = 0; i < 2; i++) {
        struct chunk *c = &r->chunk[i];
        if (c->bytes.slab != NULL && offset >= c->offset && offset < c->offset + c->bytes.length)
            return c;
    }
    return NULL;
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct file *f = &s->file[destination];
    struct reader *r = &f->reader[digests_segment(&s->digests, offset)];
    struct chunk *c = chunk_at(r, offset);

    for (int i = 0; i < 2; i++) /* read ahead */
        if (r->chunk[i].bytes.slab == NULL && r->requested < f->status.size &&
            start_read(s, f, r, &r->chunk[i], e) != 0)
            return -1;
    if (c == NULL || c->reading || s->jobs.failed)
        return 0;
    uint32_t skip = (uint32_t)(offset - c->offset);
    uint32_t length = c->bytes.length - skip < most ? c->bytes.length - skip : most;
    *out = (struct extent){slab_ref(c->bytes.slab), c->bytes.data + skip, length};
    if (digests_update(&s->digests, destination, offset, out->data, length) != 0) {
        slab_unref(out->slab);
        return error_set(e, ERROR_MEMORY, "out of memory for a digest");
    }
    if (skip + length == c->bytes.length) {
        slab_unref(c->bytes.slab);
        c->bytes.slab = NULL;
    }
    return 1;
}

/* --- the check at the end --- */

static void run_check(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);

    for (uint32_t d = 0; d < s->request.nodes; d++) {
        const struct file *f = &s->file[d];
        struct file_status now;
        char path[FILE_PATH];
        int result;
        if (f->fd < 0)
            continue;
        result = files_of(s)->status(files_of(s)->context, f->fd, &now);
        if (result < 0) {
            (void)error_set(&s->jobs.error, ERROR_IO, "%s cannot be read: %s",
                            file_path(s, d, path), strerror(-result));
            return;
        }
        if (now.size != f->status.size || now.modified.tv_sec != f->status.modified.tv_sec ||
            now.modified.tv_nsec != f->status.modified.tv_nsec) {
            (void)error_set(&s->jobs.error, ERROR_DAMAGED, "%s was changed while it was being sent",
                            file_path(s, d, path));
            return;
        }
    }
}

static void on_checked(struct work *work)
{
    step_over(JOB_OWNER(work, struct folder_source, jobs.step), CHECKED);
}

static bool source_finish(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;

    if (s->state == OPEN && !s->jobs.failed && jobs_begin(&s->jobs, run_check, on_checked))
        s->state = CHECKING;
    return s->state == CHECKED;
}

static uint64_t source_digest(struct source *base)
{
    return digests_sum(&((struct folder_source *)base)->digests);
}

struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events)
{
    static const struct source_ops ops = {source_opened, source_lay_out, source_size, source_read,
                                          source_finish, source_digest,  source_close};
    struct folder_source *s = calloc(1, sizeof *s);
    struct file *file = calloc(request->nodes, sizeof *file);

    if (s == NULL || file == NULL)
        goto no_memory;
    *s = (struct folder_source){.base = {&ops, true},
                                .folders = folders,
                                .jobs = {.workers = folders->workers,
                                         .events = *events,
                                         .run_close = run_close,
                                         .release = release},
                                .request = *request,
                                .file = file};
    s->request.id = s->request.from = s->request.to = NULL;
    for (uint32_t d = 0; d < request->nodes; d++)
        file[d].fd = -1;
    /* What is wrong with the path is told as what is found out later. */
    (void)path_expand(request->from, request->rank, s->folder, &s->jobs.error);
    if (!jobs_begin(&s->jobs, run_open, on_opened))
        goto no_memory;
    folders->users++;
    return &s->base;
no_memory:
    free(file);
    free(s);
    return NULL;
}
