#include "daemon/torusd/group/operations/operations.h"

#include <stdlib.h>
#include <string.h>

/* --- members --- */

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

static const struct {
    const struct collective *collective;
    const char *name;
    uint32_t minor;
} rows[GROUP_OPERATIONS] = {
#define X(number, name, NAME, its_minor, arrays) [number] = {&collective_##name, #name, its_minor},
    GROUP_OPERATION_LIST(X)
#undef X
        [GROUP_PROOF] = {&collective_proof, "a barrier of the group's own", 0},
    [GROUP_LEAVE] = {&collective_leave, "leave the group", 0},
};

const struct collective *collective_find(uint32_t operation)
{
    return operation < GROUP_OPERATIONS ? rows[operation].collective : NULL;
}

const char *group_operation_name(uint32_t operation)
{
    return collective_find(operation) != NULL ? rows[operation].name : "unknown";
}

uint32_t group_operation_minor(uint32_t operation)
{
    return collective_find(operation) != NULL ? rows[operation].minor : 0;
}

/* --- checked calls --- */

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
    if (!group_operation_exists(call->operation))
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
    for (const char *name = call->algorithm != NULL ? call->algorithm->name : ""; *name != '\0';
         name++)
        sum = mix_signature(sum, (uint64_t)(unsigned char)*name << 8 | (uint64_t)call->mode);
    return ((uint32_t)(sum >> 32) & ~UINT32_C(15)) | (uint32_t)call->operation;
}
