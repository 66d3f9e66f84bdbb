/* A folder with a file for each destination, named by its rank; or one file for all, which is that
 * for the node itself. Each segment of a file is read in chunks, one that is being sent and one behind
 * it. What a file has in memory anyway is read at once, where the file system can tell; all other
 * chunks wait in a queue, and a job reads as many as there are, up to a limit: the first ones of all
 * files before the exchange starts.
 *
 * Of a file of which something is skipped (source.skips) the rest is read as if it were the file: offsets,
 * sizes and segments are those of the rest, and no chunk goes on behind a gap.
 *
 *     OPENING --files found--> OPEN --all read, finish()--> CHECKING --unchanged--> CHECKED
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/digest.h"
#include "daemon/files/record/jobs.h"
#include "daemon/files/source/segments.h"

#define CHUNK_LEAST (4u * 1024u)
#define CHUNK_MOST (1024u * 1024u)
#define CHUNK_PARTS (CHUNK_MOST / SLAB_SIZE)
#define AT_ONCE_MOST SLAB_SIZE          /* read on the loop */
#define READ_AHEAD (8u * 1024u * 1024u) /* of all files together */
#define READERS 4u                      /* jobs of a source at the same time, if there is enough */
#define JOB_BYTES CHUNK_MOST            /* enough for one job */
#define JOB_CHUNKS 64u
#define FILE_PATH (PATH_MAX + 16)

enum source_state { OPENING, OPEN, CHECKING, CHECKED };

struct folder_source;

struct chunk {
    struct chunk *next; /* in the queue or in a job */
    uint64_t offset;
    uint64_t place;        /* of the same byte in the file */
    uint32_t file, length; /* length 0: not in use */
    bool ready;
    unsigned parts;
    struct extent part[CHUNK_PARTS];
};

/* Reads chunks. */
struct reading {
    struct work work;
    struct folder_source *owner;
    struct chunk *chunks; /* NULL: no job */
    struct error error;
};

/* A segment of a file: in each round one run of bytes. */
struct reader {
    uint64_t requested; /* where the next chunk begins */
    bool ahead;         /* chunks are read before they are asked for */
    struct chunk chunk[2];
};

struct file {
    int fd;         /* -1: not held open, */
    bool there;     /* or missing, an empty block */
    bool in_memory; /* reading never waits: all but the first chunk is read at once */
    struct file_status status;
    uint64_t marked; /* what mark() was before; 0: not known */
    /* Once laid out: */
    uint64_t size;         /* of what is to be read, */
    bool small;            /* which is one chunk */
    struct reader *reader; /* by segment; a small file has one */
    uint64_t left;         /* bytes that have not been asked for */
};

/* So many bytes of a file that follow each other. */
struct run {
    uint64_t place;
    uint32_t length;
};

/* Bytes that were read before. */
struct again {
    struct work work;
    enum { AGAIN_NONE, AGAIN_READING, AGAIN_READ } state;
    uint32_t file, length;
    uint64_t offset;
    struct run *run; /* where they are */
    unsigned runs;
    uint8_t *bytes;
    struct error error;
};

struct folder_source {
    struct source base;
    struct folders *folders;
    struct jobs jobs;              /* steps: opening, checking, closing */
    struct folder_request request; /* its strings are not kept: */
    bool *gone;                    /* request.gone */
    char folder[PATH_MAX];
    bool single; /* it is the file itself */
    enum source_state state;
    uint32_t small; /* files up to this size, without gaps, are one chunk, */
    uint32_t
        chunk_size;   /* others several of so much, or less at the end of a run or before a gap */
    bool not_at_once; /* the file system cannot tell what it has in memory */
    struct chunk *queue, **queue_end;
    unsigned readings; /* jobs */
    uint64_t waiting;  /* bytes in the queue */
    struct reading reading[READERS];
    struct slab_writer writer;
    struct file *file;
    struct reader *readers; /* of all files */
    struct segments segments;
    struct again again;
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
        if (s->file[d].fd >= 0) {
            files_of(s)->close(files_of(s)->context, s->file[d].fd);
            folders_drop(s->folders);
        }
}

static void drop_chunk(struct chunk *c)
{
    for (unsigned i = 0; i < c->parts; i++)
        slab_unref(c->part[i].slab);
    c->parts = c->length = 0;
}

