#include "daemon/torusd/group/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/arithmetic.h"
#include "proto/text.h"

struct overwritten {
    struct overwritten *next;
    uint8_t *to;
    uint64_t offset, length; /* in bytes, in its owner's block */
    uint64_t first;          /* only in the first of the list: the least offset */
    uint8_t bytes[];
};

/* Saves `length` bytes at `to`, which are at `offset` of their owner's block. Returns 0, or -1 with *e
 * (ERROR_MEMORY). */
static int overwritten_save(struct overwritten **list, uint8_t *to, uint64_t offset,
                            uint64_t length, struct error *e)
{
    struct overwritten *o = malloc(sizeof *o + length);

    if (o == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    *o = (struct overwritten){.next = *list, .to = to, .offset = offset, .length = length};
    o->first = *list != NULL && (*list)->first < offset ? (*list)->first : offset;
    memcpy(o->bytes, to, length);
    *list = o;
    return 0;
}

void overwritten_forget(struct overwritten **list, uint64_t bytes)
{
    struct overwritten **at = list;
    uint64_t first = UINT64_MAX;

    if (*list == NULL || (*list)->first >= bytes)
        return;
    while (*at != NULL) {
        struct overwritten *o = *at;
        if (o->offset >= bytes) {
            first = o->offset < first ? o->offset : first;
            at = &o->next;
            continue;
        }
        *at = o->next;
        free(o);
    }
    if (*list != NULL)
        (*list)->first = first;
}

void overwritten_restore(struct overwritten **list)
{
    for (const struct overwritten *o = *list; o != NULL; o = o->next)
        memcpy(o->to, o->bytes, o->length);
    overwritten_forget(list, UINT64_MAX);
}

/* Returns the member that the engine knows as `node`. Nodes that are left out have no blocks. */
static uint32_t member_of(const struct blocks *b, uint32_t node)
{
    return members_at(b->members, node);
}

static bool is_vector(const struct blocks *b)
{
    return b->layout == LAYOUT_VECTOR;
}

static struct block_range sent_to(const struct blocks *b, uint32_t destination)
{
    if (destination == TORUS_NO_NODE)
        return (struct block_range){0, 0};
    if (b->single)
        return (struct block_range){0, b->what->total};
    struct block_range range = b->what->collective->sent(b->what, b->members, destination);
    if (b->from_at != NULL)
        range.offset = b->from_at[destination];
    return range;
}

static struct block_range got_from(const struct blocks *b, uint32_t origin)
{
    if (b->single)
        return (struct block_range){0, b->what->total};
    return b->what->collective->got(b->what, b->members, origin);
}

uint64_t blocks_expected(const struct blocks *b, uint32_t member)
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
    uint32_t member = b->layout == LAYOUT_GATHER ? b->members->own : member_of(b, destination);
    uint64_t size = blocks_wire(b, sent_to(b, member).size);
    return size > b->skip ? size - b->skip : 0;
}

/* Makes digests of equal blocks with other origins or destinations differ. */
static uint64_t seed_of(const struct blocks *b, uint32_t origin, uint32_t destination)
{
    return (uint64_t)origin << 32 | (b->layout == LAYOUT_EXCHANGE ? destination : 0);
}

/* Returns the digest of the block at `data`. */
static const uint8_t *digest_of(struct blocks *b, uint32_t index, const uint8_t *data,
                                uint64_t size)
{
    uint8_t *digest = b->digest + (size_t)index * DIGEST_SIZE;

    if (!b->digested[index]) {
        digest_write(digest, digest_finish(&b->passing_out[index], data, size,
                                           seed_of(b, b->members->own, index)));
        b->digested[index] = true;
    }
    return digest;
}

/* Whether this member's block for itself is also sent to other members. */
static bool is_for_others(const struct blocks *b)
{
    return b->layout == LAYOUT_GATHER ||
           (is_vector(b) && b->what->collective->result != RESULT_ROOT);
}

static int source_read(struct source *s, uint32_t node, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct blocks *b = of_source(s);
    uint32_t destination = b->layout == LAYOUT_GATHER ? b->members->own : member_of(b, node);
    struct block_range run = sent_to(b, destination);
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
                    seed_of(b, b->members->own, index));
    if (destination != b->members->own || is_for_others(b))
        b->bytes_out += out->length;
    return 1;
}

static const struct source_ops source_ops = {.size = source_size, .read = source_read};

/* --- sink --- */

static struct blocks *of_sink(struct sink *s)
{
    return (struct blocks *)((char *)s - offsetof(struct blocks, sink));
}

static int check_digest(const struct blocks *b, uint32_t origin, const struct block_range *run,
                        struct error *e)
{
    if (!b->digests || run->size == 0)
        return 0;
    if (digest_finish(&b->passing_in[origin], b->to + run->offset, run->size,
                      seed_of(b, origin, b->members->own)) ==
        digest_read(b->got_digest + (size_t)origin * DIGEST_SIZE))
        return 0;
    return error_set(e, ERROR_DAMAGED, "the block from member %u was damaged on its way", origin);
}

