/* Gather and scatter among the ranks of a communicator. */
#include <string.h>

#include "client/mpi/job/job.h"
#include "client/mpi/nodes/node_collectives.h"
#include "client/mpi/nodes/node_messages.h"

/* The blocks between the root and all ranks. */
struct rooted {
    uint32_t node, local; /* of the root */
    bool same;            /* all blocks of ranks have the same size, */
    bool same_of_nodes;   /* and so do all blocks of nodes */
};

static struct rooted rooted_at(const struct communicator *c, uint32_t place, bool same)
{
    const uint32_t node = communicator_node(c, place);

    return (struct rooted){node, place - c->first[node], same, same && c->even};
}

/* Between nodes. `all` is NULL unless the root is on this node, and then has the blocks of all nodes without gaps.
 * `bytes`: of the nodes' blocks, if their sizes differ and the root is on this node. */
static int gather(const struct communicator *c, const struct rooted *r, const void *block,
                  size_t mine, void *all, const size_t *bytes, struct torus_error *e)
{
    size_t *offset = node_numbers(c) + c->nodes;

    if (r->same_of_nodes && c->node != r->node)
        return TORUS_SEND(e, block, mine,
                          torus_start_gather(c->group, block, NULL, mine, r->node, &call, e));
    if (r->same_of_nodes)
        return TORUS_CALL(e, torus_start_gather(c->group, block, all, mine, r->node, &call, e));
    if (c->node == r->node)
        (void)node_offsets(bytes, c->nodes, offset);
    return TORUS_CALL(
        e, torus_start_gatherv(c->group, block, mine, all, bytes, offset, r->node, &call, e));
}

static int scatter(const struct communicator *c, const struct rooted *r, const void *all,
                   const size_t *bytes, void *block, size_t mine, struct torus_error *e)
{
    size_t *offset = node_numbers(c) + c->nodes;

    if (r->same_of_nodes)
        return TORUS_CALL(e, torus_start_scatter(c->group, all, block, mine, r->node, &call, e));
    if (c->node == r->node)
        (void)node_offsets(bytes, c->nodes, offset);
    return TORUS_CALL(
        e, torus_start_scatterv(c->group, all, bytes, offset, block, mine, r->node, &call, e));
}

/* Stores the sizes of the nodes' blocks. */
static void add_up_nodes(const struct communicator *c, const size_t *bytes, size_t *node_bytes)
{
    for (uint32_t n = 0; n < c->nodes; n++)
        node_bytes[n] = node_sum_at(c, bytes, n);
}

/* If sizes differ, tells the leader the size of this rank's block, and, at the root, those of the nodes' blocks. */
static int tell_sizes(const struct communicator *c, const struct rooted *r, size_t mine,
                      const size_t *bytes)
{
    if (r->same)
        return 0;
    if (node_send(c, 0, &mine, sizeof mine) != 0)
        return -1;
    if (c->node != r->node || c->local != r->local)
        return 0;
    add_up_nodes(c, bytes, node_numbers(c));
    return node_send(c, 0, node_numbers(c), c->nodes * sizeof(size_t));
}

/* At the leader: stores the size of the block of each rank on the node in each[], and on the node of the root those of
 * the nodes' blocks in node_bytes[]. `bytes`: of all blocks, if this is the root and sizes differ. */
static int hear_sizes(const struct communicator *c, const struct rooted *r, size_t mine,
                      const size_t *bytes, size_t *each, size_t *node_bytes)
{
    each[0] = mine;
    for (uint32_t n = 0; n < c->nodes && r->same; n++)
        node_bytes[n] = mine * communicator_locals(c, n);
    if (!r->same && c->node == r->node && r->local == 0)
        add_up_nodes(c, bytes, node_bytes);
    for (uint32_t l = 1; l < c->locals; l++) {
        each[l] = mine;
        if (!r->same && node_receive(c, l, &each[l], sizeof each[l]) != 0)
            return -1;
        if (!r->same && c->node == r->node && l == r->local &&
            node_receive(c, l, node_bytes, c->nodes * sizeof(size_t)) != 0)
            return -1;
    }
    return 0;
}

/* Returns the bytes of all blocks, at the root and at the leader of its node. */
static size_t all_bytes(const struct communicator *c, const struct rooted *r, size_t mine,
                        const size_t *node_bytes)
{
    return r->same ? mine * c->size : node_sum(node_bytes, c->nodes);
}

