/* A call's memory as the source and sink of its engine.
 *
 * What is sent lies in the program's memory, to which extents refer without a copy, or in a copy of
 * the daemon's own. Behind each block comes its digest, made while the block is read; what arrives is
 * checked against it when the block is there. Vectors of reductions have none: their
 * pieces are checked on every channel. */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/internal.h"
#include "proto/text.h"

/* A block in an area. */
struct run {
    uint64_t offset, size;
};

/* The part of a vector that an owner combines. */
static struct run share(const struct blocks *b, uint32_t owner)
{
    const struct group_call *call = &b->what->call;
    uint64_t each = call->size / b->members, more = call->size % b->members, first;

    if (b->single)
        return (struct run){0, b->what->total};
    if (call->operation == GROUP_REDUCE_SCATTER)
        return (struct run){b->from_at[owner], call->receive_size[owner] * b->element};
    first = owner * each + (owner < more ? owner : more);
    return (struct run){first * b->element, (each + (owner < more)) * b->element};
}

/* What a member is that the engine knows as a node; one that has been left out has no blocks. */
static uint32_t member_of(const struct blocks *b, uint32_t node)
{
    return part_member(b->part, node);
}

static struct run sent_to(const struct blocks *b, uint32_t destination)
{
    const struct group_call *call = &b->what->call;

    if (destination == TORUS_NO_NODE)
        return (struct run){0, 0};
    switch (b->layout) {
    case LAYOUT_VECTOR:
        return share(b, destination);
    case LAYOUT_GATHER: /* the same for all */
        return (struct run){0,
                            call->receive_size != NULL ? call->receive_size[b->rank] : call->size};
    case LAYOUT_EXCHANGE:
        break;
    }
    if (call->send_size != NULL)
        return (struct run){b->from_at != NULL ? b->from_at[destination]
                                               : call->send_offset[destination],
                            call->send_size[destination]};
    return (struct run){destination * call->size, call->size};
}

static struct run got_from(const struct blocks *b, uint32_t origin)
{
    const struct group_call *call = &b->what->call;

    if (b->layout == LAYOUT_VECTOR) {
        struct run run = share(b, origin);
        if (call->operation == GROUP_REDUCE_SCATTER && !b->single)
            run.offset = 0;
        return run;
    }
    if (call->operation == GROUP_BROADCAST)
        return (struct run){0, origin == call->root ? call->size : 0};
    if (call->receive_size != NULL)
        return (struct run){call->receive_offset[origin], call->receive_size[origin]};
    return (struct run){origin * call->size, call->size};
}

uint64_t blocks_coming(const struct blocks *b, uint32_t member)
{
    uint64_t size = blocks_wire(b, got_from(b, member).size);

    return size > b->skip ? size - b->skip : 0;
}

/* --- source --- */

static struct blocks *of_source(struct source *s)
{
    return (struct blocks *)((char *)s - offsetof(struct blocks, source));
}

static uint64_t source_size(struct source *s, uint32_t destination)
{
    const struct blocks *b = of_source(s);
    uint32_t member = b->layout == LAYOUT_GATHER ? b->rank : member_of(b, destination);
    uint64_t size = blocks_wire(b, sent_to(b, member).size);
    return size > b->skip ? size - b->skip : 0;
}

/* So that no other block is taken for it. */
static uint64_t seed_of(const struct blocks *b, uint32_t origin, uint32_t destination)
{
    return (uint64_t)origin << 32 | (b->layout == LAYOUT_EXCHANGE ? destination : 0);
}

/* Of the block that is at `data`. */
static const uint8_t *digest_of(struct blocks *b, uint32_t index, const uint8_t *data,
                                uint64_t size)
{
    uint8_t *digest = b->digest + (size_t)index * DIGEST_SIZE;

    if (!b->digested[index]) {
        digest_write(digest,
                     digest_finish(&b->passing_out[index], data, size, seed_of(b, b->rank, index)));
        b->digested[index] = true;
    }
    return digest;
}

/* Whether what this member has for itself goes to others, too. */
static bool is_for_others(const struct blocks *b)
{
    return b->layout != LAYOUT_EXCHANGE && b->what->call.operation != GROUP_REDUCE;
}

