#include "daemon/control/internal.h"
#include "daemon/net/addresses/address.h"

static void on_links(struct control_client *client, const Control__Request *request)
{
    const struct control_setup *set = &client->server->set;
    struct port_info info[TORUS_MAX_PORTS];
    char name[TORUS_MAX_PORTS][TORUS_PORT_NAME_SIZE], address[TORUS_MAX_PORTS][ENDPOINT_TEXT_SIZE];
    Control__Links__Link link[TORUS_MAX_PORTS], *list[TORUS_MAX_PORTS];
    Control__Links links = CONTROL__LINKS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    (void)request;
    for (unsigned port = 0; port < torus_ports(router_torus(set->router)); port++) {
        Control__Links__Link *l = &link[port];
        router_port_info(set->router, port, &info[port]);
        if (info[port].state == PORT_UNUSED)
            continue;
        list[links.n_link++] = l;
        control__links__link__init(l);
        endpoint_format(&set->endpoint[port], address[port], sizeof address[port]);
        l->port = port;
        l->name =
            torus_port_name(router_torus(set->router), router_rank(set->router), port, name[port]);
        l->neighbour = info[port].neighbour;
        l->address = address[port];
        l->interface = (char *)(uintptr_t)tcp_interface(set->tcp, port);
        l->up = info[port].state == PORT_UP;
        l->state = (char *)(uintptr_t)port_state_name(info[port].state);
        l->reason = info[port].reason;
        l->tx_bytes = info[port].tx_bytes;
        l->rx_bytes = info[port].rx_bytes;
        l->rtt_us = info[port].stat.rtt_us;
        l->rate_bps = info[port].stat.rate_bps;
        l->up_ms = info[port].up_ns / MILLISECONDS;
        l->connects = info[port].connects;
        l->key = info[port].key;
        l->encrypted = info[port].encrypted;
        l->held_ms = info[port].held_ns / MILLISECONDS;
    }
    links.link = list;
    links.heartbeat_ms = (uint32_t)(router_heartbeat(set->router) / MILLISECONDS);
    links.silence_ms = (uint32_t)(router_silence(set->router) / MILLISECONDS);
    reply.kind_case = CONTROL__REPLY__KIND_LINKS;
    reply.links = &links;
    control_reply(client, &reply);
}

/* The exchange now ends, and its result is the answer. If no exchange is under way, this request has crossed
 * the last reply. */
static void on_cancel(struct control_client *client, const Control__Request *request)
{
    const struct error cancelled = {.code = ERROR_CANCELLED, .text = "cancelled"};

    (void)request;
    if (client->exchange != NULL) {
        exchange_cancel(client->exchange);
    } else if (client->candidates != NULL) {
        control_candidates_forget(client);
        control_reply_error(client, &cancelled, NULL);
    }
}

static const struct {
    Control__Request__KindCase kind;
    enum access access; /* the least access that the request needs */
    void (*answer)(struct control_client *client, const Control__Request *request);
} requests[] = {
    {CONTROL__REQUEST__KIND_STATUS, ACCESS_READ, control_status},
    {CONTROL__REQUEST__KIND_LINKS, ACCESS_READ, on_links},
    {CONTROL__REQUEST__KIND_EXCHANGE, ACCESS_EXCHANGE, control_exchange},
    {CONTROL__REQUEST__KIND_CANDIDATES, ACCESS_READ, control_candidates},
    {CONTROL__REQUEST__KIND_CALIBRATION, ACCESS_READ, control_calibration},
    {CONTROL__REQUEST__KIND_CANCEL, ACCESS_READ, on_cancel},
    {CONTROL__REQUEST__KIND_SCHEDULE, ACCESS_EXCHANGE, control_schedule},
};

void control_request(struct control_client *client, const Control__Request *request)
{
    const struct error busy = {.code = ERROR_PROTOCOL,
                               .text = "a connection takes one request at a time, and torusd has "
                                       "not answered the last one yet: wait for its reply"};

    if (client->state_only && request->kind_case != CONTROL__REQUEST__KIND_STATUS &&
        request->kind_case != CONTROL__REQUEST__KIND_LINKS) {
        control_client_no_place(client);
        return;
    }
    if (request->kind_case != CONTROL__REQUEST__KIND_CANCEL &&
        (client->exchange != NULL || client->candidates != NULL)) {
        control_reply_error(client, &busy, NULL);
        return;
    }
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (requests[i].kind == request->kind_case) {
            if (control_may(client, requests[i].access))
                requests[i].answer(client, request);
            return;
        }
}
