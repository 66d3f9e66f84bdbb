#include "proto/group_call.h"

#include <string.h>

static const struct {
    bool exists;
    unsigned arrays;
} operations[GROUP_OPERATIONS] = {
#define X(number, name, NAME, minor, its_arrays) [number] = {true, its_arrays},
    GROUP_OPERATION_LIST(X)
#undef X
};

bool group_operation_exists(uint32_t operation)
{
    return operation < GROUP_OPERATIONS && operations[operation].exists;
}

unsigned group_operation_arrays(uint32_t operation)
{
    return group_operation_exists(operation) ? operations[operation].arrays : 0;
}

static const struct {
    const char *name;
    uint32_t size;
    enum reduction_kind kind;
} types[REDUCTION_TYPES] = {
#define X(number, name, NAME, bytes, kind) [number] = {#name, bytes, kind},
    REDUCTION_TYPE_LIST(X)
#undef X
};

static const struct {
    const char *name;
    unsigned kinds;
} operators[REDUCTION_OPERATORS] = {
#define X(number, name, NAME, kinds) [number] = {#name, kinds},
    REDUCTION_OPERATOR_LIST(X)
#undef X
};

const char *reduction_type_name(uint32_t type)
{
    return type < REDUCTION_TYPES ? types[type].name : NULL;
}

uint32_t reduction_size(uint32_t type)
{
    return type < REDUCTION_TYPES ? types[type].size : 0;
}

const char *reduction_operator_name(uint32_t operation)
{
    return operation < REDUCTION_OPERATORS ? operators[operation].name : NULL;
}

bool reduction_allowed(uint32_t type, uint32_t operation)
{
    return type < REDUCTION_TYPES && operation < REDUCTION_OPERATORS &&
           (types[type].kind & operators[operation].kinds) != 0;
}

/* ---- Kinds of data --------------------------------------------------------------------------- */

#define HASH_BASIS 0x811c9dc5u
#define HASH_PRIME 0x01000193u /* FNV-1a */

static uint32_t hash_byte(uint32_t hash, uint8_t byte)
{
    return (hash ^ byte) * HASH_PRIME;
}

static uint32_t type_of_name(const char *name)
{
    uint32_t hash = HASH_BASIS;

    for (uint32_t type = 1; type < REDUCTION_TYPES; type++)
        if (strcmp(types[type].name, name) == 0)
            return type;
    for (const char *at = name; *at != '\0'; at++)
        hash = hash_byte(hash, (uint8_t)*at);
    return hash | DATA_TYPE_OTHER;
}

void data_kind_set(struct data_kind *kind, const char *type, const size_t *shape,
                   uint32_t dimensions)
{
    uint32_t hash = HASH_BASIS;

    *kind = (struct data_kind){.type = type != NULL ? type_of_name(type) : 0};
    if (shape == NULL)
        return;
    for (uint32_t d = 0; d < dimensions; d++)
        for (unsigned byte = 0; byte < 8; byte++)
            hash = hash_byte(hash, (uint8_t)((uint64_t)shape[d] >> 8 * byte));
    kind->shape = hash != 0 ? hash : 1;
}
