#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/net/cipher.h"
#include "daemon/torusd/net/internal.h"
#include "daemon/torusd/net/tcp_stat.h"
#include "daemon/torusd/router/link.h"

static void free_tcp(void *context)
{
    struct tcp *tcp = context;

    reserve_close(&tcp->reserve);
    outgoing_pool_close(&tcp->frames);
    pipes_close(&tcp->pipes);
    free(tcp);
}

void tcp_release(struct tcp *tcp)
{
    if (--tcp->handles == 0 && tcp->closing)
        io_threads_close(tcp->threads, free_tcp, tcp);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct tcp *tcp = c->tcp;

    if (--c->handles > 0)
        return;
    outgoing_clear(tcp_frames(tcp), &c->batch);
    free(c->rest);
    if (c->last != NULL)
        outgoing_free(tcp_frames(tcp), c->last);
    tcp->lingering -= c->lingers;
    cipher_free(c->cipher);
    bodies_drop_pipe(c);
    free(c->spill);
    free(c);
    reserve_fill(&tcp->reserve, tcp->reserve.wanted);
    tcp_release(tcp);
}

static void connection_forget_dirty(struct connection *c)
{
    for (struct connection **at = &c->tcp->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == c) {
            *at = c->next_dirty;
            break;
        }
}

/* To be called before the socket is closed. */
static void end_use(struct connection *c)
{
    connection_forget_dirty(c);
    io_job_stop(&c->in);
    io_job_stop(&c->out);
}

/* Closes the handles of a connection, which is freed when the loop has closed them. */
static void connection_close_handles(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    end_use(c);
    uv_close((uv_handle_t *)&c->socket, on_handle_closed);
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
}

/* Closes the connection with a reset: data that was not acknowledged is lost. Returns false if the reset
 * fails. */
static bool connection_reset(struct connection *c)
{
    end_use(c);
    if (uv_tcp_close_reset(&c->socket, on_handle_closed) != 0)
        return false;
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
    return true;
}

void connection_broken(struct connection *c, const char *reason)
{
    struct link *link = c->link;

    c->link = NULL;
    connection_close_handles(c);
    if (link != NULL)
        link_closed(link, reason);
}

void connection_mark_dirty(struct connection *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->tcp->dirty;
    c->tcp->dirty = c;
}

struct connection *connection_new(struct tcp *tcp, unsigned port, int fd)
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
    connection_close_handles(c);
    return NULL;
}

_Static_assert(LINK_ROOM_LEAST >= CIPHER_RECORD, "a record is opened into the room of a link");

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char discarded[4096]; /* bytes that arrive after the daemon has closed the connection */
    struct connection *c = handle->data;
    size_t size = 0;

    (void)suggested;
    c->moved = bodies_move(c);
    if (c->moved) {
        *buffer = uv_buf_init(NULL, 0);
        return;
    }
    uint8_t *at = c->link == NULL     ? NULL
                  : c->cipher != NULL ? cipher_room(c->cipher, &size)
                                      : link_room(c->link, &size);

    if (at != NULL)
        *buffer = uv_buf_init((char *)at, (unsigned)size);
    else if (c->link == NULL)
        *buffer = uv_buf_init(discarded, sizeof discarded);
    else
        *buffer = uv_buf_init(NULL, 0); /* makes the read fail with ENOBUFS */
}

static const char damaged[] = "the received bytes are not what the neighbour encrypted";

/* Opens the records that have arrived, and gives their contents to the router. */
static void open_records(struct connection *c, size_t length)
{
    int result = 1;

    cipher_received(c->cipher, length);
    while (c->link != NULL && result > 0) {
        size_t size = 0, opened;
        uint8_t *at = link_room(c->link, &size);
        if (at == NULL) {
            connection_broken(c, uv_strerror(UV_ENOBUFS));
            return;
        }
        result = cipher_open(c->cipher, at, &opened);
        if (result > 0)
            link_received(c->link, opened);
        else if (result < 0)
            connection_broken(c, damaged);
    }
}

