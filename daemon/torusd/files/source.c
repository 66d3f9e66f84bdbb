#include "daemon/torusd/files/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- chunks of files --- */

/* Returns how the round that contains a byte of a file is cut. */
static inline struct segments chunks_cut_at(const struct folder_source *s, const struct file *f,
                                            uint64_t offset)
{
    uint64_t left = f->size - (offset - offset % s->segments.round_bytes);

    return s->base.even ? segments_of_rest(&s->segments, left) : s->segments;
}

/* Returns the most bytes that a chunk of this file has. */
static inline uint32_t chunks_most(const struct folder_source *s, const struct file *f)
{
    return f->small ? s->small : s->chunk_size;
}

#define READ_AHEAD (8u * 1024u * 1024u) /* bytes, all files together */

/* Returns where the run of bytes that contains `offset` ends. */
static uint64_t run_end(const struct folder_source *s, const struct file *f, uint64_t offset)
{
    const struct segments d = chunks_cut_at(s, f, offset);
    uint64_t end = f->size;

    if (d.count > 1) {
        uint64_t round = offset - offset % d.round_bytes;
        uint64_t run = (segment_at(&d, offset) + 1) * d.run_bytes;
        run = round + (run < d.round_bytes ? run : d.round_bytes);
        end = run < end ? run : end;
    }
    return end;
}

/* Sets *place to the offset in the file of the byte at `offset` of the bytes that are not skipped. Returns
 * how many bytes follow it without a gap. */
static uint64_t chunks_place_of(const struct folder_source *s, const struct file *f,
                                uint64_t offset, uint64_t *place)
{
    return source_place(&s->base, (uint32_t)(f - s->file), f->status.size, offset, place);
}

/* Returns where the next run of a segment begins, after one that ends at `offset`. */
static uint64_t next_run(const struct folder_source *s, const struct file *f, uint32_t segment,
                         uint64_t offset)
{
    uint64_t in = offset % s->segments.round_bytes;
    uint64_t round = offset - in + (in != 0 ? s->segments.round_bytes : 0);

    return round < f->size ? round + segment * chunks_cut_at(s, f, round).run_bytes : f->size;
}

/* Drops the contents of a chunk. */
static void chunks_drop(struct chunk *c)
{
    for (unsigned i = 0; i < c->parts; i++)
        slab_unref(c->part[i].slab);
    c->parts = c->length = 0;
}

/* Gives *c memory for the next chunk of a segment, at most `most` bytes. Returns 0, or -1 with *e. */
static int chunks_take(struct folder_source *s, const struct file *f, struct reader *r,
                       struct chunk *c, uint32_t most, struct error *e)
{
    uint64_t end = f->small ? f->size : run_end(s, f, r->requested);
    uint64_t left = end - r->requested;
    uint64_t together = chunks_place_of(s, f, r->requested, &c->place);
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
            chunks_drop(c);
            return error_set(e, ERROR_MEMORY, "out of memory to read files");
        }
        c->parts++;
        c->length += part->length;
    }
    r->requested += length;
    if (r->requested == end && end < f->size)
        r->requested = next_run(s, f, (uint32_t)(r - f->reader), end);
    return 0;
}

/* Chooses the sizes of chunks, when the segments are known: small files get half of the memory for reading
 * ahead, and two chunks of each segment of the other files get the other half. */
static void chunks_choose(struct folder_source *s)
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
        f->small = f->size <= s->small && chunks_place_of(s, f, 0, &place) >= f->size;
        large += !f->small;
    }
    s->chunk_size =
        READ_AHEAD / 4 / (large > 0 ? large : 1) / s->segments.count / CHUNK_LEAST * CHUNK_LEAST;
    if (s->chunk_size < CHUNK_LEAST)
        s->chunk_size = CHUNK_LEAST;
    if (s->chunk_size > CHUNK_MOST)
        s->chunk_size = CHUNK_MOST;
}

/* --- jobs that read chunks, as many each as there are, up to a limit --- */

#define JOB_BYTES CHUNK_MOST /* enough bytes for one job */
#define JOB_CHUNKS 64u