static int source_read(struct source *s, uint32_t node, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct blocks *b = of_source(s);
    uint32_t destination = b->layout == LAYOUT_GATHER ? b->rank : member_of(b, node);
    struct run run = sent_to(b, destination);
    const uint8_t *data = b->from + run.offset;
    uint32_t index = b->layout == LAYOUT_EXCHANGE ? destination : 0;
    uint64_t left;

    (void)e;
    if (!b->ready)
        return 0;
    offset += b->skip;
    left = run.size - offset;
    out->slab = slab_ref(b->sent);
    if (offset < run.size) {
        out->data = data + offset;
    } else {
        out->data = digest_of(b, index, data, run.size) + (offset - run.size);
        left = run.size + DIGEST_SIZE - offset;
    }
    out->length = left < most ? (uint32_t)left : most;
    if (b->digests && offset < run.size && out->length < run.size && !b->digested[index])
        digest_pass(&b->passing_out[index], out->data, offset, out->length, run.size,
                    seed_of(b, b->rank, index));
    if (destination != b->rank || is_for_others(b))
        b->bytes_out += out->length;
    return 1;
}

static const struct source_ops source_ops = {.size = source_size, .read = source_read};

/* --- sink --- */

static struct blocks *of_sink(struct sink *s)
{
    return (struct blocks *)((char *)s - offsetof(struct blocks, sink));
}

static int check_digest(const struct blocks *b, uint32_t origin, const struct run *run,
                        struct error *e)
{
    if (!b->digests || run->size == 0)
        return 0;
    if (digest_finish(&b->passing_in[origin], b->to + run->offset, run->size,
                      seed_of(b, origin, b->rank)) ==
        digest_read(b->got_digest + (size_t)origin * DIGEST_SIZE))
        return 0;
    return error_set(e, ERROR_DAMAGED, "the block from member %u is not what was sent", origin);
}

struct undo {
    struct undo *next;
    uint8_t *to;
    uint64_t offset, length; /* in its owner's block */
    uint8_t bytes[];
};

/* Results take the place of what they would be made from again. */
static bool overwrites(const struct blocks *b)
{
    return b->layout == LAYOUT_VECTOR && b->what->call.in_place && !b->copied &&
           b->what->call.operation != GROUP_PART;
}