static void stop_reading(struct connection *c)
{
    if (c->reading)
        (void)uv_read_stop((uv_stream_t *)&c->socket);
    c->reading = false;
}

/* Fewer bytes at once are not worth to be handed to an I/O thread and back. */
#define GIVEN_LEAST (32u * 1024u)

/* Whether I/O threads may have jobs of a connection. Where it is not encrypted, bytes cost less than the hand-over. On a
 * slow link, the loop's thread has time. A link that is not up may be that of a daemon which is alone so far. */
static bool uses_threads(const struct connection *c)
{
    return c->cipher != NULL && link_carries(c->link) && !connection_is_slow(c) &&
           io_threads_ready(c->tcp->threads);
}

static void on_read_by_thread(struct io_job *job);

/* Lets an I/O thread read if a long body or many bytes are arriving, and on until no more of a frame are. Returns false
 * if libuv is to read. */
static bool give_read(struct connection *c)
{
    const uint32_t left = link_left(c->link);
    struct io_job *job = &c->in;
    uv_os_fd_t fd;

    if (!(c->filled || left >= GIVEN_LEAST || (c->by_thread && left > 0)) || !uses_threads(c) ||
        uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return false;
    stop_reading(c);
    c->by_thread = true;
    *job =
        (struct io_job){.answered = on_read_by_thread, .context = c, .fd = fd, .cipher = c->cipher};
    job->room = link_room(c->link, &job->size);
    job->least = left < job->size ? left : job->size;
    if (job->room == NULL)
        connection_broken(c, uv_strerror(UV_ENOBUFS));
    else
        io_job_start(c->tcp->threads, 2 * c->port, job);
    return true;
}

/* Reads on when received bytes have been taken, unless the router does not want to. */
static void read_more(struct connection *c)
{
    if (c->link != NULL && link_held(c->link)) {
        c->held = true;
        stop_reading(c);
    }
    if (c->link == NULL || c->held || give_read(c))
        return;
    if (c->by_thread && c->filled) /* which left records in the cipher */
        open_records(c, 0);
    c->filled = c->by_thread = false;
    if (c->link != NULL && !c->reading && reading_start(c) != 0)
        connection_broken(c, "cannot read from its socket again");
}

static void on_read_by_thread(struct io_job *job)
{
    struct connection *c = job->context;
    const int error = job->error;

    c->filled = job->size - job->done < CIPHER_RECORD;
    if (job->done > 0)
        link_received(c->link, job->done);
    if (c->link != NULL && error != 0)
        connection_broken(c, error == UV_EOF      ? "closed by the other side"
                             : error == UV_EPROTO ? damaged
                                                  : uv_strerror(error));
    else
        read_more(c);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct connection *c = stream->data;

    const bool up = c->link != NULL && link_carries(c->link); /* a probe is long, too */

    (void)buffer;
    if (c->moved || (length > 0 && c->link != NULL)) {
        if (c->moved)
            c->moved = false;
        else if (c->cipher != NULL)
            open_records(c, (size_t)length);
        else
            link_received(c->link, (size_t)length);
        c->filled = up && length >= (ssize_t)GIVEN_LEAST;
        read_more(c);
    } else if (length < 0 && c->closing) {
        connection_close_handles(c);
    } else if (length < 0) {
        connection_broken(c,
                          length == UV_EOF ? "closed by the other side" : uv_strerror((int)length));
    }
}

int reading_start(struct connection *c)
{
    c->reading = uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) == 0;
    return c->reading ? 0 : -1;
}

void reading_resume(struct connection *c)
{
    if (!c->held || link_held(c->link))
        return;
    c->held = false;
    read_more(c);
}

#define BATCH_BYTES (128u * 1024u)
#define BATCH_BUFFERS 1024u
#define BATCHES_A_FLUSH 8u

/* The kernel makes packets of up to PACKET_WHOLE bytes of what is written. A slow link passes each as a whole, at 1 Mbit/s
 * in half a second: acknowledgements and urgent frames wait behind them, a relay for the last byte, and what a link
 * carries is known only from packet to packet. So a packet has what the link carries in PACKET_MS, by its nominal rate
 * or, if that is clearly less, as it was measured. */
