/* Accepts clients, as many as descriptors allow; a client beyond that is told so, and closed. */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/net/access.h"
#include "daemon/lib/net/unix_socket.h"
#include "daemon/torusd/control/internal.h"
#include "daemon/torusd/control/server.h"

#define CLIENTS_MOST 512u
#define ASKERS_SHARE 8u  /* clients per asker (take_slot()) */
#define DENIED_MOST 16u  /* refused clients that get time to read why */
#define CLIENTS_SHARE 4u /* clients get this fraction of the descriptors of the process */

static void server_release(struct control_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    free(s);
}

static void on_leaves(struct control_client *client)
{
    /* The client may still wait for the result of its exchange. If it has disconnected, writing the answer
     * fails. */
    exchange_cancel(client->exchange);
}

static void on_closed(struct control_client *client)
{
    struct control_server *s = client->server;

    for (struct control_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    control_candidates_forget(client);
    control_watch_forget(client);
    if (client->access == ACCESS_NONE)
        s->denied--;
    free(client);
    reserve_fill(&s->reserve, s->closing ? 0 : 1);
    server_release(s);
}

static void on_gone(struct control_client *client)
{
    control_exchange_abandon(client);
    control_copy_abandon(client);
    control_schedule_leave(client);
    control_survey_forget(client);
    control_watch_gone(client);
    if (client->counted)
        shares_give(client->server->set.shares, client->state_only ? SHARE_ASKERS : SHARE_CLIENTS,
                    client->user, 1);
    client->counted = false;
}

static const struct control_hooks hooks = {control_request, on_leaves, on_gone, on_closed};

/* The most clients: a share of the descriptors, since links and files need theirs. */
static unsigned most_clients(void)
{
    struct rlimit limit;
    rlim_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CLIENTS_MOST;
    share = limit.rlim_cur / CLIENTS_SHARE;
    return share < CLIENTS_MOST ? (unsigned)share : CLIENTS_MOST;
}

/* Takes a slot for the client. If its user may have no more, takes one of the slots that allow
 * to ask for the state only. Returns 0, or -1 with *e. */
static int take_slot(struct control_client *client, struct error *e)
{
    struct control_server *s = client->server;
    struct error none;

    if (s->reserve.held == 0)
        return error_set(e, ERROR_REFUSED,
                         "torusd has no file descriptors left: try again later, or raise its limit "
                         "(LimitNOFILE, ulimit -n)");
    client->counted = shares_take(s->set.shares, SHARE_CLIENTS, client->user, 1, e) == 0;
    if (client->counted)
        return 0;
    e->code = ERROR_REFUSED; /* not ERROR_BUSY, because clients do not wait for a slot */
    client->no_slot = *e;
    client->state_only = client->counted =
        shares_take(s->set.shares, SHARE_ASKERS, client->user, 1, &none) == 0;
    return client->counted ? 0 : -1;
}

static void on_accepted(void *context, int fd)
{
    struct control_server *s = context;
    struct control_client *client = s->closing ? NULL : calloc(1, sizeof *client);
    struct error e;

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->hooks = &hooks;
    client->server = s;
    client->next = s->clients;
    s->clients = client;
    client->access = access_of_peer(s->set.access, fd);
    client->user = access_user(fd);
    if (client->access == ACCESS_NONE)
        s->denied++;
    if (control_client_open(client, fd) != 0)
        return;
    if (access_check(s->set.access, client->access, ACCESS_READ, &e) != 0)
        control_client_refuse(client, &e, s->reserve.held > 0 && s->denied <= DENIED_MOST);
    else if (take_slot(client, &e) != 0)
        control_client_refuse(client, &e, false);
    else if (client->state_only)
        control_client_hurry(client);
}

static void on_listener_closed(void *context)
{
    struct control_server *s = context;

    s->listener_closed = true;
    server_release(s);
}

struct control_server *control_open(const struct control_setup *setup, struct error *e)
{
    struct control_server *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the control socket");
        return NULL;
    }
    s->set = *setup;
    s->started = uv_hrtime();
    shares_set_capacity(setup->shares, SHARE_CLIENTS, most_clients());
    shares_set_capacity(setup->shares, SHARE_ASKERS, most_clients() / ASKERS_SHARE + 1);
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    if (local_listen(&s->listener, setup->loop, setup->path, setup->access, &s->name, e) != 0) {
        (void)error_wrap(e, "control socket %s", setup->path);
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

void control_schedules_counted(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_candidates_counted(c);
}

void control_links_changed(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_watch_update(c, false);
}

void control_interfaces_changed(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_watch_update(c, true);
}

void control_settings_changed(struct control_server *s, const struct roots *roots,
                              uint64_t memory_budget, double link_mbit)
{
    s->set.roots = roots;
    s->set.link_mbit = link_mbit;
    s->set.memory_budget = memory_budget;
    local_permit(&s->name, s->set.access);
}

void control_close(struct control_server *s)
{
    s->closing = true;
    for (struct control_client *c = s->clients; c != NULL; c = c->next) {
        control_exchange_stopped(c);
        control_copy_stopped(c);
        control_client_close(c);
    }
    local_remove(&s->name);
    listener_close(&s->listener);
}
