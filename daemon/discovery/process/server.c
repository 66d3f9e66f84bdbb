#include "daemon/discovery/process/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/discovery/process/client.h"
#include "daemon/net/local/local.h"

#define CLIENTS_MOST 32u

struct discovery_server {
    uv_loop_t *loop;
    struct discovery *discovery;
    struct listener listener;
    struct reserve reserve;
    struct local_name name;
    struct discovery_client *clients;
    unsigned count;
    bool closing, listener_closed;
};

static void release(struct discovery_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    free(s);
}

static void on_client_closed(struct discovery_client *client)
{
    struct discovery_server *s = client->context;

    for (struct discovery_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    s->count--;
    free(client);
    release(s);
}

static void on_accepted(void *context, int fd)
{
    struct discovery_server *s = context;
    struct discovery_client *client =
        s->closing || s->count >= CLIENTS_MOST ? NULL : calloc(1, sizeof *client);
    uint32_t user = access_user(fd);

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->discovery = s->discovery;
    client->may_set_up = user == 0 || user == geteuid();
    client->closed = on_client_closed;
    client->context = s;
    client->next = s->clients;
    s->clients = client;
    s->count++;
    (void)discovery_client_begin(client, s->loop, fd);
}

static void on_listener_closed(void *context)
{
    struct discovery_server *s = context;

    s->listener_closed = true;
    release(s);
}

struct discovery_server *discovery_server_open(uv_loop_t *loop, const char *path,
                                               struct discovery *discovery, struct error *e)
{
    struct discovery_server *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the discovery socket");
        return NULL;
    }
    s->loop = loop;
    s->discovery = discovery;
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    if (local_listen(&s->listener, loop, path, NULL, &s->name, e) != 0) {
        (void)error_wrap(e, "discovery socket %s", path);
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

void discovery_server_close(struct discovery_server *s)
{
    s->closing = true;
    for (struct discovery_client *c = s->clients; c != NULL; c = c->next)
        discovery_client_close(c);
    local_remove(&s->name);
    listener_close(&s->listener);
}
