/* The datatypes of MPI, packed into bytes. */
#pragma once

#include "client/mpi/library/abi.h"

struct datatype {
    MPI_Datatype handle;
    size_t size;      /* bytes of data */
    ptrdiff_t extent; /* from an element to the next one */
    bool plain;       /* packing changes nothing: elements have no gaps, and their bytes in order */
};

/* Reads a type. Returns 0 with *type, or -1 if the handle is not a type or its size is unknown. */
int datatype_read(MPI_Datatype handle, struct datatype *type);

/* Returns whether the MPI library can pack at least a single element: before MPI 4, sizes are int. */
bool datatype_is_packable(const struct datatype *type);

/* Pack `count` elements at `at` into consecutive bytes, and unpack them. Return MPI_SUCCESS or an error of MPI. Do
 * not call an error handler. */
int datatype_pack(const struct datatype *type, const void *at, size_t count, void *bytes);
int datatype_unpack(const struct datatype *type, void *at, size_t count, const void *bytes);
