/* The request for the link states of the whole torus: all of them at once, and then each change. The client may
 * confirm link states, which all nodes hear of. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/control/internal.h"
#include "daemon/torusd/control/route_counts.h"

#define WATCHERS_MOST 16u /* each needs memory for what it was told */
#define AGAIN_MS 20       /* until a watcher that has not read yet is looked at again */
#define INTERFACE_MS 200  /* until an interface that is not known yet is looked up again */
#define LATER_MS                                                                                   \
    5 /* until interfaces are looked up after a change, which other nodes hear of first */

struct link_watch {
    bool told_any;
    uint32_t *told;           /* by rank: bits of ports whose links the client knows to be up */
    bool *told_forwards;      /* by rank: what the client knows of forwarding */
    uint64_t *told_confirmed; /* by rank: what the client knows to be confirmed */
    uint32_t *told_rates;     /* by rank and port: what the client knows of rates */
    bool confirms;            /* this node states what the client has confirmed */
    bool by_rates;            /* its routes follow rates */
    char interface[TORUS_MAX_PORTS][IFNAMSIZ]; /* that the client knows */
};

void control_watch_forget(struct control_client *client)
{
    if (client->watch == NULL)
        return;
    free(client->watch->told);
    free(client->watch->told_forwards);
    free(client->watch->told_confirmed);
    free(client->watch->told_rates);
    free(client->watch);
    client->watch = NULL;
}

void control_watch_gone(struct control_client *client)
{
    if (client->watch == NULL || !client->watch->confirms)
        return;
    client->watch->confirms = false;
    *client->server->set.routes = (struct route_counts){.runs = false};
    router_confirm(client->server->set.router, 0);
    router_forward_lost(client->server->set.router);
}

/* Notes what monitoring serves. */
static void note_counts(const struct control_setup *set, const Control__RoutesConfirmed *confirmed)
{
    const Control__RouteCounts *counts = confirmed->counts;
    struct route_counts *known = set->routes;

    *known = (struct route_counts){.runs = true, .known = counts != NULL};
    if (counts == NULL)
        return;
    known->forwards = confirmed->forwards;
    known->problem = counts->problem;
    for (size_t state = 0; state < counts->n_hosts && state < ROUTE_STATES; state++)
        known->hosts[state] = counts->hosts[state];
    known->ways_lost = counts->ways_lost;
    known->ways_gained = counts->ways_gained;
    known->changed = uv_now(set->loop) - counts->unchanged_ms;
}

/* If nodes plan by rates, a host whose routes do not follow them may be no node on the way of others. */
static bool may_forward(const struct control_client *client)
{
    return client->watch->by_rates || !router_knows_rates(client->server->set.router);
}

void control_routes_confirmed(struct control_client *client, const Control__Request *request)
{
    const struct error early = {.code = ERROR_PROTOCOL,
                                .text = "only a client that watches the links can confirm them"};

    if (client->watch == NULL) {
        control_reply_error(client, &early, NULL);
        return;
    }
    for (struct control_client *c = client->server->clients; c != NULL; c = c->next)
        if (c->watch != NULL)
            c->watch->confirms = c == client;
    note_counts(&client->server->set, request->routes_confirmed);
    router_confirm(client->server->set.router, request->routes_confirmed->digest);
    client->watch->by_rates = request->routes_confirmed->rates;
    router_forward(client->server->set.router,
                   request->routes_confirmed->forwards && may_forward(client));
}

/* `knows`: router_knows_forwarding(). */
static uint32_t up_ports(const struct router *router, uint32_t rank, bool knows)
{
    const struct torus *t = router_torus(router);
    uint32_t up = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (torus_neighbour(t, rank, port) != TORUS_NO_NODE &&
            topology_link_up(router_topology(router), rank, port) &&
            !(knows && topology_link_quiet(router_topology(router), rank, port)))
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
    control_reply(client, CONTROL_REPLY(LINK_STATES, link_states, states));
    control_graphs_free(&graphs, lists.n_graph);
}

