/* What the checks of several collectives need, and where their blocks lie. */
#include "daemon/lib/base/arithmetic.h"
#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/text.h"

int group_check_area(const struct program_area *area, uint64_t bytes, const char *which,
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

int group_check_blocks(const uint64_t *size, const uint64_t *offset, uint32_t members,
                       const struct program_area *area, const char *which, uint64_t *largest,
                       uint64_t *total, struct error *e)
{
    if (group_check_area(area, 0, which, e) != 0)
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

int group_check_size(uint64_t size, uint64_t count, uint64_t *bytes, struct error *e)
{
    if (size > SPEC_BLOCK_MOST || __builtin_mul_overflow(size, count, bytes) ||
        *bytes > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE,
                         "%llu times %llu bytes are too many: at most %llu TiB are possible",
                         (unsigned long long)count, (unsigned long long)size,
                         (unsigned long long)(SPEC_BLOCK_MOST >> 40));
    return 0;
}

int group_check_sent(const struct group_call *call, uint64_t bytes, struct error *e)
{
    return call->in_place ? 0 : group_check_area(&call->send, bytes, "send", e);
}

int group_check_root(const struct group_call *call, uint32_t members, struct error *e)
{
    if (call->root < members)
        return 0;
    return error_set(e, ERROR_USAGE, "root %u is not one of the members, which are 0 to %u",
                     call->root, members - 1);
}

int group_check_type(const struct group_call *call, struct error *e)
{
    const char *name = reduction_operator_name(call->operator);

    if (reduction_size(call->type) == 0)
        return error_set(e, ERROR_USAGE, "type %u does not exist", (unsigned)call->type);
    if (!reduction_allowed(call->type, call->operator))
        return error_set(e, ERROR_USAGE, "operator %u (%s) is not defined for type %u (%s)",
                         (unsigned)call->operator, name != NULL ? name : "unknown",
                         (unsigned)call->type, reduction_type_name(call->type));
    return 0;
}

int group_check_vector(struct checked_call *c, struct error *e)
{
    if (group_check_type(&c->call, e) != 0 ||
        group_check_size(reduction_size(c->call.type), c->call.size, &c->total, e) != 0)
        return -1;
    c->largest = c->total;
    return 0;
}

/* --- where blocks lie --- */

struct block_range group_block_of_member(const struct checked_call *c,
                                         const struct members *members, uint32_t member)
{
    (void)members;
    return (struct block_range){member * c->call.size, c->call.size};
}

struct block_range group_block_received(const struct checked_call *c, const struct members *members,
                                        uint32_t origin)
{
    (void)members;
    return (struct block_range){c->call.receive_offset[origin], c->call.receive_size[origin]};
}

struct block_range group_block_only(const struct checked_call *c, const struct members *members,
                                    uint32_t member)
{
    (void)members, (void)member;
    return (struct block_range){0, c->call.size};
}
