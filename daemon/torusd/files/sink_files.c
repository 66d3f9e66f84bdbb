#include "daemon/torusd/files/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/files/target.h"

/* The files of an output: jobs open them, and they stay open between jobs as long as there are
 * descriptors. */

/* Fills *e for a failed write; `result` is its -errno. Returns -1. */
static int output_cannot_write(const struct folder_sink *s, uint32_t origin, int result,
                               struct error *e)
{
    return error_set(e, ERROR_IO, "%s/%u cannot be written: %s", s->target.staging.path, origin,
                     strerror(-result));
}

/* Notes the file as it is now, after torusd has written to it. Returns 0 or -errno. */
static int output_note(struct folder_sink *s, uint32_t origin, int fd)
{
    const struct file_system *files = sink_files(s);
    struct file_status status;
    int result = files->status(files->context, fd, &status);

    s->output[origin].stamp = result == 0 ? target_stamp_of(origin, &status) : FILE_STAMP_NONE;
    return result;
}

int output_open(struct folder_sink *s, uint32_t origin, struct error *e)
{
    struct output *o = &s->output[origin];

    if (o->fd >= 0)
        return o->fd;
    int fd = target_open(&s->target, origin, !o->made, e);
    if (fd >= 0 && !o->made) {
        o->made = true;
        int result = output_note(s, origin, fd);
        if (result < 0) {
            sink_files(s)->close(sink_files(s)->context, fd);
            return output_cannot_write(s, origin, result, e);
        }
    }
    if (fd >= 0 && folders_reserve_descriptor(s->folders))
        o->fd = fd;
    return fd;
}

void output_leave(struct folder_sink *s, uint32_t origin, int fd)
{
    if (fd != s->output[origin].fd)
        sink_files(s)->close(sink_files(s)->context, fd);
}

void output_close(struct folder_sink *s, uint32_t origin)
{
    struct output *o = &s->output[origin];

    if (o->fd < 0)
        return;
    sink_files(s)->close(sink_files(s)->context, o->fd);
    o->fd = -1;
    folders_return_descriptor(s->folders);
}

void output_start_sync(struct folder_sink *s, struct output *o, int fd)
{
    sink_files(s)->start_sync(sink_files(s)->context, fd);
    o->unsynced = 0;
}

/* Checks that nobody but torusd has written to the open file. Returns 0, or -1 with *e. */
static int output_check(const struct folder_sink *s, uint32_t origin, int fd, struct error *e)
{
    const struct file_system *files = sink_files(s);
    struct file_status status;
    int result = files->status(files->context, fd, &status);

    if (result < 0)
        return output_cannot_write(s, origin, result, e);
    return target_stamp_of(origin, &status) == s->output[origin].stamp
               ? 0
               : target_file_differs(&s->target, target_name(origin).text, status.kind, e);
}

int output_is_there(const struct folder_sink *s, uint32_t origin, enum file_kind *kind)
{
    const struct file_system *files = sink_files(s);
    struct file_status status;
    int result = files->status_at(files->context, s->target.staging.folder,
                                  target_name(origin).text, &status);

    if (result < 0)
        return result;
    *kind = status.kind;
    return status.kind == FILE_REGULAR &&
           target_stamp_of(origin, &status) == s->output[origin].stamp;
}

int output_limit(struct folder_sink *s, uint32_t origin, int fd, struct error *e)
{
    const struct file_system *files = sink_files(s);
    struct output *o = &s->output[origin];
    struct file_status status;

    if (!o->written)
        return 0;
    int result = files->status(files->context, fd, &status);
    if (result == 0 && status.size > o->limit) {
        if (output_check(s, origin, fd, e) != 0)
            return -1;
        result = files->truncate(files->context, fd, o->limit);
        if (result == 0)
            result = output_note(s, origin, fd);
    }
    return result < 0 ? output_cannot_write(s, origin, result, e) : 0;
}

bool output_has_block(const struct folder_sink *s, uint32_t origin)
{
    const struct folder_request *r = &s->request;

    return r->operation == OPERATION_EXCHANGE ? !folder_is_gone(r, origin)
                                              : folder_sends(r, origin);
}

