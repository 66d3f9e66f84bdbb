/* Happy path of a connection:
 *
 *     dial or accept -> router_connected() -> reads: link_received()
 *                                          -> tcp_flush(): link_next() -> write
 *                                          -> end of file: link_closed()
 *
 * Failure modes: it cannot be dialled (router_dial_failed(), which dials again later); end of file,
 * a read or a write error (link_closed()); the router closes it (io_close()): a last message may
 * still leave, behind what is being written, and the connection lingers until the peer has read it,
 * but for LINGER_MS at most, and only so many at a time. The carrier goes (router_carrier(), which
 * closes it). No descriptors left: those that are kept back for links are used. In every case a
 * connection is freed when its handles are closed, and never before. */
#include "daemon/net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/address.h"
#include "daemon/net/carrier.h"
#include "daemon/net/cipher.h"
#include "daemon/net/hops.h"
#include "daemon/net/listener.h"
#include "daemon/net/pacing.h"
#include "daemon/net/tcp_stat.h"

#define BATCH_BYTES (128u * 1024u)
#define BATCH_BUFFERS 1024u
#define BATCHES_A_FLUSH 8u
#define LINGER_MS 1000
#define LINGER_MOST 32u /* connections at the same time: strangers could make any number of them */
#define DIAL_REASON_SIZE 240u
#define DIAL_SYN_RETRIES 2  /* about seven seconds */
#define KEPT_BACK_A_PORT 2u /* descriptors: for its link, and for a stranger before it */

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
    bool dirty, writing, closing, lingers;
    bool held; /* not read from for now */
    struct pacing pacing;
    struct cipher *cipher;       /* NULL: not encrypted, or not yet */
    bool sealed;                 /* what is being written is in it */
    struct outgoing_queue batch; /* being written; what is encrypted is in the cipher instead */
    struct outgoing *last;       /* to be written before it closes */
};

/* Of one port. */
struct door {
    struct tcp *tcp;
    bool listening;
    struct listener listener;
    struct connection *dialling;
    int dial_error; /* why it could not even be tried to dial; 0: nothing to be told */
};

struct tcp {
    struct tcp_setup set;
    struct router *router;
    struct door door[TORUS_MAX_PORTS];
    bool any_dial_error;
    struct reserve reserve;
    struct carrier *carrier; /* NULL: interfaces cannot be watched */
    struct connection *dirty;
    unsigned handles; /* listeners and connections that are not closed */
    unsigned lingering;
    bool closing;
    bool slow;
    struct outgoing_pool frames; /* of last messages, once the router has gone */
};

static void release(struct tcp *tcp)
{
    if (--tcp->handles == 0 && tcp->closing) {
        reserve_close(&tcp->reserve);
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
    tcp->lingering -= c->lingers;
    cipher_free(c->cipher);
    free(c);
    reserve_fill(&tcp->reserve, tcp->reserve.wanted);
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

/* Everything but the last message has been written. The timer of io_close() runs. */
static void say_last(struct connection *c)
{
    uv_buf_t buffer = uv_buf_init((char *)c->last->head, c->last->head_length);
    size_t length;

    if (c->cipher != NULL && !c->last->plain) {
        uint8_t *sealed = cipher_seal(c->cipher, c->last->head, c->last->head_length) == 0
                              ? cipher_sealed(c->cipher, &length)
                              : NULL;
        buffer = uv_buf_init((char *)sealed, sealed != NULL ? (unsigned)length : 0);
    }
    (void)uv_try_write((uv_stream_t *)&c->socket, &buffer, 1); /* or not: we are going */
    /* Closing at once would reset the connection if the peer still sends, and lose the message. */
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->socket, on_shutdown) != 0)
        close_handles(c);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer);
static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer);

