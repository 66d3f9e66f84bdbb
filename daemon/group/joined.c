/* The blocks of an allgather, one behind the other by member, as a vector that is combined on a tree: each
 * member contributes its own block and zeros, which OR makes all blocks of. */
#include <string.h>

#include "daemon/group/internal.h"

#define ZEROS 256u

static const struct joined *of_source(const struct source *s)
{
    return (const struct joined *)((const char *)s - offsetof(struct joined, source));
}

/* Where the block of a member begins. */
static uint64_t begin_of(const struct joined *j, uint32_t member)
{
    uint64_t begin = 0;

    for (uint32_t i = 0; i < member; i++)
        begin += blocks_coming(j->blocks, i);
    return begin;
}

static uint64_t source_size(struct source *s, uint32_t owner)
{
    (void)owner;
    return of_source(s)->bytes;
}

static int source_read(struct source *s, uint32_t owner, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    const struct joined *j = of_source(s);
    struct blocks *b = j->blocks;
    uint64_t begin = begin_of(j, b->rank), end = begin + blocks_coming(b, b->rank);

    if (offset >= begin && offset < end)
        return b->source.ops->read(&b->source, owner, offset - begin,
                                   end - offset < most ? (uint32_t)(end - offset) : most, out, e);
    uint64_t zeros = offset < begin ? begin - offset : j->bytes - offset;
    zeros = zeros < ZEROS ? zeros : ZEROS;
    out->slab = slab_ref(j->zeros);
    out->data = j->zeros->data;
    out->length = zeros < most ? (uint32_t)zeros : most;
    return 1;
}

static int sink_write(struct sink *s, uint32_t owner, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    const struct joined *j = (struct joined *)((char *)s - offsetof(struct joined, sink));
    struct blocks *b = j->blocks;
    uint64_t begin = 0, end, to = offset + piece->length;

    (void)owner;
    for (uint32_t member = 0; member < b->members && begin < to; member++, begin = end) {
        end = begin + blocks_coming(b, member);
        if (end <= offset)
            continue;
        uint64_t first = offset > begin ? offset : begin, last = to < end ? to : end;
        const struct extent part = {piece->slab, piece->data + (first - offset),
                                    (uint32_t)(last - first)};
        if (part.length > 0 &&
            b->sink.ops->write(&b->sink, part_rank(b->part, member), first - begin, &part, e) != 0)
            return -1;
    }
    return 0;
}

static uint64_t sink_pending(struct sink *s)
{
    (void)s;
    return 0;
}

static const struct source_ops source_ops = {.size = source_size, .read = source_read};
static const struct sink_ops sink_ops = {.write = sink_write, .pending = sink_pending};

int joined_init(struct joined *j, struct blocks *b, struct error *e)
{
    *j = (struct joined){.source = {.ops = &source_ops}, .sink = {.ops = &sink_ops}, .blocks = b};
    j->zeros = slab_lone(ZEROS, NULL, NULL);
    if (j->zeros == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    memset(j->zeros->data, 0, ZEROS);
    j->bytes = begin_of(j, b->members);
    return 0;
}

void joined_free(struct joined *j)
{
    if (j->zeros != NULL)
        slab_unref(j->zeros);
    *j = (struct joined){0};
}
