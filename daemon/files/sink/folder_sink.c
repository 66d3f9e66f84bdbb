/* An output folder with a file from each source, named by its rank (target.h: how it lies on the
 * disk):
 *
 *     OPENING  --prepared---> PREPARED --lay_out()--> MAKING  --files made--> FILLING
 *     FILLING  --finish()---> SYNCING  --on disk, entry in the journal--> FINISHED
 *     FINISHED --commit()---> PLACING  --renamed--> PLACED, or back to FINISHED if it cannot be
 *
 * Until PLACING it may be parked, and go on as the output of the next attempt: back to OPENING when nothing
 * of the last one is under way any more, and everything that had come is written; then its temporary folder gets
 * the next one's name.
 *
 * Pieces wait with their files, in the order of their offsets, until all that came in with a turn of
 * the loop is there and what it brought forth has been sent: so links do not wait for files, and
 * pieces that adjoin are written with one call. A job writes all that waits with one file, or with
 * several, and a file is never in two jobs: under load jobs are few. Where files lie in memory no job
 * is needed, and no more waits than stays in the processor's cache.
 *
 * Two calls are left out because they do not pay (processor time on two cores, files written in
 * pieces of a segment):
 *
 * posix_fallocate()    ext4: 1.3 to 2.2 times the time for 1000 files of 16 KiB, the same for 1 MiB, 0.8
 *                      to 0.9 for 100 MiB; in memory 0.8 to 1.15, without a trend. Besides, the sizes
 *                      of single blocks are known to their sources only.
 * copy_file_range()    for a node's own block, one of as many as there are nodes. To copy in the kernel
 *                      and to read once more, for a digest, took 1.1 to 1.35 times as long as to read
 *                      and write 200 MB, on ext4 and in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/files/record/jobs.h"
#include "daemon/files/target/target.h"

#define WRITERS 4u                      /* jobs of a sink at the same time, */
#define WRITER_MORE (256u * 1024u)      /* another one for each time that so many bytes wait */
#define PIECES_ENOUGH 32                /* for one job; it may have more, of one file */
#define WRITE_MOST 64                   /* pieces in one call */
#define PARTS 4u                        /* jobs that make or sync files, each a part of them */
#define PART_LEAST 16u                  /* files */
#define WARM_MOST (256u * 1024u)        /* bytes that wait for files in memory */
#define SYNC_EVERY (8u * 1024u * 1024u) /* bytes of a file */
#define NONE UINT32_MAX

enum sink_state { OPENING, PREPARED, MAKING, FILLING, SYNCING, FINISHED, PLACING, PLACED };

struct piece {
    struct piece *next;
    uint32_t origin;
    uint64_t offset;
    struct extent bytes;
};

/* A file of the output, by origin. */
struct output {
    int fd;          /* the job's while it writes; -1: not open, */
    bool made;       /* and whether it has been */
    bool written;    /* there are bytes in it */
    uint64_t unsent; /* bytes since start_sync() */
    uint64_t limit;  /* bytes that may be there when it is made once more */
    bool queued, writing;
    struct piece *first, *last;
    uint32_t next; /* in the queue */
};

struct writer {
    struct work work;
    struct folder_sink *owner;
    struct piece *pieces; /* NULL: no job. Those of one file come one after the other */
    struct error error;
};

/* A job with the files from `first` on. */
struct part {
    struct work work;
    struct folder_sink *owner; /* NULL: no job */
    uint32_t first, end;
    struct error error;
};

struct folder_sink {
    struct sink base;
    struct folders *folders;
    struct folder_sink *next;      /* in folders->sinks */
    struct jobs jobs;              /* steps: preparing, sealing, placing, closing */
    struct folder_request request; /* its strings are not kept */
    bool *gone;                    /* request.gone */
    enum sink_state state;
    char id[sizeof((struct target *)0)->id];      /* of the exchange, */
    char next_id[sizeof((struct target *)0)->id]; /* which the target is to have */
    bool anew;          /* it is to go on as the output of another attempt, */
    bool *next_gone;    /* where these take no part */
    struct place place; /* of the target; no other sink's */
    struct target target;
    struct output *output;
    uint32_t queue, queue_end; /* of files with pieces that wait; NONE */
    struct slab_writer kept;   /* of them, what does not stay in the slab that it came in */
    uint64_t pending;          /* bytes, */
    uint64_t waiting;          /* and those of them that no job has, */
    uint64_t warm;             /* of which so many have come since write_at_once() */
    unsigned writing;          /* jobs */
    struct writer writer[WRITERS];
    struct part part[PARTS];
    void (*run_part)(struct work *work);
    unsigned parts; /* under way */
    uint32_t rest;  /* the first file that none of them has, or has had */
    bool in_memory; /* writing never waits */
    bool due;       /* pieces have come since folder_sinks_flush() */
    bool keep, not_placed, not_removed;
};

