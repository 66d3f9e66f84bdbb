/* The numbers by which a program (libtorus) and the daemon name the operations of a group, and
 * the types and operators of reductions (proto/program.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_NAME_SIZE 64u /* bytes for the name of a group, with its end */
#define GROUP_COPY_PREFIX                                                                          \
    "copy " /* of the groups of copies of trees (daemon/torusd/copy); programs may not open them */

/* The arrays of a call, in this order, with an entry for each member. */
enum group_array {
    GROUP_SEND_SIZE = 1,
    GROUP_SEND_OFFSET = 2,
    GROUP_RECEIVE_SIZE = 4,
    GROUP_RECEIVE_OFFSET = 8,
};
#define GROUP_ARRAYS 4u

/* The operations: X(number, name, NAME, minor, arrays). `minor` is the minor version of the peer protocol that all nodes
 * must have. `part` makes a part of the torus known, before the calls of its members. 11 and 12 are internal to the
 * daemon (daemon/torusd/group/operations). Numbers are at most 15. */
#define GROUP_OPERATION_LIST(X)                                                                    \
    X(1, alltoall, ALLTOALL, 0, 0)                                                                 \
    X(2, alltoallv, ALLTOALLV, 0,                                                                  \
      GROUP_SEND_SIZE | GROUP_SEND_OFFSET | GROUP_RECEIVE_SIZE | GROUP_RECEIVE_OFFSET)             \
    X(3, allgather, ALLGATHER, 0, 0)                                                               \
    X(4, allgatherv, ALLGATHERV, 0, GROUP_RECEIVE_SIZE | GROUP_RECEIVE_OFFSET)                     \
    X(5, broadcast, BROADCAST, 0, 0)                                                               \
    X(6, barrier, BARRIER, 0, 0)                                                                   \
    X(7, allreduce, ALLREDUCE, 0, 0)                                                               \
    X(8, reduce_scatter, REDUCE_SCATTER, 0, GROUP_RECEIVE_SIZE)                                    \
    X(9, part, PART, 0, 0)                                                                         \
    X(10, reduce, REDUCE, 0, 0)                                                                    \
    X(13, gather, GATHER, 5, 0)                                                                    \
    X(14, scatter, SCATTER, 6, 0)

enum group_operation {
#define X(number, name, NAME, minor, arrays) GROUP_##NAME = number,
    GROUP_OPERATION_LIST(X)
#undef X
};
#define GROUP_OPERATIONS 16u /* more than every number */

/* Whether programs can call an operation of this number. */
bool group_operation_exists(uint32_t operation);
/* Returns the arrays of an operation (enum group_array); 0 also if the operation does not exist. */
unsigned group_operation_arrays(uint32_t operation);

/* The same numbers as enum torus_type and enum torus_operator of torus/group.h. */
enum reduction_type {
    REDUCTION_INT8 = 1,
    REDUCTION_INT16,
    REDUCTION_INT32,
    REDUCTION_INT64,
    REDUCTION_UINT8,
    REDUCTION_UINT16,
    REDUCTION_UINT32,
    REDUCTION_UINT64,
    REDUCTION_FLOAT32,
    REDUCTION_FLOAT64,
    REDUCTION_FLOAT16,
    REDUCTION_COMPLEX64,
    REDUCTION_COMPLEX128,
    REDUCTION_BOOL,
};
#define REDUCTION_TYPES (REDUCTION_BOOL + 1u)

/* The name of a type, "float64", and the bytes of an element; NULL and 0 if the type does not exist. */
const char *reduction_type_name(uint32_t type);
uint32_t reduction_size(uint32_t type);

/* The type and shape of the data of a call, as far as the program has told them. Members whose calls differ in what
 * both have told disagree. */
struct data_kind {
    uint32_t
        type; /* enum reduction_type, or a number from DATA_TYPE_OTHER on for a type with another name;
                     * 0: not known */
    uint32_t shape; /* a hash of the shape; 0: not known */
};
#define DATA_TYPE_OTHER 0x80000000u

/* Sets *kind from the name of a type (NULL: not known) and a shape (NULL: not known). */
void data_kind_set(struct data_kind *kind, const char *type, const size_t *shape,
                   uint32_t dimensions);

static inline bool data_kind_is_known(const struct data_kind *kind)
{
    return kind->type != 0 || kind->shape != 0;
}

enum reduction_operator {
    REDUCTION_SUM = 1,
    REDUCTION_PRODUCT,
    REDUCTION_MIN,
    REDUCTION_MAX,
    REDUCTION_AND,
    REDUCTION_OR,
    REDUCTION_XOR,
};
#define REDUCTION_OPERATORS (REDUCTION_XOR + 1u)
