/* Happy path of a connection:
 *
 *     dial or accept -> router_connected() -> reads: link_received()
 *                                          -> tcp_flush(): link_next() -> write
 *                                          -> end of file: link_closed()
 *
 * Failure modes: it cannot be dialled (router_dial_failed(), which dials again later) or listened for
 * (router_listening()): door.h says what is tried again when; end of file,
 * a read or a write error (link_closed()); the router closes it (io_close()): a last message may
 * still leave, behind what is being written, and the connection lingers until the peer has read it,
 * but for LINGER_MS at most, and only so many at a time. The carrier goes (router_carrier(), which
 * closes it). No descriptors left: those that are kept back for links are used. In every case a
 * connection is freed when its handles are closed, and never before. */
#include "daemon/net/tcp/tcp.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/carrier/carrier.h"
#include "daemon/net/doors/door.h"
#include "daemon/net/sockets/hops.h"
#include "daemon/net/sockets/pacing.h"
#include "daemon/net/sockets/tcp_stat.h"
#include "daemon/net/tcp/cipher.h"

#define BATCH_BYTES (128u * 1024u)
#define BATCH_BUFFERS 1024u
#define BATCHES_A_FLUSH 8u
#define LINGER_MS 1000
#define LINGER_MOST 32u /* connections at the same time: strangers could make any number of them */
#define LOOK_SOON_MS 50 /* after reports of changes, which come in swarms */
#define LOOK_AGAIN_MS 2000  /* while a port cannot listen */
#define KEPT_BACK_A_PORT 2u /* descriptors: for its link, and for a stranger before it */

struct connection {
    uv_tcp_t socket;
    uv_timer_t linger;
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

struct tcp {
    struct tcp_setup set;
    struct router *router;
    struct socket_options options;
    struct door_user user;
    struct door door[TORUS_MAX_PORTS];
    uv_timer_t look; /* at all doors again */
    struct reserve reserve;
    struct carrier *carrier; /* NULL: interfaces cannot be watched */
    struct connection *dirty;
    unsigned handles; /* things that are not closed: doors' parts, connections, the rest */
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

static void forget_dirty(struct connection *c)
{
    for (struct connection **at = &c->tcp->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == c) {
            *at = c->next_dirty;
            break;
        }
}

static void close_handles(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    forget_dirty(c);
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

/* The end of what is sent would wait behind what is not acknowledged, and the other side would not hear of it. */
static void give_up(struct connection *c)
{
    struct connection_stat stat = {0};
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        tcp_stat(fd, &stat);
    if (stat.unacked == 0 || uv_tcp_close_reset(&c->socket, on_handle_closed) != 0) {
        close_handles(c);
        return;
    }
    forget_dirty(c);
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
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
        give_up(c);
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
        /* A probe that is lost must not take the handshake before it with it. */
        b->packet = frame->plain || (frame->in_passing && c->tcp->slow);
        last = b->packet;
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

static void on_look(uv_timer_t *timer);

/* What has become of dials and listeners: the router was not to be called when that was found out. */
static void tell_doors(struct tcp *tcp)
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
        if (door->listens && !door->listening && !uv_is_active((uv_handle_t *)&tcp->look))
            (void)uv_timer_start(&tcp->look, on_look, LOOK_AGAIN_MS, 0);
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

    tell_doors(tcp);
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

/* Takes over the descriptor. */
static struct connection *new_connection(struct tcp *tcp, unsigned port, int fd)
{
    struct connection *c = calloc(1, sizeof *c);

    if (c == NULL || uv_tcp_init(tcp->set.loop, &c->socket) != 0) {
        free(c);
        (void)close(fd);
        return NULL;
    }
    c->tcp = tcp;
    c->port = port;
    (void)uv_timer_init(tcp->set.loop, &c->linger);
    c->socket.data = c->linger.data = c;
    c->handles = 2;
    tcp->handles++;
    if (uv_tcp_open(&c->socket, fd) == 0)
        return c;
    (void)close(fd);
    close_handles(c);
    return NULL;
}

/* The ends of a connection decide which interface's carrier is the link's. */
static void watch_carrier(struct connection *c)
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
    struct connection *c = new_connection(tcp, door->port, fd);
    if (c != NULL) {
        if (uv_tcp_getpeername(&c->socket, (struct sockaddr *)&peer, &length) == 0)
            address_format((struct sockaddr *)&peer, address, sizeof address);
        c->link = router_connected(tcp->router, c->port, dialled, c, address);
        if (c->link != NULL && uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) == 0)
            return;
    }
    const bool unwanted = c == NULL || c->link == NULL;
    if (c != NULL)
        broken(c, "cannot read from its socket");
    if (unwanted && dialled)
        router_dial_failed(tcp->router, door->port, "no room for another connection");
}

/* Before there has been a link, the carrier is that of the way to what is dialled, or of the address
 * that is listened on. */
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

static void on_closed(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing)
        reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    release(tcp);
}

static void io_dial(void *context, unsigned port)
{
    struct tcp *tcp = context;

    door_open(&tcp->door[port]);
}

/* --- what changes on this host --- */

static void on_carrier_changed(void *context, unsigned port, const char *fault)
{
    struct tcp *tcp = context;

    if (tcp->router != NULL)
        router_carrier(tcp->router, port, fault);
}

static void on_carrier_reported(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing && (!uv_is_active((uv_handle_t *)&tcp->look) ||
                          uv_timer_get_due_in(&tcp->look) > LOOK_SOON_MS))
        (void)uv_timer_start(&tcp->look, on_look, LOOK_SOON_MS, 0);
}

