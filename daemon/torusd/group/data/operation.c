#include "daemon/torusd/group/data/operation.h"

const char *group_operation_name(uint32_t operation)
{
    static const char *const names[] = {
        [GROUP_ALLTOALL] = "alltoall",
        [GROUP_ALLTOALLV] = "alltoallv",
        [GROUP_ALLGATHER] = "allgather",
        [GROUP_ALLGATHERV] = "allgatherv",
        [GROUP_BROADCAST] = "broadcast",
        [GROUP_BARRIER] = "barrier",
        [GROUP_ALLREDUCE] = "allreduce",
        [GROUP_REDUCE_SCATTER] = "reduce_scatter",
        [GROUP_PART] = "part",
        [GROUP_REDUCE] = "reduce",
        [GROUP_PROOF] = "a barrier of the group's own",
        [GROUP_LEAVE] = "leave the group",
    };

    return operation < sizeof names / sizeof *names && names[operation] != NULL ? names[operation]
                                                                                : "unknown";
}

bool group_operation_is_unproven(uint32_t operation)
{
    switch (operation) {
    case GROUP_BROADCAST:
    case GROUP_ALLGATHERV:
    case GROUP_REDUCE_SCATTER:
    case GROUP_REDUCE:
        return true;
    default:
        return false;
    }
}
