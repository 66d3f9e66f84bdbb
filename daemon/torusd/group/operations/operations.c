#include "daemon/torusd/group/operations/operations.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/arithmetic.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/text.h"

int members_init(struct members *m, uint32_t nodes, uint32_t rank, const bool *gone,
                 struct error *e)
{
    *m = (struct members){.count = nodes, .own = rank};
    if (gone == NULL)
        return 0;
    m->node = calloc(nodes, sizeof *m->node);
    m->member = calloc(nodes, sizeof *m->member);
    if (m->node == NULL || m->member == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    m->count = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        m->member[node] = gone[node] ? TORUS_NO_NODE : m->count;
        if (!gone[node])
            m->node[m->count++] = node;
    }
    m->own = m->member[rank];
    return 0;
}

void members_free(struct members *m)
{
    free(m->node);
    free(m->member);
    *m = (struct members){0};
}

/* --- the table --- */

static const struct collective *const collectives[] = {
#define X(number, name, NAME, arrays) [number] = &collective_##name,
    GROUP_OPERATION_LIST(X)
#undef X
        [GROUP_PROOF] = &collective_proof,
    [GROUP_LEAVE] = &collective_leave,
};

const struct collective *collective_find(uint32_t operation)
{
    return operation < sizeof collectives / sizeof *collectives ? collectives[operation] : NULL;
}

const char *group_operation_name(uint32_t operation)
{
    static const char *const names[] = {
#define X(number, name, NAME, arrays) [number] = #name,
        GROUP_OPERATION_LIST(X)
#undef X
    };
    const struct collective *o = collective_find(operation);

    if (o == NULL)
        return "unknown";
    return o->name != NULL ? o->name : names[operation];
}

/* --- checks --- */

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
    if (reduction_size(call->type) == 0)
        return error_set(e, ERROR_USAGE, "type %u does not exist", (unsigned)call->type);
    if (!reduction_allowed(call->type, call->operator))
        return error_set(e, ERROR_USAGE, "operator %u is not defined for type %u",
                         (unsigned)call->operator,(unsigned) call->type);
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

/* --- copies --- */

static int copy_arrays(struct checked_call *c, uint32_t members, struct error *e)
{
    const uint64_t **array[GROUP_ARRAYS] = {&c->call.send_size, &c->call.send_offset,
                                            &c->call.receive_size, &c->call.receive_offset};
    const unsigned needs = group_operation_arrays(c->call.operation);
    const size_t count = (size_t)__builtin_popcount(needs) + c->collective->shares;
    uint64_t *at = NULL;

    if (count > 0) {
        c->counts = at = calloc(count * members, sizeof *at);
        if (at == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a call");
    }
    for (unsigned i = 0; i < GROUP_ARRAYS; i++) {
        if ((needs & 1u << i) == 0) {
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
    const struct collective *o = collective_find(call->operation);

    *out = (struct checked_call){.call = *call, .collective = o};
    if (o == NULL || o->name != NULL)
        return error_set(e, ERROR_USAGE, "operation %u does not exist", (unsigned)call->operation);
    if (copy_arrays(out, members->count, e) != 0)
        goto failed;
    if (call->in_place && !o->in_place) {
        (void)error_set(e, ERROR_USAGE, "%s cannot work in place",
                        group_operation_name(call->operation));
        goto failed;
    }
    if (o->check(out, members, e) != 0)
        goto failed;
    if (out->call.send.memory != NULL)
        (void)program_memory_ref(out->call.send.memory);
    if (out->call.receive.memory != NULL)
        (void)program_memory_ref(out->call.receive.memory);
    return 0;
failed:
    free(out->counts);
    return -1;
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
    const unsigned compares = c->collective->compares;
    uint64_t sum = mix_signature(mix_signature(unchecked, internal), (uint32_t)call->operation);

    if ((compares & COMPARES_SIZE) != 0)
        sum = mix_signature(sum, call->size);
    if ((compares & COMPARES_ROOT) != 0)
        sum = mix_signature(sum, call->root);
    if ((compares & COMPARES_PART) != 0)
        sum = mix_signature(sum, call->part);
    if ((compares & COMPARES_TYPE) != 0)
        sum = mix_signature(mix_signature(sum, call->type), call->operator);
    for (uint32_t i = 0; (compares & COMPARES_SIZES) != 0 && i < members; i++)
        sum = mix_signature(sum, call->receive_size[i]);
    return ((uint32_t)(sum >> 32) & ~UINT32_C(15)) | (uint32_t)call->operation;
}
