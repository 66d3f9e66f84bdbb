/* Every member receives its block from the root. */
#include "daemon/torusd/group/operations/operations.h"

/* In place, the root's blocks lie in its receive area, where its own block stays. */
static int check_scatter(struct checked_call *c, const struct members *members, struct error *e)
{
    const struct group_call *call = &c->call;
    const bool is_root = call->root == members->own;

    c->largest = call->size;
    if (group_check_root(call, members->count, e) != 0 ||
        group_check_size(call->size, members->count, &c->total, e) != 0)
        return -1;
    if (call->in_place && !is_root)
        return error_set(e, ERROR_USAGE, "scatter in place is possible at its root only");
    if (group_check_area(&call->receive, call->in_place ? c->total : call->size, "receive", e) != 0)
        return -1;
    return group_check_sent(call, is_root ? c->total : 0, e);
}

/* Whether this member gets the block that the root has for it. */
static bool is_received(const struct checked_call *c, uint32_t origin)
{
    return origin == c->call.root && !c->call.in_place;
}

static struct block_range sent_scatter(const struct checked_call *c, const struct members *members,
                                       uint32_t destination)
{
    if (members->own != c->call.root || (destination == members->own && c->call.in_place))
        return (struct block_range){0, 0};
    return group_block_of_member(c, members, destination);
}

static struct block_range got_scatter(const struct checked_call *c, const struct members *members,
                                      uint32_t origin)
{
    (void)members;
    return (struct block_range){0, is_received(c, origin) ? c->call.size : 0};
}

static struct block_range sent_whole(const struct checked_call *c, const struct members *members,
                                     uint32_t destination)
{
    (void)members, (void)destination;
    return (struct block_range){0, c->total};
}

static struct block_range got_whole(const struct checked_call *c, const struct members *members,
                                    uint32_t origin)
{
    (void)members;
    return (struct block_range){0, origin == c->call.root ? c->total : 0};
}

static struct block_range kept_scatter(const struct checked_call *c, const struct members *members)
{
    return (struct block_range){members->own * c->call.size, c->call.in_place ? 0 : c->call.size};
}

/* A scatter of few bytes is a broadcast of all blocks, which needs fewer messages. Each member keeps its block only. */
static const struct collective short_scatter = {
    .routes = ROUTES_BROADCAST,
    .result = RESULT_OWN,
    .compares = COMPARES_SIZE | COMPARES_ROOT,
    .check = check_scatter,
    .sent = sent_whole,
    .got = got_whole,
    .kept = kept_scatter,
};

/* Members other than the root tell all others that they have no block for them. This proves that all have called, but
 * the short form proves nothing, and which one it is may not be known when the call is made. */
const struct collective collective_scatter = {
    .routes = ROUTES_EXCHANGE,
    .result = RESULT_OWN,
    .compares = COMPARES_SIZE | COMPARES_ROOT,
    .in_place = true,
    .irregular = true,
    .short_form = &short_scatter,
    .check = check_scatter,
    .sent = sent_scatter,
    .got = got_scatter,
};