static void release(struct jobs *jobs)
{
    struct folder_source *s = JOB_OWNER(jobs, struct folder_source, jobs);
    struct folders *folders = s->folders;
    size_t readers = s->readers == NULL ? 0 : (size_t)s->request.nodes * s->segments.count;

    for (size_t i = 0; i < readers; i++)
        for (int c = 0; c < 2; c++)
            drop_chunk(&s->readers[i].chunk[c]);
    slab_writer_close(&s->writer);
    free(s->again.bytes);
    free(s->again.run);
    free(s->readers);
    free(s->file);
    free(s->gone);
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

static int was_changed(const char *path, struct error *e)
{
    return error_set(e, ERROR_DAMAGED, "%s was changed while it was being sent", path);
}

static uint64_t mark_of(const struct file *f)
{
    uint64_t mark = digest_mix(f->there);

    mark = digest_mix(mark ^ f->status.size);
    mark = digest_mix(mark ^ (uint64_t)f->status.modified.tv_sec);
    mark = digest_mix(mark ^ (uint64_t)f->status.modified.tv_nsec);
    mark = digest_mix(mark ^ f->status.device);
    return digest_mix(mark ^ f->status.number) | 1;
}

static uint64_t source_mark(const struct source *base, uint32_t destination)
{
    const struct folder_source *s = (const struct folder_source *)base;

    return folder_is_gone(&s->request, destination) ? 0 : mark_of(&s->file[destination]);
}

static int open_file(struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file_system *files = files_of(s);
    struct file *f = &s->file[d];
    struct place place;
    char path[FILE_PATH];
    int fd = roots_open(s->folders->roots, file_path(s, d, path), &place, &f->status, e);

    f->there = fd >= 0;
    if (f->there && f->status.kind == FILE_REGULAR && f->status.size > 0 &&
        folders_hold(s->folders)) {
        f->fd = fd;
        f->in_memory = f->status.size > CHUNK_LEAST && files->in_memory(files->context, fd);
    } else if (f->there) {
        files->close(files->context, fd);
    }
    if (f->there && f->status.kind != FILE_REGULAR)
        return error_set(e, ERROR_REFUSED, "%s is not a regular file", path);
    if (!f->there)
        f->status = (struct file_status){0};
    if (!f->there && e->code != ERROR_NONE)
        return -1;
    if (f->marked != 0 && f->marked != mark_of(f))
        return was_changed(path, e);
    s->base.unmoved.missing += !f->there;
    if (f->there || s->request.missing_ok)
        return 0;
    return error_set(
        e, ERROR_REFUSED,
        "missing source file %s (the block %s node %u); --missing-ok treats it as empty", path,
        s->request.operation == OPERATION_EXCHANGE ? "for" : "of", d);
}

static bool is_as_before(const struct file_status *now, const struct file_status *before)
{
    return now->size == before->size && now->modified.tv_sec == before->modified.tv_sec &&
           now->modified.tv_nsec == before->modified.tv_nsec && now->device == before->device &&
           now->number == before->number;
}

/* In a job: the descriptor that is held, or one of its own for the same file, which is not written to
 * meanwhile. Returns it, or -1 with *e. */
static int borrow_file(const struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file *f = &s->file[d];
    struct file_status now;
    struct place place;
    char path[FILE_PATH];

    if (f->fd >= 0)
        return f->fd;
    int fd = roots_open(s->folders->roots, file_path(s, d, path), &place, &now, e);
    if (fd >= 0 && is_as_before(&now, &f->status))
        return fd;
    if (fd >= 0)
        files_of(s)->close(files_of(s)->context, fd);
    else if (e->code != ERROR_NONE)
        return -1;
    return was_changed(path, e);
}

static void return_file(const struct folder_source *s, uint32_t d, int fd)
{
    if (fd != s->file[d].fd)
        files_of(s)->close(files_of(s)->context, fd);
}

/* What may lie in any folder and is no data: what is hidden, and what mkfs has made. */
static bool is_no_data(const char *name)
{
    return name[0] == '.' || strcmp(name, "lost+found") == 0;
}

/* Whether a file is named after a node: its rank, as file_path() writes it. */
static bool names_node(const char *name, uint32_t nodes)
{
    char *end;
    unsigned long rank = strtoul(name, &end, 10);

    return name[0] >= '0' && name[0] <= '9' && (name[0] != '0' || name[1] == '\0') &&
           *end == '\0' && rank < nodes;
}

static void count_unused(void *argument, const char *name)
{
    struct folder_source *s = argument;

    if (!is_no_data(name) && !names_node(name, s->request.nodes))
        s->base.unmoved.unused++;
}

/* Whether the source is a folder of files or, where that is possible, the file itself. */
static int look_at(struct folder_source *s, const char *from, struct error *e)
{
    const struct file_system *files = files_of(s);
    struct place place;
    struct file_status status = {.kind = FILE_OTHER};
    int file = roots_open(s->folders->roots, from, &place, &status, e);
    bool exchange = s->request.operation == OPERATION_EXCHANGE;

    /* A folder that may be searched but not read has its files, and nobody learns of others. */
    if (file >= 0 && status.kind == FILE_FOLDER)
        (void)files->list(files->context, file, count_unused, s);
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
        if (!folder_is_gone(&s->request, d) && open_file(s, d, e) != 0)
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
    return source_left(base, destination,
                       ((struct folder_source *)base)->file[destination].status.size);
}

/* --- reading --- */

/* Reads a chunk. Returns 0, or -1 with *e. */
static int read_chunk(const struct folder_source *s, const struct chunk *c, int fd, struct error *e)
{
    const struct file_system *files = files_of(s);
    struct iovec piece[CHUNK_PARTS], *first = piece;
    int count = (int)c->parts;
    uint32_t done = 0;
    char path[FILE_PATH];

    for (int i = 0; i < count; i++)
        piece[i] = (struct iovec){(void *)(uintptr_t)c->part[i].data, c->part[i].length};
    while (done < c->length) {
        ssize_t result = files->read(files->context, fd, first, count, c->place + done);
        if (result < 0)
            return error_set(e, ERROR_IO, "%s cannot be read: %s", file_path(s, c->file, path),
                             strerror((int)-result));
        if (result == 0)
            return error_set(e, ERROR_IO, "%s has become shorter while it was being sent",
                             file_path(s, c->file, path));
        done += (uint32_t)result;
        file_system_advance(&first, &count, (size_t)result);
    }
    return 0;
}

static void run_read(struct work *work)
{
    struct reading *r = JOB_OWNER(work, struct reading, work);
    const struct folder_source *s = r->owner;

    for (struct chunk *c = r->chunks; c != NULL; c = c->next) {
        int fd = borrow_file(s, c->file, &r->error);
        if (fd < 0)
            return;
        int result = read_chunk(s, c, fd, &r->error);
        return_file(s, c->file, fd);
        if (result != 0)
            return;
    }
}

static void on_read(struct work *work);

/* Gives the first chunks of the queue to a job. Returns 0, or -1 without memory. */
static int start_reading(struct folder_source *s, struct reading *r)
{
    struct chunk **end = &s->queue;
    uint32_t bytes = 0;

    for (unsigned i = 0; *end != NULL && i < JOB_CHUNKS && bytes < JOB_BYTES; i++) {
        bytes += (*end)->length;
        end = &(*end)->next;
    }
    r->owner = s;
    r->work.run = run_read;
    r->work.done = on_read;
    struct chunk *first = s->queue, *rest = *end;
    *end = NULL;
    r->chunks = first;
    if (!jobs_submit(&s->jobs, &r->work)) {
        *end = rest;
        r->chunks = NULL;
        return -1;
    }
    s->queue = rest;
    if (rest == NULL)
        s->queue_end = &s->queue;
    s->waiting -= bytes;
    s->readings++;
    return 0;
}

static int start_readings(struct folder_source *s)
{
    for (unsigned i = 0; i < READERS && s->queue != NULL; i++)
        if (s->reading[i].chunks == NULL && s->waiting >= s->readings * (uint64_t)JOB_BYTES &&
            start_reading(s, &s->reading[i]) != 0)
            return -1;
    return 0;
}

static int no_memory_to_read(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory to read files");
}

static void on_read(struct work *work)
{
    struct reading *r = JOB_OWNER(work, struct reading, work);
    struct folder_source *s = r->owner;

    for (struct chunk *c = r->chunks; c != NULL; c = c->next)
        c->ready = true;
    r->chunks = NULL;
    s->readings--;
    if (!jobs_over(&s->jobs))
        return;
    if (r->error.code == ERROR_NONE && !s->jobs.failed && start_readings(s) != 0)
        (void)no_memory_to_read(&r->error);
    if (r->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &r->error);
    else
        s->jobs.events.wake(s->jobs.events.context);
}

/* How the round that a byte of a file is in is cut. */
static struct segments cut_at(const struct folder_source *s, const struct file *f, uint64_t offset)
{
    uint64_t left = f->size - (offset - offset % s->segments.round_bytes);

    return s->base.even ? segments_of_rest(&s->segments, left) : s->segments;
}

/* Where the run of bytes that contains `offset` ends. */
static uint64_t run_end(const struct folder_source *s, const struct file *f, uint64_t offset)
{
    const struct segments d = cut_at(s, f, offset);
    uint64_t end = f->size;

    if (d.count > 1) {
        uint64_t round = offset - offset % d.round_bytes;
        uint64_t run = (segment_at(&d, offset) + 1) * d.run_bytes;
        run = round + (run < d.round_bytes ? run : d.round_bytes);
        end = run < end ? run : end;
    }
    return end;
}

static uint32_t most_of_chunk(const struct folder_source *s, const struct file *f)
{
    return f->small ? s->small : s->chunk_size;
}

static uint64_t place_of(const struct folder_source *s, const struct file *f, uint64_t offset,
                         uint64_t *place)
{
    return source_place(&s->base, (uint32_t)(f - s->file), f->status.size, offset, place);
}

/* A segment has been read up to `offset`, where a run ends: on to its run of the next round, if there is one. */
static uint64_t next_run(const struct folder_source *s, const struct file *f, uint32_t segment,
                         uint64_t offset)
{
    uint64_t in = offset % s->segments.round_bytes;
    uint64_t round = offset - in + (in != 0 ? s->segments.round_bytes : 0);

    return round < f->size ? round + segment * cut_at(s, f, round).run_bytes : f->size;
}

/* Room for the next chunk of a segment, of so many bytes at most. Returns 0, or -1 with *e. */
static int take_chunk(struct folder_source *s, const struct file *f, struct reader *r,
                      struct chunk *c, uint32_t most, struct error *e)
{
    uint64_t end = f->small ? f->size : run_end(s, f, r->requested);
    uint64_t left = end - r->requested;
    uint64_t together = place_of(s, f, r->requested, &c->place);
    uint32_t length = left < most ? (uint32_t)left : most;

    if (length > together)
        length = (uint32_t)together;
    c->offset = r->requested;
    c->file = (uint32_t)(f - s->file);
    c->ready = false;
    for (c->length = c->parts = 0; c->length < length;) {
        struct extent *part = &c->part[c->parts];
        uint32_t rest = length - c->length;
        if (slab_writer_take(&s->writer, s->folders->pool, rest < SLAB_SIZE ? rest : SLAB_SIZE,
                             part) == NULL) {
            drop_chunk(c);
            return no_memory_to_read(e);
        }
        c->parts++;
        c->length += part->length;
    }
    r->requested += length;
    if (r->requested == end && end < f->size)
        r->requested = next_run(s, f, (uint32_t)(r - f->reader), end);
    return 0;
}

static void enqueue(struct folder_source *s, struct chunk *c)
{
    c->next = NULL;
    *s->queue_end = c;
    s->queue_end = &c->next;
    s->waiting += c->length;
}

/* Whether a chunk of one part could be read from what is in memory. */
static bool read_at_once(struct folder_source *s, const struct file *f, struct chunk *c)
{
    const struct file_system *files = files_of(s);
    uint8_t *data = (uint8_t *)(uintptr_t)c->part[0].data;
    uint32_t done = 0;

    while (done < c->length) {
        const struct iovec rest = {data + done, c->length - done};
        ssize_t result = f->in_memory
                             ? files->read(files->context, f->fd, &rest, 1, c->place + done)
                             : files->read_cached(files->context, f->fd, rest.iov_base,
                                                  rest.iov_len, c->place + done);
        s->not_at_once |= result == -EOPNOTSUPP;
        if (result <= 0)
            return false; /* a job finds out why */
        done += (uint32_t)result;
    }
    c->ready = true;
    return true;
}

static struct chunk *chunk_at(struct reader *r, uint64_t offset)
{
    for (int i = 0; i < 2; i++) {
        struct chunk *c = &r->chunk[i];
        if (c->length > 0 && offset >= c->offset && offset < c->offset + c->length)
            return c;
    }
    return NULL;
}

/* Begins to read what a segment will be asked for next. Returns 0, or -1 with *e. */
static int read_ahead(struct folder_source *s, const struct file *f, struct reader *r,
                      struct error *e)
{
    for (int i = 0; i < 2; i++) {
        struct chunk *c = &r->chunk[i];
        if (c->length > 0 || r->requested >= f->size)
            continue;
        if (take_chunk(s, f, r, c, most_of_chunk(s, f), e) != 0)
            return -1;
        enqueue(s, c);
    }
    return start_readings(s) == 0 ? 0 : no_memory_to_read(e);
}

/* Whether what comes next may be in memory. */
static bool may_read_at_once(const struct folder_source *s, const struct file *f,
                             const struct reader *r)
{
    return f->fd >= 0 && !r->ahead && (f->in_memory || !s->not_at_once);
}

/* The chunk that begins at `offset`, which nothing has been read of yet. Returns 0, or -1 with *e. */
static int read_next(struct folder_source *s, const struct file *f, struct reader *r,
                     uint64_t offset, struct error *e)
{
    struct chunk *c = &r->chunk[r->chunk[0].length > 0];

    if (r->requested == offset && c->length == 0 && may_read_at_once(s, f, r)) {
        if (take_chunk(s, f, r, c, AT_ONCE_MOST, e) != 0)
            return -1;
        if (read_at_once(s, f, c))
            return 0;
        r->ahead = true; /* what is not in memory here is not there further on */
        enqueue(s, c);
    }
    return read_ahead(s, f, r, e);
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct file *f = &s->file[destination];
    const struct segments cut = cut_at(s, f, offset);
    struct reader *r = &f->reader[f->small ? 0 : segment_at(&cut, offset)];
    struct chunk *c = chunk_at(r, offset);

    if (s->jobs.failed)
        return 0;
    if (c == NULL) {
        if (read_next(s, f, r, offset, e) != 0)
            return -1;
        c = chunk_at(r, offset);
    } else if (!may_read_at_once(s, f, r) && read_ahead(s, f, r, e) != 0) {
        return -1;
    }
    if (c == NULL || !c->ready)
        return 0;
    uint32_t skip = (uint32_t)(offset - c->offset);
    unsigned i = 0;
    for (; skip >= c->part[i].length; i++)
        skip -= c->part[i].length;
    uint32_t length = c->part[i].length - skip < most ? c->part[i].length - skip : most;
    *out = (struct extent){slab_ref(c->part[i].slab), c->part[i].data + skip, length};
    f->left -= length;
    if (f->small ? f->left == 0 : offset + length == c->offset + c->length)
        drop_chunk(c);
    return 1;
}

/* --- once more --- */

static void run_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, again.work);
    const struct file_system *files = files_of(s);
    struct again *a = &s->again;
    char path[FILE_PATH];
    int fd = borrow_file(s, a->file, &a->error);

    if (fd < 0)
        return;
    for (uint32_t done = 0, i = 0; done < a->length;) {
        struct run *run = &a->run[i];
        const struct iovec rest = {a->bytes + done, run->length};
        ssize_t result = files->read(files->context, fd, &rest, 1, run->place);
        if (result <= 0) {
            (void)error_set(&a->error, ERROR_IO, "%s cannot be read: %s",
                            file_path(s, a->file, path),
                            result < 0 ? strerror((int)-result) : "it has become shorter");
            break;
        }
        done += (uint32_t)result;
        run->place += (uint64_t)result;
        run->length -= (uint32_t)result;
        i += run->length == 0;
    }
    return_file(s, a->file, fd);
}