static const struct file_system *files_of(const struct folder_sink *s)
{
    return s->folders->files;
}

/* --- files, in jobs --- */

/* Returns its descriptor, or -1 with *e. */
static int open_output(struct folder_sink *s, uint32_t origin, struct error *e)
{
    struct output *o = &s->output[origin];

    if (o->fd >= 0)
        return o->fd;
    int fd =
        o->made ? target_reopen_file(&s->target, origin, e) : target_create(&s->target, origin, e);
    o->made |= fd >= 0;
    if (fd >= 0 && folders_hold(s->folders))
        o->fd = fd;
    return fd;
}

/* Its job is over: it stays open if it may. */
static void leave_output(struct folder_sink *s, uint32_t origin, int fd)
{
    if (fd != s->output[origin].fd)
        files_of(s)->close(files_of(s)->context, fd);
}

static void close_output(struct folder_sink *s, uint32_t origin)
{
    struct output *o = &s->output[origin];

    if (o->fd < 0)
        return;
    files_of(s)->close(files_of(s)->context, o->fd);
    o->fd = -1;
    folders_drop(s->folders);
}

static void start_sync(struct folder_sink *s, struct output *o, int fd)
{
    files_of(s)->start_sync(files_of(s)->context, fd);
    o->unsent = 0;
}

/* --- closing --- */

static void run_close(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error e;

    for (uint32_t i = 0; i < s->request.nodes; i++)
        close_output(s, i);
    if (s->state == PLACED || s->keep) {
        target_close(&s->target);
    } else if (target_discard(&s->target, &e) != 0) {
        log_warning("%s", e.text);
        s->not_removed = true;
    }
}

bool folder_sink_of(const struct folders *folders, const char *id)
{
    const struct folder_sink *s = folders->sinks;

    while (s != NULL && strcmp(s->id, id) != 0 && strcmp(s->next_id, id) != 0)
        s = s->next;
    return s != NULL;
}

static void drop_pieces(struct folder_sink *s, struct piece *piece)
{
    while (piece != NULL) {
        struct piece *next = piece->next;
        s->pending -= piece->bytes.length;
        slab_unref(piece->bytes.slab);
        free(piece);
        piece = next;
    }
}

static void release(struct jobs *jobs)
{
    struct folder_sink *s = JOB_OWNER(jobs, struct folder_sink, jobs);
    struct folders *folders = s->folders;
    struct folder_sink **at = &folders->sinks;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->not_removed)
        folders_not_removed(folders, s->target.id);
    if (!folders->closed)
        folders_remove_again(folders);
    for (uint32_t i = 0; i < s->request.nodes; i++)
        drop_pieces(s, s->output[i].first);
    slab_writer_close(&s->kept);
    free(s->output);
    free(s->gone);
    free(s->next_gone);
    free(s);
    folders_release(folders);
}

static bool sink_close(struct sink *base, bool keep)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->keep = keep || s->not_placed;
    return jobs_close(&s->jobs);
}

/* --- preparing --- */

static bool go_on(struct folder_sink *s);

static void run_prepare(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (s->jobs.error.code == ERROR_NONE && target_prepare(&s->target, &s->place, s->request.rank,
                                                           s->request.replace, &s->jobs.error) == 0)
        s->in_memory = files_of(s)->in_memory(files_of(s)->context, s->target.folder);
}

static void on_prepared(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (!jobs_step_over(&s->jobs) || go_on(s))
        return;
    s->state = PREPARED;
    s->jobs.events.wake(s->jobs.events.context);
}

