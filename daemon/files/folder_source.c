/* A folder with a file for each destination, named by its rank; or one file for all, which is that
 * for the node itself. Each segment of a file is read ahead in chunks, one that is being sent and
 * one behind it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/files/digests.h"
#include "daemon/files/folders.h"

#define CHUNK_MOST SLAB_SIZE
#define CHUNK_LEAST (4u * 1024u)
#define FILE_PATH (PATH_MAX + 16)
#define READ_AHEAD (8u * 1024u * 1024u) /* of all files together */

struct folder_source;

struct chunk {
    uv_fs_t request;
    struct folder_source *owner;
    struct extent bytes; /* slab NULL: not in use */
    uint64_t offset;
    bool reading;
};

/* A segment of a file: in each round one run of bytes. */
struct reader {
    uint64_t requested; /* where the next chunk begins */
    struct chunk chunk[2];
};

struct file {
    int fd; /* -1: missing, an empty block */
    uint64_t size;
    struct timespec modified;
    struct reader *reader; /* by segment */
};

struct folder_source {
    struct source base;
    struct folders *folders;
    struct block_events events;
    char folder[PATH_MAX];
    bool single; /* it is the file itself */
    uint32_t rank, nodes;
    uint32_t chunk_size;
    struct slab_writer writer;
    unsigned reading;
    bool closing;
    struct file *file;
    struct reader *readers; /* of all files */
    struct digests digests;
};

/* The path of a block's file; `out` has room for FILE_PATH. */
static const char *file_path(const struct folder_source *s, uint32_t d, char *out)
{
    int n = snprintf(out, FILE_PATH, "%s", s->folder);
    if (!s->single)
        (void)snprintf(out + n, FILE_PATH - (size_t)n, "/%u", d);
    return out;
}

static void destroy(struct folder_source *s)
{
    for (uint32_t d = 0; s->file != NULL && d < s->nodes; d++)
        if (s->file[d].fd >= 0)
            (void)close(s->file[d].fd);
    for (size_t i = 0; s->readers != NULL && i < (size_t)s->nodes * s->digests.segments; i++)
        for (int c = 0; c < 2; c++)
            if (s->readers[i].chunk[c].bytes.slab != NULL)
                slab_unref(s->readers[i].chunk[c].bytes.slab);
    digests_free(&s->digests);
    slab_writer_close(&s->writer);
    free(s->readers);
    free(s->file);
    free(s);
}

static void source_close(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;

    s->closing = true;
    if (s->reading == 0)
        destroy(s);
}

static void on_read(uv_fs_t *request)
{
    struct chunk *c = request->data;
    struct folder_source *s = c->owner;
    ssize_t result = request->result;

    uv_fs_req_cleanup(request);
    c->reading = false;
    s->reading--;
    if (s->closing) {
        if (s->reading == 0)
            destroy(s);
        return;
    }
    if (result != (ssize_t)c->bytes.length) {
        char path[FILE_PATH];
        struct error e;
        size_t reader = (size_t)((uint8_t *)c - (uint8_t *)s->readers) / sizeof *s->readers;
        (void)error_set(&e, ERROR_IO, "%s: %s",
                        file_path(s, (uint32_t)(reader / s->digests.segments), path),
                        result < 0 ? uv_strerror((int)result) : "has become shorter");
        s->events.failed(s->events.context, &e);
        return;
    }
    s->events.wake(s->events.context);
}

/* Where the run of bytes that contains `offset` ends. */
static uint64_t run_end(const struct folder_source *s, const struct file *f, uint64_t offset)
{
    const struct digests *d = &s->digests;
    uint64_t end = f->size;

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
    uint8_t *at = slab_writer_take(&s->writer, s->folders->pool, length, &c->bytes);
    uv_buf_t buffer = uv_buf_init((char *)at, length);
    int result;

    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "no memory to read files");
    c->owner = s;
    c->offset = r->requested;
    c->request.data = c;
    result =
        uv_fs_read(s->folders->loop, &c->request, f->fd, &buffer, 1, (int64_t)c->offset, on_read);
    if (result != 0) {
        slab_unref(c->bytes.slab);
        c->bytes.slab = NULL;
        return error_set(e, ERROR_IO, "reading: %s", uv_strerror(result));
    }
    c->reading = true;
    s->reading++;
    r->requested += length;
    if (r->requested == end && end < f->size) /* on to this segment's run of the next round */
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
        if (r->chunk[i].bytes.slab == NULL && r->requested < f->size &&
            start_read(s, f, r, &r->chunk[i], e) != 0)
            return -1;
    if (c == NULL || c->reading)
        return 0;
    uint32_t skip = (uint32_t)(offset - c->offset);
    uint32_t length = c->bytes.length - skip < most ? c->bytes.length - skip : most;
    *out = (struct extent){slab_ref(c->bytes.slab), c->bytes.data + skip, length};
    if (digests_update(&s->digests, destination, offset, out->data, length) != 0) {
        slab_unref(out->slab);
        return error_set(e, ERROR_IO, "digest");
    }
    if (skip + length == c->bytes.length) {
        slab_unref(c->bytes.slab);
        c->bytes.slab = NULL;
    }
    return 1;
}

