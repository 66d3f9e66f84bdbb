#include "daemon/torusd/group/data/checked_call.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/arithmetic.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/text.h"

/* --- areas --- */

static int check_area(const struct program_area *area, uint64_t bytes, const char *which,
                      struct error *e)
{
    uint64_t memory = area->memory != NULL ? area->memory->size : 0;

    if (area->offset > memory || area->size > memory - area->offset)
        return error_set(e, ERROR_USAGE, "the %s area is outside of the program's memory", which);
    if (bytes > area->size)
        return error_set(e, ERROR_USAGE, "the %s area has %llu of the %llu %s that are needed",
                         which, (unsigned long long)area->size, (unsigned long long)bytes,
                         text_plural(bytes, "byte", "bytes"));
    return 0;
}

/* Checks that the blocks at these offsets lie in the area. Sets *largest, and adds to *total. */
static int check_blocks(const uint64_t *size, const uint64_t *offset, uint32_t members,
                        const struct program_area *area, const char *which, uint64_t *largest,
                        uint64_t *total, struct error *e)
{
    if (check_area(area, 0, which, e) != 0)
        return -1;
    for (uint32_t i = 0; i < members; i++) {
        if (size[i] == 0)
            continue;
        if (offset[i] > area->size || size[i] > area->size - offset[i])
            return error_set(e, ERROR_USAGE, "block %u lies outside of the %s area", i, which);
        if (size[i] > SPEC_BLOCK_MOST)
            return error_set(e, ERROR_USAGE, "a block is larger than 64 TiB");
        if (size[i] > *largest)
            *largest = size[i];
        if (__builtin_add_overflow(*total, size[i], total))
            return error_set(e, ERROR_USAGE,
                             "all blocks together are too large: at most %llu bytes are possible",
                             (unsigned long long)UINT64_MAX);
    }
    return 0;
}

static int check_size(uint64_t size, uint64_t count, uint64_t *bytes, struct error *e)
{
    if (size > SPEC_BLOCK_MOST || __builtin_mul_overflow(size, count, bytes) ||
        *bytes > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE,
                         "%llu times %llu bytes are too many: at most %llu TiB are possible",
                         (unsigned long long)count, (unsigned long long)size,
                         (unsigned long long)(SPEC_BLOCK_MOST >> 40));
    return 0;
}

/* --- by operation --- */

static int check_uniform(struct checked_call *c, uint32_t members, bool gathers, struct error *e)
{
    const struct group_call *call = &c->call;
    uint64_t all = 0;

    c->largest = call->size;
    if (check_size(call->size, members, &all, e) != 0)
        return -1;
    c->total = all;
    if (check_area(&call->receive, all, "receive", e) != 0)
        return -1;
    return call->in_place ? 0 : check_area(&call->send, gathers ? call->size : all, "send", e);
}

static int check_alltoallv(struct checked_call *c, uint32_t members, struct error *e)
{
    const struct group_call *call = &c->call;
    uint64_t sent = 0, received = 0;

    if (check_blocks(call->send_size, call->send_offset, members, &call->send, "send", &c->largest,
                     &sent, e) != 0 ||
        check_blocks(call->receive_size, call->receive_offset, members, &call->receive, "receive",
                     &c->largest, &received, e) != 0)
        return -1;
    c->total = sent > received ? sent : received;
    return 0;
}

static int check_allgatherv(struct checked_call *c, uint32_t members, uint32_t rank,
                            struct error *e)
{
    const struct group_call *call = &c->call;

    if (check_blocks(call->receive_size, call->receive_offset, members, &call->receive, "receive",
                     &c->largest, &c->total, e) != 0)
        return -1;
    return call->in_place ? 0 : check_area(&call->send, call->receive_size[rank], "send", e);
}

