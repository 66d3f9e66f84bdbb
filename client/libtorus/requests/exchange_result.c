#include "client/libtorus/requests/exchange_result.h"

#include <stdlib.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/names.h"
#include "client/libtorus/requests/results.h"

_Static_assert((int)TORUS_CHECK_NOTHING == (int)CONTROL__CHECK__NOTHING, "checks");
_Static_assert((int)TORUS_CHECK_DIGESTS == (int)CONTROL__CHECK__DIGESTS, "checks");
_Static_assert((int)TORUS_CHECK_BYTES == (int)CONTROL__CHECK__BYTES, "checks");

struct result_holder {
    struct torus_result result; /* must be first: torus_result_free() casts it back */
    Control__Reply *reply;
    struct torus_node *node;
    const struct torus_node **nodes;
    struct torus_port *port; /* of all nodes, one after the other */
    const struct torus_port **ports;
    struct torus_arrival *arrival;
    const struct torus_arrival **arrivals;
};

void torus_result_free(struct torus_result *result)
{
    struct result_holder *h = (struct result_holder *)result;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->node);
    free(h->nodes);
    free(h->port);
    free(h->ports);
    free(h->arrival);
    free(h->arrivals);
    free(h);
}

static int check(const Control__ExchangeResult *in, struct torus_error *e)
{
    if (in->id[0] == '\0' || in->dims[0] == '\0')
        return invalid_reply(e, "it has no id or no dimensions");
    if (!is_measurement(in->bound) || !is_measurement(in->link_mbit))
        return invalid_reply(e, "its bound or link rate is not a valid number");
    if (in->n_each_nanoseconds != 0 && in->n_each_nanoseconds != in->repeat)
        return invalid_reply(e, "its number of times differs from its number of repetitions");
    if (in->n_node > in->nodes)
        return invalid_reply(e, "it has results of more nodes than exist");
    for (size_t i = 0; i < in->n_missing; i++)
        if (in->missing[i] >= in->nodes || (i > 0 && in->missing[i] <= in->missing[i - 1]))
            return invalid_reply(e, "its missing nodes do not exist or are not in order");
    for (size_t i = 0; i < in->n_arrival; i++)
        if (in->arrival[i]->rank >= in->nodes ||
            (i > 0 && in->arrival[i]->rank <= in->arrival[i - 1]->rank))
            return invalid_reply(e, "its arrivals are of nodes that do not exist, or not in order");
    for (size_t i = 0; i < in->n_node; i++)
        if (in->node[i]->rank >= in->nodes)
            return invalid_reply(e, "it has results of a rank that does not exist");
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = (*(Control__ExchangeResult__Node *const *)a)->rank;
    uint32_t y = (*(Control__ExchangeResult__Node *const *)b)->rank;
    return (x > y) - (x < y);
}

/* Sorts the nodes by rank. Returns 0 with the number of all their ports, or -1 with *e. */
static int sort_nodes(const Control__ExchangeResult *in, size_t *ports, struct torus_error *e)
{
    *ports = 0;
    if (in->n_node > 0)
        qsort(in->node, in->n_node, sizeof in->node[0], by_rank);
    for (size_t i = 0; i < in->n_node; i++) {
        if (i > 0 && in->node[i]->rank == in->node[i - 1]->rank)
            return invalid_reply(e, "it has results of one rank twice");
        *ports += in->node[i]->n_port;
    }
    return 0;
}

static void fill_port(struct torus_port *port, const Control__ExchangeResult__Port *in)
{
    *port = (struct torus_port){
        .name = clean_text(in->name),
        .tx_bytes = in->tx_bytes,
        .rx_bytes = in->rx_bytes,
        .tx_blocks = in->tx_blocks,
        .combined_messages = in->combined_messages,
        .min_rtt_us = in->min_rtt_us,
        .rate_bps = in->rate_bps,
    };
}

