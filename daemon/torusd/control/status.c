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

struct groups_message {
    struct group_info info[GROUPS_SHOWN];
    Control__Status__Group group[GROUPS_SHOWN], *list[GROUPS_SHOWN];
};

static void set_groups(Control__Status *status, const struct groups *all, struct groups_message *m)
{
    status->n_group = groups_list(all, m->info, GROUPS_SHOWN);
    for (size_t i = 0; i < status->n_group; i++) {
        Control__Status__Group *g = m->list[i] = &m->group[i];
        control__status__group__init(g);
        g->name = m->info[i].name;
        g->id = m->info[i].id;
        g->open = m->info[i].open;
        g->missing = m->info[i].missing;
        g->avoids = m->info[i].avoids;
        g->process = m->info[i].process;
        g->calls = m->info[i].calls;
        g->calls_done = m->info[i].calls_done;
        g->bytes_sent = m->info[i].bytes_sent;
        g->bytes_received = m->info[i].bytes_received;
        g->early = m->info[i].early;
        g->reserved = m->info[i].reserved;
    }
    status->group = m->list;
}

struct copies_message {
    struct copy_info info[COPIES_SHOWN];
    Control__Status__Copy copy[COPIES_SHOWN], *list[COPIES_SHOWN];
};

static void set_copies(Control__Status *status, const struct copies *all, struct copies_message *m)
{
    status->n_copy = copies_list(all, m->info, COPIES_SHOWN);
    for (size_t i = 0; i < status->n_copy; i++) {
        Control__Status__Copy *c = m->list[i] = &m->copy[i];
        control__status__copy__init(c);
        c->id = m->info[i].id;
        c->asker = m->info[i].asker;
        c->phase = m->info[i].progress.phase;
        c->files = m->info[i].progress.files;
        c->bytes = m->info[i].progress.bytes;
        c->bytes_of = m->info[i].progress.bytes_of;
        c->waits_for = m->info[i].progress.waits_for;
        c->target = m->info[i].target;
    }
    status->copy = m->list;
}

struct link_faults_message {
    char text[LINK_FAULTS_SHOWN][LINK_FAULT_TEXT_SIZE];
    Control__Status__LinkFault one[LINK_FAULTS_SHOWN], *list[LINK_FAULTS_SHOWN];
};

static void set_link_faults(Control__Status *status, const struct router *router,
                            struct link_faults_message *m)
{
    struct fault_report report;

    for (unsigned i = 0; i < LINK_FAULTS_SHOWN && router_fault(router, i, &report); i++) {
        Control__Status__LinkFault *f = m->list[i] = &m->one[i];
        control__status__link_fault__init(f);
        link_fault_text(router_torus(router), &report, m->text[i], sizeof m->text[i]);
        f->node = report.rank;
        f->port = report.port;
        f->code = (char *)(uintptr_t)link_fault_name(report.fault.code);
        f->text = m->text[i];
        f->found = report.fault.code > LINK_FAULT_MTU;
        f->found_node = f->found ? report.fault.found_rank : 0;
        f->found_port = f->found ? report.fault.found_port : 0;
        status->n_link_fault++;
    }
    status->link_fault = m->list;
}

struct unconfirmed_message {
    struct exchange_unconfirmed info[UNCONFIRMED_SHOWN];
    Control__Status__Unconfirmed one[UNCONFIRMED_SHOWN], *list[UNCONFIRMED_SHOWN];
};

static void set_unconfirmed(Control__Status *status, const struct exchanges *all,
                            struct unconfirmed_message *m)
{
    status->n_unconfirmed = exchanges_unconfirmed(all, m->info, UNCONFIRMED_SHOWN);
    for (size_t i = 0; i < status->n_unconfirmed; i++) {
        Control__Status__Unconfirmed *u = m->list[i] = &m->one[i];
        control__status__unconfirmed__init(u);
        u->id = m->info[i].id;
        u->count = m->info[i].count;
        u->n_node = u->count < EXCHANGE_UNCONFIRMED_NAMED ? u->count : EXCHANGE_UNCONFIRMED_NAMED;
        u->node = m->info[i].node;
        u->reason = m->info[i].reason;
    }
    status->unconfirmed = m->list;
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
            Control__Status__Share *s = m->list[status->n_share] = &m->share[status->n_share];
            control__status__share__init(s);
            s->resource = (char *)(uintptr_t)shares_name(share);
            s->user = holder[i].user;
            s->held = holder[i].held;
            s->most = shares_limit(all, share, holder[i].user);
            s->capacity = shares_capacity(all, share);
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