static int check_reduction(struct checked_call *c, struct error *e)
{
    const struct group_call *call = &c->call;

    if (reduction_size(call->type) == 0)
        return error_set(e, ERROR_USAGE, "type %u does not exist", (unsigned)call->type);
    if (!reduction_allowed(call->type, call->operator))
        return error_set(e, ERROR_USAGE, "operator %u is not defined for type %u",
                         (unsigned)call->operator,(unsigned) call->type);
    return 0;
}

static int check_allreduce(struct checked_call *c, struct error *e)
{
    const struct group_call *call = &c->call;

    if (check_reduction(c, e) != 0 ||
        check_size(reduction_size(call->type), call->size, &c->total, e) != 0 ||
        check_area(&call->receive, c->total, "receive", e) != 0)
        return -1;
    c->largest = c->total;
    return call->in_place ? 0 : check_area(&call->send, c->total, "send", e);
}

static int check_root(const struct group_call *call, uint32_t members, struct error *e)
{
    if (call->root < members)
        return 0;
    return error_set(e, ERROR_USAGE, "root %u is not one of the members, which are 0 to %u",
                     call->root, members - 1);
}

static int check_broadcast(struct checked_call *c, uint32_t members, struct error *e)
{
    const struct group_call *call = &c->call;

    if (check_root(call, members, e) != 0)
        return -1;
    c->largest = c->total = call->size;
    if (call->size > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE, "a block is larger than 64 TiB");
    return check_area(&call->receive, call->size, "receive", e);
}

static int check_reduce(struct checked_call *c, uint32_t members, uint32_t own, struct error *e)
{
    const struct group_call *call = &c->call;
    bool is_root = call->root == own;

    if (check_root(call, members, e) != 0 || check_reduction(c, e) != 0 ||
        check_size(reduction_size(call->type), call->size, &c->total, e) != 0)
        return -1;
    c->largest = c->total;
    if (call->in_place && !is_root)
        return error_set(e, ERROR_USAGE, "reduce in place is possible at its root only");
    if (check_area(&call->receive, is_root ? c->total : 0, "receive", e) != 0)
        return -1;
    return call->in_place ? 0 : check_area(&call->send, c->total, "send", e);
}

static int check_reduce_scatter(struct checked_call *c, uint32_t members, uint32_t rank,
                                struct error *e)
{
    const struct group_call *call = &c->call;
    uint64_t elements = 0, bytes;

    if (check_reduction(c, e) != 0)
        return -1;
    for (uint32_t i = 0; i < members; i++) {
        if (check_size(reduction_size(call->type), call->receive_size[i], &bytes, e) != 0)
            return -1;
        if (bytes > c->largest)
            c->largest = bytes;
        elements += call->receive_size[i];
        if (elements > SPEC_BLOCK_MOST)
            return error_set(
                e, ERROR_USAGE,
                "all blocks together are too large: at most %llu elements are possible",
                (unsigned long long)SPEC_BLOCK_MOST);
    }
    if (check_size(reduction_size(call->type), elements, &c->total, e) != 0 ||
        check_area(&call->send, c->total, "send", e) != 0)
        return -1;
    return check_area(&call->receive, call->receive_size[rank] * reduction_size(call->type),
                      "receive", e);
}

static int check_operation(struct checked_call *c, uint32_t members, uint32_t own, struct error *e)
{
    const struct group_call *call = &c->call;
    bool may_be_in_place = call->operation == GROUP_ALLGATHER ||
                           call->operation == GROUP_ALLGATHERV ||
                           call->operation == GROUP_ALLREDUCE || call->operation == GROUP_REDUCE;

    if (call->in_place && !may_be_in_place)
        return error_set(e, ERROR_USAGE, "%s cannot work in place",
                         group_operation_name(call->operation));
    switch (call->operation) {
    case GROUP_ALLTOALL:
        return check_uniform(c, members, false, e);
    case GROUP_ALLTOALLV:
        return check_alltoallv(c, members, e);
    case GROUP_ALLGATHER:
        return check_uniform(c, members, true, e);
    case GROUP_ALLGATHERV:
        return check_allgatherv(c, members, own, e);
    case GROUP_BROADCAST:
        return check_broadcast(c, members, e);
    case GROUP_ALLREDUCE:
        return check_allreduce(c, e);
    case GROUP_REDUCE:
        return check_reduce(c, members, own, e);
    case GROUP_REDUCE_SCATTER:
        return check_reduce_scatter(c, members, own, e);
    case GROUP_BARRIER:
    case GROUP_PART:
        return 0;
    }
    return error_set(e, ERROR_USAGE, "operation %u does not exist", (unsigned)call->operation);
}

