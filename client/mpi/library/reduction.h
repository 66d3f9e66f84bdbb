/* The reductions of MPI that the torus can carry out, and how. */
#ifndef TORUSD_MPI_REDUCTION_H
#define TORUSD_MPI_REDUCTION_H

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* What the torus does with a type and an operator of MPI. */
struct reduction {
    enum torus_type type;
    enum torus_operator operator;
    size_t parts; /* numbers in an element: 2 in a complex one */
    bool logical; /* numbers are turned into 0 or 1 first */
};

/* Returns whether the torus can reduce this type with this operator. If not, *by_operator says
 * whether the operator is the reason. */
bool reduction_of(MPI_Datatype type, MPI_Op op, struct reduction *reduction, bool *by_operator);

/* Turns `count` integers of that type into 0 or 1. */
void reduction_normalise(enum torus_type type, void *to, const void *from, size_t count);

/* The vector of a reduction that the torus can carry out: `count` elements of MPI's type,
 * combined with MPI's op. */
struct vector {
    MPI_Datatype type;
    size_t type_size;
    MPI_Op op;
    struct reduction reduction;
    size_t count;
};

#endif
