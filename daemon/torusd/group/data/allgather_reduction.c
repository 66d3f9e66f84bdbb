#include "daemon/torusd/group/data/allgather_reduction.h"

static const struct allgather_reduction *of_source(const struct source *s)
{
    return (const struct allgather_reduction *)((const char *)s -
                                                offsetof(struct allgather_reduction, source));
}

static uint64_t source_size(struct source *s, uint32_t owner)
{
    (void)owner;
    return of_source(s)->bytes;
}

static int source_read(struct source *s, uint32_t owner, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    static const uint8_t zeros[256];
    const struct allgather_reduction *j = of_source(s);
    struct blocks *b = j->blocks;
    uint64_t end = j->own + blocks_expected(b, b->members->own);

    if (offset >= j->own && offset < end)
        return b->source.ops->read(&b->source, owner, offset - j->own,
                                   end - offset < most ? (uint32_t)(end - offset) : most, out, e);
    uint64_t left = offset < j->own ? j->own - offset : j->bytes - offset;
    left = left < sizeof zeros ? left : sizeof zeros;
    out->slab = slab_ref(b->sent); /* any slab will do, because the engine copies what it reads */
    out->data = zeros;
    out->length = left < most ? (uint32_t)left : most;
    return 1;
}

static int sink_write(struct sink *s, uint32_t owner, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    const struct allgather_reduction *j =
        (struct allgather_reduction *)((char *)s - offsetof(struct allgather_reduction, sink));
    struct blocks *b = j->blocks;
    uint64_t begin = 0, end, to = offset + piece->length;

    (void)owner;
    for (uint32_t member = 0; member < b->members->count && begin < to; member++, begin = end) {
        end = begin + blocks_expected(b, member);
        if (end <= offset)
            continue;
        uint64_t first = offset > begin ? offset : begin, last = to < end ? to : end;
        const struct extent part = {piece->slab, piece->data + (first - offset),
                                    (uint32_t)(last - first)};
        if (part.length > 0 && b->sink.ops->write(&b->sink, members_node(b->members, member),
                                                  first - begin, &part, e) != 0)
            return -1;
    }
    return 0;
}

static const struct source_ops source_ops = {.size = source_size, .read = source_read};
static const struct sink_ops sink_ops = {.write = sink_write, .pending = sink_never_pending};

void allgather_reduction_init(struct allgather_reduction *j, struct blocks *b)
{
    *j = (struct allgather_reduction){
        .source = {.ops = &source_ops}, .sink = {.ops = &sink_ops}, .blocks = b};
    for (uint32_t member = 0; member < b->members->count; member++) {
        if (member == b->members->own)
            j->own = j->bytes;
        j->bytes += blocks_expected(b, member);
    }
}
