/* The request for the links of the node. */
#include "daemon/lib/net/address.h"
#include "daemon/torusd/control/internal.h"

struct link_texts {
    struct port_info info;
    char name[TORUS_PORT_NAME_SIZE], address[ENDPOINT_TEXT_SIZE];
};

/* Fills *l, which borrows *texts. Returns false if the port has no link. */
static bool fill_link(const struct control_setup *set, unsigned port, Control__Links__Link *l,
                      struct link_texts *texts)
{
    const struct torus *t = router_torus(set->router);
    const struct port_info *info = &texts->info;

    router_port_info(set->router, port, &texts->info);
    if (info->state == PORT_UNUSED)
        return false;
    control__links__link__init(l);
    endpoint_format(&set->endpoint[port], texts->address, sizeof texts->address);
    l->port = port;
    l->name = torus_port_name(t, router_rank(set->router), port, texts->name);
    l->neighbour = info->neighbour;
    l->address = texts->address;
    l->interface = (char *)(uintptr_t)tcp_interface(set->tcp, port);
    l->up = info->state == PORT_UP;
    l->state = (char *)(uintptr_t)port_state_name(info->state);
    l->reason = texts->info.reason;
    l->tx_bytes = info->tx_bytes;
    l->rx_bytes = info->rx_bytes;
    l->rtt_us = info->stat.rtt_us;
    l->rate_bps = info->stat.rate_bps;
    l->up_ms = info->up_ns / MILLISECONDS;
    l->connects = info->connects;
    l->key = texts->info.key;
    l->encrypted = info->encrypted;
    l->held_ms = info->held_ns / MILLISECONDS;
    l->queue_bytes = info->queue_bytes;
    l->unacked_bytes = info->stat.unacked;
    l->retransmits = info->stat.retransmits;
    l->mtu = info->stat.mtu;
    l->hour_ms = info->hour_ns / MILLISECONDS;
    l->hour_tx_bytes = info->hour_tx_bytes;
    l->hour_retransmits = info->hour_retransmits;
    l->hour_connects = info->hour_connects;
    return true;
}

void control_with_links(const struct control_server *server,
                        void (*use)(void *context, Control__Links *links), void *context)
{
    const struct control_setup *set = &server->set;
    struct link_texts texts[TORUS_MAX_PORTS];
    Control__Links__Link link[TORUS_MAX_PORTS], *list[TORUS_MAX_PORTS];
    Control__Links links = CONTROL__LINKS__INIT;

    for (unsigned port = 0; port < torus_ports(router_torus(set->router)); port++)
        if (fill_link(set, port, &link[port], &texts[port]))
            list[links.n_link++] = &link[port];
    links.link = list;
    links.heartbeat_ms = (uint32_t)(router_heartbeat(set->router) / MILLISECONDS);
    links.silence_ms = (uint32_t)(router_silence(set->router) / MILLISECONDS);
    use(context, &links);
}

static void reply_links(void *client, Control__Links *links)
{
    Control__Reply reply = CONTROL__REPLY__INIT;

    reply.kind_case = CONTROL__REPLY__KIND_LINKS;
    reply.links = links;
    control_reply(client, &reply);
}

void control_links(struct control_client *client, const Control__Request *request)
{
    (void)request;
    control_with_links(client->server, reply_links, client);
}
