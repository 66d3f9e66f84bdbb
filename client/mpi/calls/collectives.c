#include "client/mpi/calls/collectives.h"

#include "client/mpi/library/failure.h"
#include "client/mpi/nodes/node_ranks.h"

#define SHORT_BYTES ((size_t)64 << 10)

bool served_is_short(const struct served_call *t, size_t bytes)
{
    return t->first && bytes <= SHORT_BYTES;
}

enum reason served_result(struct served_call *t, int result, const struct torus_error *error)
{
    t->result = result == 0 ? MPI_SUCCESS : failure_of_torus(error);
    t->raises = result != 0;
    return REASON_SERVED;
}

enum reason served_code(struct served_call *t, int code)
{
    t->result = code;
    t->raises = code != MPI_SUCCESS;
    return REASON_SERVED;
}

enum reason served_no_memory(struct served_call *t)
{
    struct torus_error error;
    int result = node_lacks_memory(t->c, &error);

    return served_result(t, result, &error);
}