static int fill_nodes(struct result_holder *h, struct torus_error *e)
{
    const Control__ExchangeResult *in = h->reply->exchange;
    size_t ports, used = 0;

    if (sort_nodes(in, &ports, e) != 0)
        return -1;
    h->node = array_new(in->n_node, sizeof *h->node);
    h->nodes = array_new(in->n_node, sizeof *h->nodes);
    h->port = array_new(ports, sizeof *h->port);
    h->ports = array_new(ports, sizeof *h->ports);
    if (h->node == NULL || h->nodes == NULL || h->port == NULL || h->ports == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_node; i++) {
        const Control__ExchangeResult__Node *from = in->node[i];
        h->nodes[i] = &h->node[i];
        h->node[i] = (struct torus_node){
            .rank = from->rank,
            .nanoseconds = from->nanoseconds,
            .most_starts = from->most_starts,
            .most_ends = from->most_ends,
            .port_count = from->n_port,
            .port = h->ports + used,
            .missing_files = from->missing_files,
            .unused_files = from->unused_files,
        };
        for (size_t j = 0; j < from->n_port; j++, used++) {
            h->ports[used] = &h->port[used];
            fill_port(&h->port[used], from->port[j]);
        }
    }
    return 0;
}

static int fill_arrivals(struct result_holder *h, struct torus_error *e)
{
    const Control__ExchangeResult *in = h->reply->exchange;

    h->arrival = array_new(in->n_arrival, sizeof *h->arrival);
    h->arrivals = array_new(in->n_arrival, sizeof *h->arrivals);
    if (h->arrival == NULL || h->arrivals == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_arrival; i++) {
        h->arrivals[i] = &h->arrival[i];
        h->arrival[i] = (struct torus_arrival){
            .rank = in->arrival[i]->rank, .after_nanoseconds = in->arrival[i]->after_nanoseconds};
    }
    return 0;
}

static int fill(struct result_holder *h, struct torus_error *e)
{
    const Control__ExchangeResult *in = h->reply->exchange;
    enum torus_operation operation;

    if (operation_named(in->operation, &operation) != 0)
        return invalid_reply(e, "its operation is unknown");
    if (check(in, e) != 0 || fill_nodes(h, e) != 0 || fill_arrivals(h, e) != 0)
        return -1;
    h->result = (struct torus_result){
        .id = clean_text(in->id),
        .dims = clean_text(in->dims),
        .operation = operation,
        .algorithm = clean_text(in->algorithm),
        .mode = mode_named(in->mode),
        .check = (enum torus_check)in->check,
        .nodes = in->nodes,
        .block_bytes = in->block_bytes,
        .nanoseconds = in->nanoseconds,
        .bound = in->bound,
        .link_mbit = in->link_mbit,
        .startups = in->startups,
        .transmission = in->transmission,
        .rounds = in->rounds,
        .blocks_delivered = in->blocks_delivered,
        .bytes_delivered = in->bytes_delivered,
        .node_count = in->n_node,
        .node = h->nodes,
        .repeat = in->repeat > 0 ? in->repeat : 1,
        .each_count = in->n_each_nanoseconds,
        .each = in->each_nanoseconds,
        .all_nanoseconds = in->all_nanoseconds,
        .without = clean_text(in->without),
        .reroutes = in->reroutes,
        .damages = in->damages,
        .kept_bytes = in->kept_bytes,
        .missing_count = in->n_missing,
        .missing = in->missing,
        .missing_files = in->missing_files,
        .unused_files = in->unused_files,
        .waited_nanoseconds = in->waited_nanoseconds,
        .arrival_count = in->n_arrival,
        .arrival = h->arrivals,
    };
    return 0;
}

int result_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct result_holder *h = calloc(1, sizeof *h);
    struct torus_result **out = result;
    int r;

    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        return fail_memory(e);
    }
    h->reply = reply;
    r = fill(h, e);
    if (r == 0 && out != NULL)
        *out = &h->result;
    else
        torus_result_free(&h->result);
    return r;
}
