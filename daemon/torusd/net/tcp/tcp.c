/* Happy path of a connection:
 *
 *     dial or accept -> router_connected() -> reads: link_received()
 *                                          -> tcp_flush(): link_next() -> write
 *                                          -> end of file: link_closed()
 *
 * Failure modes: a dial fails (router_dial_failed(); the router dials again later), or a port cannot listen
 * (router_listening(); connector.h says when it tries again). End of file, a read or a write error:
 * link_closed(). The router closes the connection (closing.c): a last message may still leave, after the
 * write under way, and the connection lingers until the peer has read it, for at most LINGER_MS; the number
 * of lingering connections is limited. The carrier is lost: router_carrier(), which closes the connection. No
 * descriptors are left: those held in reserve for links are used. In all cases a connection is freed only
 * when all its handles are closed. */
#include "daemon/torusd/net/tcp/tcp.h"

#include <sodium.h>
#include <stdlib.h>

#include "daemon/lib/net/sockets/hops.h"
#include "daemon/torusd/net/tcp/cipher.h"
#include "daemon/torusd/net/tcp/closing.h"
#include "daemon/torusd/net/tcp/connection.h"
#include "daemon/torusd/net/tcp/host_changes.h"
#include "daemon/torusd/net/tcp/port_sockets.h"
#include "daemon/torusd/net/tcp/reading.h"
#include "daemon/torusd/net/tcp/tcp_stat.h"
#include "daemon/torusd/net/tcp/writing.h"

static void io_wake(void *context, void *connection)
{
    (void)context;
    connection_mark_dirty(connection);
}

bool tcp_flush(struct tcp *tcp)
{
    struct connection *now, *c;
    bool more = tcp->carrier != NULL && carrier_report_changes(tcp->carrier);

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
    if (c->tcp->slow && uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        pacing_start(&c->pacing, fd, c->tcp->set.link_mbit);
}

struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e)
{
    unsigned ports = torus_ports(setup->torus);
    size_t size = sizeof(struct tcp) + ports * sizeof(struct connector);
    struct tcp *tcp = sodium_init() >= 0 ? calloc(1, size) : NULL;

    if (tcp == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the connections of links");
        return NULL;
    }
    const struct carrier_user user = host_changes_user(tcp, port_sockets_closed);
    tcp->set = *setup;
    tcp->ports = ports;
    tcp->slow = pacing_is_slow(setup->link_mbit);
    tcp->options = (struct socket_options){setup->congestion, tcp->slow,
                                           setup->hop_limit != 0 ? setup->hop_limit : HOPS_DEFAULT};
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
