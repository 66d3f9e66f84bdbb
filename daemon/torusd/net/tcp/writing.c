#include "daemon/torusd/net/tcp/writing.h"

#include <errno.h>
#include <string.h>

#include "daemon/torusd/net/tcp/cipher.h"
#include "daemon/torusd/net/tcp/closing.h"
#include "daemon/torusd/net/tcp/connection.h"
#include "daemon/torusd/router/link.h"

#define BATCH_BYTES (128u * 1024u)
#define BATCH_BUFFERS 1024u
#define BATCHES_A_FLUSH 8u

static void written_all(struct connection *c)
{
    outgoing_clear(tcp_frames(c->tcp), &c->batch);
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
        connection_broken(c, uv_strerror(status));
    else if (c->closing)
        closing_say_last(c);
    else
        connection_mark_dirty(c);
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

/* Like uv_try_write(), but later bytes do not go into the same packet. */
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

/* The frames of one write. */
struct batch {
    uv_buf_t buffers[BATCH_BUFFERS];
    unsigned count;
    size_t bytes;
    bool packet; /* later bytes do not go into the same packet */
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
    outgoing_free(tcp_frames(c->tcp), frame);
    if (result == 0 && c->tcp->slow) /* so that a relay need not wait for later bytes */
        result = cipher_end_record(c->cipher);
    return result;
}

/* Collects the frames of one write. Returns 0, or -1 if there is no memory to encrypt them. */
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
        /* If a probe is lost, the handshake before it must not be lost with it. */
        b->packet = frame->plain || (frame->immediate && c->tcp->slow);
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

/* Writes one batch. Returns true if the next one may be tried at once. */
static bool write_batch(struct connection *c)
{
    struct batch b;

    b.count = 0, b.bytes = 0, b.packet = false; /* its buffers need not be cleared */
    if (c->link == NULL)
        return false;
    if (take_batch(&b, c) != 0) {
        connection_broken(c, "out of memory to encrypt frames");
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
        connection_broken(c, uv_strerror(written));
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
        connection_broken(c, uv_strerror(result));
    else
        c->writing = true;
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