static void io_close(void *context, void *connection, struct outgoing *last)
{
    struct connection *c = connection;

    (void)context;
    c->link = NULL;
    c->closing = true;
    c->last = last;
    /* A peer that reads nothing would leave us waiting for what is being written, too. */
    if (last == NULL || uv_timer_start(&c->linger, on_linger_over, LINGER_MS, 0) != 0) {
        close_handles(c);
        return;
    }
    if (c->tcp->lingering == LINGER_MOST) { /* it is told if it does not send any more */
        if (!c->writing)
            say_last(c);
        close_handles(c);
        return;
    }
    c->lingers = true;
    c->tcp->lingering++;
    if (c->held) /* the peer's end of file is to be seen */
        (void)uv_read_start((uv_stream_t *)&c->socket, on_room, on_read);
    if (!c->writing)
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

static void written_all(struct connection *c)
{
    outgoing_clear(pool(c->tcp), &c->batch);
    if (c->sealed)
        cipher_written(c->cipher);
    c->sealed = false;
}

static void on_write(uv_write_t *request, int status)
{
    struct connection *c = request->data;

    c->writing = false;
    written_all(c);
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    if (status != 0)
        broken(c, uv_strerror(status));
    else if (c->closing)
        say_last(c);
    else
        mark_dirty(c);
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

/* What is to be written in one go. */
struct batch {
    uv_buf_t buffers[BATCH_BUFFERS];
    unsigned count;
    size_t bytes;
    bool packet; /* what follows does not go into the same packet */
};

static void take_plain(struct batch *b, struct connection *c, struct outgoing *frame)
{
    outgoing_push(&c->batch, frame);
    b->buffers[b->count++] = uv_buf_init((char *)frame->head, frame->head_length);
    for (uint32_t i = 0; i < frame->body.count; i++)
        b->buffers[b->count++] =
            uv_buf_init((char *)(uintptr_t)frame->body.item[i].data, frame->body.item[i].length);
}

static int take_sealed(struct connection *c, struct outgoing *frame)
{
    int result = cipher_seal(c->cipher, frame->head, frame->head_length);

    for (uint32_t i = 0; i < frame->body.count && result == 0; i++)
        result = cipher_seal(c->cipher, frame->body.item[i].data, frame->body.item[i].length);
    outgoing_free(pool(c->tcp), frame);
    if (result == 0 && c->tcp->slow) /* a relay need not wait for what follows */
        result = cipher_end_record(c->cipher);
    return result;
}

/* Returns 0, or -1 if there is no memory to encrypt it. */
static int take_batch(struct batch *b, struct connection *c)
{
    const size_t most = c->tcp->slow ? PACING_WRITE_MOST : BATCH_BYTES;
    bool last = false;

    while (c->link != NULL && !last && b->bytes < most &&
           b->count + 1 + OUTGOING_MAX_EXTENTS <= BATCH_BUFFERS) {
        struct outgoing *frame = link_next(c->link);
        if (frame == NULL)
            break;
        b->bytes += frame->head_length + frame->body_length;
        b->packet = frame->in_passing && c->tcp->slow;
        last = b->packet || (c->cipher != NULL && frame->plain);
        if (c->cipher == NULL || frame->plain) {
            take_plain(b, c, frame);
        } else {
            c->sealed = true;
            if (take_sealed(c, frame) != 0)
                return -1;
        }
    }
    if (c->sealed) {
        uint8_t *bytes = cipher_sealed(c->cipher, &b->bytes);
        if (bytes == NULL)
            return -1;
        b->buffers[b->count++] = uv_buf_init((char *)bytes, (unsigned)b->bytes);
    }
    return 0;
}

/* One batch. Returns true if the next one may be tried at once. */
static bool write_batch(struct connection *c)
{
    struct batch b;

    b.count = 0, b.bytes = 0, b.packet = false; /* its buffers are not */
    if (c->link == NULL)
        return false;
    if (take_batch(&b, c) != 0) {
        broken(c, "no memory to encrypt what is to be sent");
        return false;
    }
    if (b.count == 0 || c->link == NULL)
        return false;
    uv_os_fd_t fd;
    if (c->tcp->slow && uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        pacing_before_write(&c->pacing, fd, b.bytes, uv_now(c->tcp->set.loop));
    int written = b.packet ? try_write_packet(c, b.buffers, b.count)
                           : uv_try_write((uv_stream_t *)&c->socket, b.buffers, b.count);
    if (written < 0 && written != UV_EAGAIN) {
        broken(c, uv_strerror(written));
        return false;
    }
    if (written == (int)b.bytes) {
        written_all(c);
        return true;
    }
    b.count = skip_written(b.buffers, b.count, written > 0 ? (size_t)written : 0);
    c->write.data = c;
    int result = uv_write(&c->write, (uv_stream_t *)&c->socket, b.buffers, b.count, on_write);
    if (result != 0)
        broken(c, uv_strerror(result));
    else
        c->writing = true;
    return false;
}

/* Dials that could not be tried: the router was not to be called then. */
static void tell_dial_errors(struct tcp *tcp)
{
    char address[ADDRESS_TEXT_SIZE], reason[160];

    tcp->any_dial_error = false;
    for (unsigned port = 0; port < TORUS_MAX_PORTS && tcp->router != NULL; port++) {
        int error = tcp->door[port].dial_error;
        if (error == 0)
            continue;
        tcp->door[port].dial_error = 0;
        address_format((const struct sockaddr *)&tcp->set.address[port], address, sizeof address);
        (void)snprintf(reason, sizeof reason, "cannot dial %s: %s", address, uv_strerror(error));
        router_dial_failed(tcp->router, port, reason);
    }
}

/* The router may want to read from it again. */
static void read_again(struct connection *c)
{
    if (!c->held || link_held(c->link))
        return;
    c->held = false;
    if (uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) != 0)
        broken(c, "cannot read from its socket again");
}

bool tcp_flush(struct tcp *tcp)
{
    struct connection *now, *c;
    bool more = tcp->carrier != NULL && carrier_look(tcp->carrier);

    if (tcp->any_dial_error)
        tell_dial_errors(tcp);
    now = tcp->dirty;
    tcp->dirty = NULL;
    while ((c = now) != NULL) {
        now = c->next_dirty;
        c->dirty = false;
        if (c->link != NULL)
            read_again(c);
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
    uint8_t *at = c->link == NULL     ? NULL
                  : c->cipher != NULL ? cipher_room(c->cipher, &size)
                                      : link_room(c->link, &size);

    (void)suggested;
    if (at != NULL)
        *buffer = uv_buf_init((char *)at, (unsigned)size);
    else if (c->link == NULL)
        *buffer = uv_buf_init(discarded, sizeof discarded);
    else
        *buffer = uv_buf_init(NULL, 0); /* read fails with ENOBUFS */
}

/* Gives the router what the records that have come hold. */
static void open_records(struct connection *c, size_t length)
{
    int result = 1;

    cipher_received(c->cipher, length);
    while (c->link != NULL && result > 0) {
        size_t size = 0, opened;
        uint8_t *at = link_room(c->link, &size);
        if (at == NULL) {
            broken(c, uv_strerror(UV_ENOBUFS));
            return;
        }
        result = cipher_open(c->cipher, at, &opened);
        if (result > 0)
            link_received(c->link, opened);
        else if (result < 0)
            broken(c, "what has come is not what the neighbour has encrypted");
    }
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct connection *c = stream->data;

    (void)buffer;
    if (length > 0 && c->link != NULL) {
        if (c->cipher != NULL)
            open_records(c, (size_t)length);
        else
            link_received(c->link, (size_t)length);
        if (c->link != NULL && link_held(c->link)) {
            c->held = true;
            (void)uv_read_stop(stream);
        }
    } else if (length < 0 && c->closing) {
        close_handles(c);
    } else if (length < 0) {
        broken(c, length == UV_EOF ? "closed by the other side" : uv_strerror((int)length));
    }
}

/* --- connecting --- */

/* Before a socket connects or listens; what is accepted there inherits all of it. A socket that has
 * been with BBR, the default of some systems, keeps the timer that paces its packets, whatever it is
 * told later: a fifth more processor time a byte. */
static void tune(const struct tcp *tcp, int fd, sa_family_t family)
{
    const char *congestion = tcp->set.congestion;
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pacing_limit_unsent(fd, tcp->slow);
    if (congestion[0] != '\0' &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0)
        log_debug("congestion control %s is not available: %s", congestion, strerror(errno));
    if (hops_limit(fd, family, tcp->set.hop_limit) != 0)
        log_warning("the hop limit of links cannot be set: %s", strerror(errno));
}

/* On failure *error is set. */
static struct connection *new_connection(struct tcp *tcp, unsigned port, unsigned family,
                                         int *error)
{
    struct connection *c = calloc(1, sizeof *c);

    *error = UV_ENOMEM;
    if (c == NULL)
        return NULL;
    c->tcp = tcp;
    c->port = port;
    do
        *error = uv_tcp_init_ex(tcp->set.loop, &c->socket, family);
    while (*error != 0 && reserve_helps(&tcp->reserve, -*error));
    if (*error != 0) {
        free(c);
        return NULL;
    }
    (void)uv_timer_init(tcp->set.loop, &c->linger);
    c->socket.data = c->linger.data = c;
    c->handles = 2;
    tcp->handles++;
    return c;
}

/* The address here decides which interface's carrier is the link's. */
static void watch_carrier(struct connection *c)
{
    struct sockaddr_storage local;
    int length = sizeof local;

    if (c->tcp->carrier != NULL &&
        uv_tcp_getsockname(&c->socket, (struct sockaddr *)&local, &length) == 0)
        carrier_watch(c->tcp->carrier, c->port, (struct sockaddr *)&local);
}

static void established(struct connection *c, bool dialled)
{
    struct sockaddr_storage peer;
    int length = sizeof peer;
    char address[ADDRESS_TEXT_SIZE] = "?";

    if (uv_tcp_getpeername(&c->socket, (struct sockaddr *)&peer, &length) == 0)
        address_format((struct sockaddr *)&peer, address, sizeof address);
    c->link = router_connected(c->tcp->router, c->port, dialled, c, address);
    if (c->link != NULL && uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) == 0)
        return;
    bool unwanted = c->link == NULL;
    broken(c, "cannot read from its socket");
    if (unwanted && dialled)
        router_dial_failed(c->tcp->router, c->port, "no room for another connection");
}

static void say_dial_failure(struct connection *c, int status, char *reason, size_t size)
{
    char address[ADDRESS_TEXT_SIZE], host[ADDRESS_TEXT_SIZE];
    uv_os_fd_t fd;

    address_format((const struct sockaddr *)&c->tcp->set.address[c->port], address, sizeof address);
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0 && hops_exceeded(fd, host, sizeof host))
        (void)snprintf(reason, size,
                       "%s: the route there leads over another host (%s), which is farther than "
                       "hop_limit %u allows",
                       address, host[0] != '\0' ? host : "unknown", c->tcp->set.hop_limit);
    else
        (void)snprintf(reason, size, "%s: %s", address, uv_strerror(status));
}

static void on_dialled(uv_connect_t *request, int status)
{
    struct connection *c = request->data;
    struct door *door = &c->tcp->door[c->port];
    bool wanted = door->dialling == c; /* else it has been dialled anew */
    char reason[DIAL_REASON_SIZE];

    if (wanted)
        door->dialling = NULL;
    if (!wanted || c->tcp->router == NULL) {
        close_handles(c);
        return;
    }
    if (status == 0) {
        uv_os_fd_t fd;
        if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
            hops_drop_errors(fd, c->tcp->set.address[c->port].ss_family);
        established(c, true);
        return;
    }
    say_dial_failure(c, status, reason, sizeof reason);
    close_handles(c);
    router_dial_failed(c->tcp->router, c->port, reason);
}

static void io_dial(void *context, unsigned port)
{
    struct tcp *tcp = context;
    struct door *door = &tcp->door[port];
    if (door->dialling != NULL) {
        close_handles(door->dialling);
        door->dialling = NULL;
    }
    struct connection *c =
        new_connection(tcp, port, tcp->set.address[port].ss_family, &door->dial_error);
    int retries = DIAL_SYN_RETRIES;
    uv_os_fd_t fd;

    if (c != NULL) {
        door->dialling = c;
        c->dialling.data = c;
        if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0) {
            tune(tcp, fd, tcp->set.address[port].ss_family);
            hops_keep_errors(fd, tcp->set.address[port].ss_family);
            (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
        }
        door->dial_error = uv_tcp_connect(
            &c->dialling, &c->socket, (const struct sockaddr *)&tcp->set.address[port], on_dialled);
    }
    if (door->dial_error == 0) {
        /* If the interface of this link is set down, the way may lead over another one. */
        if (tcp->carrier != NULL && !carrier_watches(tcp->carrier, port))
            watch_carrier(c);
        return;
    }
    tcp->any_dial_error = true;
    if (c != NULL) {
        door->dialling = NULL;
        close_handles(c);
    }
}

static void on_accepted(void *context, int fd)
{
    struct door *door = context;
    struct tcp *tcp = door->tcp;
    struct connection *c = NULL;
    int error;

    if (tcp->router != NULL)
        c = new_connection(tcp, (unsigned)(door - tcp->door), AF_UNSPEC, &error);
    if (c == NULL) {
        (void)close(fd);
    } else if (uv_tcp_open(&c->socket, fd) != 0) {
        (void)close(fd);
        close_handles(c);
    } else {
        established(c, false);
    }
}

static void on_bound(void *context, int fd)
{
    struct door *door = context;

    tune(door->tcp, fd, door->tcp->set.address[door - door->tcp->door].ss_family);
}

static void on_listener_closed(void *context)
{
    release(((struct door *)context)->tcp);
}

static void on_carrier_changed(void *context, unsigned port, const char *fault)
{
    struct tcp *tcp = context;

    if (tcp->router != NULL)
        router_carrier(tcp->router, port, fault);
}

static void on_carrier_closed(void *context)
{
    release(context);
}

static int listen_on(struct tcp *tcp, unsigned port, struct error *e)
{
    const struct sockaddr *address = (const struct sockaddr *)&tcp->set.address[port];
    struct door *door = &tcp->door[port];
    char text[ADDRESS_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE];

    door->listener = (struct listener){.reserve = &tcp->reserve,
                                       .bound = on_bound,
                                       .accepted = on_accepted,
                                       .closed = on_listener_closed,
                                       .context = door};
    if (listener_open(&door->listener, tcp->set.loop, address,
                      address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                     : sizeof(struct sockaddr_in)) == 0) {
        door->listening = true;
        tcp->handles++;
        if (tcp->carrier != NULL)
            carrier_watch(tcp->carrier, port, address);
        return 0;
    }
    address_format(address, text, sizeof text);
    return error_set(e, ERROR_IO, "port %s: cannot listen on %s: %s", torus_port_name(port, name),
                     text, uv_strerror(-errno));
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
    randombytes_buf(buffer, size); /* challenges and keys among them: not without the system's */
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection *c = connection;
    uv_os_fd_t fd;

    (void)context;
    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        tcp_stat(fd, stat);
}

static int io_encrypt(void *context, void *connection, const struct link_keys *keys)
{
    struct connection *c = connection;

    (void)context;
    c->cipher = cipher_new(keys);
    return c->cipher != NULL ? 0 : -1;
}

/* Strangers, who may come by any interface, have no say in which one is watched. */
static void io_proved(void *context, void *connection)
{
    struct connection *c = connection;
    uv_os_fd_t fd;

    (void)context;
    watch_carrier(c);
    if (c->tcp->slow && uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        pacing_start(&c->pacing, fd, c->tcp->set.link_mbit);
}

_Static_assert(LINK_ROOM_LEAST >= CIPHER_RECORD, "a record is opened into the room of a link");

struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e)
{
    struct tcp *tcp = sodium_init() >= 0 ? calloc(1, sizeof *tcp) : NULL;

    if (tcp == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    tcp->set = *setup;
    if (tcp->set.hop_limit == 0)
        tcp->set.hop_limit = HOPS_DEFAULT;
    tcp->handles = 1; /* our own */
    tcp->slow = pacing_is_slow(setup->link_mbit);
    tcp->carrier = carrier_open(setup->loop, on_carrier_changed, on_carrier_closed, tcp);
    tcp->handles += tcp->carrier != NULL;
    for (unsigned port = 0; port < torus_ports(setup->torus); port++) {
        tcp->door[port].tcp = tcp;
        if (torus_neighbour(setup->torus, rank, port) == TORUS_NO_NODE)
            continue;
        tcp->reserve.wanted += KEPT_BACK_A_PORT;
        if (torus_port_direction(port) < 0 && listen_on(tcp, port, e) != 0) {
            tcp_close(tcp);
            return NULL;
        }
    }
    reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    *io = (struct router_io){
        .context = tcp,
        .now = io_now,
        .random = io_random,
        .dial = io_dial,
        .wake = io_wake,
        .close = io_close,
        .stat = io_stat,
        .encrypt = io_encrypt,
        .proved = io_proved,
    };
    return tcp;
}

void tcp_attach(struct tcp *tcp, struct router *router)
{
    tcp->router = router;
}

void tcp_close(struct tcp *tcp)
{
    tcp->router = NULL;
    tcp->reserve.wanted = 0;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        if (tcp->door[port].listening)
            listener_close(&tcp->door[port].listener);
        if (tcp->door[port].dialling != NULL)
            close_handles(tcp->door[port].dialling);
    }
    if (tcp->carrier != NULL)
        carrier_close(tcp->carrier);
    tcp->carrier = NULL;
    tcp->closing = true;
    release(tcp);
}
