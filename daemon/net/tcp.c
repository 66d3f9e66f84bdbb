/* Happy path of a connection:
 *
 *     dial/accept -> router_connected -> [read -> link_received | prepare -> link_next -> write]*
 * -> EOF -> link_closed
 *
 * Failure modes: the dial fails (router_dial_failed, which dials again later); end of file, a read
 * or a write error (link_closed); the router closes (io_close: a last word may still leave, then
 * the connection lingers until the peer has read it). In every case the connection is freed when
 * its handles are closed, and never before. */
#include "daemon/net/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/log.h"
#include "daemon/net/tcp_stat.h"

#define BATCH_BYTES (128u * 1024u)
#define BATCH_BUFFERS 1024u
#define BATCHES_A_FLUSH 8u
#define UNSENT_MOST (64 * 1024) /* in the kernel: beyond it, order of departure is ours */
/* On links up to SLOW_MBIT that much takes milliseconds, in which what has farther to go comes in
 * and cannot overtake: there less is kept. (8x8 at 10 Mbit/s, blocks of 16 KiB streaming after a
 * pause: 1.4 times the bound with 64 KiB, 1.01 with 16.)
 *
 * Such links are paced at their rate: TCP then leaves two packets at most with the device. Left to
 * its window it queues hundreds there, and the other direction's acknowledgements behind them: with
 * a round trip of 0.3 s a window that is small, after a loss or at the start, stays small for
 * seconds. (4x4 at 50 Mbit/s, 64 KiB, first exchange of new connections: 91 ms paced, 127 not.)
 * Not so the first PACED_FROM bytes after a rest: what limits a link may let them through at once.
 *
 * Also a relay has nothing before all of a packet of the kernel, 64 KiB at the most, has come: a
 * frame that somebody passes on gets its own. (at2 in steps, 64 KiB on 4x4 at 50 Mbit/s, paced: 89
 * ms, and 112 in common packets.) */
#define SLOW_MBIT 500.0
#define UNSENT_SLOW (16 * 1024)
#define PACED_FROM (24u * 1024u)
#define LINGER_MS 1000
#define DIAL_SYN_RETRIES 2 /* about seven seconds */

struct connection {
    uv_tcp_t socket;
    uv_timer_t linger;
    uv_connect_t dialling;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct tcp *tcp;
    struct link *link;
    struct connection *next_dirty;
    unsigned port;
    unsigned handles; /* open */
    int dial_error;   /* when it could not even be tried */
    bool dirty, writing, closing, paced;
    double ahead;            /* bytes that the link cannot have carried yet, at its nominal rate, */
    uint64_t ahead_since_ms; /* when that was reckoned; both for slow links only */
    struct outgoing_queue batch; /* being written */
    struct outgoing *last;       /* to be written before it closes */
};

struct tcp {
    struct tcp_setup set;
    struct router *router;
    uv_tcp_t listener[TORUS_MAX_PORTS];
    bool listening[TORUS_MAX_PORTS];
    struct connection *dialling[TORUS_MAX_PORTS];
    struct connection *dirty;
    unsigned handles; /* listeners and connections that are not closed */
    bool closing;
    bool slow;
    struct outgoing_pool frames; /* of last words, once the router has gone */
};

static void release(struct tcp *tcp)
{
    if (--tcp->handles == 0 && tcp->closing) {
        outgoing_pool_close(&tcp->frames);
        free(tcp);
    }
}

static struct outgoing_pool *pool(struct tcp *tcp)
{
    return tcp->router != NULL ? router_outgoing(tcp->router) : &tcp->frames;
}

/* --- closing --- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct tcp *tcp = c->tcp;

    if (--c->handles > 0)
        return;
    outgoing_clear(pool(tcp), &c->batch);
    if (c->last != NULL)
        outgoing_free(pool(tcp), c->last);
    free(c);
    release(tcp);
}

static void close_handles(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    for (struct connection **at = &c->tcp->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == c) {
            *at = c->next_dirty;
            break;
        }
    uv_close((uv_handle_t *)&c->socket, on_handle_closed);
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
}

static void broken(struct connection *c, const char *reason)
{
    struct link *link = c->link;

    c->link = NULL;
    close_handles(c);
    if (link != NULL)
        link_closed(link, reason);
}

static void on_linger_over(uv_timer_t *timer)
{
    close_handles(timer->data);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;

    if (status != 0)
        close_handles(c);
}

/* Everything but the last word has been written. */
static void say_last(struct connection *c)
{
    if (c->last != NULL) {
        uv_buf_t buffer = uv_buf_init((char *)c->last->head, c->last->head_length);
        (void)uv_try_write((uv_stream_t *)&c->socket, &buffer, 1); /* or not: we are going */
    }
    /* Closing at once would reset the connection if the peer still sends, and lose the word. */
    c->shutdown.data = c;
    if (c->last == NULL || uv_shutdown(&c->shutdown, (uv_stream_t *)&c->socket, on_shutdown) != 0 ||
        uv_timer_start(&c->linger, on_linger_over, LINGER_MS, 0) != 0)
        close_handles(c);
}

