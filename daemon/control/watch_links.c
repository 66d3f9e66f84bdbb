/* The request for the link states of the whole torus: all of them at once, and then each change. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/internal.h"

#define WATCHERS_MOST 16u /* each needs memory for what it was told */
#define AGAIN_MS 20       /* until a watcher that has not read yet is looked at again */
#define INTERFACE_MS 200  /* until an interface that is not known yet is looked up again */

struct link_watch {
    bool told_any;
    uint32_t *told; /* by rank: bits of ports whose links the client knows to be up */
    char interface[TORUS_MAX_PORTS][IFNAMSIZ]; /* that the client knows */
};

void control_watch_forget(struct control_client *client)
{
    if (client->watch == NULL)
        return;
    free(client->watch->told);
    free(client->watch);
    client->watch = NULL;
}

static uint32_t up_ports(const struct router *router, uint32_t rank)
{
    const struct torus *t = router_torus(router);
    uint32_t up = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (torus_neighbour(t, rank, port) != TORUS_NO_NODE &&
            topology_link_up(router_topology(router), rank, port))
            up |= UINT32_C(1) << port;
    return up;
}

struct states_message {
    char dims[TORUS_TEXT_SIZE];
    char *interface[TORUS_MAX_PORTS];
};

/* Sets what does not change: the torus, this node's place in it, and the interfaces of its ports. */
static void set_place(Control__LinkStates *states, const struct control_setup *set,
                      struct link_watch *watch, struct states_message *m)
{
    const struct torus *t = router_torus(set->router);

    states->dims = torus_format(t, m->dims);
    states->rank = router_rank(set->router);
    for (unsigned port = 0; port < torus_ports(t); port++)
        m->interface[port] = watch->interface[port];
    states->interface = m->interface;
    states->n_interface = torus_ports(t);
}

static void send_states(struct control_client *client, Control__LinkStates *states)
{
    const struct control_setup *set = &client->server->set;
    Control__Reply reply = CONTROL__REPLY__INIT;
    struct graphs_message graphs;
    struct states_message m;
    Control__Status lists = CONTROL__STATUS__INIT;

    set_place(states, set, client->watch, &m);
    if (states->all && control_graphs_fill(&lists, router_torus(set->router), &graphs) != 0) {
        control_graphs_free(&graphs, lists.n_graph);
        control_client_close(client);
        return;
    }
    states->graph = lists.graph;
    states->n_graph = lists.n_graph;
    reply.kind_case = CONTROL__REPLY__KIND_LINK_STATES;
    reply.link_states = states;
    control_reply(client, &reply);
    control_graphs_free(&graphs, lists.n_graph);
}

static void on_again(uv_timer_t *timer)
{
    control_watch_update(timer->data);
}

/* Notes which interfaces this node's ports use. Returns whether any has changed; *unknown tells whether one of a link
 * that is up is not known, which happens in the first moment of a link. */
static bool look_at_interfaces(const struct control_setup *set, struct link_watch *watch,
                               bool *unknown)
{
    const struct torus *t = router_torus(set->router);
    const uint32_t rank = router_rank(set->router);
    bool changed = false;

    *unknown = false;
    for (unsigned port = 0; port < torus_ports(t); port++) {
        char *known = watch->interface[port];
        const char *now =
            torus_neighbour(t, rank, port) != TORUS_NO_NODE ? tcp_interface(set->tcp, port) : "";
        *unknown |= now[0] == '\0' && (watch->told[rank] & UINT32_C(1) << port) != 0;
        if (strncmp(known, now, IFNAMSIZ - 1) == 0)
            continue;
        (void)snprintf(known, IFNAMSIZ, "%.*s", IFNAMSIZ - 1, now);
        changed = true;
    }
    return changed;
}

void control_watch_update(struct control_client *client)
{
    const struct control_setup *set = &client->server->set;
    const uint32_t nodes = router_torus(set->router)->nodes;
    Control__LinkStates states = CONTROL__LINK_STATES__INIT;
    struct link_watch *watch = client->watch;
    bool changed, unknown;

    if (watch == NULL || uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > 0) {
        (void)uv_timer_start(&client->progress, on_again, AGAIN_MS, 0);
        return;
    }
    states.node = calloc(nodes, sizeof *states.node);
    states.up = calloc(nodes, sizeof *states.up);
    for (uint32_t rank = 0; rank < nodes && states.node != NULL && states.up != NULL; rank++) {
        uint32_t up = up_ports(set->router, rank);
        if (watch->told_any && up == watch->told[rank])
            continue;
        states.node[states.n_node++] = rank;
        states.up[states.n_up++] = watch->told[rank] = up;
    }
    changed = look_at_interfaces(set, watch, &unknown);
    states.all = !watch->told_any;
    watch->told_any = true;
    if (states.node == NULL || states.up == NULL)
        control_client_close(client);
    else if (states.n_node > 0 || changed)
        send_states(client, &states);
    if (unknown)
        (void)uv_timer_start(&client->progress, on_again, INTERFACE_MS, 0);
    free(states.node);
    free(states.up);
}

void control_watch_links(struct control_client *client, const Control__Request *request)
{
    const uint32_t nodes = router_torus(client->server->set.router)->nodes;
    struct error e;
    unsigned watchers = 0;

    (void)request;
    for (const struct control_client *c = client->server->clients; c != NULL; c = c->next)
        watchers += c->watch != NULL;
    if (watchers >= WATCHERS_MOST) {
        (void)error_set(&e, ERROR_REFUSED, "%u clients watch the links already: end one of them",
                        watchers);
        control_reply_error(client, &e, NULL);
        return;
    }
    client->watch = calloc(1, sizeof *client->watch);
    if (client->watch != NULL)
        client->watch->told = calloc(nodes, sizeof *client->watch->told);
    if (client->watch == NULL || client->watch->told == NULL) {
        control_watch_forget(client);
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the link states");
        control_reply_error(client, &e, NULL);
        return;
    }
    control_watch_update(client);
}
