/* The request for the links of the node. */
#include "daemon/lib/net/address.h"
#include "daemon/torusd/control/internal.h"

struct link_texts {
    struct port_info info;
    char name[TORUS_PORT_NAME_SIZE], address[ENDPOINT_TEXT_SIZE];
};

#define KBIT UINT64_C(1000)
#define MBIT 1e6

/* Fills *to, which borrows *texts. Returns false if the port has no link. */
static bool fill_link(const struct control_setup *set, unsigned port, Control__Links__Link *to,
                      struct link_texts *texts)
{
    const struct torus *t = router_torus(set->router);
    const struct port_info *from = &texts->info;

    router_port_info(set->router, port, &texts->info);
    if (from->state == PORT_UNUSED)
        return false;
    control__links__link__init(to);
    endpoint_format(&set->endpoint[port], texts->address, sizeof texts->address);
    (void)torus_port_name(t, router_rank(set->router), port, texts->name);
    CONTROL_LINK(CONTROL_FILL)
    to->up = from->state == PORT_UP;
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
    control_reply(client, CONTROL_REPLY(LINKS, links, links));
}

void control_links(struct control_client *client, const Control__Request *request)
{
    (void)request;
    control_with_links(client->server, reply_links, client);
}
