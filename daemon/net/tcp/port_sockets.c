#include "daemon/net/tcp/port_sockets.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/net/tcp/connection.h"
#include "daemon/net/tcp/host_changes.h"
#include "daemon/net/tcp/reading.h"
#include "daemon/router/links/admission.h"
#include "daemon/router/ports/port.h"

#define LOOK_AGAIN_MS 2000  /* while a port cannot listen */
#define KEPT_BACK_A_PORT 2u /* descriptors: for the link, and for a stranger before it */

void port_sockets_watch_carrier(struct connection *c)
{
    const struct endpoint *endpoint = c->tcp->door[c->port].endpoint;
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

static void on_connected(struct door *door, int fd)
{
    struct tcp *tcp = door->user->context;
    const bool dialled = !door->listens;
    struct sockaddr_storage peer;
    int length = sizeof peer;
    char address[ADDRESS_TEXT_SIZE] = "?";

    if (tcp->router == NULL) {
        (void)close(fd);
        return;
    }
    struct connection *c = connection_new(tcp, door->port, fd);
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
        router_dial_failed(tcp->router, door->port, "no room for another connection");
}

/* Before there has been a link, watches the interface of the way to the dialled address, or of the address
 * that the port listens on. */
static void on_placed(struct door *door, const struct sockaddr *local, const struct sockaddr *peer)
{
    const struct tcp *tcp = door->user->context;
    const struct carrier_ends ends = {local, peer, door->endpoint->interface,
                                      door->endpoint->bound};

    if (tcp->carrier != NULL && !carrier_has_peer(tcp->carrier, door->port))
        carrier_watch(tcp->carrier, door->port, &ends);
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

    door_open(&tcp->door[port]);
}

void port_sockets_tell_doors(struct tcp *tcp)
{
    for (unsigned port = 0; port < TORUS_MAX_PORTS && tcp->router != NULL; port++) {
        struct door *door = &tcp->door[port];
        if (!door->changed || door->dial != NULL || door->lookup != NULL)
            continue;
        door->changed = false;
        if (!door->listens && door->reason[0] != '\0')
            router_dial_failed(tcp->router, port, door->reason);
        else if (door->listens)
            router_listening(tcp->router, port, door->listening ? NULL : door->reason);
        if (door->listens && !door->listening)
            host_changes_look_in(tcp, LOOK_AGAIN_MS);
    }
}

/* Checks the errors of listening that end the start: another program, most likely another torusd, listens
 * on this address; or the port is privileged. */
static int check_listens(const struct door *door, struct error *e)
{
    char text[ENDPOINT_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE];

    if (door->listening || (door->error != EADDRINUSE && door->error != EACCES))
        return 0;
    endpoint_format(door->endpoint, text, sizeof text);
    return error_set(e, ERROR_IO, "port %s: cannot listen on %s: %s",
                     torus_port_name(door->port, name), text,
                     uv_strerror(uv_translate_sys_error(door->error)));
}

int port_sockets_open_doors(struct tcp *tcp, uint32_t rank, struct error *e)
{
    static const struct door_user user = {.connected = on_connected,
                                          .placed = on_placed,
                                          .opened = on_opened,
                                          .closed = port_sockets_closed};

    tcp->user = user;
    tcp->user.context = tcp;
    for (unsigned port = 0; port < torus_ports(tcp->set.torus); port++) {
        struct door *door = &tcp->door[port];
        if (torus_neighbour(tcp->set.torus, rank, port) == TORUS_NO_NODE)
            continue;
        *door = (struct door){.loop = tcp->set.loop,
                              .endpoint = &tcp->set.endpoint[port],
                              .options = &tcp->options,
                              .user = &tcp->user,
                              .reserve = &tcp->reserve,
                              .port = port,
                              .listens = torus_port_direction(port) < 0};
        tcp->reserve.wanted += KEPT_BACK_A_PORT;
        if (!door->listens)
            continue;
        door_open(door);
        if (check_listens(door, e) != 0)
            return -1;
    }
    return 0;
}
