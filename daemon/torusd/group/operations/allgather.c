#include "daemon/torusd/group/operations/operations.h"

/* --- blocks of one size --- */

static int check_allgather(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;

    c->largest = call->size;
    if (group_check_size(call->size, members->count, &c->total, e) != 0 ||
        group_check_area(&call->receive, c->total, "receive", e) != 0)
        return -1;
    return group_check_sent(call, call->size, e);
}

const struct collective collective_allgather = {
    .routes = ROUTES_GATHER,
    .result = RESULT_SAME,
    .compares = COMPARES_SIZE,
    .in_place = true,
    .proves = true,
    .check = check_allgather,
    .sent = group_block_only,
    .got = group_block_of_member,
};

/* --- blocks of different sizes --- */

static int check_allgatherv(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;

    if (group_check_blocks(call->receive_size, call->receive_offset, members->count, &call->receive,
                           "receive", &c->largest, &c->total, e) != 0)
        return -1;
    return group_check_sent(call, call->receive_size[members->own], e);
}

static struct block_range sent_allgatherv(const struct checked_call *c,
                                          const struct members *members, uint32_t destination)
{
    (void)destination;
    return (struct block_range){0, c->call.receive_size[members->own]};
}

/* Members whose blocks are empty prove nothing. */
const struct collective collective_allgatherv = {
    .routes = ROUTES_GATHER,
    .result = RESULT_SAME,
    .compares = COMPARES_SIZE | COMPARES_SIZES,
    .in_place = true,
    .irregular = true,
    .check = check_allgatherv,
    .sent = sent_allgatherv,
    .got = group_block_received,
};