static uint64_t source_size(struct source *base, uint32_t destination)
{
    return ((struct folder_source *)base)->file[destination].size;
}

static int source_check(struct source *base, uint64_t *digest, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;

    *digest += digests_sum(&s->digests);
    for (uint32_t d = 0; d < s->nodes; d++) {
        const struct file *f = &s->file[d];
        char path[FILE_PATH];
        struct stat st;
        if (f->fd < 0)
            continue;
        if (fstat(f->fd, &st) != 0)
            return error_set(e, ERROR_IO, "%s: %s", file_path(s, d, path), strerror(errno));
        if ((uint64_t)st.st_size != f->size || st.st_mtim.tv_sec != f->modified.tv_sec ||
            st.st_mtim.tv_nsec != f->modified.tv_nsec)
            return error_set(e, ERROR_DAMAGED, "%s was changed while it was being sent",
                             file_path(s, d, path));
    }
    return 0;
}

static int open_file(struct folder_source *s, uint32_t d, bool missing_ok, struct error *e)
{
    struct file *f = &s->file[d];
    char path[FILE_PATH];
    struct stat st;

    f->reader = &s->readers[(size_t)d * s->digests.segments];
    for (uint32_t i = 1; i < s->digests.segments; i++)
        f->reader[i].requested = i * s->digests.run_bytes;
    f->fd = roots_open_file(s->folders->roots, file_path(s, d, path), e);
    if (f->fd < 0) {
        if (e->code != ERROR_NONE)
            return -1;
        if (missing_ok)
            return 0;
        return error_set(e, ERROR_REFUSED,
                         "missing source file %s (the block %s node %u); --missing-ok makes it "
                         "empty",
                         path, s->digests.copies > 1 ? "of" : "for", d);
    }
    if (fstat(f->fd, &st) != 0)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    f->size = (uint64_t)st.st_size;
    f->modified = st.st_mtim;
    return 0;
}

static int open_files(struct folder_source *s, const struct folder_request *request,
                      struct error *e)
{
    char from[PATH_MAX];
    struct stat st;
    uint32_t first = 0, end = s->nodes;

    if (path_expand(request->from, s->rank, from, e) != 0)
        return -1;
    if (request->operation != OPERATION_EXCHANGE) {
        first = s->rank;
        end = first + 1;
        s->single = stat(from, &st) != 0 || !S_ISDIR(st.st_mode);
    }
    if (s->single)
        (void)snprintf(s->folder, sizeof s->folder, "%s", from);
    else if (roots_resolve_folder(s->folders->roots, from, s->folder, e) != 0)
        return -1;
    for (uint32_t d = first; d < end; d++)
        if (open_file(s, d, request->missing_ok, e) != 0)
            return -1;
    return 0;
}

struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events, struct error *e)
{
    static const struct source_ops ops = {source_size, source_read, source_check, source_close};
    struct folder_source *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for a folder");
        return NULL;
    }
    s->base.ops = &ops;
    s->folders = folders;
    s->events = *events;
    s->rank = request->rank;
    s->nodes = request->nodes;
    bool room = digests_init(&s->digests, request, true) == 0;
    s->file = calloc(s->nodes, sizeof *s->file);
    s->readers = calloc((size_t)s->nodes * s->digests.segments, sizeof *s->readers);
    for (uint32_t d = 0; s->file != NULL && d < s->nodes; d++)
        s->file[d].fd = -1;
    if (!room || s->file == NULL || s->readers == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for a folder");
        goto fail;
    }
    bool one = request->operation != OPERATION_EXCHANGE;
    s->chunk_size =
        READ_AHEAD / 2 / (one ? 1 : s->nodes) / s->digests.segments / CHUNK_LEAST * CHUNK_LEAST;
    if (s->chunk_size < CHUNK_LEAST)
        s->chunk_size = CHUNK_LEAST;
    if (s->chunk_size > CHUNK_MOST)
        s->chunk_size = CHUNK_MOST;
    if (folder_sends(request, s->rank) && open_files(s, request, e) != 0)
        goto fail;
    return &s->base;
fail:
    destroy(s);
    return NULL;
}
