/* Which of MPI's reductions the torus can carry out, and how. */
#ifndef TORUSD_MPI_REDUCTION_H
#define TORUSD_MPI_REDUCTION_H

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* What the torus does to such a type with such an operator. */
struct reduction {
    enum torus_type type;
    enum torus_operator operator;
    size_t parts; /* numbers in an element: 2 in a complex one */
    bool logical; /* numbers become 0 or 1 first */
};

/* Returns whether it can; if not, *by_operator says whether the operator is the reason. */
bool reduction_of(MPI_Datatype type, MPI_Op op, struct reduction *reduction, bool *by_operator);

/* 0 or 1 for `count` integers of that type. */
void reduction_normalise(enum torus_type type, void *to, const void *from, size_t count);

/* What is reduced: `count` elements of MPI's type with MPI's op, which the torus can do. */
struct vector {
    MPI_Datatype type;
    size_t type_size;
    MPI_Op op;
    struct reduction reduction;
    size_t count;
};

#endif
