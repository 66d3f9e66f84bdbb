#include "daemon/torusd/net/tcp/closing.h"

#include "daemon/torusd/net/tcp/cipher.h"
#include "daemon/torusd/net/tcp/connection.h"
#include "daemon/torusd/net/tcp/reading.h"
#include "daemon/torusd/net/tcp/tcp_stat.h"

#define LINGER_MS 1000
#define LINGER_MOST 32u /* most connections at a time, because strangers can make any number */

static void on_linger_over(uv_timer_t *timer)
{
    connection_close_handles(timer->data);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;

    if (status != 0)
        connection_close_handles(c);
}

void closing_say_last(struct connection *c)
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
    if (c->held) /* reading must continue, to notice the peer's end of file */
        (void)reading_start(c);
    if (!c->writing)
        closing_say_last(c);
}
