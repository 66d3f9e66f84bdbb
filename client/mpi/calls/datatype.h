/* The types of MPI as runs of bytes. */
#ifndef TORUSD_MPI_DATATYPE_H
#define TORUSD_MPI_DATATYPE_H

#include "client/mpi/library/abi.h"

struct datatype {
    MPI_Datatype handle;
    size_t size;      /* bytes of data */
    ptrdiff_t extent; /* from an element to the next one */
    bool plain;       /* elements consist of their bytes in order, one behind the other, without
                       * gaps */
};

/* Returns 0, or -1 if the handle is not a type, or a type of unknown size. */
int datatype_read(MPI_Datatype handle, struct datatype *type);

/* Whether the library can pack at least a single element: sizes are int before MPI 4. */
bool datatype_is_packable(const struct datatype *type);

/* Pack `count` elements at `at` into consecutive bytes, and unpack them. Return MPI_SUCCESS, or
 * an error of MPI, with which no error handler has been called. */
int datatype_pack(const struct datatype *type, const void *at, size_t count, void *bytes);
int datatype_unpack(const struct datatype *type, void *at, size_t count, const void *bytes);

#endif
