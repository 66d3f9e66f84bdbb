#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control/internal.h"
#include "daemon/net/address.h"
#include "proto/version.h"

#define EXCHANGES_SHOWN 16u
#define FAULTS_SHOWN 16u
#define LINK_FAULTS_SHOWN 32u
#define GROUPS_SHOWN 64u
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
        g->around = m->info[i].around;
        g->process = m->info[i].process;
        g->calls = m->info[i].calls;
        g->calls_done = m->info[i].calls_done;
        g->bytes_sent = m->info[i].bytes_sent;
        g->bytes_received = m->info[i].bytes_received;
        g->parked = m->info[i].early;
        g->reserved = m->info[i].reserved;
    }
    status->group = m->list;
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

/* A link that is kept out, or cannot even be tried; false if it is neither. */
static bool describe_port(const struct control_setup *set, unsigned port, char *text, size_t size)
{
    const char *missing = tcp_missing(set->tcp, port);
    struct port_info info;
    char name[TORUS_PORT_NAME_SIZE];

    router_port_info(set->router, port, &info);
    if (info.state == PORT_WAITING && missing != NULL) {
        (void)snprintf(text, size, "port %s to node %u waits: %s", torus_port_name(port, name),
                       info.neighbour, missing);
        return true;
    }
    if (info.state != PORT_HELD)
        return false;
    (void)snprintf(
        text, size, "port %s to node %u flaps: kept out until it is quiet for %.1f s more",
        torus_port_name(port, name), info.neighbour, (double)info.held_ns / (double)SECONDS);
    return true;
}

static void on_status(struct control_client *client, const Control__Request *request)
{
    const struct control_setup *set = &client->server->set;
    const struct torus *t = router_torus(set->router);
    const struct topology *topology = router_topology(set->router);
    struct exchange_info info[EXCHANGES_SHOWN];
    Control__Status__Exchange exchange[EXCHANGES_SHOWN], *exchanges[EXCHANGES_SHOWN];
    char dims[TORUS_TEXT_SIZE], fault[FAULTS_SHOWN][PORT_REASON_SIZE + 40], *faults[FAULTS_SHOWN];
    uint32_t coordinates[TORUS_MAX_DIMS];
    struct calibration_message calibration;
    struct groups_message groups;
    struct unconfirmed_message unconfirmed;
    struct link_faults_message link_faults;
    struct shares_message shares;
    Control__Status status = CONTROL__STATUS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    (void)request;
    torus_coordinates(t, router_rank(set->router), coordinates);
    status.version = (char *)(uintptr_t)TORUSD_VERSION;
    status.peer_protocol = PROTOCOL_VERSION;
    status.control_protocol = CONTROL_VERSION;
    status.program_protocol = PROGRAM_VERSION;
    status.dims = torus_format(t, dims);
    status.rank = router_rank(set->router);
    status.n_coordinates = t->dims;
    status.coordinates = coordinates;
    status.uptime_ms = (uv_hrtime() - client->server->started) / MILLISECONDS;
    status.whole = topology_whole(topology);
    for (unsigned i = 0; i < FAULTS_SHOWN && !status.whole; i++) {
        if (!topology_fault(topology, i, fault[i], sizeof fault[i]))
            break;
        faults[status.n_fault++] = fault[i];
    }
    for (unsigned port = 0; port < torus_ports(t) && status.n_fault < FAULTS_SHOWN; port++)
        if (describe_port(set, port, fault[status.n_fault], sizeof fault[0])) {
            faults[status.n_fault] = fault[status.n_fault];
            status.n_fault++;
        }
    status.fault = faults;
    status.n_exchange = exchanges_list(set->exchanges, info, EXCHANGES_SHOWN);
    for (size_t i = 0; i < status.n_exchange; i++) {
        exchanges[i] = &exchange[i];
        control__status__exchange__init(&exchange[i]);
        exchange[i].id = info[i].id;
        exchange[i].algorithm = info[i].algorithm;
        exchange[i].state = (char *)(uintptr_t)exchange_state_name(info[i].state);
        exchange[i].reason = info[i].reason;
        exchange[i].root = info[i].root;
        exchange[i].age_ms = info[i].age_ns / MILLISECONDS;
    }
    status.exchange = exchanges;
    set_link_faults(&status, set->router, &link_faults);
    set_groups(&status, set->groups, &groups);
    set_unconfirmed(&status, set->exchanges, &unconfirmed);
    set_shares(&status, set->shares, &shares);
    status.n_data_root = set->roots->count;
    status.data_root = set->roots->path;
    status.link_mbit = set->link_mbit;
    status.memory_budget = set->memory_budget;
    status.memory_reserved = exchanges_reserved(set->exchanges);
    status.memory_used = (uint64_t)router_pool(set->router)->in_use * SLAB_SIZE;
    status.pid = (uint64_t)getpid();
    control_calibration_fill(set->exchanges, &calibration);
    status.calibration = &calibration.message;
    reply.kind_case = CONTROL__REPLY__KIND_STATUS;
    reply.status = &status;
    control_reply(client, &reply);
}