/* --- copies --- */

static unsigned arrays_of(enum group_operation operation, bool *needs)
{
    bool v = operation == GROUP_ALLTOALLV, gather = operation == GROUP_ALLGATHERV;

    needs[0] = needs[1] = v;                                     /* send_size, send_offset */
    needs[2] = v || gather || operation == GROUP_REDUCE_SCATTER; /* receive_size */
    needs[3] = v || gather;                                      /* receive_offset */
    return (unsigned)(needs[0] + needs[1] + needs[2] + needs[3]);
}

static int copy_arrays(struct checked_call *c, uint32_t members, struct error *e)
{
    const uint64_t **array[4] = {&c->call.send_size, &c->call.send_offset, &c->call.receive_size,
                                 &c->call.receive_offset};
    bool needs[4];
    unsigned arrays = arrays_of(c->call.operation, needs);
    uint64_t *at = NULL;

    if (arrays > 0) {
        c->counts = at = calloc((size_t)arrays * members, sizeof *at);
        if (at == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a call");
    }
    for (unsigned i = 0; i < 4; i++) {
        if (!needs[i]) {
            *array[i] = NULL;
            continue;
        }
        if (*array[i] == NULL)
            return error_set(e, ERROR_USAGE, "%s needs the sizes of its blocks",
                             group_operation_name(c->call.operation));
        memcpy(at, *array[i], members * sizeof *at);
        *array[i] = at;
        at += members;
    }
    return 0;
}

int checked_init(struct checked_call *out, const struct group_call *call,
                 const struct members *members, struct error *e)
{
    *out = (struct checked_call){.call = *call};
    if (copy_arrays(out, members->count, e) != 0 ||
        check_operation(out, members->count, members->own, e) != 0) {
        free(out->counts);
        return -1;
    }
    if (out->call.send.memory != NULL)
        (void)program_memory_ref(out->call.send.memory);
    if (out->call.receive.memory != NULL)
        (void)program_memory_ref(out->call.receive.memory);
    return 0;
}

void checked_free(struct checked_call *c)
{
    program_memory_unref(c->call.send.memory);
    program_memory_unref(c->call.receive.memory);
    free(c->counts);
    *c = (struct checked_call){0};
}

/* --- signature --- */

static uint64_t mix_signature(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

uint32_t checked_signature(const struct checked_call *c, uint32_t members, bool unchecked,
                           uint64_t internal)
{
    const struct group_call *call = &c->call;
    bool reduces = call->operation == GROUP_ALLREDUCE || call->operation == GROUP_REDUCE_SCATTER ||
                   call->operation == GROUP_REDUCE;
    uint64_t sum = mix_signature(mix_signature(unchecked, internal), (uint32_t)call->operation);

    if (call->operation != GROUP_ALLTOALLV)
        sum = mix_signature(sum, call->size);
    if (call->operation == GROUP_BROADCAST || call->operation == GROUP_REDUCE)
        sum = mix_signature(sum, call->root);
    if (call->operation == GROUP_PART)
        sum = mix_signature(sum, call->part);
    if (reduces)
        sum = mix_signature(mix_signature(sum, call->type), call->operator);
    if (call->operation == GROUP_ALLGATHERV || call->operation == GROUP_REDUCE_SCATTER)
        for (uint32_t i = 0; i < members; i++)
            sum = mix_signature(sum, call->receive_size[i]);
    return ((uint32_t)(sum >> 32) & ~UINT32_C(15)) | (uint32_t)call->operation;
}