static void on_again(uv_timer_t *timer)
{
    control_watch_update(timer->data, true);
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

/* Makes room for the states and confirmations of all nodes. Returns 0, or -1 without memory. */
static int make_room(Control__LinkStates *states, const struct torus *t)
{
    const size_t nodes = t->nodes;

    states->node = calloc(nodes, sizeof *states->node);
    states->up = calloc(nodes, sizeof *states->up);
    states->forwards = calloc(nodes, sizeof *states->forwards);
    states->confirmed_node = calloc(nodes, sizeof *states->confirmed_node);
    states->confirmed = calloc(nodes, sizeof *states->confirmed);
    states->rate = calloc(nodes * torus_ports(t), sizeof *states->rate);
    return states->rate != NULL && states->node != NULL && states->up != NULL &&
                   states->forwards != NULL && states->confirmed_node != NULL &&
                   states->confirmed != NULL
               ? 0
               : -1;
}

static void free_room(Control__LinkStates *states)
{
    free(states->node);
    free(states->up);
    free(states->forwards);
    free(states->confirmed_node);
    free(states->confirmed);
    free(states->rate);
}

/* Whether the client knows other rates of the links of a node. */
static bool has_other_rates(const struct link_watch *watch, const struct router *router,
                            uint32_t rank)
{
    const unsigned ports = torus_ports(router_torus(router));
    bool other = false;

    for (unsigned port = 0; port < ports; port++)
        other |= watch->told_rates[(size_t)rank * ports + port] !=
                 router_channel_rate(router, rank, port);
    return other;
}

static void list_rates(Control__LinkStates *states, struct link_watch *watch,
                       const struct router *router, uint32_t rank)
{
    const unsigned ports = torus_ports(router_torus(router));

    for (unsigned port = 0; port < ports; port++)
        states->rate[states->n_rate++] = watch->told_rates[(size_t)rank * ports + port] =
            router_channel_rate(router, rank, port);
}

/* Lists what the client does not know yet. */
static void list_news(Control__LinkStates *states, struct link_watch *watch,
                      const struct router *router)
{
    const bool knows = router_knows_forwarding(router);

    for (uint32_t rank = 0; rank < router_torus(router)->nodes; rank++) {
        const struct topology_entry *entry = &router_topology(router)->entry[rank];
        const uint32_t up = up_ports(router, rank, knows);
        const bool forwards = !knows || entry->forwards != TOPOLOGY_FORWARDS_NOT;
        const uint64_t confirmed = entry->confirmed;
        if (!watch->told_any || up != watch->told[rank] || forwards != watch->told_forwards[rank] ||
            has_other_rates(watch, router, rank)) {
            list_rates(states, watch, router, rank);
            states->node[states->n_node++] = rank;
            states->up[states->n_up++] = watch->told[rank] = up;
            states->forwards[states->n_forwards++] = watch->told_forwards[rank] = forwards;
        }
        if (rank == router_rank(router) || confirmed == watch->told_confirmed[rank])
            continue;
        states->confirmed_node[states->n_confirmed_node++] = rank;
        states->confirmed[states->n_confirmed++] = watch->told_confirmed[rank] = confirmed;
    }
}

void control_watch_update(struct control_client *client, bool looks)
{
    const struct control_setup *set = &client->server->set;
    Control__LinkStates states = CONTROL__LINK_STATES__INIT;
    struct link_watch *watch = client->watch;
    bool changed = false, unknown = false;

    if (watch == NULL || framed_is_closing(&client->framed))
        return;
    if (framed_waiting(&client->framed) > 0) {
        (void)uv_timer_start(&client->progress, on_again, AGAIN_MS, 0);
        return;
    }
    /* only what the client says itself may renew its lease */
    if (watch->confirms && !may_forward(client))
        router_forward(set->router, false);
    if (make_room(&states, router_torus(set->router)) != 0) {
        free_room(&states);
        control_client_close(client);
        return;
    }
    list_news(&states, watch, set->router);
    if (looks)
        changed = look_at_interfaces(set, watch, &unknown);
    states.confirms = client->access >= ACCESS_EXCHANGE;
    states.all = !watch->told_any;
    watch->told_any = true;
    if (states.n_node > 0 || states.n_confirmed > 0 || changed)
        send_states(client, &states);
    if (unknown)
        (void)uv_timer_start(&client->progress, on_again, INTERFACE_MS, 0);
    else if (!looks && states.n_node > 0)
        (void)uv_timer_start(&client->progress, on_again, LATER_MS, 0);
    free_room(&states);
}

void control_watch_links(struct control_client *client, const Control__Request *request)
{
    const struct torus *t = router_torus(client->server->set.router);
    const uint32_t nodes = t->nodes;
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
    if (client->watch != NULL) {
        client->watch->told = calloc(nodes, sizeof *client->watch->told);
        client->watch->told_forwards = calloc(nodes, sizeof *client->watch->told_forwards);
        client->watch->told_confirmed = calloc(nodes, sizeof *client->watch->told_confirmed);
        client->watch->told_rates =
            calloc((size_t)nodes * torus_ports(t), sizeof *client->watch->told_rates);
    }
    if (client->watch == NULL || client->watch->told == NULL ||
        client->watch->told_forwards == NULL || client->watch->told_confirmed == NULL ||
        client->watch->told_rates == NULL) {
        control_watch_forget(client);
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the link states");
        control_reply_error(client, &e, NULL);
        return;
    }
    control_watch_update(client, true);
}