    status->whole = topology_whole(topology);
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

struct exchanges_message {
    struct exchange_info info[EXCHANGES_SHOWN];
    Control__Status__Exchange one[EXCHANGES_SHOWN], *list[EXCHANGES_SHOWN];
};

static void set_exchanges(Control__Status *status, const struct exchanges *all,
                          struct exchanges_message *m)
{
    status->n_exchange = exchanges_list(all, m->info, EXCHANGES_SHOWN);
    for (size_t i = 0; i < status->n_exchange; i++) {
        Control__Status__Exchange *x = m->list[i] = &m->one[i];
        control__status__exchange__init(x);
        x->id = m->info[i].id;
        x->algorithm = m->info[i].algorithm;
        x->state = (char *)(uintptr_t)exchange_state_name(m->info[i].state);
        x->reason = m->info[i].reason;
        x->root = m->info[i].root;
        x->age_ms = m->info[i].age_ns / MILLISECONDS;
        x->round = m->info[i].round;
        x->rounds = m->info[i].rounds;
        x->done_bytes = m->info[i].done_bytes;
        x->total_bytes = m->info[i].total_bytes;
    }
    status->exchange = m->list;
}

struct node_message {
    char dims[TORUS_TEXT_SIZE];
    uint32_t coordinates[TORUS_MAX_DIMS];
    struct utsname host;
    char key[SECRETS_MOST][KEY_ID_TEXT_SIZE], *keys[SECRETS_MOST];
};

/* Sets the torus, this node's place in it, and the version of torusd. */
static void set_node(Control__Status *status, const struct control_server *server,
                     struct node_message *m)
{
    const struct router *router = server->set.router;
    const struct torus *t = router_torus(router);

    status->version = (char *)(uintptr_t)TORUSD_VERSION;
    status->peer_protocol = PROTOCOL_VERSION;
    status->peer_minor = router_minor(router);
    status->least_peer_minor = router_least_minor(router);
    status->control_protocol = CONTROL_VERSION;
    status->program_protocol = PROGRAM_VERSION;
    status->dims = torus_format(t, m->dims);
    status->rank = router_rank(router);
    torus_coordinates(t, status->rank, m->coordinates);
    status->n_coordinates = t->dims;
    status->coordinates = m->coordinates;
    status->uptime_ms = elapsed(server->started, uv_hrtime()) / MILLISECONDS;
    status->pid = (uint64_t)getpid();
    if (uname(&m->host) == 0)
        status->host = m->host.nodename;
    for (unsigned i = 0; i < SECRETS_MOST && router_key_id(router, i) != NULL; i++)
        m->keys[status->n_key++] = key_id_text(router_key_id(router, i), m->key[i]);
    status->key = m->keys;
}

static void set_resources(Control__Status *status, const struct control_setup *set)
{
    status->n_data_root = set->roots->count;
    status->data_root = set->roots->path;
    status->link_mbit = set->link_mbit;
    status->metrics = (char *)(uintptr_t)set->metrics;
    status->memory_budget = set->memory_budget;
    status->memory_reserved = exchanges_reserved(set->exchanges);
    status->memory_used = (uint64_t)router_pool(set->router)->in_use * SLAB_SIZE;
}

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
    struct exchanges_message exchanges;
    struct calibration_message calibration;
    struct groups_message groups;
    struct copies_message copies;
    struct unconfirmed_message unconfirmed;
    struct link_faults_message link_faults;
    struct shares_message shares;
    struct graphs_message graphs;
};

/* Sets everything except graphs. */
static void set_status(Control__Status *status, const struct control_server *server,
                       struct status_message *m)
{
    const struct control_setup *set = &server->set;

    set_node(status, server, &m->node);
    set_faults(status, set, &m->faults);
    set_exchanges(status, set->exchanges, &m->exchanges);
    set_link_faults(status, set->router, &m->link_faults);
    set_groups(status, set->groups, &m->groups);
    set_copies(status, set->copies, &m->copies);
    set_unconfirmed(status, set->exchanges, &m->unconfirmed);
    set_shares(status, set->shares, &m->shares);
    set_resources(status, set);
    control_calibration_fill(set->exchanges, &m->calibration);
    status->calibration = &m->calibration.message;
}

void control_status(struct control_client *client, const Control__Request *request)
{
    struct status_message m;
    Control__Status status = CONTROL__STATUS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    (void)request;
    set_status(&status, client->server, &m);
    reply.kind_case = CONTROL__REPLY__KIND_STATUS;
    reply.status = &status;
    if (control_graphs_fill(&status, router_torus(client->server->set.router), &m.graphs) == 0)
        control_reply(client, &reply);
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
        if (!exchange_has_ended(m->exchanges.info[i].state) || running < ENDED_SHOWN)
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