/* Whether results overwrite the input from which they would be made again. */
static bool overwrites_input(const struct blocks *b)
{
    return is_vector(b) && b->what->call.in_place && !b->copied &&
           b->what->collective != &collective_part;
}

static int sink_write(struct sink *s, uint32_t node, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    struct blocks *b = of_sink(s);
    uint32_t origin = member_of(b, node);
    struct block_range run = got_from(b, origin);
    uint64_t wire = blocks_wire(b, run.size);
    const uint8_t *data = piece->data;
    uint64_t left = piece->length, n;

    if (left == 0)
        return 0; /* a segment beyond the end of the block */
    offset += b->skip;
    if (offset > wire || left > wire - offset)
        return error_set(e, ERROR_USAGE,
                         "member %u sends more than the %llu %s that member %u expects from it",
                         origin, (unsigned long long)run.size,
                         text_plural(run.size, "byte", "bytes"), b->members->own);
    b->got[origin] += left;
    if (b->kept || b->discards)
        return 0;
    if (origin != b->members->own ||
        (is_vector(b) && b->what->collective->result == RESULT_ROOT && b->members->count > 1))
        b->bytes_in += left;
    if (offset < run.size) {
        uint8_t *to = b->to + run.offset + offset;
        n = left < run.size - offset ? left : run.size - offset;
        if (b->digests && n < run.size)
            digest_pass(&b->passing_in[origin], data, offset, n, run.size,
                        seed_of(b, origin, b->members->own));
        if (overwrites_input(b) && overwritten_save(&b->overwritten, to, offset, n, e) != 0)
            return -1;
        if (to != data)
            memmove(to, data, n); /* the areas of a program may overlap */
        data += n;
        offset += n;
        left -= n;
    }
    uint8_t *digest = b->got_digest + (size_t)origin * DIGEST_SIZE + (offset - run.size);
    if (left > 0 && digest != data)
        memcpy(digest, data, left);
    return b->got[origin] == wire ? check_digest(b, origin, &run, e) : 0;
}

/* sink_ops.memory */
static uint8_t *sink_memory(struct sink *s, uint32_t node, uint64_t offset, uint32_t *room)
{
    const struct blocks *b = of_sink(s);
    const uint32_t origin = member_of(b, node);

    if (is_vector(b) || b->kept || b->discards || b->to == NULL)
        return NULL;
    const struct block_range run = got_from(b, origin);
    const uint64_t at = b->skip + offset, wire = blocks_wire(b, run.size);
    if (at >= wire)
        return NULL;
    const uint64_t left = at < run.size ? run.size - at : wire - at;
    *room = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
    if (at < run.size)
        return b->to + run.offset + at;
    return b->got_digest + (size_t)origin * DIGEST_SIZE + (at - run.size);
}

static const struct sink_ops sink_ops = {
    .write = sink_write, .memory = sink_memory, .pending = sink_never_pending};

int blocks_end(struct blocks *b, struct error *e)
{
    const struct group_call *call = &b->what->call;

    if (is_vector(b))
        return 0; /* the engine has written the whole vector */
    for (uint32_t origin = 0; origin < b->members->count; origin++) {
        uint64_t size = got_from(b, origin).size;
        if (b->got[origin] != blocks_wire(b, size))
            return error_set(e, ERROR_USAGE,
                             "member %u sends less than the %llu %s that member %u expects from it",
                             origin, (unsigned long long)size, text_plural(size, "byte", "bytes"),
                             b->members->own);
    }
    if (b->whole != NULL && !b->kept) {
        const struct block_range part = b->what->collective->kept(b->what, b->members);
        if (part.size > 0)
            memcpy(call->receive.memory->data + call->receive.offset, b->whole + part.offset,
                   part.size);
    }
    return 0;
}

static void release_memory(void *context)
{
    program_memory_unref(context);
}

/* Returns the area of the program's memory with the data to send. */
static const struct program_area *sent_area(const struct blocks *b)
{
    const struct group_call *call = &b->what->call;

    return call->in_place ? &call->receive : &call->send;
}

static const uint8_t *area_data(const struct program_area *area)
{
    return area->memory != NULL ? area->memory->data + area->offset : NULL;
}

/* Copies all blocks to send, one after another, into a new slab. */
static int copy_blocks(struct blocks *b, size_t digests)
{
    uint32_t count = b->layout == LAYOUT_EXCHANGE ? b->members->count : 1;
    bool uneven = b->layout == LAYOUT_EXCHANGE && b->what->collective->irregular;
    uint64_t bytes = 0, at = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += sent_to(b, i).size;
    b->sent = slab_without_pool(digests + bytes, NULL, NULL);
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
        struct block_range run = sent_to(b, i);
        offset[i] = at;
        if (run.size > 0)
            memcpy(b->sent->data + digests + at, b->from + run.offset, run.size);
        at += run.size;
    }
    b->from_at = offset;
    b->from = b->sent->data + digests;
    return 0;
}