/* Hands an output from one attempt to the next. The writes of one attempt end before the next attempt
 * starts. */

static void run_prepare(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (s->jobs.error.code == ERROR_NONE &&
        target_prepare(&s->target, s->request.replace, &s->jobs.error) == 0)
        s->in_memory = sink_files(s)->in_memory(sink_files(s)->context, s->target.staging.folder);
}

static void on_prepared(struct work *work);

/* Keeps a file that is as the last attempt has left it, and has a block in the next one. Returns 0, or -1 with *e. */
static int take_over_file(struct folder_sink *s, uint32_t i, struct error *e)
{
    struct output *o = &s->output[i];
    enum file_kind kind = FILE_REGULAR;
    int there = output_is_there(s, i, &kind);

    if (there < 0 && there != -ENOENT)
        return output_cannot_write(s, i, there, e);
    if (there == 1 && output_has_block(s, i))
        return 0;
    if (there == 0) {
        (void)target_file_differs(&s->target, target_name(i).text, kind, e);
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

    if (s->jobs.failed || s->state >= INSTALLING)
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

/* Pieces wait at their files, ordered by offset, until the current iteration of the loop has handled all
 * input and has sent its frames. So links do not wait for files, and one call writes adjoining pieces. A job
 * writes all waiting pieces of one or several files; a file is never in two jobs. Under load this makes few
 * and large jobs. Files in memory need no jobs; only as many bytes wait for them as stay in the processor's
 * cache. */

void pieces_drop(struct folder_sink *s, struct piece *piece)
{
    while (piece != NULL) {
        struct piece *next = piece->next;
        s->pending -= piece->bytes.length;
        slab_unref(piece->bytes.slab);
        free(piece);
        piece = next;
    }
}

/* Queues the file of `origin` for writing, if it has waiting pieces and no job has the file. */
static void pieces_enqueue(struct folder_sink *s, uint32_t origin)
{
    struct output *o = &s->output[origin];

    if (o->queued || o->writing || o->first == NULL)
        return;
    o->queued = true;
    o->next = NONE;
    if (s->queue == NONE)
        s->queue = origin;
    else
        s->output[s->queue_end].next = origin;
    s->queue_end = origin;
}

/* Inserts a piece among the waiting pieces of its file, by offset. */
static void pieces_insert(struct output *o, struct piece *piece)
{
    struct piece **at = &o->first;

    if (o->last != NULL && o->last->offset < piece->offset)
        at = &o->last->next;
    while (*at != NULL && (*at)->offset < piece->offset)
        at = &(*at)->next;
    piece->next = *at;
    *at = piece;
    if (piece->next == NULL)
        o->last = piece;
}

/* Whether the last waiting piece of a file ends at `offset`. */
static bool pieces_end_at(const struct output *o, uint64_t offset)
{
    return o->first != NULL && o->last->offset + o->last->bytes.length == offset;
}

/* Sets *kept to a reference to the bytes, or to a copy. Bytes that will be written in this iteration of the
 * loop are not copied, because they keep their slab for a short time only. Returns 0, or -1 if there is no
 * memory. */
static int pieces_keep_bytes(struct folder_sink *s, const struct output *o,
                             const struct extent *bytes, struct extent *kept)
{
    if (!s->in_memory || o->writing || o->fd < 0)
        return extent_keep(&s->kept, bytes->slab->pool, bytes, kept);
    *kept = *bytes;
    (void)slab_ref(bytes->slab);
    return 0;
}

/* Two system calls are not used, because they cost more processor time than they save (measured on two
 * cores, with files that are written in pieces of a segment):
 *
 * posix_fallocate()    On ext4 1000 files of 16 KiB take 1.3 to 2.2 times as long with it, files of 1 MiB
 *                      as long as without it, files of 100 MiB 0.8 to 0.9 times as long; in memory 0.8 to
 *                      1.15 times, without a trend. Also, only its source knows the size of a block.
 * copy_file_range()    It would serve only one block of each node, the node's block for itself. To copy
 *                      200 MB in the kernel, and to read them for the digest, took 1.1 to 1.35 times as
 *                      long as to read and write them, on ext4 and in memory. */

#define WRITER_MORE (256u * 1024u)      /* waiting bytes for each further writer */
#define PIECES_ENOUGH 32                /* a job takes no further file when it has so many */
#define WRITE_MOST 64                   /* most pieces in one call */
#define IN_CACHE_MOST (256u * 1024u)    /* most bytes that wait for files in memory */
#define SYNC_EVERY (8u * 1024u * 1024u) /* bytes of a file between two start_sync() */

/* Writes adjoining pieces of one file, from *piece on, with one call if possible, and advances *piece
 * behind them. Returns 0 or -errno. */
static int write_run(const struct folder_sink *s, int fd, struct piece **piece)
{
    const struct file_system *files = sink_files(s);
    struct iovec part[WRITE_MOST], *first = part;
    struct piece *p = *piece;
    uint64_t at = p->offset, end = at;
    int count = 0;

    for (; p != NULL && p->origin == (*piece)->origin && p->offset == end && count < WRITE_MOST;
         p = p->next) {
        part[count++] = (struct iovec){(void *)(uintptr_t)p->bytes.data, p->bytes.length};
        end += p->bytes.length;
    }
    *piece = p;
    while (at < end) {
        ssize_t written = files->write(files->context, fd, first, count, at);
        if (written <= 0)
            return written < 0 ? (int)written : -EIO;
        at += (uint64_t)written;
        file_system_advance(&first, &count, (size_t)written);
    }
    return 0;
}

/* Writes all pieces of the file of *piece, and advances *piece behind them. Returns 0, or -1 with *e. */
static int write_file(struct folder_sink *s, struct piece **piece, struct error *e)
{
    uint32_t origin = (*piece)->origin;
    struct output *o = &s->output[origin];
    int result = 0, fd = output_open(s, origin, e);

    if (fd < 0)
        return -1;
    if (output_check(s, origin, fd, e) != 0) {
        output_leave(s, origin, fd);
        return -1;
    }
    while (result == 0 && *piece != NULL && (*piece)->origin == origin)
        result = write_run(s, fd, piece);
    o->written = true;
    if (result == 0)
        result = output_note(s, origin, fd);
    if (o->unsynced >= SYNC_EVERY)
        output_start_sync(s, o, fd);
    output_leave(s, origin, fd);
    return result < 0 ? output_cannot_write(s, origin, result, e) : 0;
}

static void run_write(struct work *work)
{
    struct writer *w = JOB_OWNER(work, struct writer, work);
    struct piece *piece = w->pieces;

    while (piece != NULL && write_file(w->owner, &piece, &w->error) == 0)
        ;
}

static void on_written(struct work *work);

/* Gives the pieces of the first files in the queue to a job. Returns 0, or -1 if there is no memory. */
static int start_writer(struct folder_sink *s, struct writer *w)
{
    struct piece **end = &w->pieces;
    int count = 0;

    while (s->queue != NONE && count < PIECES_ENOUGH) {
        struct output *o = &s->output[s->queue];
        s->queue = o->next;
        o->queued = false;
        o->writing = true;
        *end = o->first;
        for (; *end != NULL; end = &(*end)->next) {
            count++;
            o->unsynced += (*end)->bytes.length;
            s->waiting -= (*end)->bytes.length;
        }
        o->first = o->last = NULL;
    }
    w->owner = s;
    w->work.run = run_write;
    w->work.done = on_written;
    if (!jobs_submit(&s->jobs, &w->work)) {
        pieces_drop(s, w->pieces);
        w->pieces = NULL;
        return -1;
    }
    return 0;
}

/* Starts as few writers as possible: the next writer then writes all pieces that have arrived while this one
 * works. */
static int start_writers(struct folder_sink *s)
{
    for (unsigned i = 0; i < WRITERS && s->queue != NONE; i++) {
        if (s->writer[i].pieces != NULL)
            continue;
        if (s->waiting < s->writing * (uint64_t)WRITER_MORE)
            break;
        if (start_writer(s, &s->writer[i]) != 0)
            return -1;
        s->writing++;
    }
    return 0;
}

static void on_written(struct work *work)
{
    struct writer *w = JOB_OWNER(work, struct writer, work);
    struct folder_sink *s = w->owner;

    for (struct piece *p = w->pieces; p != NULL; p = p->next) {
        s->output[p->origin].writing = false;
        pieces_enqueue(s, p->origin);
    }
    pieces_drop(s, w->pieces);
    w->pieces = NULL;
    s->writing--;
    if (!jobs_over(&s->jobs))
        return;
    if (w->error.code == ERROR_NONE && !s->jobs.failed && start_writers(s) != 0)
        (void)error_set(&w->error, ERROR_MEMORY, "out of memory to write files");
    if (w->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &w->error);
    else if (s->pending == 0 && !s->jobs.failed && !attempt_start_next(s))
        s->jobs.events.wake(s->jobs.events.context);
}

/* Writes the waiting pieces of files that are open. */
static void write_at_once(struct folder_sink *s, struct error *e)
{
    uint32_t origin = s->queue, next;

    s->in_cache = 0;
    s->queue = NONE;
    for (; origin != NONE; origin = next) {
        struct output *o = &s->output[origin];
        struct piece *first = o->first, *rest = first;
        next = o->next;
        o->queued = false;
        if (o->fd < 0 || e->code != ERROR_NONE) {
            pieces_enqueue(s, origin);
            continue;
        }
        (void)write_file(s, &rest, e);
        for (const struct piece *p = first; p != NULL; p = p->next)
            s->waiting -= p->bytes.length;
        o->first = o->last = NULL;
        pieces_drop(s, first);
    }
}

/* Flushes one sink. Returns whether its exchange has been told of an event. */
static bool flush_sink(struct folder_sink *s)
{
    struct error e = {0};

    s->has_new_pieces = false;
    if (s->jobs.failed || s->jobs.closing)
        return false;
    if (s->in_memory)
        write_at_once(s, &e);
    if (e.code == ERROR_NONE && start_writers(s) != 0)
        (void)error_set(&e, ERROR_MEMORY, "out of memory to write files");
    if (e.code == ERROR_NONE && s->pending > 0)
        return false;
    if (e.code != ERROR_NONE)
        jobs_fail(&s->jobs, &e);
    else if (!attempt_start_next(s))
        s->jobs.events.wake(s->jobs.events.context);
    return true;
}

bool folders_flush(struct folders *folders)
{
    struct open_sink *open = folders->sinks;
    bool told = false;

    while (open != NULL) {
        struct folder_sink *s = JOB_OWNER(open, struct folder_sink, open);
        if (s->has_new_pieces) { /* any sink may have been freed after this */
            told |= flush_sink(s);
            open = folders->sinks;
        } else {
            open = open->next;
        }
    }
    return told;
}

int sink_write(struct sink *base, uint32_t origin, uint64_t offset, const struct extent *bytes,
               struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;
    struct output *o = &s->output[origin];
    struct piece *piece;
    struct extent kept;

    if (bytes->length == 0) /* its file exists already */
        return 0;
    if (s->in_cache >= IN_CACHE_MOST && !pieces_end_at(o, offset)) {
        *e = (struct error){0};
        write_at_once(s, e);
        s->jobs.failed |= e->code != ERROR_NONE;
        if (e->code != ERROR_NONE)
            return -1;
    }
    piece = malloc(sizeof *piece);
    if (piece == NULL || pieces_keep_bytes(s, o, bytes, &kept) != 0) {
        free(piece);
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    }
    *piece = (struct piece){NULL, origin, offset, kept};
    s->pending += bytes->length;
    s->waiting += bytes->length;
    s->in_cache += s->in_memory ? bytes->length : 0;
    pieces_insert(o, piece);
    pieces_enqueue(s, origin);
    s->has_new_pieces = true;
    return 0;
}

uint64_t sink_pending(struct sink *base)
{
    return ((struct folder_sink *)base)->pending;
}
