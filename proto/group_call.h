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

/* What programs call besides: messages between two members (proto/program.h), and the minor version of the peer protocol
 * that they need. */
#define GROUP_SEND 16u
#define GROUP_RECEIVE 17u
#define GROUP_RECEIVE_ANY 18u
#define GROUP_TAGS (UINT64_C(1) << 56) /* tags of programs are below; the bits above are the part */
#define GROUP_MESSAGES_MINOR 7u

/* Whether programs can call an operation of this number. */
bool group_operation_exists(uint32_t operation);
/* Returns the arrays of an operation (enum group_array); 0 also if the operation does not exist. */
unsigned group_operation_arrays(uint32_t operation);

/* What an operator must know of a type. */
enum reduction_kind {
    KIND_INTEGER = 1,
    KIND_FRACTION = 2,
    KIND_COMPLEX = 4,
    KIND_TRUTH = 8,
};

/* The types of elements: X(number, name, NAME, bytes, kind); the numbers of enum torus_type (torus/group.h). */
#define REDUCTION_TYPE_LIST(X)                                                                     \
    X(1, int8, INT8, 1, KIND_INTEGER)                                                              \
    X(2, int16, INT16, 2, KIND_INTEGER)                                                            \
    X(3, int32, INT32, 4, KIND_INTEGER)                                                            \
    X(4, int64, INT64, 8, KIND_INTEGER)                                                            \
    X(5, uint8, UINT8, 1, KIND_INTEGER)                                                            \
    X(6, uint16, UINT16, 2, KIND_INTEGER)                                                          \
    X(7, uint32, UINT32, 4, KIND_INTEGER)                                                          \
    X(8, uint64, UINT64, 8, KIND_INTEGER)                                                          \
    X(9, float32, FLOAT32, 4, KIND_FRACTION)                                                       \
    X(10, float64, FLOAT64, 8, KIND_FRACTION)                                                      \
    X(11, float16, FLOAT16, 2, KIND_FRACTION)                                                      \
    X(12, complex64, COMPLEX64, 8, KIND_COMPLEX)                                                   \
    X(13, complex128, COMPLEX128, 16, KIND_COMPLEX)                                                \
    X(14, bool, BOOL, 1, KIND_TRUTH)                                                               \
    X(15, bfloat16, BFLOAT16, 2, KIND_FRACTION)

/* The operators: X(number, name, NAME, the kinds for which it is defined); the numbers of enum torus_operator. */
#define REDUCTION_OPERATOR_LIST(X)                                                                 \
    X(1, sum, SUM, KIND_INTEGER | KIND_FRACTION | KIND_COMPLEX | KIND_TRUTH)                       \
    X(2, product, PRODUCT, KIND_INTEGER | KIND_FRACTION | KIND_COMPLEX | KIND_TRUTH)               \
    X(3, min, MIN, KIND_INTEGER | KIND_FRACTION | KIND_TRUTH)                                      \
    X(4, max, MAX, KIND_INTEGER | KIND_FRACTION | KIND_TRUTH)                                      \
    X(5, and, AND, KIND_INTEGER | KIND_TRUTH)                                                      \
    X(6, or, OR, KIND_INTEGER | KIND_TRUTH)                                                        \
    X(7, xor, XOR, KIND_INTEGER | KIND_TRUTH)                                                      \
    X(8, avg, AVG, KIND_FRACTION | KIND_COMPLEX)

enum reduction_type {
#define X(number, name, NAME, bytes, kind) REDUCTION_##NAME = number,
    REDUCTION_TYPE_LIST(X)
#undef X
};
#define REDUCTION_TYPES 16u /* more than every number */

enum reduction_operator {
#define X(number, name, NAME, kinds) REDUCTION_##NAME = number,
    REDUCTION_OPERATOR_LIST(X)
#undef X
};
#define REDUCTION_OPERATORS 9u /* more than every number */

/* The name of a type, "float64", and the bytes of an element; NULL and 0 if the type does not exist. */
const char *reduction_type_name(uint32_t type);
uint32_t reduction_size(uint32_t type);
/* The name of an operator, "sum"; NULL if it does not exist. */
const char *reduction_operator_name(uint32_t operation);
/* Whether type and operator exist, and the operator is defined for the type. */
bool reduction_allowed(uint32_t type, uint32_t operation);

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