static bool sink_opened(struct sink *base)
{
    const struct folder_sink *s = (const struct folder_sink *)base;

    return s->state != OPENING && s->state != MAKING && !s->anew;
}

/* --- going on as the output of another attempt --- */

static bool has_block(const struct folder_sink *s, uint32_t origin);

static void run_go_on(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);
    struct error *e = &s->jobs.error;

    if (target_rename(&s->target, s->next_id, s->request.rank, e) != 0)
        return;
    for (uint32_t i = 0; i < s->request.nodes; i++) {
        struct output *o = &s->output[i];
        if (has_block(s, i) || !o->made)
            continue;
        close_output(s, i);
        if (target_remove_file(&s->target, i, e) != 0)
            return;
        o->made = o->written = false;
    }
}

/* When nothing of the last attempt is under way any more. Returns 0, or -1 with *e. */
static int begin_to_go_on(struct folder_sink *s, struct error *e)
{
    if (s->jobs.under_way > 0 || s->pending > 0 || s->jobs.failed)
        return 0;
    memcpy(s->next_id, s->id, sizeof s->next_id);
    memcpy(s->gone, s->next_gone, s->request.nodes * sizeof *s->gone);
    for (uint32_t i = 0; i < s->request.nodes; i++)
        s->output[i].limit = 0;
    if (!jobs_begin(&s->jobs, run_go_on, on_prepared))
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    s->anew = false;
    s->state = OPENING;
    return 0;
}

/* Called whenever something is over. Returns whether there is another attempt: of the last one nothing goes on, but
 * that all is written. */
static bool go_on(struct folder_sink *s)
{
    struct error e;

    if (!s->anew)
        return false;
    if (begin_to_go_on(s, &e) != 0)
        jobs_fail(&s->jobs, &e);
    return true;
}

static bool sink_park(struct sink *base, const struct block_events *events)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->jobs.failed || s->state >= PLACING)
        return false;
    s->jobs.events = *events;
    return true;
}

static void sink_limit(struct sink *base, uint32_t origin, uint64_t size)
{
    ((struct folder_sink *)base)->output[origin].limit = size;
}

/* --- parts --- */

static void on_part_done(struct work *work);
static int parts_over(struct folder_sink *s);

/* Hands files to jobs, as far as there are jobs and memory. */
static void start_parts(struct folder_sink *s)
{
    uint32_t nodes = s->request.nodes, each = (nodes + PARTS - 1) / PARTS;

    if (each < PART_LEAST)
        each = PART_LEAST;
    for (unsigned i = 0; i < PARTS && s->rest < nodes; i++) {
        struct part *part = &s->part[i];
        if (part->owner != NULL)
            continue;
        *part = (struct part){.owner = s, .first = s->rest};
        part->end = nodes - part->first > each ? part->first + each : nodes;
        part->work.run = s->run_part;
        part->work.done = on_part_done;
        if (!jobs_submit(&s->jobs, &part->work)) {
            part->owner = NULL;
            return;
        }
        s->parts++;
        s->rest = part->end;
    }
}

/* Returns 0, or -1 without memory. */
static int begin_parts(struct folder_sink *s, void (*run)(struct work *work))
{
    s->run_part = run;
    s->rest = 0;
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
    if (s->jobs.failed || go_on(s))
        return;
    start_parts(s);
    if (s->parts > 0 || (s->rest == s->request.nodes && parts_over(s) == 0))
        return;
    (void)error_set(&part->error, ERROR_MEMORY, "out of memory to write files");
    jobs_fail(&s->jobs, &part->error);
}

/* --- laying out: files are made before anything comes --- */

/* Whether there is a block in this file. */
static bool has_block(const struct folder_sink *s, uint32_t origin)
{
    const struct folder_request *r = &s->request;

    return r->operation == OPERATION_EXCHANGE ? !folder_is_gone(r, origin)
                                              : folder_sends(r, origin);
}

/* Returns -1. */
static int cannot_write(const struct folder_sink *s, uint32_t origin, int result, struct error *e)
{
    return error_set(e, ERROR_IO, "%s/%s/%u cannot be written: %s", s->target.entry.folder,
                     s->target.entry.final, origin, strerror(-result));
}

