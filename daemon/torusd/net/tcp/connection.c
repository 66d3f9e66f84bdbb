#include "daemon/torusd/net/tcp/connection.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/torusd/net/tcp/cipher.h"
#include "daemon/torusd/router/link.h"

void tcp_release(struct tcp *tcp)
{
    if (--tcp->handles == 0 && tcp->closing) {
        reserve_close(&tcp->reserve);
        outgoing_pool_close(&tcp->frames);
        free(tcp);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct tcp *tcp = c->tcp;

    if (--c->handles > 0)
        return;
    outgoing_clear(tcp_frames(tcp), &c->batch);
    if (c->last != NULL)
        outgoing_free(tcp_frames(tcp), c->last);
    tcp->lingering -= c->lingers;
    cipher_free(c->cipher);
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

void connection_close_handles(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    connection_forget_dirty(c);
    uv_close((uv_handle_t *)&c->socket, on_handle_closed);
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
}

bool connection_reset(struct connection *c)
{
    if (uv_tcp_close_reset(&c->socket, on_handle_closed) != 0)
        return false;
    connection_forget_dirty(c);
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