#define PACKET_WHOLE (64u * 1024u)
#define PACKET_MS 20u
#define PACKET_LEAST 1448u /* bytes: a segment of Ethernet */
#define CARRIES_LESS 0.75  /* of the nominal rate */

size_t connection_packet(const struct connection *c)
{
    const double nominal = c->tcp->rate[c->port].mbit * 1e6, measured = (double)c->rate.bps;
    const bool less = measured > 0 && measured < CARRIES_LESS * nominal;
    const double bytes = (less ? measured : nominal) / 8 * PACKET_MS / 1000;

    if (!connection_is_slow(c) || bytes > PACING_WRITE_MOST)
        return PACKET_WHOLE;
    return bytes > PACKET_LEAST ? (size_t)bytes : PACKET_LEAST;
}

/* Skips the first `done` bytes of `buffers`. Returns how many buffers are left. */
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

/* Takes the first bytes of `buffers`, up to `most`. Returns how many bytes; sets *count to the number of parts. */
static size_t take_part(uv_buf_t *part, const uv_buf_t *buffers, unsigned *count, size_t most)
{
    const unsigned all = *count;
    size_t bytes = 0;

    for (*count = 0; *count < all && bytes < most; (*count)++) {
        const uv_buf_t *from = &buffers[*count];
        const size_t length = from->len < most - bytes ? from->len : most - bytes;
        part[*count] = uv_buf_init(from->base, (unsigned)length);
        bytes += length;
    }
    return bytes;
}

/* Returns how many of the first buffers are in memory. */
static unsigned count_in_memory(const struct connection *c, const uv_buf_t *buffers, unsigned count)
{
    unsigned n = 0;

    while (n < count && pipes_find(&c->tcp->pipes, buffers[n].base) == NULL)
        n++;
    return n;
}

/* Like uv_try_write(), but in packets of the kernel of up to `most` bytes, into which no later bytes go. Skips in `buffers`
 * what has been written, and returns 0 or an error. */
