#include "daemon/torusd/group/operations/operations.h"

static int check_reduce(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;
    const bool is_root = call->root == members->own;

    if (group_check_root(call, members->count, e) != 0 || group_check_vector(c, e) != 0)
        return -1;
    if (call->in_place && !is_root)
        return error_set(e, ERROR_USAGE, "reduce in place is possible at its root only");
    if (group_check_area(&call->receive, is_root ? c->total : 0, "receive", e) != 0)
        return -1;
    return group_check_sent(call, c->total, e);
}

/* Only the root learns that all members have called. */
const struct collective collective_reduce = {
    .routes = TREES_OF_ROOT,
    .result = RESULT_ROOT,
    .compares = COMPARES_SIZE | COMPARES_ROOT | COMPARES_TYPE,
    .in_place = true,
    .check = check_reduce,
};