static void on_links(struct control_client *client, const Control__Request *request)
{
    const struct control_setup *set = &client->server->set;
    struct port_info info[TORUS_MAX_PORTS];
    char name[TORUS_MAX_PORTS][TORUS_PORT_NAME_SIZE], address[TORUS_MAX_PORTS][ENDPOINT_TEXT_SIZE];
    Control__Links__Link link[TORUS_MAX_PORTS], *list[TORUS_MAX_PORTS];
    Control__Links links = CONTROL__LINKS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    (void)request;
    for (unsigned port = 0; port < torus_ports(router_torus(set->router)); port++) {
        Control__Links__Link *l = &link[port];
        router_port_info(set->router, port, &info[port]);
        if (info[port].state == PORT_UNUSED)
            continue;
        list[links.n_link++] = l;
        control__links__link__init(l);
        endpoint_format(&set->endpoint[port], address[port], sizeof address[port]);
        l->port = port;
        l->name = torus_port_name(port, name[port]);
        l->neighbour = info[port].neighbour;
        l->address = address[port];
        l->interface = (char *)(uintptr_t)tcp_interface(set->tcp, port);
        l->up = info[port].state == PORT_UP;
        l->state = (char *)(uintptr_t)port_state_name(info[port].state);
        l->reason = info[port].reason;
        l->tx_bytes = info[port].tx_bytes;
        l->rx_bytes = info[port].rx_bytes;
        l->rtt_us = info[port].stat.rtt_us;
        l->rate_bps = info[port].stat.rate_bps;
        l->up_ms = info[port].up_ns / MILLISECONDS;
        l->connects = info[port].connects;
        l->key = info[port].key;
        l->encrypted = info[port].encrypted;
        l->held_ms = info[port].held_ns / MILLISECONDS;
    }
    links.link = list;
    links.heartbeat_ms = (uint32_t)(router_heartbeat(set->router) / MILLISECONDS);
    links.silence_ms = (uint32_t)(router_silence(set->router) / MILLISECONDS);
    reply.kind_case = CONTROL__REPLY__KIND_LINKS;
    reply.links = &links;
    control_reply(client, &reply);
}

/* An exchange is answered with how it ends. If nothing is under way, its last reply and this
 * request have crossed. */
static void on_cancel(struct control_client *client, const Control__Request *request)
{
    const struct error cancelled = {ERROR_CANCELLED, "cancelled"};

    (void)request;
    if (client->exchange != NULL) {
        exchange_cancel(client->exchange);
    } else if (client->candidates != NULL) {
        control_candidates_forget(client);
        control_reply_error(client, &cancelled, NULL);
    }
}

static const struct {
    Control__Request__KindCase kind;
    enum access access; /* that is needed at least */
    void (*answer)(struct control_client *client, const Control__Request *request);
} requests[] = {
    {CONTROL__REQUEST__KIND_STATUS, ACCESS_READ, on_status},
    {CONTROL__REQUEST__KIND_LINKS, ACCESS_READ, on_links},
    {CONTROL__REQUEST__KIND_EXCHANGE, ACCESS_EXCHANGE, control_exchange},
    {CONTROL__REQUEST__KIND_CANDIDATES, ACCESS_READ, control_candidates},
    {CONTROL__REQUEST__KIND_CALIBRATION, ACCESS_READ, control_calibration},
    {CONTROL__REQUEST__KIND_CANCEL, ACCESS_READ, on_cancel},
    {CONTROL__REQUEST__KIND_SCHEDULE, ACCESS_EXCHANGE, control_schedule},
};

bool control_may(struct control_client *client, enum access needed)
{
    struct error e;

    if (access_check(client->server->set.access, client->access, needed, &e) == 0)
        return true;
    control_reply_error(client, &e, NULL);
    return false;
}

void control_request(struct control_client *client, const Control__Request *request)
{
    const struct error busy = {ERROR_PROTOCOL, "one request at a time: the one before has not been "
                                               "answered yet on this connection"};

    if (client->state_only && request->kind_case != CONTROL__REQUEST__KIND_STATUS &&
        request->kind_case != CONTROL__REQUEST__KIND_LINKS) {
        control_client_no_place(client);
        return;
    }
    if (request->kind_case != CONTROL__REQUEST__KIND_CANCEL &&
        (client->exchange != NULL || client->candidates != NULL)) {
        control_reply_error(client, &busy, NULL);
        return;
    }
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (requests[i].kind == request->kind_case) {
            if (control_may(client, requests[i].access))
                requests[i].answer(client, request);
            return;
        }
}