static void io_close(void *context, void *connection, struct outgoing *last)
{
    struct connection *c = connection;

    (void)context;
    c->link = NULL;
    c->closing = true;
    c->last = last;
    if (last == NULL)
        close_handles(c);
    else if (!c->writing)
        say_last(c);
}

/* --- writing --- */

static void mark_dirty(struct connection *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->tcp->dirty;
    c->tcp->dirty = c;
}

static void io_wake(void *context, void *connection)
{
    (void)context;
    mark_dirty(connection);
}

static void on_write(uv_write_t *request, int status)
{
    struct connection *c = request->data;

    c->writing = false;
    outgoing_clear(pool(c->tcp), &c->batch);
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    if (status != 0)
        broken(c, uv_strerror(status));
    else if (c->closing)
        say_last(c);
    else
        mark_dirty(c);
}

static void pace(struct connection *c, bool paced)
{
    uint32_t bytes_per_second = paced ? (uint32_t)(c->tcp->set.link_mbit * 1e6 / 8) : UINT32_MAX;
    uv_os_fd_t fd;

    if (c->paced == paced || uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return;
    c->paced = paced;
    (void)setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
                     sizeof bytes_per_second);
}

/* So many bytes are about to be written: on a slow link, is it time to pace them? */
static void pace_for(struct connection *c, size_t bytes)
{
    uint64_t now = uv_now(c->tcp->set.loop);
    double rest = c->ahead - (double)(now - c->ahead_since_ms) * c->tcp->set.link_mbit * 1e3 / 8;

    c->ahead = (rest > 0 ? rest : 0) + (double)bytes;
    c->ahead_since_ms = now;
    if (c->ahead > PACED_FROM)
        pace(c, true);
    else if (rest <= 0)
        pace(c, false);
}

/* What of `buffers` follows after `done` bytes. */
static unsigned skip_written(uv_buf_t *buffers, unsigned count, size_t done)
{
    unsigned i = 0;

    while (i < count && done >= buffers[i].len)
        done -= buffers[i++].len;
    if (i < count) {
        buffers[i].base += done;
        buffers[i].len -= done;
    }
    memmove(buffers, buffers + i, (count - i) * sizeof *buffers);
    return count - i;
}

/* As uv_try_write(), but what follows does not go into the same packet. */
static int try_write_packet(struct connection *c, uv_buf_t *buffers, unsigned count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)buffers, .msg_iovlen = count};
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return UV_EBADF;
    ssize_t written = sendmsg(fd, &message, MSG_EOR | MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
        return UV_EAGAIN;
    return written < 0 ? uv_translate_sys_error(errno) : (int)written;
}

/* One batch. Returns true if the next one may be tried at once. */
static bool write_batch(struct connection *c)
{
    uv_buf_t buffers[BATCH_BUFFERS];
    unsigned count = 0;
    size_t bytes = 0;
    bool packet = false;

    while (c->link != NULL && !packet && bytes < BATCH_BYTES &&
           count + 1 + OUTGOING_MAX_EXTENTS <= BATCH_BUFFERS) {
        struct outgoing *frame = link_next(c->link);
        if (frame == NULL)
            break;
        outgoing_push(&c->batch, frame);
        buffers[count++] = uv_buf_init((char *)frame->head, frame->head_length);
        for (uint32_t i = 0; i < frame->body.count; i++)
            buffers[count++] = uv_buf_init((char *)(uintptr_t)frame->body.item[i].data,
                                           frame->body.item[i].length);
        bytes += frame->head_length + frame->body_length;
        packet = frame->in_passing && c->tcp->slow;
    }
    if (count == 0 || c->link == NULL)
        return false;
    if (c->tcp->slow)
        pace_for(c, bytes);
    int written = packet ? try_write_packet(c, buffers, count)
                         : uv_try_write((uv_stream_t *)&c->socket, buffers, count);
    if (written < 0 && written != UV_EAGAIN) {
        broken(c, uv_strerror(written));
        return false;
    }
    if (written == (int)bytes) {
        outgoing_clear(pool(c->tcp), &c->batch);
        return true;
    }
    count = skip_written(buffers, count, written > 0 ? (size_t)written : 0);
    c->write.data = c;
    int result = uv_write(&c->write, (uv_stream_t *)&c->socket, buffers, count, on_write);
    if (result != 0)
        broken(c, uv_strerror(result));
    else
        c->writing = true;
    return false;
}

