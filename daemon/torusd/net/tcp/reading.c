#include "daemon/torusd/net/tcp/reading.h"

#include "daemon/torusd/net/tcp/cipher.h"
#include "daemon/torusd/net/tcp/connection.h"
#include "daemon/torusd/router/link.h"

_Static_assert(LINK_ROOM_LEAST >= CIPHER_RECORD, "a record is opened into the room of a link");

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char discarded[4096]; /* bytes that arrive after the daemon has closed the connection */
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
        *buffer = uv_buf_init(NULL, 0); /* makes the read fail with ENOBUFS */
}

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
            connection_broken(c, "the received bytes are not what the neighbour encrypted");
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
        connection_close_handles(c);
    } else if (length < 0) {
        connection_broken(c,
                          length == UV_EOF ? "closed by the other side" : uv_strerror((int)length));
    }
}

int reading_start(struct connection *c)
{
    return uv_read_start((uv_stream_t *)&c->socket, on_room, on_read) == 0 ? 0 : -1;
}

void reading_resume(struct connection *c)
{
    if (!c->held || link_held(c->link))
        return;
    c->held = false;
    if (reading_start(c) != 0)
        connection_broken(c, "cannot read from its socket again");
}
