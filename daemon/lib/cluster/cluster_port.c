#include "daemon/lib/cluster/cluster_port.h"

#include <arpa/inet.h>
#include <stdio.h>

bool cluster_has_cable(const struct cluster *c, uint32_t rank, unsigned port)
{
    return torus_neighbour(&c->routes.torus, rank, port) != TORUS_NO_NODE;
}

const char *cluster_port_address(const struct cluster *c, uint32_t rank, unsigned port,
                                 bool as_given, char text[CLUSTER_PORT_TEXT_SIZE])
{
    const struct torus *t = &c->routes.torus;
    const struct cable_end *own = &c->hosts[rank].port[port], *listening = own;
    char address[INET_ADDRSTRLEN];

    if (torus_port_dials(t, rank, port))
        listening = &c->hosts[torus_neighbour(t, rank, port)].port[torus_port_opposite(t, port)];
    if (as_given && listening->address.s_addr != 0)
        (void)snprintf(text, CLUSTER_PORT_TEXT_SIZE, "%s:%u on %s",
                       inet_ntop(AF_INET, &listening->address, address, sizeof address), c->port,
                       own->interface);
    else
        (void)snprintf(text, CLUSTER_PORT_TEXT_SIZE, "[" CLUSTER_LISTENING_ADDRESS "%%%s]:%u",
                       own->interface, c->port);
    return text;
}
