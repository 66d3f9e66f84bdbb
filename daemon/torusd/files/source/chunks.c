#include "daemon/torusd/files/source/chunks.h"

#include "daemon/torusd/files/source/opening.h"

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

uint64_t chunks_place_of(const struct folder_source *s, const struct file *f, uint64_t offset,
                         uint64_t *place)
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

void chunks_drop(struct chunk *c)
{
    for (unsigned i = 0; i < c->parts; i++)
        slab_unref(c->part[i].slab);
    c->parts = c->length = 0;
}

int chunks_take(struct folder_source *s, const struct file *f, struct reader *r, struct chunk *c,
                uint32_t most, struct error *e)
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

void chunks_choose(struct folder_source *s)
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