/* What was written to it by an attempt before, and does not count. Returns 0 or -errno. */
static int limit_output(struct folder_sink *s, uint32_t origin, int fd)
{
    const struct file_system *files = files_of(s);
    struct output *o = &s->output[origin];
    struct file_status status;
    int result = o->written ? files->status(files->context, fd, &status) : 0;

    if (o->written && result == 0 && status.size > o->limit)
        result = files->truncate(files->context, fd, o->limit);
    return result;
}

static void run_make(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);
    struct folder_sink *s = part->owner;

    for (uint32_t i = part->first; i < part->end; i++) {
        if (!has_block(s, i))
            continue;
        int fd = open_output(s, i, &part->error);
        if (fd < 0)
            return;
        int result = limit_output(s, i, fd);
        leave_output(s, i, fd);
        if (result < 0) {
            (void)cannot_write(s, i, result, &part->error);
            return;
        }
    }
}

static int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    (void)round_bytes, (void)segments;
    if (begin_parts(s, run_make) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    s->state = MAKING;
    return 0;
}

/* --- writing --- */

/* Writes adjoining pieces of one file, from *piece on, with one call if it takes them all; *piece
 * moves behind them. Returns 0 or -errno. */
static int write_run(const struct folder_sink *s, int fd, struct piece **piece)
{
    const struct file_system *files = files_of(s);
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

/* Writes all pieces of the first one's file; *piece moves behind them. Returns 0, or -1 with *e. */
static int write_file(struct folder_sink *s, struct piece **piece, struct error *e)
{
    uint32_t origin = (*piece)->origin;
    struct output *o = &s->output[origin];
    int result = 0, fd = open_output(s, origin, e);

    if (fd < 0)
        return -1;
    while (result == 0 && *piece != NULL && (*piece)->origin == origin)
        result = write_run(s, fd, piece);
    o->written = true;
    if (o->unsent >= SYNC_EVERY)
        start_sync(s, o, fd);
    leave_output(s, origin, fd);
    return result < 0 ? cannot_write(s, origin, result, e) : 0;
}

static void run_write(struct work *work)
{
    struct writer *w = JOB_OWNER(work, struct writer, work);
    struct piece *piece = w->pieces;

    while (piece != NULL && write_file(w->owner, &piece, &w->error) == 0)
        ;
}

static void enqueue(struct folder_sink *s, uint32_t origin)
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

static void on_written(struct work *work);

/* Gives the pieces of the first files in the queue to a job. Returns 0, or -1 without memory. */
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
            o->unsent += (*end)->bytes.length;
            s->waiting -= (*end)->bytes.length;
        }
        o->first = o->last = NULL;
    }
    w->owner = s;
    w->work.run = run_write;
    w->work.done = on_written;
    if (!jobs_submit(&s->jobs, &w->work)) {
        drop_pieces(s, w->pieces);
        w->pieces = NULL;
        return -1;
    }
    return 0;
}

/* As few as can be: what comes while one writes is written together by the next. */
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
        enqueue(s, p->origin);
    }
    drop_pieces(s, w->pieces);
    w->pieces = NULL;
    s->writing--;
    if (!jobs_over(&s->jobs))
        return;
    if (w->error.code == ERROR_NONE && !s->jobs.failed && start_writers(s) != 0)
        (void)error_set(&w->error, ERROR_MEMORY, "out of memory to write files");
    if (w->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &w->error);
    else if (s->pending == 0 && !s->jobs.failed && !go_on(s))
        s->jobs.events.wake(s->jobs.events.context);
}

/* Writes what waits with files that are open. */
static void write_at_once(struct folder_sink *s, struct error *e)
{
    uint32_t origin = s->queue, next;

    s->warm = 0;
    s->queue = NONE;
    for (; origin != NONE; origin = next) {
        struct output *o = &s->output[origin];
        struct piece *first = o->first, *rest = first;
        next = o->next;
        o->queued = false;
        if (o->fd < 0 || e->code != ERROR_NONE) {
            enqueue(s, origin);
            continue;
        }
        (void)write_file(s, &rest, e);
        for (const struct piece *p = first; p != NULL; p = p->next)
            s->waiting -= p->bytes.length;
        o->first = o->last = NULL;
        drop_pieces(s, first);
    }
}

