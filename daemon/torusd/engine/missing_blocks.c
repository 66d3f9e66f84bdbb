#include "daemon/torusd/engine/missing_blocks.h"

#include <stdlib.h>

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
        uint64_t begin,
            bytes = intervals_missing(arrived_of(r->here, origin), r->size, offset, &begin);
        if (bytes == 0)
            return error_set(e, ERROR_PROTOCOL, "node %u sent more bytes than were missing",
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

    return intervals_missing(arrived_of(r->here, origin), r->size, offset, &place) > 0 ? place
                                                                                       : offset;
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

static void sink_limit(struct sink *s, uint32_t origin, uint64_t size)
{
    if (whole_sink(s)->ops->limit != NULL)
        whole_sink(s)->ops->limit(whole_sink(s), origin, size);
}

static bool sink_lost(struct sink *s, uint32_t origin)
{
    return whole_sink(s)->ops->lost != NULL && whole_sink(s)->ops->lost(whole_sink(s), origin);
}

struct sink *remainder_whole(struct sink *s)
{
    struct sink *whole = whole_sink(s);

    free(s);
    return whole;
}

struct sink *remainder_sink(struct sink *whole, const struct arrived *here, uint64_t size)
{
    static const struct sink_ops ops = {.opened = sink_opened,
                                        .lay_out = sink_lay_out,
                                        .write = sink_write,
                                        .place = sink_place,
                                        .pending = sink_pending,
                                        .finish = sink_finish,
                                        .commit = sink_commit,
                                        .close = sink_close,
                                        .lost = sink_lost,
                                        .limit = sink_limit};
    struct remainder_sink *r = calloc(1, sizeof *r);

    if (r != NULL)
        *r = (struct remainder_sink){{&ops, whole->durable, whole->check}, whole, here, size};
    return r != NULL ? &r->base : NULL;
}
