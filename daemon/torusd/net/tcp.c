#include "daemon/torusd/net/tcp.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/lib/net/link_speed.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/net/cipher.h"
#include "daemon/torusd/net/internal.h"
#include "daemon/torusd/net/tcp_stat.h"
#include "daemon/torusd/router/link.h"
#include "daemon/torusd/router/port.h"

#define RECHECK_SOON_MS 50 /* after reports of changes, because many arrive together */

/* Reads the speeds of all interfaces in a thread. */
static void on_read_speeds(uv_work_t *work)
{
    struct speeds *s = &((struct tcp *)work->data)->speeds;

    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        s->mbit[port] = link_speed_mbit(LINK_SPEED_FOLDER, s->interface[port]);
}

static void on_speeds_read(uv_work_t *work, int status)
{
    struct tcp *tcp = work->data;
    struct speeds *s = &tcp->speeds;

    s->running = false;
    for (unsigned port = 0; status == 0 && port < tcp->ports && tcp->router != NULL; port++)
        router_set_negotiated(tcp->router, port, s->mbit[port] * 1000);
    tcp_release(tcp);
}

/* Reads the speeds if that is due: when a link has come up, or interfaces have changed. A card negotiates again when its
 * cable was pulled, so that its interface is reported. */
static void read_speeds(struct tcp *tcp)
{
    struct speeds *s = &tcp->speeds;

    if (!s->due || s->running || tcp->carrier == NULL)
        return;
    s->due = false;
    for (unsigned port = 0; port < tcp->ports; port++)
        (void)snprintf(s->interface[port], sizeof s->interface[port], "%s",
                       carrier_interface(tcp->carrier, port));
    s->work.data = tcp;
    s->running = uv_queue_work(tcp->set.loop, &s->work, on_read_speeds, on_speeds_read) == 0;
    tcp->handles += s->running;
}

static void on_recheck(uv_timer_t *timer)
{
    struct tcp *tcp = timer->data;

    tcp->speeds.due = true;
    for (unsigned port = 0; port < tcp->ports && tcp->router != NULL; port++)
        if (tcp->connector[port].endpoint != NULL && connector_recheck(&tcp->connector[port]))
            router_dial_again(tcp->router, port);
}

/* Rechecks all connectors after that many milliseconds, unless a recheck is due earlier. */
static void host_changes_recheck_in(struct tcp *tcp, uint64_t milliseconds)
{
    if (!uv_is_active((uv_handle_t *)&tcp->recheck) ||
        uv_timer_get_due_in(&tcp->recheck) > milliseconds)
        (void)uv_timer_start(&tcp->recheck, on_recheck, milliseconds, 0);
}

static void on_carrier_changed(void *context, unsigned port, const char *fault)
{
    struct tcp *tcp = context;

    if (tcp->router != NULL)
        router_carrier(tcp->router, port, fault);
}

static void on_carrier_reported(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing)
        host_changes_recheck_in(tcp, RECHECK_SOON_MS);
}

/* Returns the functions that carrier.h calls for these connections; `closed` is the caller's. */
static struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context))
{
    return (struct carrier_user){on_carrier_changed, on_carrier_reported, closed, tcp};
}

#define RECHECK_MS 2000     /* while a port cannot listen */
#define KEPT_BACK_A_PORT 2u /* descriptors: for the link, and one unproved connection */

/* Watches the carrier of the interface that a connection uses, according to its addresses. */
static void port_sockets_watch_carrier(struct connection *c)
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

/* To be called when a part of a connector, or the carrier watch, has been closed. */
static void port_sockets_closed(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing)
        reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    tcp_release(tcp);
}

/* As router_io.dial(). */
static void port_sockets_dial(void *context, unsigned port)
{
    struct tcp *tcp = context;

    connector_open(&tcp->connector[port]);
}

/* Tells the router which dials and listeners have ended, and why. (They end in places where the router must
 * not be called.) */
static void port_sockets_report(struct tcp *tcp)
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

/* Makes the connectors of all ports that have a neighbour; `-` ports begin to listen. Returns 0, or -1 with
 * *e: another program listens on the address of a port, or only root may. */
static int port_sockets_open(struct tcp *tcp, uint32_t rank, struct error *e)
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
                                        .options = &tcp->rate[port].options,
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

/* Happy path of a connection:
 *
 *     dial or accept -> router_connected() -> reads: link_received()
 *                                          -> tcp_flush(): link_next() -> write
 *                                          -> end of file: link_closed()
 *
 * Failure modes: a dial fails (router_dial_failed(); the router dials again later), or a port cannot listen
 * (router_listening(); connector.h says when it tries again). End of file, a read or a write error:
 * link_closed(). The router closes the connection (closing_begin()): a last message may still leave, after the
 * write under way, and the connection lingers until the peer has read it, for at most LINGER_MS; the number
 * of lingering connections is limited. The carrier is lost: router_carrier(), which closes the connection. No
 * descriptors are left: those held in reserve for links are used. In all cases a connection is freed only
 * when all its handles are closed. */

static void io_wake(void *context, void *connection)
{
    (void)context;
    connection_mark_dirty(connection);
}

