#include "client/mpi/calls/collectives.h"

#include "client/mpi/library/failure.h"
#include "client/mpi/nodes/node_ranks.h"

#define SHORT_BYTES ((size_t)64 << 10)

bool taking_is_short(const struct taking *t, size_t bytes)
{
    return t->first && bytes <= SHORT_BYTES;
}

enum reason taking_ends(struct taking *t, int result, const struct torus_error *error)
{
    t->result = result == 0 ? MPI_SUCCESS : failure_of_torus(error);
    t->raises = result != 0;
    return REASON_TAKEN;
}

enum reason taking_returns(struct taking *t, int code)
{
    t->result = code;
    t->raises = code != MPI_SUCCESS;
    return REASON_TAKEN;
}

enum reason taking_lacks_memory(struct taking *t)
{
    struct torus_error error;
    int result = node_lacks_memory(t->c, &error);

    return taking_ends(t, result, &error);
}
