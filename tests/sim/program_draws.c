/* Random calls for programs. */
#include "daemon/lib/base/arithmetic.h"
#include "tests/sim/internal.h"
#include "tests/sim/programs.h"

enum group_operation sim_any_operation(struct chance *c)
{
    enum group_operation operation;

    do
        operation = GROUP_ALLTOALL + (enum group_operation)chance_below(c, GROUP_OPERATIONS - 1);
    while (operation == GROUP_PART || !group_operation_exists(operation));
    return operation;
}

bool sim_may_be_in_place(enum group_operation operation)
{
    return operation == GROUP_ALLGATHER || operation == GROUP_ALLGATHERV ||
           operation == GROUP_ALLREDUCE || operation == GROUP_REDUCE || operation == GROUP_GATHER;
}

struct sim_call sim_any_call(struct chance *c, const struct torus *t)
{
    static const uint64_t sizes[] = {0, 1, 3, 8, 64, 65, 1000, 4096, 5000, 20000};
    uint64_t size = sizes[chance_below(c, sizeof sizes / sizeof *sizes)];
    struct sim_call call = {
        .operation = sim_any_operation(c),
        .type = (enum reduction_type)(1 + chance_below(c, REDUCTION_TYPES - 1)),
        .operator=(enum reduction_operator)(1 + chance_below(c, REDUCTION_OPERATORS - 1)),
        .size = chance_below(c, 25) == 0 ? 20000 + chance_below(c, 60000) : size,
        .root = (uint32_t)chance_below(c, t->nodes),
    };

    if (!reduction_allowed(call.type, call.operator))
        call.operator= REDUCTION_SUM;
    call.in_place = chance_below(c, 3) == 0 && sim_may_be_in_place(call.operation);
    return call;
}
