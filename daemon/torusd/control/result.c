/* Writes the result of an exchange as a reply. */
#include <stdlib.h>

#include "daemon/torusd/control/internal.h"

_Static_assert((int)CHECK_NOTHING == (int)CONTROL__CHECK__NOTHING, "checks");
_Static_assert((int)CHECK_DIGEST == (int)CONTROL__CHECK__DIGESTS, "checks");
_Static_assert((int)CHECK_CONTENTS == (int)CONTROL__CHECK__BYTES, "checks");

/* The elements that the message points to: one for each node, and one for each port of each
 * node. */
struct figures {
    Control__ExchangeResult__Node *node, **nodes;
    Control__ExchangeResult__Port *port, **ports;
    uint32_t *missing;
    Control__ExchangeResult__Arrival *arrival, **arrivals;
    char (*name)[TORUS_PORT_NAME_SIZE]; /* by port of each node, as `port` */
    char dims[TORUS_TEXT_SIZE];
};

static void figures_free(struct figures *f)
{
    free(f->node);
    free(f->nodes);
    free(f->port);
    free(f->ports);
    free(f->missing);
    free(f->arrival);
    free(f->arrivals);
    free(f->name);
}

static int figures_alloc(struct figures *f, const struct torus *t)
{
    const size_t ports = (size_t)t->nodes * torus_ports(t);

    f->node = calloc(t->nodes, sizeof *f->node);
    f->nodes = calloc(t->nodes, sizeof(void *));
    f->port = calloc(ports + 1, sizeof *f->port); /* a torus of one node has none */
    f->ports = calloc(ports + 1, sizeof(void *));
    f->missing = calloc(t->nodes, sizeof *f->missing);
    f->arrival = calloc(t->nodes, sizeof *f->arrival);
    f->arrivals = calloc(t->nodes, sizeof(void *));
    f->name = calloc(ports + 1, sizeof *f->name);
    if (f->node != NULL && f->nodes != NULL && f->port != NULL && f->ports != NULL &&
        f->missing != NULL && f->arrival != NULL && f->arrivals != NULL && f->name != NULL)
        return 0;
    figures_free(f);
    return -1;
}

/* Fills in node i, and its ports that have a neighbour. */
static void fill_node(struct figures *f, const struct torus *t, uint32_t i,
                      const struct exchange_node_report *from)
{
    const unsigned ports = torus_ports(t);
    Control__ExchangeResult__Node *node = f->nodes[i] = &f->node[i];

    control__exchange_result__node__init(node);
    node->rank = from->rank;
    node->nanoseconds = from->nanoseconds;
    node->most_starts = from->most_starts;
    node->most_ends = from->most_ends;
    node->missing_files = from->unmoved.missing;
    node->unused_files = from->unmoved.unused;
    node->port = &f->ports[(size_t)i * ports];
    for (unsigned p = 0; p < ports; p++) {
        Control__ExchangeResult__Port *to = &f->port[(size_t)i * ports + p];
        if (torus_neighbour(t, from->rank, p) == TORUS_NO_NODE)
            continue;
        control__exchange_result__port__init(to);
        to->name = torus_port_name(t, from->rank, p, f->name[(size_t)i * ports + p]);
        to->tx_bytes = from->port[p].tx_bytes;
        to->rx_bytes = from->port[p].rx_bytes;
        to->tx_blocks = from->port[p].tx_blocks;
        to->combined_messages = from->port[p].combined_messages;
        to->min_rtt_us = from->link[p].min_rtt_us;
        to->rate_bps = from->link[p].rate_bps;
        node->port[node->n_port++] = to;
    }
}

static void fill_arrivals(Control__ExchangeResult *message, struct figures *f,
                          const struct exchange_result *result)
{
    message->waited_nanoseconds = result->waited_ns;
    message->n_arrival = result->arrivals;
    message->arrival = f->arrivals;
    for (uint32_t i = 0; i < result->arrivals; i++) {
        f->arrivals[i] = &f->arrival[i];
        control__exchange_result__arrival__init(&f->arrival[i]);
        f->arrival[i].rank = result->arrival[i].rank;
        f->arrival[i].after_nanoseconds = result->arrival[i].after_ns;
    }
}

static void fill_result(Control__ExchangeResult *message, struct figures *f, const struct torus *t,
                        double link_mbit, const struct exchange_result *result)
{
    message->id = (char *)(uintptr_t)result->id; /* packing only reads the texts and times */
    message->dims = torus_format(t, f->dims);
    message->algorithm = (char *)(uintptr_t)result->algorithm;
    message->operation = (char *)(uintptr_t)operation_name(result->operation);
    message->mode = (char *)(uintptr_t)mode_name(result->mode);
    message->nodes = t->nodes;
    message->block_bytes = result->block_bytes;
    message->nanoseconds = result->nanoseconds;
    message->bound = result->bound;
    message->reroutes = result->reroutes;
    message->damages = result->damages;
    message->kept_bytes = result->kept_bytes;
    message->missing_files = result->unmoved.missing;
    message->unused_files = result->unmoved.unused;
    message->without = (char *)(uintptr_t)result->without;
    message->link_mbit = link_mbit;
    message->startups = result->startups;
    message->transmission = result->transmission;
    message->rounds = result->rounds;
    message->blocks_delivered = result->blocks_delivered;
    message->bytes_delivered = result->bytes_delivered;
    message->repeat = result->repeat;
    message->n_each_nanoseconds = result->each != NULL ? result->repeat : 0;
    message->each_nanoseconds = (uint64_t *)(uintptr_t)result->each;
    message->all_nanoseconds = result->all_ns;
    message->check = (Control__Check)result->check;
    message->missing = f->missing;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        if (result->gone != NULL && result->gone[rank])
            f->missing[message->n_missing++] = rank;
    message->n_node = result->node != NULL ? result->nodes : 0;
    message->node = f->nodes;
    for (uint32_t i = 0; i < message->n_node; i++)
        fill_node(f, t, i, &result->node[i]);
    fill_arrivals(message, f, result);
}

void control_reply_result(struct control_client *client, const struct exchange_result *result)
{
    const struct error no_memory = {
        .code = ERROR_MEMORY,
        .text = "the exchange has succeeded, but torusd is out of memory for its report"};
    const struct control_setup *set = &client->server->set;
    const struct torus *t = router_torus(set->router);
    Control__ExchangeResult message = CONTROL__EXCHANGE_RESULT__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;
    struct figures figures;

    if (figures_alloc(&figures, t) != 0) {
        control_reply_error(client, &no_memory, result->id);
        return;
    }
    fill_result(&message, &figures, t, set->link_mbit, result);
    reply.kind_case = CONTROL__REPLY__KIND_EXCHANGE;
    reply.exchange = &message;
    control_reply(client, &reply);
    figures_free(&figures);
}
