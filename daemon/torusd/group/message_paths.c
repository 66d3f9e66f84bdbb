/* Each frame of a message goes on a shortest path over the links that the group uses (message_paths.h). */
#include "daemon/torusd/group/message_paths.h"

#include <stdlib.h>
#include <string.h>

static struct router *router_of(const struct session *s)
{
    return s->base.set.router;
}

uint32_t message_node_of(const struct session *s, uint32_t member)
{
    uint32_t node = 0;

    if (s->is_member == NULL)
        return members_node(&s->part->members, member);
    for (uint32_t before = member; before > 0 || !s->is_member[node]; node++)
        before -= s->is_member[node];
    return node;
}

uint32_t message_member_at(const struct session *s, uint32_t node)
{
    uint32_t member = 0;

    if (node >= router_torus(router_of(s))->nodes || (s->is_member != NULL && !s->is_member[node]))
        return TORUS_NO_NODE;
    if (s->is_member == NULL)
        return members_at(&s->part->members, node);
    for (uint32_t other = 0; other < node; other++)
        member += s->is_member[other];
    return member;
}

void message_no_memory(struct session *s)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "out of memory for a message");
    session_fail(s, &e);
}

static bool is_usable(const struct session *s, uint32_t node, unsigned port)
{
    return torus_neighbour(router_torus(router_of(s)), node, port) != TORUS_NO_NODE &&
           (!s->damaged || (s->damage.dead[node] & 1u << port) == 0);
}

/* Finds the first port of a shortest path to every node. */
static int find_ways(const struct session *s, int8_t *towards)
{
    const struct torus *t = router_torus(router_of(s));
    const uint32_t own = router_rank(router_of(s));
    uint32_t *queue = calloc(t->nodes, sizeof *queue), first = 0, last = 0;

    if (queue == NULL)
        return -1;
    memset(towards, -1, t->nodes);
    queue[last++] = own;
    while (first < last) {
        const uint32_t node = queue[first++];
        for (unsigned port = 0; port < torus_ports(t); port++) {
            const uint32_t next = is_usable(s, node, port) ? torus_neighbour(t, node, port) : own;
            if (next == own || towards[next] >= 0)
                continue;
            towards[next] = node == own ? (int8_t)port : towards[node];
            queue[last++] = next;
        }
    }
    free(queue);
    return 0;
}

/* Returns the port towards a node, or -1: there is none, or no memory. */
static int port_towards(struct session *s, uint32_t node)
{
    const uint32_t nodes = router_torus(router_of(s))->nodes;

    if (s->towards == NULL) {
        s->towards = calloc(nodes, sizeof *s->towards);
        if (s->towards != NULL && find_ways(s, s->towards) != 0)
            message_paths_forget(s);
    }
    if (s->towards == NULL) {
        message_no_memory(s);
        return -1;
    }
    return s->towards[node];
}

/* Frees a frame of a member that sends more than it was granted. */
static void refuse_to_pass_on(struct session *s, const struct peer_group_message *frame,
                              struct outgoing *out)
{
    struct error e;

    outgoing_free(router_outgoing(router_of(s)), out);
    (void)error_set(&e, ERROR_MEMORY,
                    "more bytes of messages wait at node %u than members may send, the last from "
                    "node %u",
                    router_rank(router_of(s)), frame->from);
    session_fail(s, &e);
}

void message_pass_on(struct session *s, const struct peer_group_message *frame,
                     const struct extents *body, uint32_t body_length)
{
    const int port = port_towards(s, frame->to);
    const struct peer_message message = {.kind = PEER_GROUP_MESSAGE, .group_message = *frame};
    struct outgoing_pool *pool = router_outgoing(router_of(s));
    struct outgoing *out;

    if (port < 0 || engine_has_lost(&s->base, (unsigned)port))
        return; /* the group restarts */
    out = outgoing_new(pool);
    for (uint32_t i = 0; out != NULL && body != NULL && i < body->count; i++)
        if (extents_add(&out->body, body->item[i].slab, body->item[i].data, body->item[i].length) !=
            0) {
            outgoing_free(pool, out);
            out = NULL;
        }
    if (out != NULL) {
        out->body_length = body_length;
        out->immediate = true;
        if (outgoing_set_message(out, &message) != 0) {
            outgoing_free(pool, out);
            out = NULL;
        }
    }
    if (out == NULL)
        message_no_memory(s);
    else if (router_relayed_bytes(router_of(s), (unsigned)port) <= 4 * GROUP_MESSAGES_MOST)
        router_relay(router_of(s), (unsigned)port, out);
    else
        refuse_to_pass_on(s, frame, out);
}

void message_paths_forget(struct session *s)
{
    free(s->towards);
    s->towards = NULL;
}
