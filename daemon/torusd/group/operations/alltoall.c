#include "daemon/torusd/group/operations/operations.h"

/* --- blocks of one size --- */

static int check_alltoall(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;

    c->largest = call->size;
    if (group_check_size(call->size, members->count, &c->total, e) != 0 ||
        group_check_area(&call->receive, c->total, "receive", e) != 0)
        return -1;
    return group_check_sent(call, c->total, e);
}

const struct collective collective_alltoall = {
    .routes = ROUTES_EXCHANGE,
    .result = RESULT_OWN,
    .compares = COMPARES_SIZE,
    .proves = true,
    .check = check_alltoall,
    .sent = group_block_of_member,
    .got = group_block_of_member,
};

/* --- blocks of different sizes --- */

static int check_alltoallv(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;
    uint64_t sent = 0, received = 0;

    if (group_check_blocks(call->send_size, call->send_offset, members->count, &call->send, "send",
                           &c->largest, &sent, e) != 0 ||
        group_check_blocks(call->receive_size, call->receive_offset, members->count, &call->receive,
                           "receive", &c->largest, &received, e) != 0)
        return -1;
    c->total = sent > received ? sent : received;
    return 0;
}

static struct block_range sent_alltoallv(const struct checked_call *c,
                                         const struct members *members, uint32_t destination)
{
    (void)members;
    return (struct block_range){c->call.send_offset[destination], c->call.send_size[destination]};
}

const struct collective collective_alltoallv = {
    .routes = ROUTES_EXCHANGE,
    .result = RESULT_OWN,
    .proves = true,
    .measured = true,
    .irregular = true,
    .check = check_alltoallv,
    .sent = sent_alltoallv,
    .got = group_block_received,
};