static int save(struct blocks *b, uint8_t *to, uint64_t offset, uint64_t length, struct error *e)
{
    struct undo *u = malloc(sizeof *u + length);

    if (u == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    *u = (struct undo){.next = b->undo, .to = to, .offset = offset, .length = length};
    memcpy(u->bytes, to, length);
    b->undo = u;
    return 0;
}

void blocks_settle(struct blocks *b, uint64_t bytes)
{
    struct undo **at = &b->undo;

    while (*at != NULL) {
        struct undo *u = *at;
        if (u->offset >= bytes) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        free(u);
    }
}

void blocks_restore(struct blocks *b)
{
    for (const struct undo *u = b->undo; u != NULL; u = u->next)
        memcpy(u->to, u->bytes, u->length);
    blocks_settle(b, UINT64_MAX);
}

static int sink_write(struct sink *s, uint32_t node, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    struct blocks *b = of_sink(s);
    uint32_t origin = member_of(b, node);
    struct run run = got_from(b, origin);
    uint64_t wire = blocks_wire(b, run.size);
    const uint8_t *data = piece->data;
    uint64_t left = piece->length, n;

    if (left == 0)
        return 0; /* a segment that the block does not reach */
    offset += b->skip;
    if (offset > wire || left > wire - offset)
        return error_set(
            e, ERROR_USAGE, "member %u sends more than the %llu %s that member %u expects of it",
            origin, (unsigned long long)run.size, text_plural(run.size, "byte", "bytes"), b->rank);
    b->got[origin] += left;
    if (b->kept)
        return 0;
    if (origin != b->rank || (b->what->call.operation == GROUP_REDUCE && b->members > 1))
        b->bytes_in += left;
    if (offset < run.size) {
        uint8_t *to = b->to + run.offset + offset;
        n = left < run.size - offset ? left : run.size - offset;
        if (b->digests && n < run.size)
            digest_pass(&b->passing_in[origin], data, offset, n, run.size,
                        seed_of(b, origin, b->rank));
        if (overwrites(b) && save(b, to, offset, n, e) != 0)
            return -1;
        if (to != data)
            memmove(to, data, n); /* a program's areas may overlap */
        data += n;
        offset += n;
        left -= n;
    }
    if (left > 0)
        memcpy(b->got_digest + (size_t)origin * DIGEST_SIZE + (offset - run.size), data, left);
    return b->got[origin] == wire ? check_digest(b, origin, &run, e) : 0;
}

static const struct sink_ops sink_ops = {.write = sink_write, .pending = sink_never_pending};

int blocks_check(const struct blocks *b, struct error *e)
{
    if (b->layout == LAYOUT_VECTOR)
        return 0; /* the engine has written all of it */
    for (uint32_t origin = 0; origin < b->members; origin++) {
        uint64_t size = got_from(b, origin).size;
        if (b->got[origin] != blocks_wire(b, size))
            return error_set(e, ERROR_USAGE,
                             "member %u sends less than the %llu %s that member %u expects of it",
                             origin, (unsigned long long)size, text_plural(size, "byte", "bytes"),
                             b->rank);
    }
    return 0;
}

/* --- */

static void release(void *context)
{
    program_memory_unref(context);
}

/* Where what is sent lies in the program's memory. */
static const struct program_area *sent_area(const struct blocks *b)
{
    const struct group_call *call = &b->what->call;

    return call->in_place || call->operation == GROUP_BROADCAST ? &call->receive : &call->send;
}

static const uint8_t *area_data(const struct program_area *area)
{
    return area->memory != NULL ? area->memory->data + area->offset : NULL;
}

/* All blocks that are sent, one behind the other in a slab of our own. */
static int copy_blocks(struct blocks *b, size_t digests)
{
    uint32_t count = b->layout == LAYOUT_EXCHANGE ? b->members : 1;
    bool uneven = b->what->call.send_size != NULL;
    uint64_t bytes = 0, at = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += sent_to(b, i).size;
    b->sent = slab_lone(digests + bytes, NULL, NULL);
    if (b->sent == NULL)
        return -1;
    if (!uneven) {
        if (bytes > 0)
            memcpy(b->sent->data + digests, b->from, bytes);
        b->from = b->sent->data + digests;
        return 0;
    }
    uint64_t *offset = calloc(count, sizeof *offset);
    if (offset == NULL)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct run run = sent_to(b, i);
        offset[i] = at;
        if (run.size > 0)
            memcpy(b->sent->data + digests + at, b->from + run.offset, run.size);
        at += run.size;
    }
    b->from_at = offset;
    b->from = b->sent->data + digests;
    return 0;
}

/* What is sent: its place, and a slab that stands for it. */
static int find_sent(struct blocks *b, bool copy)
{
    const struct program_area *area = sent_area(b);
    uint32_t count = b->layout == LAYOUT_EXCHANGE ? b->members : 1;
    size_t digests = b->digests ? (size_t)count * DIGEST_SIZE : 0;

    b->from = area_data(area);
    if (b->from != NULL && b->layout == LAYOUT_GATHER && b->what->call.in_place)
        b->from += got_from(b, b->rank).offset;
    if (b->digests) {
        b->senders = count;
        b->digested = calloc(count, sizeof *b->digested);
        b->passing_out = calloc(count, sizeof *b->passing_out);
        if (b->digested == NULL || b->passing_out == NULL)
            return -1;
    }
    b->copied = copy;
    if (copy) {
        if (copy_blocks(b, digests) != 0)
            return -1;
    } else {
        b->sent = slab_lone(digests, area->memory != NULL ? release : NULL, area->memory);
        if (b->sent == NULL)
            return -1;
        if (area->memory != NULL)
            (void)program_memory_ref(area->memory);
    }
    b->digest = b->sent->data;
    return 0;
}

/* Where the blocks of a vector of uneven ones begin. */
static int find_shares(struct blocks *b)
{
    uint64_t at = 0;

    b->from_at = calloc(b->members, sizeof *b->from_at);
    if (b->from_at == NULL)
        return -1;
    for (uint32_t i = 0; i < b->members; i++) {
        b->from_at[i] = at;
        at += b->what->call.receive_size[i] * b->element;
    }
    return 0;
}