/* Returns whether its exchange has been told of something. */
static bool flush(struct folder_sink *s)
{
    struct error e = {0};

    s->due = false;
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
    else if (!go_on(s))
        s->jobs.events.wake(s->jobs.events.context);
    return true;
}

bool folder_sinks_flush(struct folders *folders)
{
    struct folder_sink *s = folders->sinks;
    bool told = false;

    while (s != NULL)
        if (s->due) { /* any of them may be gone after this */
            told |= flush(s);
            s = folders->sinks;
        } else {
            s = s->next;
        }
    return told;
}

/* Among those that wait with its file, by their offsets. */
static void insert(struct output *o, struct piece *piece)
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

/* Whether what waits last with a file ends there. */
static bool is_end(const struct output *o, uint64_t offset)
{
    return o->first != NULL && o->last->offset + o->last->bytes.length == offset;
}

/* What is written in this turn of the loop does not keep its slab for long. */
static int keep_bytes(struct folder_sink *s, const struct output *o, const struct extent *bytes,
                      struct extent *kept)
{
    if (!s->in_memory || o->writing || o->fd < 0)
        return extent_keep(&s->kept, bytes->slab->pool, bytes, kept);
    *kept = *bytes;
    (void)slab_ref(bytes->slab);
    return 0;
}

static int sink_write(struct sink *base, uint32_t origin, uint64_t offset,
                      const struct extent *bytes, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;
    struct output *o = &s->output[origin];
    struct piece *piece;
    struct extent kept;

    if (bytes->length == 0) /* its file has been made */
        return 0;
    if (s->warm >= WARM_MOST && !is_end(o, offset)) {
        *e = (struct error){0};
        write_at_once(s, e);
        s->jobs.failed |= e->code != ERROR_NONE;
        if (e->code != ERROR_NONE)
            return -1;
    }
    piece = malloc(sizeof *piece);
    if (piece == NULL || keep_bytes(s, o, bytes, &kept) != 0) {
        free(piece);
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    }
    *piece = (struct piece){NULL, origin, offset, kept};
    s->pending += bytes->length;
    s->waiting += bytes->length;
    s->warm += s->in_memory ? bytes->length : 0;
    insert(o, piece);
    enqueue(s, origin);
    s->due = true;
    return 0;
}

static uint64_t sink_pending(struct sink *base)
{
    return ((struct folder_sink *)base)->pending;
}

/* --- finishing --- */

/* Before the folder's entry in the journal says that all is there, every file must be: fsync() of
 * each. To begin with all of them before any is waited for lets the disk write them together, and a
 * journalling file system commit them together. What has no bytes is only a name: that is on the disk
 * with the folder. */
static int sync_files(struct folder_sink *s, struct part *part, bool wait)
{
    const struct file_system *files = files_of(s);

    for (uint32_t i = part->first; i < part->end; i++) {
        struct output *o = &s->output[i];
        int result = 0;
        if (o->written) {
            int fd = open_output(s, i, &part->error);
            if (fd < 0)
                return -1;
            if (wait)
                result = files->sync(files->context, fd);
            else
                start_sync(s, o, fd);
            leave_output(s, i, fd);
        }
        if (wait)
            close_output(s, i);
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

static void run_seal(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    (void)target_seal(&s->target, &s->jobs.error);
}

static void on_sealed(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    if (!jobs_step_over(&s->jobs) || go_on(s))
        return;
    s->state = FINISHED;
    s->jobs.events.wake(s->jobs.events.context);
}

/* All files have been made, or synced. Returns 0, or -1 without memory. */
static int parts_over(struct folder_sink *s)
{
    if (s->state == SYNCING)
        return jobs_begin(&s->jobs, run_seal, on_sealed) ? 0 : -1;
    s->state = FILLING;
    s->jobs.events.wake(s->jobs.events.context);
    return 0;
}

static bool sink_finish(struct sink *base)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->state == FILLING && s->pending == 0 && !s->jobs.failed && begin_parts(s, run_sync) == 0)
        s->state = SYNCING; /* else there is no memory now: we are asked again */
    return s->state > SYNCING;
}

