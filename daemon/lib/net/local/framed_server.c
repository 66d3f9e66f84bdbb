#include "daemon/lib/net/local/framed_server.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/lib/net/local/local.h"

struct framed_server {
    struct framed_server_user user;
    uv_loop_t *loop;
    struct listener listener;
    struct reserve reserve;
    struct local_name name;
    struct framed_client *clients;
    unsigned count;
    bool closing, listener_closed;
};

static void release(struct framed_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    if (s->user.closed != NULL)
        s->user.closed(s->user.context);
    free(s);
}

static void on_client_closed(struct framed *framed)
{
    struct framed_client *client = framed->context;
    struct framed_server *s = client->server;

    for (struct framed_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    s->count--;
    if (s->user.left != NULL)
        s->user.left(s->user.context, client);
    free(client);
    release(s);
}

static void on_took(struct framed *framed, const uint8_t *bytes, size_t size)
{
    struct framed_client *client = framed->context;
    const struct framed_server_user *user = &client->server->user;

    user->took(user->context, client, bytes, size);
}

static void on_accepted(void *context, int fd)
{
    struct framed_server *s = context;
    struct framed_client *client =
        s->closing || s->count >= s->user.clients ? NULL : calloc(1, sizeof *client);

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->user = access_user(fd);
    client->server = s;
    client->framed.most = s->user.most;
    client->framed.took = on_took;
    client->framed.closed = on_client_closed;
    client->framed.context = client;
    client->next = s->clients;
    s->clients = client;
    s->count++;
    (void)framed_open(&client->framed, s->loop, fd);
}

static void on_listener_closed(void *context)
{
    struct framed_server *s = context;

    s->listener_closed = true;
    release(s);
}

struct framed_server *framed_server_open(uv_loop_t *loop, const char *path,
                                         const struct access_rules *rules,
                                         const struct framed_server_user *user, struct error *e)
{
    struct framed_server *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the socket %s", path);
        return NULL;
    }
    s->user = *user;
    s->loop = loop;
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    if (local_listen(&s->listener, loop, path, rules, &s->name, e) != 0) {
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

struct framed_client *framed_server_clients(const struct framed_server *s)
{
    return s->clients;
}

void framed_server_close(struct framed_server *s)
{
    s->closing = true;
    for (struct framed_client *c = s->clients; c != NULL; c = c->next)
        framed_close(&c->framed);
    local_remove(&s->name);
    listener_close(&s->listener);
}