int blocks_init(struct blocks *b, const struct checked *what, const struct part *p,
                const struct blocks_options *options, struct error *e)
{
    const struct group_call *call = &what->call;
    bool reads = call->operation != GROUP_BROADCAST || call->root == p->own;

    *b = (struct blocks){
        .source = {.ops = &source_ops},
        .sink = {.ops = &sink_ops},
        .what = what,
        .layout = options->layout,
        .skip = options->skip,
        .members = p->members,
        .rank = p->own,
        .part = p,
        .digests = options->digests && options->layout != LAYOUT_VECTOR,
        .element = reduction_size(call->type),
        .ready = true,
    };
    b->to = call->receive.memory != NULL ? call->receive.memory->data + call->receive.offset : NULL;
    b->got = calloc(b->members, sizeof *b->got);
    if (b->digests) {
        b->got_digest = calloc(b->members, DIGEST_SIZE);
        b->passing_in = calloc(b->members, sizeof *b->passing_in);
    }
    if (b->got == NULL || (b->digests && (b->got_digest == NULL || b->passing_in == NULL)) ||
        (call->operation == GROUP_REDUCE_SCATTER && find_shares(b) != 0) ||
        find_sent(b, options->copy && reads && options->layout != LAYOUT_VECTOR) != 0) {
        blocks_free(b);
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    }
    for (uint32_t i = 0; b->skip > 0 && i < b->members; i++) {
        uint64_t size = blocks_wire(b, got_from(b, i).size);
        b->got[i] = size < b->skip ? size : b->skip;
    }
    return 0;
}

void blocks_free(struct blocks *b)
{
    blocks_settle(b, UINT64_MAX);
    if (b->sent != NULL)
        slab_unref(b->sent);
    for (uint32_t i = 0; b->passing_out != NULL && i < b->senders; i++)
        digest_drop(&b->passing_out[i]);
    for (uint32_t i = 0; b->passing_in != NULL && i < b->members; i++)
        digest_drop(&b->passing_in[i]);
    free(b->passing_out);
    free(b->passing_in);
    free(b->from_at);
    free(b->digested);
    free(b->got);
    free(b->got_digest);
    *b = (struct blocks){0};
}

/* --- what is made again --- */

static bool everywhere(const struct blocks *b)
{
    return b->layout == LAYOUT_VECTOR && b->what->call.operation != GROUP_REDUCE_SCATTER &&
           b->what->call.operation != GROUP_REDUCE;
}

/* A vector in a slab takes the place of what is sent. */
static int replace_sent(struct blocks *b, const uint8_t *vector, struct error *e)
{
    struct slab *slab = slab_lone(b->what->total, NULL, NULL);

    if (slab == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    if (vector != NULL)
        memcpy(slab->data, vector, b->what->total);
    else
        memset(slab->data, 0, b->what->total);
    slab_unref(b->sent);
    b->sent = slab;
    b->from = slab->data;
    b->copied = true;
    return 0;
}

int blocks_keep(struct blocks *b, struct error *e)
{
    if (b->kept)
        return 0;
    if (b->layout == LAYOUT_VECTOR && replace_sent(b, everywhere(b) ? b->to : b->from, e) != 0)
        return -1;
    if (!b->copied) { /* nothing is sent, or of no bytes: the program's memory is not needed */
        struct slab *slab = slab_lone((size_t)b->senders * DIGEST_SIZE, NULL, NULL);
        if (slab == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a call");
        slab_unref(b->sent);
        b->sent = slab;
        b->digest = slab->data;
        b->from = NULL;
        b->copied = true;
    }
    blocks_settle(b, UINT64_MAX); /* the program has its memory back */
    b->kept = true;
    b->to = NULL;
    return 0;
}

int blocks_contribute_nothing(struct blocks *b, struct error *e)
{
    return replace_sent(b, NULL, e);
}

void blocks_again(struct blocks *b)
{
    for (uint32_t i = 0; b->passing_out != NULL && i < b->senders; i++)
        digest_drop(&b->passing_out[i]);
    for (uint32_t i = 0; i < b->members; i++) {
        b->got[i] = 0;
        if (b->passing_in != NULL)
            digest_drop(&b->passing_in[i]);
    }
    b->bytes_in = b->bytes_out = 0;
    b->ready = true;
}