static int try_write_packets(struct connection *c, uv_buf_t *buffers, unsigned *count, size_t most)
{
    uv_buf_t part[BATCH_BUFFERS];
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return UV_EBADF;
    while (*count > 0) {
        unsigned parts = *count;
        const size_t bytes = take_part(part, buffers, &parts, most);
        const struct msghdr message = {.msg_iov = (struct iovec *)part, .msg_iovlen = parts};
        const ssize_t written = sendmsg(fd, &message, MSG_EOR | MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            return 0;
        if (written < 0)
            return uv_translate_sys_error(errno);
        *count = skip_written(buffers, *count, (size_t)written);
        if ((size_t)written < bytes)
            return 0;
    }
    return 0;
}

/* Skips in `buffers` what has been written, and returns 0 or an error. */
static int try_write(struct connection *c, uv_buf_t *buffers, unsigned *count)
{
    const int written = uv_try_write((uv_stream_t *)&c->socket, buffers, *count);

    if (written < 0)
        return written != UV_EAGAIN ? written : 0;
    *count = skip_written(buffers, *count, (size_t)written);
    return 0;
}

/* Writes buffers of which some are in pipes. Skips in `buffers` what has been written, and returns 0 or an error. */
static int try_write_piped(struct connection *c, uv_buf_t *buffers, unsigned *count)
{
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return UV_EBADF;
    while (*count > 0) {
        struct pipe *pipe = pipes_find(&c->tcp->pipes, buffers->base);
        const unsigned parts = pipe != NULL ? 1 : count_in_memory(c, buffers, *count);
        const bool more = parts < *count;
        const struct msghdr message = {.msg_iov = (struct iovec *)buffers, .msg_iovlen = parts};
        const ssize_t written =
            pipe != NULL
                ? pipe_drain(pipe, fd, buffers->base, buffers->len, more)
                : sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (written < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            return 0;
        if (written < 0)
            return uv_translate_sys_error(errno);
        *count = skip_written(buffers, *count, (size_t)written);
    }
    return 0;
}

#define SPILL_BYTES (16u * 1024u)

/* Takes the first of `buffers` that libuv can write: those in memory, up to `most` bytes, or some bytes of a pipe, which
 * are copied. Returns how many bytes, with *count parts; 0 if there is no memory. */
static size_t take_first(struct connection *c, uv_buf_t *part, const uv_buf_t *buffers,
                         unsigned *count, size_t most)
{
    struct pipe *pipe = c->piped ? pipes_find(&c->tcp->pipes, buffers->base) : NULL;
    const size_t length = buffers->len < SPILL_BYTES ? buffers->len : SPILL_BYTES;

    if (c->piped)
        *count = pipe != NULL ? 1 : count_in_memory(c, buffers, *count);
    if (pipe == NULL)
        return take_part(part, buffers, count, most);
    if (c->spill == NULL && (c->spill = malloc(SPILL_BYTES)) == NULL)
        return 0;
    const ssize_t taken = pipe_read(pipe, buffers->base, length, c->spill);
    *part = uv_buf_init(c->spill, taken > 0 ? (unsigned)taken : 0);
    return part->len;
}

static void on_write(uv_write_t *request, int status);

/* Lets libuv write the buffers when the socket takes bytes again: at first those of one packet of the kernel. Returns 0 or
 * an error. */
static int write_later(struct connection *c, const uv_buf_t *buffers, unsigned count, size_t most)
{
    uv_buf_t part[BATCH_BUFFERS];
    unsigned parts = count;

    if ((most < PACKET_WHOLE || c->piped) && buffers != c->rest) {
        c->rest = malloc(count * sizeof *c->rest);
        if (c->rest != NULL)
            memcpy(c->rest, buffers, count * sizeof *c->rest);
    }
    c->rest_count = c->rest != NULL ? count : 0;
    const size_t bytes =
        c->piped && c->rest == NULL
            ? 0
            : take_first(c, part, buffers, &parts, c->rest != NULL ? most : SIZE_MAX);
    if (bytes == 0)
        return UV_ENOMEM;
    if (c->rest != NULL)
        c->rest_count = skip_written(c->rest, count, bytes);
    c->write.data = c;
    const int result = uv_write(&c->write, (uv_stream_t *)&c->socket, part, parts, on_write);
    c->writing = result == 0;
    return result;
}

/* Writes more of a batch whose first packet libuv has written. Returns true if that is not the last one. */
static bool write_rest(struct connection *c)
{
    const size_t most = connection_packet(c);
    int result = c->piped ? try_write_piped(c, c->rest, &c->rest_count)
                          : try_write_packets(c, c->rest, &c->rest_count, most);

    if (result == 0 && c->rest_count > 0)
        result = write_later(c, c->rest, c->rest_count, most);
    if (result != 0)
        connection_broken(c, uv_strerror(result));
    return c->writing;
}

static void written_all(struct connection *c)
{
    free(c->rest);
    c->rest = NULL;
    c->rest_count = 0;
    outgoing_clear(tcp_frames(c->tcp), &c->batch);
    if (c->sealed)
        cipher_written(c->cipher);
    c->sealed = c->piped = false;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;

    if (status != 0)
        connection_close_handles(c);
}

/* Writes the last message. To be called when everything else has been written. */
static void closing_say_last(struct connection *c)
{
    uv_buf_t buffer = uv_buf_init((char *)c->last->head, c->last->head_length);
    size_t length;

    if (c->cipher != NULL && !c->last->plain) {
        uint8_t *sealed = cipher_seal(c->cipher, c->last->head, c->last->head_length) == 0
                              ? cipher_sealed(c->cipher, &length)
                              : NULL;
        buffer = uv_buf_init((char *)sealed, sealed != NULL ? (unsigned)length : 0);
    }
    /* a failure is ignored, because the daemon ends */
    (void)uv_try_write((uv_stream_t *)&c->socket, &buffer, 1);
    /* Closing at once would reset the connection if the peer still sends, and lose the message. */
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->socket, on_shutdown) != 0)
        connection_close_handles(c);
}

