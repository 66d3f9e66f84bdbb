/* MPI's types as runs of bytes. */
#ifndef TORUSD_MPI_DATATYPE_H
#define TORUSD_MPI_DATATYPE_H

#include <torus/group.h>

#include "client/mpi/abi.h"

struct datatype {
    MPI_Datatype handle;
    size_t size;      /* bytes of data */
    ptrdiff_t extent; /* from an element to the next one */
    bool plain;       /* elements are their bytes in order, one behind the other, without gaps */
};

/* Returns 0, or -1 if it is not a type, or one of an unknown size. */
int datatype_read(MPI_Datatype handle, struct datatype *type);

/* Not if the library cannot even pack a single element: sizes are int before MPI 4. */
bool datatype_is_packable(const struct datatype *type);

/* Between `count` elements at `at` and their bytes, one behind the other. Return MPI_SUCCESS, or an
 * error of MPI, with which no error handler has been called. */
int datatype_pack(const struct datatype *type, const void *at, size_t count, void *bytes);
int datatype_unpack(const struct datatype *type, void *at, size_t count, const void *bytes);

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

#endif
