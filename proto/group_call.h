/* The numbers by which a program (libtorus) and the daemon name the operations of a group, and
 * the types and operators of reductions (proto/program.h). */
#ifndef TORUSD_PROTO_GROUP_CALL_H
#define TORUSD_PROTO_GROUP_CALL_H

#define GROUP_NAME_SIZE 64u /* bytes for the name of a group, with its end */
#define GROUP_COPY_PREFIX                                                                          \
    "copy " /* of the groups of copies of trees (daemon/copy); programs may not open them */

enum group_operation {
    GROUP_ALLTOALL = 1,
    GROUP_ALLTOALLV,
    GROUP_ALLGATHER,
    GROUP_ALLGATHERV,
    GROUP_BROADCAST,
    GROUP_BARRIER,
    GROUP_ALLREDUCE,
    GROUP_REDUCE_SCATTER,
    GROUP_PART, /* makes a part of the torus known, before the calls of its members */
    GROUP_REDUCE,
};
#define GROUP_OPERATIONS (GROUP_REDUCE + 1u)

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
};
#define REDUCTION_TYPES (REDUCTION_FLOAT64 + 1u)

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

#endif
