#include "daemon/torusd/group/operations/operations.h"

static int check_allreduce(struct checked_call *c, const struct members *members, struct error *e)
{
    (void)members;
    if (group_check_vector(c, e) != 0 ||
        group_check_area(&c->call.receive, c->total, "receive", e) != 0)
        return -1;
    return group_check_sent(&c->call, c->total, e);
}

/* Returns an owner's part of a long vector, which is divided as evenly as possible. */
static struct block_range share(const struct checked_call *c, const struct members *members,
                                uint32_t owner)
{
    const uint64_t each = c->call.size / members->count, more = c->call.size % members->count;
    const uint32_t element = reduction_size(c->call.type);

    return (struct block_range){(owner * each + (owner < more ? owner : more)) * element,
                                (each + (owner < more)) * element};
}

const struct collective collective_allreduce = {
    .routes = TREES_BY_LENGTH,
    .result = RESULT_SAME,
    .compares = COMPARES_SIZE | COMPARES_TYPE,
    .in_place = true,
    .proves = true,
    .check = check_allreduce,
    .sent = share,
    .got = share,
};