/* Returns 0, or -1 without memory. */
static int find_runs(const struct folder_source *s, struct again *a)
{
    for (uint32_t found = 0; found < a->length; a->runs++) {
        struct run *run = reallocarray(a->run, a->runs + 1, sizeof *run);
        if (run == NULL)
            return -1;
        a->run = run;
        run += a->runs;
        uint64_t together = place_of(s, &s->file[a->file], a->offset + found, &run->place);
        if (together == 0)
            return -1;
        run->length = together < a->length - found ? (uint32_t)together : a->length - found;
        found += run->length;
    }
    return 0;
}

static void on_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, again.work);

    s->again.state = AGAIN_READ;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

static int source_again(struct source *base, uint32_t destination, uint64_t offset, uint32_t length,
                        const uint8_t **bytes, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct again *a = &s->again;

    if (a->state == AGAIN_READING)
        return 0;
    if (a->state == AGAIN_READ && a->file == destination && a->offset == offset &&
        a->length == length) {
        a->state = AGAIN_NONE;
        *bytes = a->bytes;
        *e = a->error;
        return a->error.code == ERROR_NONE ? 1 : -1;
    }
    free(a->bytes);
    free(a->run);
    *a = (struct again){.file = destination, .offset = offset, .length = length};
    a->work.run = run_again;
    a->work.done = on_again;
    a->bytes = malloc(length);
    if (a->bytes == NULL || find_runs(s, a) != 0 || !jobs_submit(&s->jobs, &a->work))
        return no_memory_to_read(e);
    a->state = AGAIN_READING;
    return 0;
}