bool tcp_flush(struct tcp *tcp)
{
    struct connection *now = tcp->dirty, *c;
    bool more = false;

    tcp->dirty = NULL;
    while ((c = now) != NULL) {
        now = c->next_dirty;
        c->dirty = false;
        if (c->link == NULL || c->writing || c->closing)
            continue;
        unsigned batches = 0;
        while (batches < BATCHES_A_FLUSH && write_batch(c))
            batches++;
        if (batches == BATCHES_A_FLUSH) {
            mark_dirty(c);
            more = true;
        }
    }
    return more || tcp->dirty != NULL;
}

/* --- reading --- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char discarded[4096]; /* what comes after we have closed */
    struct connection *c = handle->data;
    size_t size = 0;
    uint8_t *at = c->link != NULL ? link_room(c->link, &size) : NULL;

    (void)suggested;
    if (at != NULL)
        *buffer = uv_buf_init((char *)at, (unsigned)size);
    else if (c->link == NULL)
        *buffer = uv_buf_init(discarded, sizeof discarded);
    else
        *buffer = uv_buf_init(NULL, 0); /* read fails with ENOBUFS */
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct connection *c = stream->data;

    (void)buffer;
    if (length > 0 && c->link != NULL)
        link_received(c->link, (size_t)length);
    else if (length < 0 && c->closing)
        close_handles(c);
    else if (length < 0)
        broken(c, length == UV_EOF ? "closed by the other side" : uv_strerror((int)length));
}

/* --- connecting --- */

static void tune(struct connection *c)
{
    uv_os_fd_t fd;
    int unsent = c->tcp->slow ? UNSENT_SLOW : UNSENT_MOST;
    const char *congestion = c->tcp->set.congestion;

    (void)uv_tcp_nodelay(&c->socket, 1);
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (congestion[0] != '\0' &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0)
        log_debug("congestion control %s cannot be had: %s", congestion, strerror(errno));
}

static struct connection *new_connection(struct tcp *tcp, unsigned port, unsigned family)
{
    struct connection *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->tcp = tcp;
    c->port = port;
    if (uv_tcp_init_ex(tcp->set.loop, &c->socket, family) != 0) {
        free(c);
        return NULL;
    }
    (void)uv_timer_init(tcp->set.loop, &c->linger);
    c->socket.data = c->linger.data = c;
    c->handles = 2;
    tcp->handles++;
    return c;
}

static void established(struct connection *c, bool dialled)
{
    struct sockaddr_storage peer;
    int length = sizeof peer;
    char address[64] = "?";

    if (uv_tcp_getpeername(&c->socket, (struct sockaddr *)&peer, &length) == 0)
        tcp_format_address((struct sockaddr *)&peer, address, sizeof address);
    tune(c);
    c->link = router_connected(c->tcp->router, c->port, dialled, c, address);
    if (c->link != NULL && uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) == 0)
        return;
    bool unwanted = c->link == NULL;
    broken(c, "cannot be read");
    if (unwanted && dialled)
        router_dial_failed(c->tcp->router, c->port, "no room for another connection");
}

static void on_dialled(uv_connect_t *request, int status)
{
    struct connection *c = request->data;
    char address[64], reason[160];

    c->tcp->dialling[c->port] = NULL;
    if (c->tcp->router == NULL) {
        close_handles(c);
        return;
    }
    if (status == 0) {
        established(c, true);
        return;
    }
    tcp_format_address((const struct sockaddr *)&c->tcp->set.address[c->port], address,
                       sizeof address);
    (void)snprintf(reason, sizeof reason, "%s: %s", address, uv_strerror(status));
    close_handles(c);
    router_dial_failed(c->tcp->router, c->port, reason);
}

static void on_dial_impossible(uv_timer_t *timer)
{
    struct connection *c = timer->data;

    on_dialled(&c->dialling, c->dial_error);
}