bool tcp_flush(struct tcp *tcp)
{
    struct connection *now, *c;
    bool more = tcp->carrier != NULL && carrier_report_changes(tcp->carrier);

    if (!more)
        read_speeds(tcp);
    port_sockets_report(tcp);
    now = tcp->dirty;
    tcp->dirty = NULL;
    while ((c = now) != NULL) {
        now = c->next_dirty;
        c->dirty = false;
        if (c->link != NULL)
            reading_resume(c);
        if (writing_flush(c)) {
            connection_mark_dirty(c);
            more = true;
        }
    }
    return more || tcp->dirty != NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    tcp_release(handle->data);
}

static uint64_t io_now(void *context)
{
    (void)context;
    return uv_hrtime();
}

static void io_random(void *context, void *buffer, size_t size)
{
    (void)context;
    /* used for challenges and keys, so the bytes must come from the system */
    randombytes_buf(buffer, size);
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection *c = connection;
    uv_os_fd_t fd;

    (void)context;
    c->rate.packet = (uint32_t)connection_packet(c);
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        tcp_stat(fd, &c->rate, uv_hrtime(), stat);
}

static int io_encrypt(void *context, void *connection, const struct link_keys *keys)
{
    struct connection *c = connection;

    (void)context;
    c->cipher = cipher_new(keys);
    return c->cipher != NULL ? 0 : -1;
}

/* Only a proved connection decides which interface is watched, because strangers may connect through any
 * interface. */
static void io_proved(void *context, void *connection)
{
    struct connection *c = connection;
    uv_os_fd_t fd;

    (void)context;
    port_sockets_watch_carrier(c);
    c->tcp->speeds.due = true; /* its interface is known at the next flush */
    c->proved = true;
    c->rate_changes = c->tcp->rate[c->port].changes;
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        pacing_set_rate(&c->pacing, fd, c->tcp->rate[c->port].mbit);
}

struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e)
{
    unsigned ports = torus_ports(setup->torus);
    size_t size = sizeof(struct tcp) + ports * sizeof(struct connector);
    struct tcp *tcp = sodium_init() >= 0 ? calloc(1, size) : NULL;

    if (tcp != NULL)
        tcp->threads = io_threads_new(setup->loop, setup->io_threads, ports);
    if (tcp == NULL || tcp->threads == NULL) {
        free(tcp);
        (void)error_set(e, ERROR_MEMORY, "out of memory for the connections of links");
        return NULL;
    }
    const struct carrier_user user = host_changes_user(tcp, port_sockets_closed);
    tcp->set = *setup;
    tcp->ports = ports;
    pipes_init(&tcp->pipes, ports);
    tcp->set.send_mbit = NULL; /* copied next */
    for (unsigned port = 0; port < ports; port++) {
        tcp->rate[port].options.congestion = setup->congestion;
        tcp->rate[port].options.hop_limit = setup->hop_limit != 0 ? setup->hop_limit : HOPS_DEFAULT;
        tcp_set_rate(tcp, port, setup->send_mbit[port]);
    }
    (void)uv_timer_init(setup->loop, &tcp->recheck);
    tcp->recheck.data = tcp;
    tcp->handles = 2; /* this object itself, and the timer */
    tcp->carrier = carrier_open(setup->loop, &user, ports);
    tcp->handles += tcp->carrier != NULL;
    if (port_sockets_open(tcp, rank, e) != 0) {
        tcp_close(tcp);
        return NULL;
    }
    reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    *io = (struct router_io){
        .context = tcp,
        .now = io_now,
        .random = io_random,
        .dial = port_sockets_dial,
        .wake = io_wake,
        .close = closing_begin,
        .stat = io_stat,
        .encrypt = io_encrypt,
        .proved = io_proved,
    };
    return tcp;
}

void tcp_set_rate(struct tcp *tcp, unsigned port, double send_mbit)
{
    struct port_rate *rate = &tcp->rate[port];

    rate->mbit = send_mbit;
    rate->changes++;
    rate->options.slow = pacing_is_slow(send_mbit);
}

const char *tcp_interface(const struct tcp *tcp, unsigned port)
{
    const struct endpoint *endpoint = tcp->connector[port].endpoint;
    const char *used = tcp->carrier != NULL ? carrier_interface(tcp->carrier, port) : "";

    return used[0] == '\0' && endpoint != NULL ? endpoint->interface : used;
}

unsigned tcp_moves(const struct tcp *tcp)
{
    return tcp->carrier != NULL ? carrier_moves(tcp->carrier) : 0;
}

const char *tcp_missing(const struct tcp *tcp, unsigned port)
{
    return connector_missing(&tcp->connector[port]);
}

void tcp_attach(struct tcp *tcp, struct router *router)
{
    tcp->router = router;
}

void tcp_close(struct tcp *tcp)
{
    tcp->router = NULL;
    tcp->reserve.wanted = 0;
    for (unsigned port = 0; port < tcp->ports; port++)
        connector_close(&tcp->connector[port]);
    uv_close((uv_handle_t *)&tcp->recheck, on_timer_closed);
    if (tcp->carrier != NULL)
        carrier_close(tcp->carrier);
    tcp->carrier = NULL;
    tcp->closing = true;
    tcp_release(tcp);
}
