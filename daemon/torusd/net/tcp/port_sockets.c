#include "daemon/torusd/net/tcp/port_sockets.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/torusd/net/tcp/connection.h"
#include "daemon/torusd/net/tcp/host_changes.h"
#include "daemon/torusd/net/tcp/reading.h"
#include "daemon/torusd/router/link.h"
#include "daemon/torusd/router/port.h"

#define RECHECK_MS 2000     /* while a port cannot listen */
#define KEPT_BACK_A_PORT 2u /* descriptors: for the link, and one unproved connection */

void port_sockets_watch_carrier(struct connection *c)
{
    const struct endpoint *endpoint = c->tcp->connector[c->port].endpoint;
    struct sockaddr_storage local, peer;
    int local_size = sizeof local, peer_size = sizeof peer;

    if (c->tcp->carrier == NULL ||
        uv_tcp_getsockname(&c->socket, (struct sockaddr *)&local, &local_size) != 0 ||
        uv_tcp_getpeername(&c->socket, (struct sockaddr *)&peer, &peer_size) != 0)
        return;
    const struct carrier_ends ends = {(struct sockaddr *)&local, (struct sockaddr *)&peer,
                                      endpoint->interface, endpoint->bound};
    carrier_watch(c->tcp->carrier, c->port, &ends);
}

static void on_connected(struct connector *connector, int fd)
{
    struct tcp *tcp = connector->user->context;
    const bool dialled = !connector->listens;
    struct sockaddr_storage peer;
    int length = sizeof peer;
    char address[ADDRESS_TEXT_SIZE] = "?";

    if (tcp->router == NULL) {
        (void)close(fd);
        return;
    }
    struct connection *c = connection_new(tcp, connector->port, fd);
    if (c != NULL) {
        if (uv_tcp_getpeername(&c->socket, (struct sockaddr *)&peer, &length) == 0)
            address_format((struct sockaddr *)&peer, address, sizeof address);
        c->link = router_connected(tcp->router, c->port, dialled, c, address);
        if (c->link != NULL && reading_start(c) == 0)
            return;
    }
    const bool unwanted = c == NULL || c->link == NULL;
    if (c != NULL)
        connection_broken(c, "cannot read from its socket");
    if (unwanted && dialled)
        router_dial_failed(tcp->router, connector->port, "no room for another connection");
}

/* Until the port has had a link, watches the interface that leads to the dialled address, or that has the
 * address on which the port listens. */
static void on_address_known(struct connector *connector, const struct sockaddr *local,
                             const struct sockaddr *peer)
{
    const struct tcp *tcp = connector->user->context;
    const struct carrier_ends ends = {local, peer, connector->endpoint->interface,
                                      connector->endpoint->bound};

    if (tcp->carrier != NULL && !carrier_has_peer(tcp->carrier, connector->port))
        carrier_watch(tcp->carrier, connector->port, &ends);
}

static void on_opened(void *context)
{
    ((struct tcp *)context)->handles++;
}

void port_sockets_closed(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing)
        reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    tcp_release(tcp);
}

void port_sockets_dial(void *context, unsigned port)
{
    struct tcp *tcp = context;

    connector_open(&tcp->connector[port]);
}

void port_sockets_report(struct tcp *tcp)
{
    for (unsigned port = 0; port < tcp->ports && tcp->router != NULL; port++) {
        struct connector *connector = &tcp->connector[port];
        if (!connector->changed || connector->dial != NULL || connector->lookup != NULL)
            continue;
        connector->changed = false;
        if (!connector->listens && connector->reason[0] != '\0')
            router_dial_failed(tcp->router, port, connector->reason);
        else if (connector->listens)
            router_listening(tcp->router, port, connector->listening ? NULL : connector->reason);
        if (connector->listens && !connector->listening)
            host_changes_recheck_in(tcp, RECHECK_MS);
    }
}

/* Checks for the two errors of listening that end the start of the daemon: another program (most likely
 * another torusd) listens on this address, or the port is privileged. */
static int check_listens(const struct tcp *tcp, uint32_t rank, const struct connector *connector,
                         struct error *e)
{
    char text[ENDPOINT_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE];

    if (connector->listening || (connector->error != EADDRINUSE && connector->error != EACCES))
        return 0;
    endpoint_format(connector->endpoint, text, sizeof text);
    return error_set(e, ERROR_IO, "port %s: cannot listen on %s: %s",
                     torus_port_name(tcp->set.torus, rank, connector->port, name), text,
                     uv_strerror(uv_translate_sys_error(connector->error)));
}

int port_sockets_open(struct tcp *tcp, uint32_t rank, struct error *e)
{
    static const struct connector_user user = {.connected = on_connected,
                                               .address_known = on_address_known,
                                               .opened = on_opened,
                                               .closed = port_sockets_closed};

    tcp->user = user;
    tcp->user.context = tcp;
    for (unsigned port = 0; port < torus_ports(tcp->set.torus); port++) {
        struct connector *connector = &tcp->connector[port];
        if (torus_neighbour(tcp->set.torus, rank, port) == TORUS_NO_NODE)
            continue;
        *connector = (struct connector){.loop = tcp->set.loop,
                                        .endpoint = &tcp->set.endpoint[port],
                                        .options = &tcp->options,
                                        .user = &tcp->user,
                                        .reserve = &tcp->reserve,
                                        .port = port,
                                        .listens = !torus_port_dials(tcp->set.torus, rank, port)};
        tcp->reserve.wanted += KEPT_BACK_A_PORT;
        if (!connector->listens)
            continue;
        connector_open(connector);
        if (check_listens(tcp, rank, connector, e) != 0)
            return -1;
    }
    return 0;
}
