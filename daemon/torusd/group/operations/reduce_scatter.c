#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/planning/spec.h"

static int check_reduce_scatter(struct checked_call *c, const struct members *members,
                                struct error *e)
{
    const struct group_call *call = &c->call;
    uint64_t *begins = c->counts + members->count, elements = 0, bytes;

    if (group_check_type(call, e) != 0)
        return -1;
    for (uint32_t i = 0; i < members->count; i++) {
        if (group_check_size(reduction_size(call->type), call->receive_size[i], &bytes, e) != 0)
            return -1;
        if (bytes > c->largest)
            c->largest = bytes;
        begins[i] = elements * reduction_size(call->type);
        elements += call->receive_size[i];
        if (elements > SPEC_BLOCK_MOST)
            return error_set(
                e, ERROR_USAGE,
                "all blocks together are too large: at most %llu elements are possible",
                (unsigned long long)SPEC_BLOCK_MOST);
    }
    c->call.send_offset = begins;
    if (group_check_size(reduction_size(call->type), elements, &c->total, e) != 0 ||
        group_check_area(&call->send, c->total, "send", e) != 0)
        return -1;
    return group_check_area(&call->receive,
                            call->receive_size[members->own] * reduction_size(call->type),
                            "receive", e);
}

static struct block_range sent_part(const struct checked_call *c, const struct members *members,
                                    uint32_t owner)
{
    (void)members;
    return (struct block_range){c->call.send_offset[owner],
                                c->call.receive_size[owner] * reduction_size(c->call.type)};
}

static struct block_range got_part(const struct checked_call *c, const struct members *members,
                                   uint32_t owner)
{
    return (struct block_range){0, sent_part(c, members, owner).size};
}

/* Members whose parts are empty prove nothing. */
const struct collective collective_reduce_scatter = {
    .routes = TREES_OF_ALL,
    .result = RESULT_OWN,
    .compares = COMPARES_SIZE | COMPARES_TYPE | COMPARES_SIZES,
    .shares = true,
    .check = check_reduce_scatter,
    .sent = sent_part,
    .got = got_part,
};
