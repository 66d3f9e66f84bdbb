/* The MPI library for which this preload is compiled. All files of client/mpi are compiled once for each MPI library,
 * with its <mpi.h>, and are linked with none of them. A process into which the preload is loaded may not be an MPI
 * program at all (mpiexec and ssh inherit LD_PRELOAD), or may load MPI after the preload (Python). So no file refers
 * to a symbol of MPI; functions and objects are found by name (real.h). */
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef OPEN_MPI
#define ABI_NAME "Open MPI"
#define ABI_PRELOAD "libtorus-openmpi.so"
#define ABI_ALIAS_IS_ERROR 0
#define ABI_TYPES_OF_NOTHING_COUNT 1
#define ABI_REPEATED_NEIGHBORS_VARY 0
#else
#define ABI_NAME "MPICH"
#define ABI_PRELOAD "libtorus-mpich.so"
#define ABI_ALIAS_IS_ERROR 1 /* 1: equal send and receive buffers are MPI_ERR_BUFFER */
/* 1: which block of a rank that is a neighbor twice arrives where differs between neighborhood operations (MPICH 4.0.2) */
#define ABI_REPEATED_NEIGHBORS_VARY 1
#define ABI_TYPES_OF_NOTHING_COUNT 0 /* 0: MPI_Alltoallw accepts a null type with a count of 0 */
#endif

/* Functions with counts of type MPI_Count: MPI_Alltoall_c... */
#if MPI_VERSION >= 4
#define ABI_LARGE_COUNTS 1
#else
#define ABI_LARGE_COUNTS 0
#endif

/* Persistent collective operations: MPI_X_init in MPI 4; before that, Open MPI has them as MPIX_X_init. */
#if MPI_VERSION >= 4
#define ABI_HAS_PERSISTENT 1
#define ABI_PERSISTENT(name) MPI_##name
#elif defined OMPI_HAVE_MPI_EXT_PCOLLREQ
#define ABI_HAS_PERSISTENT 1
#define ABI_PERSISTENT(name) MPIX_##name
#else
#define ABI_HAS_PERSISTENT 0
#endif

/* The value of a handle constant (MPI_INT, MPI_COMM_WORLD...), once real_find() has succeeded. In MPICH these
 * constants are numbers. In Open MPI they expand to the address of an object, "((MPI_Datatype) ((void *)
 * &(ompi_mpi_int)))"; real_object() finds the object by the name in this text. */
#define ABI_TEXT_(...) #__VA_ARGS__
#define ABI_TEXT(...) ABI_TEXT_(__VA_ARGS__)
#ifdef OPEN_MPI
#define ABI_HANDLE(handle) ((__typeof__(handle))real_object(ABI_TEXT(handle)))
#else
#define ABI_HANDLE(handle) (handle)
#endif