static void on_write(uv_write_t *request, int status)
{
    struct connection *c = request->data;

    c->writing = false;
    if (status == 0 && c->rest_count > 0 && !uv_is_closing((uv_handle_t *)&c->socket) &&
        write_rest(c))
        return;
    written_all(c);
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    if (status != 0)
        connection_broken(c, uv_strerror(status));
    else if (c->closing)
        closing_say_last(c);
    else
        connection_mark_dirty(c);
}

/* The frames of one write. */
struct batch {
    uv_buf_t buffers[BATCH_BUFFERS];
    unsigned count;
    size_t bytes;
    bool packet; /* later bytes do not go into the same packet */
};

static void take_frame(struct batch *b, struct connection *c, struct outgoing *frame)
{
    outgoing_push(&c->batch, frame);
    b->buffers[b->count++] = uv_buf_init((char *)frame->head, frame->head_length);
    for (uint32_t i = 0; i < frame->body.count; i++) {
        const struct extent *bytes = &frame->body.item[i];
        c->piped = c->piped || bytes->slab->where == SLAB_IN_PIPE;
        b->buffers[b->count++] = uv_buf_init((char *)(uintptr_t)bytes->data, bytes->length);
    }
}

/* Encrypts a frame. Returns 0, or -1 if there is no memory. */
static int seal_frame(struct connection *c, const struct outgoing *frame)
{
    int result = cipher_seal(c->cipher, frame->head, frame->head_length);

    for (uint32_t i = 0; i < frame->body.count && result == 0; i++)
        result = cipher_seal(c->cipher, frame->body.item[i].data, frame->body.item[i].length);
    if (result == 0 && connection_is_slow(c)) /* so that a relay need not wait for later bytes */
        result = cipher_end_record(c->cipher);
    return result;
}

/* Encrypts the frames of a batch, which are not needed any more. Returns 0, or -1 if there is no memory. */
static int seal_batch(struct batch *b, struct connection *c)
{
    for (const struct outgoing *frame = c->batch.first; frame != NULL; frame = frame->next)
        if (seal_frame(c, frame) != 0)
            return -1;
    outgoing_clear(tcp_frames(c->tcp), &c->batch);
    uint8_t *bytes = cipher_sealed(c->cipher, &b->bytes);
    if (bytes == NULL)
        return -1;
    b->buffers[0] = uv_buf_init((char *)bytes, (unsigned)b->bytes);
    b->count = 1;
    return 0;
}

/* Collects the frames of one write: all are to be encrypted, or none. */
static void take_batch(struct batch *b, struct connection *c)
{
    const size_t packet = connection_packet(c);
    const size_t most = packet < PACKET_WHOLE   ? packet
                        : connection_is_slow(c) ? PACING_WRITE_MOST
                                                : BATCH_BYTES;
    bool last = false;

    while (c->link != NULL && !last && b->bytes < most &&
           b->count + 1 + OUTGOING_MAX_EXTENTS <= BATCH_BUFFERS) {
        struct outgoing *frame = link_next(c->link);
        if (frame == NULL)
            break;
        b->bytes += frame->head_length + frame->body_length;
        /* If a probe is lost, the handshake before it must not be lost with it. */
        b->packet = frame->plain || (frame->immediate && connection_is_slow(c));
        last = b->packet;
        c->sealed = c->cipher != NULL && !frame->plain;
        take_frame(b, c, frame);
    }
}

