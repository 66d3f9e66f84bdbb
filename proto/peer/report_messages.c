/* What the nodes counted: a list of nodes, each with a list of its ports. */
#include "proto/peer/codec.h"

#define PORT(NUMBER, TEXT, BYTES, LIST)                                                            \
    NUMBER(tx_bytes)                                                                               \
    NUMBER(rx_bytes) NUMBER(tx_blocks) NUMBER(combined_messages) NUMBER(min_rtt_us) NUMBER(rate_bps)

#define NODE(NUMBER, TEXT, BYTES, LIST)                                                            \
    NUMBER(rank)                                                                                   \
    NUMBER(nanoseconds)                                                                            \
    NUMBER(blocks_delivered)                                                                       \
    NUMBER(bytes_delivered)                                                                        \
    NUMBER(most_starts)                                                                            \
    NUMBER(most_ends) NUMBER(repaired) NUMBER(missing_files) NUMBER(unused_files)

#define DONE(NUMBER, TEXT, BYTES, LIST)                                                            \
    NUMBER(exchange)                                                                               \
    LIST(step_blocks) LIST(step_messages) NUMBER(sent_digest) NUMBER(delivered_digest)

/* --- writing --- */

/* Memory for all nodes and ports, in one piece. */
struct written {
    Peer__NodeReport **node_pointer, *node;
    Peer__PortReport **port_pointer, *port;
};

static void *written_new(struct written *w, size_t nodes, size_t ports)
{
    size_t node_size = sizeof *w->node_pointer + sizeof *w->node;
    size_t port_size = sizeof *w->port_pointer + sizeof *w->port;
    void *room = malloc(nodes * node_size + ports * port_size + 1);

    if (room == NULL)
        return NULL;
    w->node_pointer = room;
    w->port_pointer = (Peer__PortReport **)(w->node_pointer + nodes);
    w->node = (Peer__NodeReport *)(w->port_pointer + ports);
    w->port = (Peer__PortReport *)(w->node + nodes);
    return room;
}

static void write_port(const struct peer_port_report *m, Peer__PortReport *to)
{
    peer__port_report__init(to);
    PEER_WRITE_FIELDS(PORT)
}

static void write_node(const struct peer_node_report *m, Peer__NodeReport *to, struct written *at)
{
    peer__node_report__init(to);
    PEER_WRITE_FIELDS(NODE)
    to->n_port = m->n_port;
    to->port = at->port_pointer;
    for (size_t i = 0; i < m->n_port; i++) {
        write_port(&m->port[i], at->port);
        *at->port_pointer++ = at->port++;
    }
}

PEER_WRITE(done, Done)
{
    struct written at;
    size_t ports = 0;

    for (size_t i = 0; i < m->n_node; i++)
        ports += m->node[i].n_port;
    scratch->owned = written_new(&at, m->n_node, ports);
    if (scratch->owned == NULL)
        return -1;
    peer__done__init(to);
    PEER_WRITE_FIELDS(DONE)
    to->n_node = m->n_node;
    to->node = at.node_pointer;
    for (size_t i = 0; i < m->n_node; i++) {
        at.node_pointer[i] = &at.node[i];
        write_node(&m->node[i], &at.node[i], &at);
    }
    return 0;
}

/* --- reading --- */

static void read_port(const Peer__PortReport *from, struct peer_port_report *m)
{
    PEER_READ_FIELDS(PORT)
}

static void read_node(const Peer__NodeReport *from, struct peer_node_report *m,
                      struct peer_port_report **at)
{
    PEER_READ_FIELDS(NODE)
    m->n_port = from->n_port;
    m->port = *at;
    for (size_t i = 0; i < from->n_port; i++)
        read_port(from->port[i], (*at)++);
}

PEER_READ(done, Done)
{
    struct peer_node_report *node;
    struct peer_port_report *port;
    size_t ports = 0;

    for (size_t i = 0; i < from->n_node; i++)
        ports += from->node[i]->n_port;
    node = malloc(from->n_node * sizeof *node + ports * sizeof *port + 1);
    if (node == NULL)
        return peer_no_memory(e);
    *owned = node;
    port = (struct peer_port_report *)(node + from->n_node);
    PEER_READ_FIELDS(DONE)
    m->n_node = from->n_node;
    m->node = node;
    for (size_t i = 0; i < from->n_node; i++)
        read_node(from->node[i], &node[i], &port);
    return 0;
}
