/* The request for the state of the node and of everything that is under way. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/torusd/control/internal.h"
#include "proto/elapsed.h"
#include "proto/version.h"

#define EXCHANGES_SHOWN 16u
#define ENDED_SHOWN 2u /* in surveys: exchanges, if fewer are under way */
#define FAULTS_SHOWN 16u
#define LINK_FAULTS_SHOWN 32u
#define GROUPS_SHOWN 64u
#define COPIES_SHOWN 16u
#define UNCONFIRMED_SHOWN 16u
#define HOLDERS_SHOWN 16u /* of each resource */

/* Defines the room for a list of the status, and the function that fills it. */
#define STATUS_LIST(field, Message, all, thing, list_function, most, FIELDS)                       \
    struct field##_message {                                                                       \
        struct thing info[most];                                                                   \
        Control__Status__##Message one[most], *list[most];                                         \
    };                                                                                             \
                                                                                                   \
    static void set_##field(Control__Status *status, const struct all *of,                         \
                            struct field##_message *m)                                             \
    {                                                                                              \
        status->n_##field = list_function(of, m->info, most);                                      \
        for (size_t i = 0; i < status->n_##field; i++) {                                           \
            struct thing *from = &m->info[i];                                                      \
            Control__Status__##Message *to = m->list[i] = &m->one[i];                              \
            control__status__##field##__init(to);                                                  \
            FIELDS(CONTROL_FILL)                                                                   \
        }                                                                                          \
        status->field = m->list;                                                                   \
    }

#define UNCONFIRMED(F)                                                                             \
    CONTROL_STATUS_UNCONFIRMED(F)                                                                  \
    to->n_node =                                                                                   \
        from->count < EXCHANGE_UNCONFIRMED_NAMED ? from->count : EXCHANGE_UNCONFIRMED_NAMED;       \
    to->node = from->node;

STATUS_LIST(exchange, Exchange, exchanges, exchange_info, exchanges_list, EXCHANGES_SHOWN,
            CONTROL_STATUS_EXCHANGE)
STATUS_LIST(group, Group, groups, group_info, groups_list, GROUPS_SHOWN, CONTROL_STATUS_GROUP)
STATUS_LIST(copy, Copy, copies, copy_info, copies_list, COPIES_SHOWN, CONTROL_STATUS_COPY)
STATUS_LIST(unconfirmed, Unconfirmed, exchanges, exchange_unconfirmed, exchanges_unconfirmed,
            UNCONFIRMED_SHOWN, UNCONFIRMED)

struct link_faults_message {
    char text[LINK_FAULTS_SHOWN][LINK_FAULT_TEXT_SIZE];
    Control__Status__LinkFault one[LINK_FAULTS_SHOWN], *list[LINK_FAULTS_SHOWN];
};

static void set_link_faults(Control__Status *status, const struct router *router,
                            struct link_faults_message *m)
{
    struct fault_report report;
    const struct fault_report *from = &report;

    for (unsigned i = 0; i < LINK_FAULTS_SHOWN && router_fault(router, i, &report); i++) {
        Control__Status__LinkFault *to = m->list[i] = &m->one[i];
        const bool found = report.fault.code > LINK_FAULT_MTU;
        control__status__link_fault__init(to);
        link_fault_text(router_torus(router), &report, m->text[i], sizeof m->text[i]);
        CONTROL_STATUS_LINK_FAULT(CONTROL_FILL)
        to->found = found;
        status->n_link_fault++;
    }
    status->link_fault = m->list;
}

struct shares_message {
    Control__Status__Share share[SHARES * HOLDERS_SHOWN], *list[SHARES * HOLDERS_SHOWN];
};

static void set_shares(Control__Status *status, const struct shares *all, struct shares_message *m)
{
    struct share_holder holder[HOLDERS_SHOWN];

    for (enum share share = 0; share < SHARES; share++) {
        size_t count = shares_holders(all, share, holder, HOLDERS_SHOWN);
        for (size_t i = 0; i < count; i++) {
            const struct share_holder *from = &holder[i];
            Control__Status__Share *to = m->list[status->n_share] = &m->share[status->n_share];
            control__status__share__init(to);
            CONTROL_STATUS_SHARE(CONTROL_FILL)
            status->n_share++;
        }
    }
    status->share = m->list;
}

/* Describes a link that is held, or that cannot even be tried; returns false for other links. */
static bool describe_port(const struct control_setup *set, unsigned port, char *text, size_t size)
{
    const char *missing = tcp_missing(set->tcp, port);
    struct port_info info;
    char name[TORUS_PORT_NAME_SIZE];

    router_port_info(set->router, port, &info);
    if (info.state == PORT_WAITING && missing != NULL) {
        (void)snprintf(
            text, size, "port %s waits for node %u: %s",
            torus_port_name(router_torus(set->router), router_rank(set->router), port, name),
            info.neighbour, missing);
        return true;
    }
    if (info.state != PORT_HELD)
        return false;
    (void)snprintf(text, size,
                   "port %s: the link to node %u flaps, and is not used until it has been quiet "
                   "for %.1f s more",
                   torus_port_name(router_torus(set->router), router_rank(set->router), port, name),
                   info.neighbour, (double)info.held_ns / (double)SECONDS);
    return true;
}

struct faults_message {
    char text[FAULTS_SHOWN][PORT_REASON_SIZE + 40], *list[FAULTS_SHOWN];
};

