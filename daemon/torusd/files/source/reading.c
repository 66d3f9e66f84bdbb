#include "daemon/torusd/files/source/reading.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/torusd/files/source/chunks.h"
#include "daemon/torusd/files/source/reading_jobs.h"

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

int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
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

int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments, struct error *e)
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
