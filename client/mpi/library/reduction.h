/* How the torus carries out reductions of MPI. */
#pragma once

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* The type and operator of the torus for a type and an operator of MPI. */
struct reduction {
    enum torus_type type;
    enum torus_operator operator;
    size_t parts; /* numbers in an element: 2 if it is complex */
    bool logical; /* numbers are converted to 0 or 1 first */
};

/* Returns whether the torus can reduce this type with this operator, with *reduction. */
bool reduction_of(MPI_Datatype type, MPI_Op op, struct reduction *reduction);

/* Converts `count` integers of a type at `from` to 0 or 1 at `to`. */
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
