#include "daemon/torusd/files/sink/writing.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/torusd/files/sink/attempt.h"
#include "daemon/torusd/files/sink/output_file.h"
#include "daemon/torusd/files/sink/pieces.h"

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

bool folder_sinks_flush(struct folders *folders)
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