static void io_dial(void *context, unsigned port)
{
    struct tcp *tcp = context;
    struct connection *c = new_connection(tcp, port, tcp->set.address[port].ss_family);
    int retries = DIAL_SYN_RETRIES;
    uv_os_fd_t fd;

    if (c == NULL)
        abort(); /* some hundred bytes, and no socket: nothing here could go on */
    tcp->dialling[port] = c;
    c->dialling.data = c;
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
    int result = uv_tcp_connect(&c->dialling, &c->socket,
                                (const struct sockaddr *)&tcp->set.address[port], on_dialled);
    if (result != 0) { /* the router is not to be called from here */
        c->dial_error = result;
        (void)uv_timer_start(&c->linger, on_dial_impossible, 0, 0);
    }
}

static void on_accept(uv_stream_t *listener, int status)
{
    struct tcp *tcp = listener->data;
    unsigned port = (unsigned)((uv_tcp_t *)listener - tcp->listener);
    struct connection *c;

    if (status != 0 || tcp->router == NULL)
        return;
    c = new_connection(tcp, port, AF_UNSPEC);
    if (c == NULL)
        return;
    if (uv_accept(listener, (uv_stream_t *)&c->socket) != 0)
        close_handles(c);
    else
        established(c, false);
}

static int listen_on(struct tcp *tcp, unsigned port, struct error *e)
{
    const struct sockaddr *address = (const struct sockaddr *)&tcp->set.address[port];
    uv_tcp_t *listener = &tcp->listener[port];
    char text[64], name[TORUS_PORT_NAME_SIZE];

    int result = uv_tcp_init(tcp->set.loop, listener);
    if (result == 0) {
        listener->data = tcp;
        tcp->listening[port] = true;
        tcp->handles++;
        result = uv_tcp_bind(listener, address, 0);
    }
    if (result == 0)
        result = uv_listen((uv_stream_t *)listener, 16, on_accept);
    if (result == 0)
        return 0;
    tcp_format_address(address, text, sizeof text);
    return error_set(e, ERROR_IO, "port %s: cannot listen on %s: %s", torus_port_name(port, name),
                     text, uv_strerror(result));
}

/* --- the rest of io.h --- */

static uint64_t io_now(void *context)
{
    (void)context;
    return uv_hrtime();
}

static void io_random(void *context, void *buffer, size_t size)
{
    (void)context;
    if (getrandom(buffer, size, 0) != (ssize_t)size)
        abort(); /* cannot fail for so few bytes once the system is up */
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection *c = connection;
    uv_os_fd_t fd;

    (void)context;
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        tcp_stat(fd, stat);
}

struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e)
{
    struct tcp *tcp = calloc(1, sizeof *tcp);

    if (tcp == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory");
        return NULL;
    }
    tcp->set = *setup;
    tcp->handles = 1; /* our own */
    tcp->slow = setup->link_mbit > 0 && setup->link_mbit <= SLOW_MBIT;
    for (unsigned port = 0; port < torus_ports(setup->torus); port++) {
        if (torus_port_direction(port) > 0 ||
            torus_neighbour(setup->torus, rank, port) == TORUS_NO_NODE)
            continue;
        if (listen_on(tcp, port, e) != 0) {
            tcp_close(tcp);
            return NULL;
        }
    }
    *io = (struct router_io){
        .context = tcp,
        .now = io_now,
        .random = io_random,
        .dial = io_dial,
        .wake = io_wake,
        .close = io_close,
        .stat = io_stat,
    };
    return tcp;
}

void tcp_attach(struct tcp *tcp, struct router *router)
{
    tcp->router = router;
}

static void on_listener_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void tcp_close(struct tcp *tcp)
{
    tcp->router = NULL;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if (tcp->listening[port])
            uv_close((uv_handle_t *)&tcp->listener[port], on_listener_closed);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if (tcp->dialling[port] != NULL)
            close_handles(tcp->dialling[port]);
    tcp->closing = true;
    release(tcp);
}

int tcp_parse_address(const char *text, struct sockaddr_storage *address, struct error *e)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    size_t n;

    if (colon == NULL || colon[1] == '\0' || (size_t)(colon - text) >= sizeof host)
        return error_set(e, ERROR_USAGE, "\"%.80s\" is no ADDRESS:PORT", text);
    n = (size_t)(colon - text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    }
    memcpy(host, text, n);
    host[n] = '\0';
    int result = getaddrinfo(host, colon + 1, &hints, &found);
    if (result != 0)
        return error_set(e, ERROR_USAGE, "address %.80s: %s", text, gai_strerror(result));
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

void tcp_format_address(const struct sockaddr *address, char *text, size_t size)
{
    char host[64] = "?";

    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        (void)uv_ip6_name(in6, host, sizeof host);
        (void)snprintf(text, size, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        (void)uv_ip4_name(in, host, sizeof host);
        (void)snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
    }
}
