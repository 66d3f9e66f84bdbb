/* The functions of the MPI library itself, found by their PMPI names, and some of its handles. */
#pragma once

#include "client/mpi/library/operations.h"

/* The functions with large counts: for an operation of each kind (operations.h), and others that the preload calls. */
#define LARGE_PLAIN(X, name)
#if ABI_LARGE_COUNTS
#define LARGE_COUNTS(X, name) X(name##_c)
#define REAL_LARGE(X) X(Pack_c) X(Unpack_c)
#else
#define LARGE_COUNTS(X, name)
#define REAL_LARGE(X)
#endif

/* Other functions that the preload calls. */
#define REAL_OTHERS(X)                                                                             \
    X(Abort)                                                                                       \
    X(Add_error_class)                                                                             \
    X(Add_error_code)                                                                              \
    X(Add_error_string)                                                                            \
    X(Cart_shift)                                                                                  \
    X(Cartdim_get)                                                                                 \
    X(Comm_call_errhandler)                                                                        \
    X(Comm_create_keyval)                                                                          \
    X(Comm_dup)                                                                                    \
    X(Comm_free)                                                                                   \
    X(Comm_get_attr)                                                                               \
    X(Comm_get_errhandler)                                                                         \
    X(Comm_get_parent)                                                                             \
    X(Comm_group)                                                                                  \
    X(Comm_rank)                                                                                   \
    X(Comm_remote_size)                                                                            \
    X(Comm_set_attr)                                                                               \
    X(Comm_set_errhandler)                                                                         \
    X(Comm_size)                                                                                   \
    X(Comm_split)                                                                                  \
    X(Comm_test_inter)                                                                             \
    X(Dist_graph_neighbors)                                                                        \
    X(Dist_graph_neighbors_count)                                                                  \
    X(Errhandler_free)                                                                             \
    X(Graph_neighbors)                                                                             \
    X(Graph_neighbors_count)                                                                       \
    X(Grequest_complete)                                                                           \
    X(Grequest_start)                                                                              \
    X(Group_free)                                                                                  \
    X(Group_translate_ranks)                                                                       \
    X(Init)                                                                                        \
    X(Init_thread)                                                                                 \
    X(Iprobe)                                                                                      \
    X(Lookup_name)                                                                                 \
    X(Op_commutative)                                                                              \
    X(Pack)                                                                                        \
    X(Pack_size)                                                                                   \
    X(Publish_name)                                                                                \
    X(Query_thread)                                                                                \
    X(Recv)                                                                                        \
    X(Reduce_local)                                                                                \
    X(Request_free)                                                                                \
    X(Request_get_status)                                                                          \
    X(Send)                                                                                        \
    X(Start)                                                                                       \
    X(Startall)                                                                                    \
    X(Status_set_cancelled)                                                                        \
    X(Status_set_elements)                                                                         \
    X(Test)                                                                                        \
    X(Testall)                                                                                     \
    X(Testany)                                                                                     \
    X(Testsome)                                                                                    \
    X(Topo_test)                                                                                   \
    X(Type_commit)                                                                                 \
    X(Type_create_hindexed)                                                                        \
    X(Type_dup)                                                                                    \
    X(Type_free)                                                                                   \
    X(Type_get_contents)                                                                           \
    X(Type_get_envelope)                                                                           \
    X(Type_get_extent_x)                                                                           \
    X(Type_get_true_extent_x)                                                                      \
    X(Type_size_x)                                                                                 \
    X(Unpack)                                                                                      \
    X(Unpublish_name)                                                                              \
    X(Wait)                                                                                        \
    X(Waitall)                                                                                     \
    X(Waitany)                                                                                     \
    X(Waitsome)

/* clang-format off */
struct real {
#define ONE(name) __typeof__(PMPI_##name) *name;
#define X(name, kind) ONE(name) LARGE_##kind(ONE, name)
    OPERATIONS(X)
    REAL_LARGE(ONE)
    REAL_OTHERS(ONE)
#undef X
#undef ONE
#define X(name, kind) __typeof__(MPI_##name) *name;
    NONBLOCKING_PLAIN(X)
    NONBLOCKING(X)
    UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) __typeof__(ABI_PERSISTENT(name)) *name;
    UNSERVED_PERSISTENT_PLAIN(X)
    UNSERVED_PERSISTENT(X)
#undef X
#if ABI_LARGE_COUNTS
#define X(name, kind) __typeof__(MPI_##name##_c) *name##_c;
    NONBLOCKING(X)
    UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) __typeof__(ABI_PERSISTENT(name##_c)) *name##_c;
    UNSERVED_PERSISTENT(X)
#undef X
#endif
};
/* clang-format on */

struct real_handles {
    MPI_Comm world, self, null;
    MPI_Request request_null;
    MPI_Datatype byte, packed, type_null, integer, uint64;
    MPI_Op op_null, max, min, sum;
    MPI_Errhandler errors_return;
    MPI_Info info_null;
};

extern struct real real;
extern struct real_handles mpi;

/* Finds all functions and handles; does nothing after the first time. Ends the process if the program uses the other
 * MPI library, because calls could not be passed on to it. */
void real_find(void);

/* The copy function of the preload's attributes: the new communicator does not get the attribute. (MPI's own
 * MPI_COMM_NULL_COPY_FN is a symbol of the MPI library, which the preload is not linked with.) */
int attribute_stays(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag);

/* Returns the object of a handle constant of Open MPI, from the text of its expansion; NULL if this version of Open
 * MPI lacks the object. */
void *real_object(const char *expansion);

/* Returns whether this return address is in the MPI library or in a component of it. Bindings for other languages are
 * separate libraries, and count as the program. Thread-safe; takes a few nanoseconds. */
bool caller_is_mpi(const void *return_address);

/* For use in the function that MPI or the program has called. */
#define CALLED_BY_MPI() caller_is_mpi(__builtin_return_address(0))
