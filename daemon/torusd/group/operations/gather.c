/* Every member sends its block to the root. */
#include "daemon/torusd/group/operations/operations.h"

static int check_gather(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;
    const bool is_root = call->root == members->own;

    c->largest = call->size;
    if (group_check_root(call, members->count, e) != 0 ||
        group_check_size(call->size, members->count, &c->total, e) != 0)
        return -1;
    if (call->in_place && !is_root)
        return error_set(e, ERROR_USAGE, "gather in place is possible at its root only");
    if (group_check_area(&call->receive, is_root ? c->total : 0, "receive", e) != 0)
        return -1;
    return group_check_sent(call, call->size, e);
}

static struct block_range sent_gather(const struct checked_call *c, const struct members *members,
                                      uint32_t destination)
{
    (void)members;
    return (struct block_range){0, destination == c->call.root ? c->call.size : 0};
}

static struct block_range got_gather(const struct checked_call *c, const struct members *members,
                                     uint32_t origin)
{
    if (members->own != c->call.root)
        return (struct block_range){0, 0};
    return group_block_of_member(c, members, origin);
}

/* A gather of few bytes is an allgather, which needs fewer messages. All members but the root discard the blocks. */
static const struct collective short_gather = {
    .routes = ROUTES_GATHER,
    .result = RESULT_ROOT,
    .compares = COMPARES_SIZE | COMPARES_ROOT,
    .proves = true,
    .check = check_gather,
    .sent = group_block_only,
    .got = group_block_of_member,
};

/* Each member also tells all others that it has no block for them, so all learn that all have called. */
const struct collective collective_gather = {
    .routes = ROUTES_EXCHANGE,
    .result = RESULT_ROOT,
    .compares = COMPARES_SIZE | COMPARES_ROOT,
    .in_place = true,
    .proves = true,
    .irregular = true,
    .short_form = &short_gather,
    .check = check_gather,
    .sent = sent_gather,
    .got = got_gather,
};