/* Sets the faults of the topology and of this node's ports. */
static void set_faults(Control__Status *status, const struct control_setup *set,
                       struct faults_message *m)
{
    const struct topology *topology = router_topology(set->router);

    for (unsigned i = 0; i < FAULTS_SHOWN && !status->whole; i++) {
        struct error fault;
        if (!topology_fault(topology, i, &fault))
            break;
        (void)snprintf(m->text[i], sizeof m->text[i], "%.*s", (int)sizeof m->text[i] - 1,
                       fault.text);
        m->list[status->n_fault++] = m->text[i];
    }
    for (unsigned port = 0;
         port < torus_ports(router_torus(set->router)) && status->n_fault < FAULTS_SHOWN; port++)
        if (describe_port(set, port, m->text[status->n_fault], sizeof m->text[0])) {
            m->list[status->n_fault] = m->text[status->n_fault];
            status->n_fault++;
        }
    status->fault = m->list;
}

struct node_message {
    char dims[TORUS_TEXT_SIZE];
    uint32_t coordinates[TORUS_MAX_DIMS];
    struct utsname host;
    char key[SECRETS_MOST][KEY_ID_TEXT_SIZE], *keys[SECRETS_MOST];
};

void control_graphs_free(struct graphs_message *m, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(m->one[i].edge);
}

int control_graphs_fill(Control__Status *status, const struct torus *t, struct graphs_message *m)
{
    for (unsigned dim = 0; dim < t->dims; dim++) {
        const struct graph *g = t->graph[dim];
        if (g == NULL || g->kind != GRAPH_KIND_EDGES)
            continue;
        Control__Status__Graph *one = m->list[status->n_graph] = &m->one[status->n_graph];
        control__status__graph__init(one);
        one->n_edge = 2 * (size_t)g->links;
        one->edge = calloc(one->n_edge, sizeof *one->edge);
        if (one->edge == NULL)
            return -1;
        graph_edges(g, one->edge);
        status->n_graph++;
    }
    status->graph = m->list;
    return 0;
}

struct status_message {
    struct node_message node;
    struct faults_message faults;
    struct exchange_message exchange;
    struct calibration_message calibration;
    struct group_message group;
    struct copy_message copy;
    struct unconfirmed_message unconfirmed;
    struct link_faults_message link_faults;
    struct shares_message shares;
    struct graphs_message graphs;
};

/* Sets the torus, this node's place in it, and what else has one value. */
static void set_node(Control__Status *to, const struct control_server *from,
                     struct status_message *m)
{
    const struct control_setup *set = &from->set;
    const struct router *router = set->router;
    const struct torus *t = router_torus(router);
    const uint64_t used = (uint64_t)router_pool(set->router)->in_use * SLAB_SIZE;

    if (uname(&m->node.host) != 0)
        m->node.host.nodename[0] = '\0';
    CONTROL_STATUS(CONTROL_FILL)
    torus_coordinates(t, to->rank, m->node.coordinates);
    to->n_coordinates = t->dims;
    to->coordinates = m->node.coordinates;
    for (unsigned i = 0; i < SECRETS_MOST && router_key_id(router, i) != NULL; i++)
        m->node.keys[to->n_key++] = key_id_text(router_key_id(router, i), m->node.key[i]);
    to->key = m->node.keys;
    to->n_data_root = set->roots->count;
    to->data_root = set->roots->path;
}

/* Sets everything except graphs. */
static void set_status(Control__Status *status, const struct control_server *server,
                       struct status_message *m)
{
    const struct control_setup *set = &server->set;

    set_node(status, server, m);
    set_faults(status, set, &m->faults);
    set_exchange(status, set->exchanges, &m->exchange);
    set_link_faults(status, set->router, &m->link_faults);
    set_group(status, set->groups, &m->group);
    set_copy(status, set->copies, &m->copy);
    set_unconfirmed(status, set->exchanges, &m->unconfirmed);
    set_shares(status, set->shares, &m->shares);
    control_calibration_fill(set->exchanges, &m->calibration);
    status->calibration = &m->calibration.message;
}

void control_status(struct control_client *client, const Control__Request *request)
{
    struct status_message m;
    Control__Status status = CONTROL__STATUS__INIT;

    (void)request;
    set_status(&status, client->server, &m);
    if (control_graphs_fill(&status, router_torus(client->server->set.router), &m.graphs) == 0)
        control_reply(client, CONTROL_REPLY(STATUS, status, &status));
    else
        control_reply_error(
            client, &(struct error){.code = ERROR_MEMORY, .text = "out of memory for the status"},
            NULL);
    control_graphs_free(&m.graphs, status.n_graph);
}

/* Each node tells this of itself; what others know, too, would come many times. */
static void leave_out_others(Control__Status *status, struct status_message *m)
{
    size_t own = 0, running = 0;

    for (size_t i = 0; i < status->n_link_fault; i++)
        if (status->link_fault[i]->node == status->rank)
            m->link_faults.list[own++] = status->link_fault[i];
    status->n_link_fault = own;
    for (size_t i = 0; i < status->n_exchange; i++)
        if (!exchange_has_ended(m->exchange.info[i].state) || running < ENDED_SHOWN)
            running++;
        else
            break; /* those that have ended come last */
    status->n_exchange = running;
    status->n_fault = 0;
}

void control_with_own_status(const struct control_server *server,
                             void (*use)(void *context, Control__Status *status), void *context)
{
    struct status_message m;
    Control__Status status = CONTROL__STATUS__INIT;

    set_status(&status, server, &m);
    leave_out_others(&status, &m);
    use(context, &status);
}