/* Reads a chunk. Returns 0, or -1 with *e. */
static int read_chunk(const struct folder_source *s, const struct chunk *c, int fd, struct error *e)
{
    const struct file_system *files = source_files(s);
    struct iovec piece[CHUNK_PARTS], *first = piece;
    int count = (int)c->parts;
    uint32_t done = 0;
    char path[FILE_PATH];

    for (int i = 0; i < count; i++)
        piece[i] = (struct iovec){(void *)(uintptr_t)c->part[i].data, c->part[i].length};
    while (done < c->length) {
        ssize_t result = files->read(files->context, fd, first, count, c->place + done);
        if (result < 0)
            return error_set(e, ERROR_IO, "%s cannot be read: %s",
                             source_file_path(s, c->file, path), strerror((int)-result));
        if (result == 0)
            return error_set(e, ERROR_IO, "%s became shorter while it was being sent",
                             source_file_path(s, c->file, path));
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
        int fd = source_file_borrow(s, c->file, &r->error);
        if (fd < 0)
            return;
        int result = read_chunk(s, c, fd, &r->error);
        source_file_return(s, c->file, fd);
        if (result != 0)
            return;
    }
}

static void on_read(struct work *work);

/* Gives the first chunks of the queue to a job. Returns 0, or -1 if there is no memory. */
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

/* Starts jobs for the queued chunks, if there are enough of them. Returns 0, or -1 if there is no memory. */
static int reading_jobs_start(struct folder_source *s)
{
    for (unsigned i = 0; i < READERS && s->queue != NULL; i++)
        if (s->reading[i].chunks == NULL && s->waiting >= s->readings * (uint64_t)JOB_BYTES &&
            start_reading(s, &s->reading[i]) != 0)
            return -1;
    return 0;
}

/* Fills *e: there is no memory. Returns -1. */
static int reading_jobs_no_memory(struct error *e)
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
    if (r->error.code == ERROR_NONE && !s->jobs.failed && reading_jobs_start(s) != 0)
        (void)reading_jobs_no_memory(&r->error);
    if (r->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &r->error);
    else
        s->jobs.events.wake(s->jobs.events.context);
}

/* Queues a chunk for reading. */
static void reading_jobs_add(struct folder_source *s, struct chunk *c)
{
    c->next = NULL;
    *s->queue_end = c;
    s->queue_end = &c->next;
    s->waiting += c->length;
}

/* --- reading segment by segment, one chunk ahead --- */

#define AT_ONCE_MOST SLAB_SIZE /* most bytes that are read on the loop */