/* --- how files are cut into chunks --- */

/* Half of READ_AHEAD is for small files, and half for two chunks of each segment of the others. */
static void choose_chunks(struct folder_source *s)
{
    uint32_t nodes = s->request.nodes, large = 0;

    s->small = READ_AHEAD / 2 / nodes;
    if (s->small < CHUNK_LEAST)
        s->small = CHUNK_LEAST;
    if (s->small > CHUNK_MOST)
        s->small = CHUNK_MOST;
    for (uint32_t d = 0; d < nodes; d++) {
        struct file *f = &s->file[d];
        uint64_t place;
        f->size = source_size(&s->base, d);
        f->small = f->size <= s->small && place_of(s, f, 0, &place) >= f->size;
        large += !f->small;
    }
    s->chunk_size =
        READ_AHEAD / 4 / (large > 0 ? large : 1) / s->segments.count / CHUNK_LEAST * CHUNK_LEAST;
    if (s->chunk_size < CHUNK_LEAST)
        s->chunk_size = CHUNK_LEAST;
    if (s->chunk_size > CHUNK_MOST)
        s->chunk_size = CHUNK_MOST;
}

static int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    uint32_t nodes = s->request.nodes;

    s->segments = segments_of(round_bytes, segments);
    s->readers = calloc((size_t)nodes * s->segments.count, sizeof *s->readers);
    if (s->readers == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    choose_chunks(s);
    for (uint32_t d = 0; d < nodes; d++) {
        struct file *f = &s->file[d];
        f->reader = &s->readers[(size_t)d * s->segments.count];
        f->left = f->size;
        for (uint32_t i = 0; i < s->segments.count; i++) {
            f->reader[i].requested = i * cut_at(s, f, 0).run_bytes;
            if (f->reader[i].requested < f->size &&
                take_chunk(s, f, &f->reader[i], &f->reader[i].chunk[0], most_of_chunk(s, f), e) !=
                    0)
                return -1;
            if (f->reader[i].chunk[0].length > 0)
                enqueue(s, &f->reader[i].chunk[0]);
            if (f->small)
                break;
        }
    }
    return start_readings(s) == 0 ? 0 : no_memory_to_read(e);
}