/* To be called before that many bytes are written. */
static void pace_write(struct connection *c, size_t bytes)
{
    const struct port_rate *rate = &c->tcp->rate[c->port];
    uv_os_fd_t fd;

    if (!c->proved || (!connection_is_slow(c) && c->rate_changes == rate->changes) ||
        uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return;
    if (c->rate_changes != rate->changes)
        pacing_set_rate(&c->pacing, fd, rate->mbit);
    c->rate_changes = rate->changes;
    if (connection_is_slow(c))
        pacing_before_write(&c->pacing, fd, bytes, uv_now(c->tcp->set.loop));
}

static void on_written_by_thread(struct io_job *job)
{
    struct connection *c = job->context;

    on_write(&c->write, job->error);
}

/* Lets an I/O thread encrypt and write a batch if it is long. */
static bool give_write(struct connection *c, const struct batch *b)
{
    uv_os_fd_t fd;

    if (b->bytes < GIVEN_LEAST || !c->sealed || c->piped || !uses_threads(c) ||
        uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return false;
    c->rest = malloc(b->count * sizeof *b->buffers);
    if (c->rest == NULL)
        return false;
    memcpy(c->rest, b->buffers, b->count * sizeof *b->buffers);
    pace_write(c, b->bytes);
    c->write.data = c;
    c->out = (struct io_job){.answered = on_written_by_thread,
                             .context = c,
                             .writes = true,
                             .fd = fd,
                             .cipher = c->cipher,
                             .buffers = c->rest,
                             .count = b->count};
    c->writing = true;
    io_job_start(c->tcp->threads, 2 * c->port + 1, &c->out);
    return true;
}

/* Writes one batch. Returns true if the next one may be tried at once. */
static bool write_batch(struct connection *c)
{
    struct batch b;

    b.count = 0, b.bytes = 0, b.packet = false; /* its buffers need not be cleared */
    if (c->link == NULL)
        return false;
    take_batch(&b, c);
    if (b.count == 0 || c->link == NULL)
        return false;
    if (give_write(c, &b))
        return false;
    /* link_passing() excludes bytes in pipes where the next link is encrypted */
    if (c->sealed && (c->piped || seal_batch(&b, c) != 0)) {
        connection_broken(c, "out of memory to encrypt frames");
        return false;
    }
    pace_write(c, b.bytes);
    const size_t most = connection_packet(c);
    int result = 0;
    if (c->piped)
        result = try_write_piped(c, b.buffers, &b.count);
    else if (b.packet || most < PACKET_WHOLE)
        result = try_write_packets(c, b.buffers, &b.count, most);
    else
        result = try_write(c, b.buffers, &b.count);
    if (result == 0 && b.count == 0) {
        written_all(c);
        return true;
    }
    if (result == 0)
        result = write_later(c, b.buffers, b.count, most);
    if (result != 0)
        connection_broken(c, uv_strerror(result));
    return false;
}

bool writing_flush(struct connection *c)
{
    unsigned batches = 0;

    if (c->link == NULL || c->writing || c->closing)
        return false;
    while (batches < BATCHES_A_FLUSH && write_batch(c))
        batches++;
    return batches == BATCHES_A_FLUSH;
}

#define LINGER_MS 1000
#define LINGER_MOST 32u /* most connections at a time, because strangers can make any number */

static void on_linger_over(uv_timer_t *timer)
{
    connection_close_handles(timer->data);
}

/* Resets the connection. A normal close would wait for acknowledgements, and the peer would not notice it. */
static void reset_lingering(struct connection *c)
{
    struct connection_stat stat = {0};
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->socket, &fd) == 0)
        tcp_stat(fd, NULL, 0, &stat);
    if (stat.unacked == 0 || !connection_reset(c))
        connection_close_handles(c);
}

void closing_begin(void *context, void *connection, struct outgoing *last)
{
    struct connection *c = connection;

    (void)context;
    c->link = NULL;
    c->closing = true;
    c->last = last;
    io_job_stop(&c->in); /* it reads into the link's memory */
    /* The timer also ends a write under way that blocks because the peer reads nothing. */
    if (last == NULL || uv_timer_start(&c->linger, on_linger_over, LINGER_MS, 0) != 0) {
        reset_lingering(c);
        return;
    }
    if (c->tcp->lingering ==
        LINGER_MOST) { /* the last message arrives only if the peer sends nothing more */
        if (!c->writing)
            closing_say_last(c);
        connection_close_handles(c);
        return;
    }
    c->lingers = true;
    c->tcp->lingering++;
    if (!c->reading) /* to notice the peer's end of file */
        (void)reading_start(c);
    if (!c->writing)
        closing_say_last(c);
}