/* Reads a chunk of one part on the loop, if its bytes are in memory. Returns whether they were. */
static bool read_at_once(struct folder_source *s, const struct file *f, struct chunk *c)
{
    const struct file_system *files = source_files(s);
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

/* Starts to read the next chunk of a segment. Returns 0, or -1 with *e. */
static int read_ahead(struct folder_source *s, const struct file *f, struct reader *r,
                      struct error *e)
{
    for (int i = 0; i < 2; i++) {
        struct chunk *c = &r->chunk[i];
        if (c->length > 0 || r->requested >= f->size)
            continue;
        if (chunks_take(s, f, r, c, chunks_most(s, f), e) != 0)
            return -1;
        reading_jobs_add(s, c);
    }
    return reading_jobs_start(s) == 0 ? 0 : reading_jobs_no_memory(e);
}

/* Whether the next bytes may be in memory. */
static bool may_read_at_once(const struct folder_source *s, const struct file *f,
                             const struct reader *r)
{
    return f->fd >= 0 && !r->ahead && (f->in_memory || !s->not_at_once);
}

/* Reads the chunk that begins at `offset`, of which no byte has been read yet. Returns 0, or -1 with *e. */
static int read_next(struct folder_source *s, const struct file *f, struct reader *r,
                     uint64_t offset, struct error *e)
{
    struct chunk *c = &r->chunk[r->chunk[0].length > 0];

    if (r->requested == offset && c->length == 0 && may_read_at_once(s, f, r)) {
        if (chunks_take(s, f, r, c, AT_ONCE_MOST, e) != 0)
            return -1;
        if (read_at_once(s, f, c))
            return 0;
        r->ahead = true; /* later bytes are probably not in memory either */
        reading_jobs_add(s, c);
    }
    return read_ahead(s, f, r, e);
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct file *f = &s->file[destination];
    const struct segments cut = chunks_cut_at(s, f, offset);
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
        chunks_drop(c);
    return 1;
}

/* As source_ops.lay_out() and read(). */
static int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    uint32_t nodes = s->request.nodes;

    s->segments = segments_of(round_bytes, segments);
    s->readers = calloc((size_t)nodes * s->segments.count, sizeof *s->readers);
    if (s->readers == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read files");
    chunks_choose(s);
    for (uint32_t d = 0; d < nodes; d++) {
        struct file *f = &s->file[d];
        f->reader = &s->readers[(size_t)d * s->segments.count];
        f->left = f->size;
        for (uint32_t i = 0; i < s->segments.count; i++) {
            f->reader[i].requested = i * chunks_cut_at(s, f, 0).run_bytes;
            if (f->reader[i].requested < f->size &&
                chunks_take(s, f, &f->reader[i], &f->reader[i].chunk[0], chunks_most(s, f), e) != 0)
                return -1;
            if (f->reader[i].chunk[0].length > 0)
                reading_jobs_add(s, &f->reader[i].chunk[0]);
            if (f->small)
                break;
        }
    }
    return reading_jobs_start(s) == 0 ? 0 : reading_jobs_no_memory(e);
}

/* --- bytes that are read a second time, to repair a damaged piece --- */

static void run_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, rereading.work);
    const struct file_system *files = source_files(s);
    struct rereading *a = &s->rereading;
    char path[FILE_PATH];
    int fd = source_file_borrow(s, a->file, &a->error);

    if (fd < 0)
        return;
    for (uint32_t done = 0, i = 0; done < a->length;) {
        struct run *run = &a->run[i];
        const struct iovec rest = {a->bytes + done, run->length};
        ssize_t result = files->read(files->context, fd, &rest, 1, run->place);
        if (result <= 0) {
            (void)error_set(&a->error, ERROR_IO, "%s cannot be read: %s",
                            source_file_path(s, a->file, path),
                            result < 0 ? strerror((int)-result) : "it became shorter");
            break;
        }
        done += (uint32_t)result;
        run->place += (uint64_t)result;
        run->length -= (uint32_t)result;
        i += run->length == 0;
    }
    source_file_return(s, a->file, fd);
}

/* Finds where the bytes are in the file. Returns 0, or -1 if there is no memory. */
static int find_runs(const struct folder_source *s, struct rereading *a)
{
    for (uint32_t found = 0; found < a->length; a->runs++) {
        struct run *run = reallocarray(a->run, a->runs + 1, sizeof *run);
        if (run == NULL)
            return -1;
        a->run = run;
        run += a->runs;
        uint64_t together = chunks_place_of(s, &s->file[a->file], a->offset + found, &run->place);
        if (together == 0)
            return -1;
        run->length = together < a->length - found ? (uint32_t)together : a->length - found;
        found += run->length;
    }
    return 0;
}

static void on_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, rereading.work);

    s->rereading.state = REREAD_DONE;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

/* As source_ops.reread(). */
static int source_reread(struct source *base, uint32_t destination, uint64_t offset,
                         uint32_t length, const uint8_t **bytes, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct rereading *a = &s->rereading;

    if (a->state == REREADING)
        return 0;
    if (a->state == REREAD_DONE && a->file == destination && a->offset == offset &&
        a->length == length) {
        a->state = REREAD_NONE;
        *bytes = a->bytes;
        *e = a->error;
        return a->error.code == ERROR_NONE ? 1 : -1;
    }
    free(a->bytes);
    free(a->run);
    *a = (struct rereading){.file = destination, .offset = offset, .length = length};
    a->work.run = run_again;
    a->work.done = on_again;
    a->bytes = malloc(length);
    if (a->bytes == NULL || find_runs(s, a) != 0 || !jobs_submit(&s->jobs, &a->work))
        return reading_jobs_no_memory(e);
    a->state = REREADING;
    return 0;
}

/* --- the life of a source --- */

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