/* --- the check at the end --- */

static void run_check(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);
    struct error *e = &s->jobs.error;

    for (uint32_t d = 0; d < s->request.nodes; d++) {
        struct file_status now;
        char path[FILE_PATH];
        if (!s->file[d].there)
            continue;
        int fd = borrow_file(s, d, e);
        if (fd < 0)
            return;
        int result = files_of(s)->status(files_of(s)->context, fd, &now);
        return_file(s, d, fd);
        if (result < 0)
            (void)error_set(e, ERROR_IO, "%s cannot be read: %s", file_path(s, d, path),
                            strerror(-result));
        else if (!is_as_before(&now, &s->file[d].status))
            (void)was_changed(file_path(s, d, path), e);
        if (e->code != ERROR_NONE)
            return;
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

struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events)
{
    static const struct source_ops ops = {.opened = source_opened,
                                          .lay_out = source_lay_out,
                                          .size = source_size,
                                          .read = source_read,
                                          .again = source_again,
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
                                .jobs = {.workers = folders->workers,
                                         .events = *events,
                                         .run_close = run_close,
                                         .release = release},
                                .request = *request,
                                .gone = gone,
                                .file = file};
    s->request.gone = gone;
    s->request.id = s->request.from = s->request.to = NULL;
    s->request.marks = NULL;
    s->request.parked = NULL;
    s->queue_end = &s->queue;
    for (uint32_t d = 0; d < request->nodes; d++) {
        file[d].fd = -1;
        file[d].marked = request->marks != NULL ? request->marks[d] : 0;
    }
    /* What is wrong with the path is told as what is found out later. */
    (void)path_expand(request->from, request->rank, s->folder, &s->jobs.error);
    if (!jobs_begin(&s->jobs, run_open, on_opened))
        goto no_memory;
    folders->users++;
    return &s->base;
no_memory:
    free(file);
    free(gone);
    free(s);
    return NULL;
}
