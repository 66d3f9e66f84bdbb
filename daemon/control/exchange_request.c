/* The request for an exchange: accepted, progress now and then, then the result or an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/internal.h"

_Static_assert((int)CHECK_NOTHING == (int)CONTROL__CHECK__NOTHING, "checks");
_Static_assert((int)CHECK_DIGEST == (int)CONTROL__CHECK__DIGESTS, "checks");
_Static_assert((int)CHECK_CONTENTS == (int)CONTROL__CHECK__BYTES, "checks");

/* The newest name of the exchange: it has another one when it begins anew. */
static void say_accepted(struct control_client *client)
{
    const char *id = exchange_id(client->exchange);
    Control__Accepted accepted = CONTROL__ACCEPTED__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    if (strcmp(client->exchange_id, id) == 0)
        return;
    (void)snprintf(client->exchange_id, sizeof client->exchange_id, "%s", id);
    accepted.id = client->exchange_id;
    reply.kind_case = CONTROL__REPLY__KIND_ACCEPTED;
    reply.accepted = &accepted;
    control_reply(client, &reply);
}

static void on_progress(uv_timer_t *timer)
{
    struct control_client *client = timer->data;
    struct exchange_progress now;
    Control__Progress progress = CONTROL__PROGRESS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    say_accepted(client);
    exchange_progress(client->exchange, &now);
    progress.repetition = now.repetition;
    progress.repeat = now.repeat;
    progress.round = now.round;
    progress.rounds = now.rounds;
    progress.done_bytes = now.done_bytes;
    progress.total_bytes = now.total_bytes;
    progress.state = (char *)(uintptr_t)exchange_state_name(now.state);
    reply.kind_case = CONTROL__REPLY__KIND_PROGRESS;
    reply.progress = &progress;
    control_reply(client, &reply);
}

static void send_result(struct control_client *client, const struct exchange_result *result)
{
    const struct control_setup *set = &client->server->set;
    const struct torus *t = router_torus(set->router);
    unsigned ports = torus_ports(t);
    Control__ExchangeResult__Node *node = calloc(t->nodes, sizeof *node);
    Control__ExchangeResult__Node **nodes = calloc(t->nodes, sizeof(void *));
    Control__ExchangeResult__Port *port = calloc((size_t)t->nodes * ports, sizeof *port);
    Control__ExchangeResult__Port **port_list = calloc((size_t)t->nodes * ports, sizeof(void *));
    char name[TORUS_MAX_PORTS][TORUS_PORT_NAME_SIZE], dims[TORUS_TEXT_SIZE];
    Control__ExchangeResult message = CONTROL__EXCHANGE_RESULT__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    if (node == NULL || nodes == NULL || port == NULL || port_list == NULL) {
        const struct error e = {ERROR_MEMORY, "done, but there is no memory for the report"};
        control_reply_error(client, &e, result->id);
        goto out;
    }
    message.id = (char *)(uintptr_t)result->id;
    message.dims = torus_format(t, dims);
    message.algorithm = (char *)(uintptr_t)result->algorithm;
    message.operation = (char *)(uintptr_t)operation_name(result->operation);
    message.mode = (char *)(uintptr_t)mode_name(result->mode);
    message.nodes = t->nodes;
    message.block_bytes = result->block_bytes;
    message.nanoseconds = result->nanoseconds;
    message.bound = result->bound;
    message.link_mbit = set->link_mbit;
    message.startups = result->startups;
    message.transmission = result->transmission;
    message.rounds = result->rounds;
    message.blocks_delivered = result->blocks_delivered;
    message.bytes_delivered = result->bytes_delivered;
    message.repeat = result->repeat;
    message.n_each_nanoseconds = result->each != NULL ? result->repeat : 0;
    message.each_nanoseconds = (uint64_t *)(uintptr_t)result->each; /* packing only reads it */
    message.all_nanoseconds = result->all_ns;
    message.check = (Control__Check)result->check; /* or it would have failed */
    message.n_node = result->node != NULL ? t->nodes : 0;
    message.node = nodes;
    for (unsigned p = 0; p < ports; p++)
        torus_port_name(p, name[p]);
    for (uint32_t i = 0; i < message.n_node; i++) {
        const struct exchange_node_report *from = &result->node[i];
        nodes[i] = &node[i];
        control__exchange_result__node__init(&node[i]);
        node[i].rank = from->rank;
        node[i].nanoseconds = from->nanoseconds;
        node[i].most_starts = from->most_starts;
        node[i].most_ends = from->most_ends;
        node[i].port = &port_list[(size_t)i * ports];
        for (unsigned p = 0; p < ports; p++) {
            Control__ExchangeResult__Port *to = &port[(size_t)i * ports + p];
            if (torus_neighbour(t, i, p) == TORUS_NO_NODE)
                continue;
            control__exchange_result__port__init(to);
            to->name = name[p];
            to->tx_bytes = from->port[p].tx_bytes;
            to->rx_bytes = from->port[p].rx_bytes;
            to->tx_blocks = from->port[p].tx_blocks;
            to->combined_messages = from->port[p].combined_messages;
            to->min_rtt_us = from->link[p].min_rtt_us;
            to->rate_bps = from->link[p].rate_bps;
            node[i].port[node[i].n_port++] = to;
        }
    }
    reply.kind_case = CONTROL__REPLY__KIND_EXCHANGE;
    reply.exchange = &message;
    control_reply(client, &reply);
out:
    free(node);
    free(nodes);
    free(port);
    free(port_list);
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct control_client *client = context;
    const char *id = exchange_id(client->exchange);

    (void)uv_timer_stop(&client->progress);
    if (result != NULL)
        send_result(client, result);
    else
        control_reply_error(client, e, id);
    client->exchange = NULL;
}

void control_exchange(struct control_client *client, const Control__Request *request)
{
    const struct exchange_client me = {client, on_ended};
    struct spec spec;
    struct error e;

    client->exchange_id[0] = '\0';
    if (request->exchange->spec == NULL) {
        (void)error_set(&e, ERROR_PROTOCOL, "the request does not say what to exchange");
    } else if (spec_unpack(&spec, request->exchange->spec, &e) == 0) {
        client->exchange = exchange_start(client->server->set.exchanges, &spec, &me, &e);
        spec_free(&spec);
    }
    if (client->exchange == NULL) {
        control_reply_error(client, &e, NULL);
        return;
    }
    say_accepted(client);
    if (client->exchange != NULL)
        (void)uv_timer_start(&client->progress, on_progress, PROGRESS_MS, PROGRESS_MS);
}

void control_exchange_abandon(struct control_client *client)
{
    if (client->exchange != NULL)
        exchange_abandon(client->exchange);
    client->exchange = NULL;
}
