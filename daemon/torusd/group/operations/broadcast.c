#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/planning/spec.h"

static int check_broadcast(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;

    c->call.in_place = true;
    if (group_check_root(call, members->count, e) != 0)
        return -1;
    c->largest = c->total = call->size;
    if (call->size > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE, "a block is larger than 64 TiB");
    return group_check_area(&call->receive, call->size, "receive", e);
}

static struct block_range got_broadcast(const struct checked_call *c, const struct members *members,
                                        uint32_t origin)
{
    (void)members;
    return (struct block_range){0, origin == c->call.root ? c->call.size : 0};
}

/* The root does not learn that its block has arrived. */
const struct collective collective_broadcast = {
    .routes = ROUTES_BROADCAST,
    .result = RESULT_SAME,
    .compares = COMPARES_SIZE | COMPARES_ROOT,
    .check = check_broadcast,
    .sent = group_block_only,
    .got = got_broadcast,
};