/* Finds the data to send, and a slab that stands for it. */
static int find_sent(struct blocks *b, bool copy)
{
    const struct program_area *area = sent_area(b);
    uint32_t count = b->layout == LAYOUT_EXCHANGE ? b->members->count : 1;
    size_t digests = b->digests ? (size_t)count * DIGEST_SIZE : 0;

    b->from = area_data(area);
    if (b->from != NULL && !is_vector(b) && b->what->call.in_place)
        b->from += got_from(b, b->members->own).offset;
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
        b->sent =
            slab_without_pool(digests, area->memory != NULL ? release_memory : NULL, area->memory);
        if (b->sent == NULL)
            return -1;
        if (area->memory != NULL)
            (void)program_memory_ref(area->memory);
    }
    b->digest = b->sent->data;
    return 0;
}

/* Nothing is to be moved of the first `skip` bytes of each block. */
static void begin_at(struct blocks *b, uint64_t skip)
{
    b->skip = skip;
    for (uint32_t i = 0; i < b->members->count; i++) {
        const uint64_t size = skip > 0 ? blocks_wire(b, got_from(b, i).size) : 0;
        b->got[i] = size < skip ? size : skip;
    }
}

int blocks_init(struct blocks *b, const struct checked_call *what, const struct members *members,
                const struct blocks_options *options, struct error *e)
{
    const struct group_call *call = &what->call;
    const enum block_layout layout = collective_layout(what->collective);
    const bool reads = what->collective->routes != ROUTES_BROADCAST || call->root == members->own;

    *b = (struct blocks){
        .source = {.ops = &source_ops},
        .sink = {.ops = &sink_ops},
        .what = what,
        .layout = layout,
        .members = members,
        .single = options->single,
        .discards = !collective_combines(what->collective) &&
                    what->collective->result == RESULT_ROOT && call->root != members->own,
        .digests = options->digests && layout != LAYOUT_VECTOR,
        .ready = true,
    };
    b->to = call->receive.memory != NULL ? call->receive.memory->data + call->receive.offset : NULL;
    if (what->collective->kept != NULL)
        b->to = b->whole = malloc(what->total);
    b->got = calloc(b->members->count, sizeof *b->got);
    if (b->digests) {
        b->got_digest = calloc(b->members->count, DIGEST_SIZE);
        b->passing_in = calloc(b->members->count, sizeof *b->passing_in);
    }
    if (b->got == NULL || (what->collective->kept != NULL && b->whole == NULL) ||
        (b->digests && (b->got_digest == NULL || b->passing_in == NULL)) ||
        find_sent(b, options->copy && reads && layout != LAYOUT_VECTOR) != 0) {
        blocks_free(b);
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    }
    begin_at(b, options->skip);
    return 0;
}

void blocks_free(struct blocks *b)
{
    overwritten_forget(&b->overwritten, UINT64_MAX);
    if (b->sent != NULL)
        slab_unref(b->sent);
    for (uint32_t i = 0; b->passing_out != NULL && i < b->senders; i++)
        digest_drop(&b->passing_out[i]);
    for (uint32_t i = 0; b->passing_in != NULL && i < b->members->count; i++)
        digest_drop(&b->passing_in[i]);
    free(b->passing_out);
    free(b->passing_in);
    free(b->from_at);
    free(b->whole);
    free(b->digested);
    free(b->got);
    free(b->got_digest);
    *b = (struct blocks){0};
}

/* The blocks of a call that may be made again: what it then sends and receives. */

static bool result_is_everywhere(const struct blocks *b)
{
    return is_vector(b) && b->what->collective->result == RESULT_SAME;
}

/* Makes a vector in a slab the data to send. */
static int replace_sent(struct blocks *b, const uint8_t *vector, struct error *e)
{
    struct slab *slab = slab_without_pool(b->what->total, NULL, NULL);

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
    if (is_vector(b) && replace_sent(b, result_is_everywhere(b) ? b->to : b->from, e) != 0)
        return -1;
    if (!b->copied) { /* nothing is sent, or no bytes: the program's memory is not needed */
        struct slab *slab = slab_without_pool((size_t)b->senders * DIGEST_SIZE, NULL, NULL);
        if (slab == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a call");
        slab_unref(b->sent);
        b->sent = slab;
        b->digest = slab->data;
        b->from = NULL;
        b->copied = true;
    }
    overwritten_forget(&b->overwritten, UINT64_MAX); /* the program has its memory back */
    b->kept = true;
    b->to = NULL;
    return 0;
}

int blocks_contribute_nothing(struct blocks *b, struct error *e)
{
    return replace_sent(b, NULL, e);
}

void blocks_rewind(struct blocks *b, uint64_t skip)
{
    for (uint32_t i = 0; b->passing_out != NULL && i < b->senders; i++)
        digest_drop(&b->passing_out[i]);
    for (uint32_t i = 0; b->passing_in != NULL && i < b->members->count; i++)
        digest_drop(&b->passing_in[i]);
    begin_at(b, skip);
    b->bytes_in = b->bytes_out = 0;
    b->ready = true;
}