static void on_look(uv_timer_t *timer)
{
    struct tcp *tcp = timer->data;

    for (unsigned port = 0; port < TORUS_MAX_PORTS && tcp->router != NULL; port++)
        if (tcp->door[port].endpoint != NULL && door_look(&tcp->door[port]))
            router_dial_again(tcp->router, port);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
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

/* Errors of a port that listens that end the start: there is another program here that listens on this
 * address, most likely another torusd, or the port is privileged. */
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

static int open_doors(struct tcp *tcp, uint32_t rank, struct error *e)
{
    static const struct door_user user = {
        .connected = on_connected, .placed = on_placed, .opened = on_opened, .closed = on_closed};

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

struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e)
{
    struct tcp *tcp = sodium_init() >= 0 ? calloc(1, sizeof *tcp) : NULL;

    if (tcp == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    const struct carrier_user user = {on_carrier_changed, on_carrier_reported, on_closed, tcp};
    tcp->set = *setup;
    tcp->slow = pacing_is_slow(setup->link_mbit);
    tcp->options = (struct socket_options){setup->congestion, tcp->slow,
                                           setup->hop_limit != 0 ? setup->hop_limit : HOPS_DEFAULT};
    (void)uv_timer_init(setup->loop, &tcp->look);
    tcp->look.data = tcp;
    tcp->handles = 2; /* our own, and that timer */
    tcp->carrier = carrier_open(setup->loop, &user);
    tcp->handles += tcp->carrier != NULL;
    if (open_doors(tcp, rank, e) != 0) {
        tcp_close(tcp);
        return NULL;
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

const char *tcp_interface(const struct tcp *tcp, unsigned port)
{
    const struct endpoint *endpoint = tcp->door[port].endpoint;
    const char *used = tcp->carrier != NULL ? carrier_interface(tcp->carrier, port) : "";

    return used[0] == '\0' && endpoint != NULL ? endpoint->interface : used;
}

const char *tcp_missing(const struct tcp *tcp, unsigned port)
{
    return door_missing(&tcp->door[port]);
}

void tcp_attach(struct tcp *tcp, struct router *router)
{
    tcp->router = router;
}

void tcp_close(struct tcp *tcp)
{
    tcp->router = NULL;
    tcp->reserve.wanted = 0;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        door_shut(&tcp->door[port]);
    uv_close((uv_handle_t *)&tcp->look, on_timer_closed);
    if (tcp->carrier != NULL)
        carrier_close(tcp->carrier);
    tcp->carrier = NULL;
    tcp->closing = true;
    release(tcp);
}
