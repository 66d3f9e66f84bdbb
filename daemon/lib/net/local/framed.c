#include "daemon/lib/net/local/framed.h"

#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#define WAITING_MOST (2u * 1024u * 1024u) /* bytes that the peer has not read */

struct framed_write {
    uv_write_t request;
    uint8_t *frame;
    size_t size;
};

static void on_closed(uv_handle_t *handle)
{
    struct framed *f = handle->data;

    frame_stream_free(&f->in);
    f->closed(f);
}

void framed_close(struct framed *f)
{
    if (!uv_is_closing((uv_handle_t *)&f->pipe))
        uv_close((uv_handle_t *)&f->pipe, on_closed);
}

static void free_frame(uint8_t *frame, size_t size)
{
    if (frame != NULL)
        sodium_memzero(frame, size); /* some have secrets */
    free(frame);
}

static void on_written(uv_write_t *request, int status)
{
    struct framed_write *w = request->data;
    struct framed *f = request->handle->data;

    free_frame(w->frame, w->size);
    free(w);
    if (status != 0)
        framed_close(f);
}

void framed_write(struct framed *f, uint8_t *frame, size_t size)
{
    struct framed_write *w = calloc(1, sizeof *w);
    uv_buf_t buffer = uv_buf_init((char *)frame, (unsigned)size);

    if (w != NULL && frame != NULL && !uv_is_closing((uv_handle_t *)&f->pipe) &&
        uv_stream_get_write_queue_size((const uv_stream_t *)&f->pipe) <= WAITING_MOST) {
        *w = (struct framed_write){.request.data = w, .frame = frame, .size = size};
        if (uv_write(&w->request, (uv_stream_t *)&f->pipe, &buffer, 1, on_written) == 0)
            return;
    }
    free_frame(frame, size);
    free(w);
    framed_close(f);
}

void framed_send(struct framed *f, const ProtobufCMessage *message)
{
    size_t size = 0;
    uint8_t *frame = frame_pack(message, &size);

    framed_write(f, frame, size);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct framed *f = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&f->in, 4096, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct framed *f = stream->data;
    const uint8_t *head;
    size_t size;
    struct error e;
    int more;

    (void)buffer;
    if (length < 0) {
        framed_close(f);
        return;
    }
    frame_stream_added(&f->in, (size_t)length);
    while ((more = frame_stream_next(&f->in, f->most, &head, &size, &e)) > 0) {
        f->took(f, head, size);
        if (uv_is_closing((uv_handle_t *)&f->pipe))
            return;
    }
    if (more < 0)
        framed_close(f);
}

int framed_open(struct framed *f, uv_loop_t *loop, int fd)
{
    (void)uv_pipe_init(loop, &f->pipe, 0);
    f->pipe.data = f;
    if (uv_pipe_open(&f->pipe, fd) != 0)
        (void)close(fd);
    else if (uv_read_start((uv_stream_t *)&f->pipe, on_room, on_read) == 0)
        return 0;
    framed_close(f);
    return -1;
}
