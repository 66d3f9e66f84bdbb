#include "daemon/exchange/remainder.h"

#include <stdlib.h>

struct remainder_source {
    struct source base;
    struct source *whole;
    const struct arrived *there;
    uint64_t size;
};

static struct source *whole_source(struct source *s)
{
    return ((struct remainder_source *)s)->whole;
}

static bool source_opened(struct source *s)
{
    return whole_source(s)->ops->opened(whole_source(s));
}

static int source_lay_out(struct source *s, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    return whole_source(s)->ops->lay_out(whole_source(s), round_bytes, segments, e);
}

static uint64_t source_size(struct source *s, uint32_t destination)
{
    const struct remainder_source *r = (const struct remainder_source *)s;

    return r->size - arrived_bytes(r->there, destination);
}

static int source_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    const struct remainder_source *r = (const struct remainder_source *)s;
    uint64_t begin, bytes = arrived_missing(r->there, destination, r->size, offset, &begin);

    if (bytes == 0)
        return error_set(e, ERROR_PROTOCOL, "more is to be sent to node %u than it misses",
                         destination);
    if (bytes < most)
        most = (uint32_t)bytes;
    return r->whole->ops->read(r->whole, destination, begin, most, out, e);
}

static bool source_finish(struct source *s)
{
    return whole_source(s)->ops->finish(whole_source(s));
}

static bool source_close(struct source *s)
{
    bool closed = whole_source(s)->ops->close(whole_source(s));

    free(s);
    return closed;
}

struct source *remainder_source(struct source *whole, const struct arrived *there, uint64_t size)
{
    static const struct source_ops ops = {.opened = source_opened,
                                          .lay_out = source_lay_out,
                                          .size = source_size,
                                          .read = source_read,
                                          .finish = source_finish,
                                          .close = source_close};
    struct remainder_source *r = calloc(1, sizeof *r);

    if (r == NULL) {
        (void)whole->ops->close(whole);
        return NULL;
    }
    *r = (struct remainder_source){{&ops, true}, whole, there, size};
    return &r->base;
}

struct remainder_sink {
    struct sink base;
    struct sink *whole;
    const struct arrived *here;
    uint64_t size;
};

static struct sink *whole_sink(struct sink *s)
{
    return ((struct remainder_sink *)s)->whole;
}

static bool sink_opened(struct sink *s)
{
    return whole_sink(s)->ops->opened(whole_sink(s));
}

static int sink_lay_out(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    return whole_sink(s)->ops->lay_out(whole_sink(s), round_bytes, segments, e);
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    const struct remainder_sink *r = (const struct remainder_sink *)s;
    struct extent part = *piece;
    uint32_t left = piece->length;

    while (left > 0) {
        uint64_t begin, bytes = arrived_missing(r->here, origin, r->size, offset, &begin);
        if (bytes == 0)
            return error_set(e, ERROR_PROTOCOL, "more has come from node %u than was missing",
                             origin);
        part.length = bytes < left ? (uint32_t)bytes : left;
        if (r->whole->ops->write(r->whole, origin, begin, &part, e) != 0)
            return -1;
        part.data += part.length;
        offset += part.length;
        left -= part.length;
    }
    return 0;
}

static uint64_t sink_place(const struct sink *s, uint32_t origin, uint64_t offset)
{
    const struct remainder_sink *r = (const struct remainder_sink *)s;
    uint64_t place;

    return arrived_missing(r->here, origin, r->size, offset, &place) > 0 ? place : offset;
}

static uint64_t sink_pending(struct sink *s)
{
    return whole_sink(s)->ops->pending(whole_sink(s));
}

static bool sink_finish(struct sink *s)
{
    return whole_sink(s)->ops->finish(whole_sink(s));
}

static int sink_commit(struct sink *s, struct error *e)
{
    return whole_sink(s)->ops->commit(whole_sink(s), e);
}

static bool sink_close(struct sink *s, bool keep)
{
    bool closed = whole_sink(s)->ops->close(whole_sink(s), keep);

    free(s);
    return closed;
}

struct sink *remainder_sink(struct sink *whole, const struct arrived *here, uint64_t size)
{
    static const struct sink_ops ops = {sink_opened,  sink_lay_out, sink_write,  sink_place,
                                        sink_pending, sink_finish,  sink_commit, sink_close};
    struct remainder_sink *r = calloc(1, sizeof *r);

    if (r == NULL) {
        (void)whole->ops->close(whole, false);
        return NULL;
    }
    *r = (struct remainder_sink){{&ops, whole->durable, whole->check}, whole, here, size};
    return &r->base;
}