/* Gathers the blocks of the node's ranks, and then those of the nodes. */
static int lead_gather(const struct communicator *c, const struct rooted *r, const void *block,
                       size_t mine, void *receive, const size_t *bytes, struct torus_error *e)
{
    const bool is_near = r->node == c->node, passes_on = is_near && r->local != 0;
    size_t *node_bytes = node_numbers(c), *each = node_bytes + 2 * (size_t)c->nodes, filled = mine;
    char *blocks = NULL, *all = NULL;
    int result = 0;

    if (hear_sizes(c, r, mine, bytes, each, node_bytes) != 0)
        return node_share_result(c, node_failed(e), e);
    const size_t received = is_near ? all_bytes(c, r, mine, node_bytes) : 0;
    blocks = scratch_alloc(node_sum(each, c->locals));
    all = passes_on ? scratch_alloc(received) : receive;
    if (blocks == NULL || (passes_on && all == NULL)) {
        result = node_lacks_memory(c, e);
    } else {
        if (mine > 0)
            memcpy(blocks, block, mine);
        for (uint32_t l = 1; l < c->locals && result == 0; filled += each[l++])
            if (node_receive(c, l, blocks + filled, each[l]) != 0)
                result = node_failed(e);
    }
    if (result == 0)
        result = gather(c, r, blocks, filled, is_near ? all : NULL, node_bytes, e);
    result = node_share_result(c, result, e);
    if (result == 0 && passes_on && node_send(c, r->local, all, received) != 0)
        result = node_failed(e);
    if (passes_on)
        scratch_free(all);
    scratch_free(blocks);
    return result;
}

int nodes_gather(struct communicator *c, const void *block, size_t mine, void *receive,
                 const size_t *bytes, bool same, uint32_t root_place, struct torus_error *error)
{
    const struct rooted r = rooted_at(c, root_place, same);
    int result;

    if (!c->several)
        return gather(c, &r, block, mine, receive, bytes, error);
    if (communicator_leads(c))
        return lead_gather(c, &r, block, mine, receive, bytes, error);
    if (tell_sizes(c, &r, mine, bytes) != 0 || node_send(c, 0, block, mine) != 0)
        return node_failed(error);
    result = node_share_result(c, 0, error);
    if (result == 0 && r.node == c->node && r.local == c->local &&
        node_receive(c, 0, receive, all_bytes(c, &r, mine, node_numbers(c))) != 0)
        result = node_failed(error);
    return result;
}

/* Scatters the blocks of the nodes, and then those of the node's ranks. */
static int lead_scatter(const struct communicator *c, const struct rooted *r, const void *send,
                        const size_t *bytes, void *block, size_t mine, struct torus_error *e)
{
    const bool is_near = r->node == c->node, passes_on = is_near && r->local != 0;
    size_t *node_bytes = node_numbers(c), *each = node_bytes + 2 * (size_t)c->nodes, at = mine;
    void *room = NULL;
    char *blocks;
    int result = 0;

    if (hear_sizes(c, r, mine, bytes, each, node_bytes) != 0)
        return node_share_result(c, node_failed(e), e);
    const size_t sent = passes_on ? all_bytes(c, r, mine, node_bytes) : 0;
    const size_t here = node_sum(each, c->locals);
    blocks = scratch_alloc(here);
    if (passes_on)
        send = room = scratch_alloc(sent);
    if (blocks == NULL || (passes_on && room == NULL))
        result = node_lacks_memory(c, e);
    else if (passes_on && node_receive(c, r->local, room, sent) != 0)
        result = node_failed(e);
    if (result == 0)
        result = scatter(c, r, send, node_bytes, blocks, here, e);
    result = node_share_result(c, result, e);
    if (result == 0 && mine > 0)
        memcpy(block, blocks, mine);
    for (uint32_t l = 1; l < c->locals && result == 0; at += each[l++])
        if (node_send(c, l, blocks + at, each[l]) != 0)
            result = node_failed(e);
    scratch_free(room);
    scratch_free(blocks);
    return result;
}

int nodes_scatter(struct communicator *c, const void *send, const size_t *bytes, void *block,
                  size_t mine, bool same, uint32_t root_place, struct torus_error *error)
{
    const struct rooted r = rooted_at(c, root_place, same);
    int result;

    if (!c->several)
        return scatter(c, &r, send, bytes, block, mine, error);
    if (communicator_leads(c))
        return lead_scatter(c, &r, send, bytes, block, mine, error);
    if (tell_sizes(c, &r, mine, bytes) != 0 ||
        (r.node == c->node && r.local == c->local &&
         node_send(c, 0, send, all_bytes(c, &r, mine, node_numbers(c))) != 0))
        return node_failed(error);
    result = node_share_result(c, 0, error);
    if (result == 0 && node_receive(c, 0, block, mine) != 0)
        result = node_failed(error);
    return result;
}