/* --- committing --- */

static void run_place(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    (void)target_place(&s->target, &s->jobs.error);
    s->not_removed = s->target.left_over;
}

static void on_placed(struct work *work)
{
    struct folder_sink *s = JOB_OWNER(work, struct folder_sink, jobs.step);

    s->state = s->jobs.error.code == ERROR_NONE ? PLACED : FINISHED;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

static int sink_commit(struct sink *base, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->not_placed = s->state != PLACED; /* all is there: it may be put in place later */
    if (s->state == FINISHED && s->jobs.error.code != ERROR_NONE) {
        *e = s->jobs.error;
        s->jobs.error = (struct error){0};
        return -1;
    }
    if (s->state == FINISHED && jobs_begin(&s->jobs, run_place, on_placed))
        s->state = PLACING;
    return s->state == PLACED ? 1 : 0;
}

/* --- opening --- */

/* Two exchanges for one target of this node: the first has it, until nothing of it is left to do.
 */
static int check_own_rivals(const struct folder_sink *s, const char *id, const char *path,
                            struct error *e)
{
    for (const struct folder_sink *other = s->folders->sinks; other != NULL; other = other->next) {
        if (other->place.root != s->place.root || strcmp(other->place.path, s->place.path) != 0)
            continue;
        if (strcmp(other->id, id) == 0)
            return error_set(e, ERROR_REFUSED,
                             "target %s is another node's target too: put %%r (the node's rank) "
                             "into its path",
                             path);
        return error_set(e, ERROR_BUSY, "another exchange is writing to target %s", path);
    }
    return 0;
}

static struct sink *take_over(struct folder_sink *s, const struct folder_request *request,
                              const struct block_events *events)
{
    struct error e;

    for (uint32_t i = 0; i < request->nodes; i++)
        s->next_gone[i] = folder_is_gone(request, i);
    (void)snprintf(s->id, sizeof s->id, "%s", request->id);
    s->anew = true;
    if (begin_to_go_on(s, &e) != 0)
        return NULL;
    s->jobs.events = *events;
    return &s->base;
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
                                        .park = sink_park,
                                        .limit = sink_limit};
    if (request->parked != NULL)
        return take_over((struct folder_sink *)request->parked, request, events);
    char path[PATH_MAX];
    struct folder_sink *s = calloc(1, sizeof *s);
    struct output *output = calloc(request->nodes, sizeof *output);
    bool *gone = calloc(request->nodes, sizeof *gone);
    bool *next_gone = calloc(request->nodes, sizeof *next_gone);

    if (s == NULL || output == NULL || gone == NULL || next_gone == NULL)
        goto no_memory;
    s->base = (struct sink){&ops, true, CHECK_DIGEST};
    s->folders = folders;
    s->jobs = (struct jobs){
        .workers = folders->workers, .events = *events, .run_close = run_close, .release = release};
    s->request = *request;
    s->request.id = s->request.from = s->request.to = NULL;
    s->request.parked = NULL;
    s->request.marks = NULL;
    s->request.gone = s->gone = gone;
    s->next_gone = next_gone;
    (void)snprintf(s->id, sizeof s->id, "%s", request->id);
    s->output = output;
    s->queue = NONE;
    for (uint32_t i = 0; i < request->nodes; i++) {
        output[i].fd = -1;
        gone[i] = folder_is_gone(request, i);
    }
    target_init(&s->target, folders->roots, &folders->journal, folders->output_mode, request->id);
    /* What is wrong already is told as what is found out later. */
    if (path_expand(request->to, request->rank, path, &s->jobs.error) == 0 &&
        roots_find_target(folders->roots, path, &s->place, &s->jobs.error) == 0)
        (void)check_own_rivals(s, request->id, path, &s->jobs.error);
    if (s->jobs.error.code != ERROR_NONE)
        s->place.path[0] = '\0'; /* it has none */
    if (!jobs_begin(&s->jobs, run_prepare, on_prepared))
        goto no_memory;
    s->next = folders->sinks;
    folders->sinks = s;
    folders->users++;
    return &s->base;
no_memory:
    free(output);
    free(gone);
    free(next_gone);
    free(s);
    return NULL;
}
