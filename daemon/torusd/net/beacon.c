#include "daemon/torusd/net/beacon.h"

#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/net/address.h"
#include "proto/frame.h"
#include "proto/peer/peer_message.h"

#define INTERVAL_MS 2000
#define FIRST_MS 500
#define READ_MOST 32 /* most datagrams of one port that are read at a time */

static const char magic[8] = "torusd\0b";

/* The socket that sends and receives the beacons of one port. */
struct beacon_socket {
    uv_poll_t poll;
    struct beacon *beacon;
    unsigned port;
    bool open, closing;
    int fd;
    unsigned index; /* index of the interface */
};

struct beacon {
    uv_timer_t timer;
    const struct tcp *tcp;
    struct router *router;
    unsigned handles;
    bool stopping;
    unsigned ports; /* torus_ports() */
    struct beacon_socket socket[];
};

static void release_beacon(struct beacon *b)
{
    if (--b->handles == 0)
        free(b);
}

/* Returns the interface that only this port uses; "": it is not known, or another port uses it, so that its cable is not
 * this port's: the route to a neighbour whose cable is down may lead over another cable. */
static const char *own_interface(const struct beacon *b, unsigned port)
{
    const char *name = tcp_interface(b->tcp, port);

    for (unsigned other = 0; other < b->ports; other++)
        if (other != port && strcmp(tcp_interface(b->tcp, other), name) == 0)
            return "";
    return name;
}

/* --- datagrams --- */

/* Packs a hello without keys, after the magic bytes. Returns its length. */
static size_t pack_beacon(const struct beacon *b, unsigned port,
                          uint8_t out[FRAME_MAX_STRANGER_HEAD])
{
    char dims[TORUS_TEXT_SIZE];
    const struct peer_hello hello = {.version = PROTOCOL_VERSION,
                                     .dims = torus_format(router_torus(b->router), dims),
                                     .rank = router_rank(b->router),
                                     .port = port,
                                     .boot = router_boot(b->router),
                                     .minor = router_minor(b->router)};
    size_t length =
        peer_hello_write(&hello, out + sizeof magic, FRAME_MAX_STRANGER_HEAD - sizeof magic);

    memcpy(out, magic, sizeof magic);
    return length > 0 ? sizeof magic + length : 0;
}

static void hear_beacon(void *context, const struct peer_hello *hello)
{
    const struct beacon_socket *m = context;
    const struct beacon *b = m->beacon;
    char dims[TORUS_TEXT_SIZE];
    bool own = hello->boot == router_boot(b->router) && hello->port == m->port;

    if (!own && hello->version == PROTOCOL_VERSION && own_interface(b, m->port)[0] != '\0' &&
        strcmp(hello->dims, torus_format(router_torus(b->router), dims)) == 0)
        router_sighted(b->router, m->port,
                       &(struct sighting){hello->rank, hello->port, hello->boot});
}

static void take_datagram(struct beacon_socket *m, const uint8_t *bytes, size_t length)
{
    if (length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0)
        (void)peer_hello_read(bytes + sizeof magic, length - sizeof magic, hear_beacon, m);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct beacon_socket *m = poll->data;
    uint8_t bytes[FRAME_MAX_STRANGER_HEAD];

    (void)status, (void)events;
    for (int i = 0; i < READ_MOST && !m->closing; i++) {
        ssize_t length = recv(m->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length < 0)
            return;
        take_datagram(m, bytes, (size_t)length);
    }
}

static void send_beacon(const struct beacon_socket *m)
{
    const struct sockaddr_in6 all = {.sin6_family = AF_INET6,
                                     .sin6_port = htons(BEACON_PORT),
                                     .sin6_addr = {{{0xff, 2, [15] = 1}}},
                                     .sin6_scope_id = m->index};
    uint8_t bytes[FRAME_MAX_STRANGER_HEAD];
    size_t length = pack_beacon(m->beacon, m->port, bytes);

    /* A beacon that cannot be sent now may be sent the next time. */
    (void)sendto(m->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&all,
                 sizeof all);
}

/* --- ports --- */

static int open_socket(unsigned index)
{
    const struct sockaddr_in6 all = {.sin6_family = AF_INET6,
                                     .sin6_port = htons(BEACON_PORT),
                                     .sin6_addr = {{{0xff, 2, [15] = 1}}},
                                     .sin6_scope_id = index};
    const int on = 1, off = 0;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index) == 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof off) == 0 &&
        bind(fd, (const struct sockaddr *)&all, sizeof all) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void on_mouth_closed(uv_handle_t *handle)
{
    struct beacon_socket *m = handle->data;

    (void)close(m->fd);
    m->open = m->closing = false;
    release_beacon(m->beacon);
}

static void stop_beacons(struct beacon_socket *m)
{
    if (!m->open || m->closing)
        return;
    m->closing = true;
    uv_close((uv_handle_t *)&m->poll, on_mouth_closed);
}

static void start_beacons(struct beacon_socket *m, unsigned index)
{
    m->fd = open_socket(index);
    if (m->fd < 0)
        return;
    if (uv_poll_init(m->beacon->timer.loop, &m->poll, m->fd) != 0) {
        (void)close(m->fd);
        return;
    }
    m->poll.data = m;
    m->open = true;
    m->index = index;
    m->beacon->handles++;
    (void)uv_poll_start(&m->poll, UV_READABLE, on_readable);
}

/* Returns the interface of a port that has no link; 0: the port has a link, or no interface of its own that is known. */
static unsigned wanted_interface(const struct beacon *b, unsigned port)
{
    struct port_info info;
    const char *name = own_interface(b, port);

    router_port_info(b->router, port, &info);
    if (info.state == PORT_UNUSED || info.state == PORT_UP || name[0] == '\0' ||
        strcmp(name, "lo") == 0)
        return 0;
    return interface_index(name);
}

static void on_time(uv_timer_t *timer)
{
    struct beacon *b = timer->data;

    for (unsigned port = 0; port < b->ports; port++) {
        struct beacon_socket *m = &b->socket[port];
        const unsigned index = wanted_interface(b, port);
        if (m->open && m->index != index) {
            stop_beacons(m);
            router_unsighted(b->router, port);
        }
        if (index != 0 && !m->open)
            start_beacons(m, index);
        if (m->open && !m->closing)
            send_beacon(m);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    release_beacon(handle->data);
}

struct beacon *beacon_start(uv_loop_t *loop, const struct tcp *tcp, struct router *router)
{
    unsigned ports = torus_ports(router_torus(router));
    struct beacon *b = calloc(1, sizeof *b + ports * sizeof *b->socket);

    if (b == NULL)
        return NULL;
    b->tcp = tcp;
    b->router = router;
    b->ports = ports;
    b->handles = 1;
    (void)uv_timer_init(loop, &b->timer);
    b->timer.data = b;
    for (unsigned port = 0; port < b->ports; port++) {
        b->socket[port].beacon = b;
        b->socket[port].port = port;
    }
    (void)uv_timer_start(&b->timer, on_time, FIRST_MS, INTERVAL_MS);
    return b;
}

void beacon_stop(struct beacon *b)
{
    if (b == NULL)
        return;
    for (unsigned port = 0; port < b->ports; port++)
        stop_beacons(&b->socket[port]);
    uv_close((uv_handle_t *)&b->timer, on_timer_closed);
}
