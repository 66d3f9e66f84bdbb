#include "daemon/torusd/metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/torusd/control/route_counts.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/exchange/exchange_types.h"
#include "daemon/torusd/router/router.h"
#include "proto/version.h"

#define FAULTS_SHOWN 16u

static void count_down(struct torus_view *view, const struct topology *topology)
{
    const struct torus *t = topology->torus;

    view->nodes_down = view->links_down = 0;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        view->nodes_down += topology_node_down(topology, rank);
        for (unsigned port = 0; port < torus_ports(t); port++)
            view->links_down +=
                torus_port_dials(t, rank, port) && !topology_link_up(topology, rank, port);
    }
}

static void list_faults(struct torus_view *view, const struct topology *topology)
{
    size_t used = 0;
    struct error fault;

    view->faults[0] = '\0';
    for (unsigned i = 0; i < FAULTS_SHOWN && topology_fault(topology, i, &fault); i++) {
        const size_t left = sizeof view->faults - used, length = strlen(fault.text);
        if (length + 2 > left)
            break;
        (void)snprintf(view->faults + used, left, "%s\n", fault.text);
        used += length + 1;
    }
}

const struct torus_view *view_torus(struct metrics_view *v)
{
    const struct topology *topology = router_topology(v->router);
    struct torus_view *view = &v->torus;

    if (view->known && view->changes == topology->changes)
        return view;
    count_down(view, topology);
    list_faults(view, topology);
    view->known = true;
    view->changes = topology->changes;
    return view;
}

/* Metrics of this node's ports. */

#define NANOSECOND 1e-9
#define KBIT 125 /* bytes */
#define MBIT 125000

/* The metrics of a port, and their values; NAN: not known, then there is no sample. */
#define PORT_ROWS(GAUGE, COUNTER)                                                                  \
    GAUGE("torus_link_up", "", "Whether the link of a port is up", p->state == PORT_UP)            \
    GAUGE("torus_link_held", "", "Whether the link flaps, and is not used for now",                \
          p->state == PORT_HELD)                                                                   \
    GAUGE("torus_link_encrypted", "", "Whether a link that is up is encrypted",                    \
          p->state == PORT_UP ? p->encrypted : NAN)                                                \
    COUNTER("torus_link_connects", "", "How many times the link has come up", p->connects)         \
    COUNTER("torus_link_sent_bytes", "bytes", "Bytes that were sent over the link",                \
            (double)p->totals.tx_bytes)                                                            \
    COUNTER("torus_link_received_bytes", "bytes", "Bytes that were received over the link",        \
            (double)p->totals.rx_bytes)                                                            \
    COUNTER("torus_link_placed_bytes", "bytes",                                                    \
            "Received bytes that came straight into the memory of programs",                       \
            (double)p->totals.placed_bytes)                                                        \
    COUNTER("torus_link_retransmitted_packets", "",                                                \
            "Packets that TCP has sent again over the link", (double)p->totals.retransmits)        \
    GAUGE("torus_link_queue_bytes", "bytes", "Bytes of frames that wait for the link",             \
          (double)p->queue_bytes)                                                                  \
    GAUGE("torus_link_unacked_bytes", "bytes",                                                     \
          "Bytes that were sent and that the system of the neighbour has not acknowledged",        \
          (double)p->stat.unacked)                                                                 \
    GAUGE("torus_link_round_trip_seconds", "seconds",                                              \
          "The round-trip time of the link, as TCP measures it",                                   \
          p->stat.rtt_us > 0 ? p->stat.rtt_us * 1e-6 : NAN)                                        \
    GAUGE("torus_link_mtu_bytes", "bytes", "The MTU of the route over the link",                   \
          p->stat.mtu > 0 ? (double)p->stat.mtu : NAN)                                             \
    GAUGE("torus_link_nominal_bytes_per_second", "",                                               \
          "The rate at which a port sends, as configured",                                         \
          p->rates.nominal.send > 0 ? p->rates.nominal.send * MBIT : NAN)                          \
    GAUGE("torus_link_negotiated_bytes_per_second", "",                                            \
          "The rate that the network card of a port has negotiated",                               \
          p->rates.negotiated > 0 ? (double)p->rates.negotiated * KBIT : NAN)                      \
    GAUGE("torus_link_observed_bytes_per_second", "",                                              \
          "What the link of a port carried lately while data always waited for it",                \
          p->rates.observed > 0 ? (double)p->rates.observed * KBIT : NAN)                          \
    GAUGE("torus_link_planned_bytes_per_second", "",                                               \
          "What the link of a port carries away from this node in the plans of exchanges",         \
          p->rates.planned > 0 ? (double)p->rates.planned * KBIT : NAN)                            \
    GAUGE("torus_link_clock_ahead_seconds", "seconds",                                             \
          "By how much the monotonic clock of the neighbour is ahead of the clock of this node",   \
          p->clock_known ? (double)p->clock_ahead *NANOSECOND : NAN)                               \
    GAUGE("torus_link_clock_error_seconds", "seconds",                                             \
          "How wrong torus_link_clock_ahead_seconds may be",                                       \
          p->clock_known ? (double)p->clock_error *NANOSECOND : NAN)

#define GAUGE_ROW(name, unit, help, value) {name, unit, METRIC_GAUGE, help},
#define COUNTER_ROW(name, unit, help, value) {name, unit, METRIC_COUNTER, help},
#define VALUE(name, unit, help, value) value,

static const struct metric rows[] = {PORT_ROWS(GAUGE_ROW, COUNTER_ROW)};
#define ROWS (sizeof rows / sizeof *rows)

static void read_values(const struct port_info *p, double value[ROWS])
{
    const double values[] = {PORT_ROWS(VALUE, VALUE)};

    memcpy(value, values, sizeof values);
}

static const struct metric link_info = {"torus_link", "", METRIC_INFO,
                                        "The network interface that the link of a port uses"};

static const struct metric forwards = {
    "torus_link_neighbour_forwards", "", METRIC_GAUGE,
    "Whether the neighbour says that IP packets of other hosts may pass through it"};

struct ports {
    unsigned count;
    struct {
        unsigned port;
        struct port_info info;
        double value[ROWS];
        char name[TORUS_PORT_NAME_SIZE], neighbour[16];
    } port[TORUS_MAX_PORTS];
};

static void look_at_ports(struct ports *ports, struct router *router)
{
    const struct torus *t = router_torus(router);

    ports->count = 0;
    for (unsigned port = 0; port < torus_ports(t); port++) {
        struct port_info *info = &ports->port[ports->count].info;
        router_port_info(router, port, info);
        if (info->state == PORT_UNUSED)
            continue;
        read_values(info, ports->port[ports->count].value);
        ports->port[ports->count].port = port;
        (void)torus_port_name(t, router_rank(router), port, ports->port[ports->count].name);
        (void)snprintf(ports->port[ports->count].neighbour, sizeof ports->port[0].neighbour, "%u",
                       info->neighbour);
        ports->count++;
    }
}

static void write_interfaces(struct exposition *x, const struct tcp *tcp, const struct ports *ports)
{
    exposition_metric(x, &link_info);
    for (unsigned i = 0; i < ports->count; i++) {
        const struct label labels[] = {{"port", ports->port[i].name},
                                       {"neighbour", ports->port[i].neighbour},
                                       {"interface", tcp_interface(tcp, ports->port[i].port)}};
        exposition_value(x, labels, 3, 1);
    }
}

/* What neighbours say counts only if all nodes know that they can say it. */
static void write_forwarding(struct exposition *x, const struct router *router,
                             const struct ports *ports)
{
    const struct topology *topology = router_topology(router);

    exposition_metric(x, &forwards);
    for (unsigned i = 0; i < ports->count && router_knows_forwarding(router); i++) {
        const struct topology_entry *entry = &topology->entry[ports->port[i].info.neighbour];
        const struct label labels[] = {{"port", ports->port[i].name},
                                       {"neighbour", ports->port[i].neighbour}};
        if (entry->hops < topology->torus->nodes && entry->forwards != TOPOLOGY_FORWARDS_UNSAID)
            exposition_value(x, labels, 2, entry->forwards == TOPOLOGY_FORWARDS);
    }
}

void metrics_of_links(struct exposition *x, struct metrics_view *v)
{
    struct ports ports;

    look_at_ports(&ports, v->router);
    for (size_t row = 0; row < ROWS; row++) {
        exposition_metric(x, &rows[row]);
        for (unsigned i = 0; i < ports.count; i++) {
            const struct label labels[] = {{"port", ports.port[i].name},
                                           {"neighbour", ports.port[i].neighbour}};
            if (!isnan(ports.port[i].value[row]))
                exposition_value(x, labels, 2, ports.port[i].value[row]);
        }
    }
    write_forwarding(x, v->router, &ports);
    if (v->tcp != NULL)
        write_interfaces(x, v->tcp, &ports);
}

/* Metrics of a node, of its memory, and of the torus as this node knows it. */

static const struct metric node_info = {"torus_node", "", METRIC_INFO,
                                        "The daemon and its place in the torus"};
static const struct metric nodes = {"torus_nodes", "", METRIC_GAUGE, "Nodes of the torus"};
static const struct metric whole = {
    "torus_whole", "", METRIC_GAUGE,
    "Whether every link of every node is up, as far as this node knows"};
static const struct metric nodes_down = {
    "torus_nodes_down", "", METRIC_GAUGE,
    "Nodes none of whose links is up, as far as this node knows"};
static const struct metric links_down = {
    "torus_links_down", "", METRIC_GAUGE,
    "Links of the whole torus that are down, as far as this node knows"};
static const struct metric changes = {
    "torus_topology_changes", "", METRIC_COUNTER,
    "Changes of link states in the whole torus that this node has heard of"};
static const struct metric faults = {
    "torus_cable_faults", "", METRIC_GAUGE,
    "Ports of this node whose cable has a fault, by the code of the fault"};
static const struct metric budget = {"torus_memory_budget_bytes", "bytes", METRIC_GAUGE,
                                     "Memory for blocks in transit: the setting memory"};
static const struct metric reserved = {
    "torus_memory_reserved_bytes", "bytes", METRIC_GAUGE,
    "Memory for blocks in transit that exchanges and groups have reserved"};
static const struct metric memory_used = {"torus_memory_used_bytes", "bytes", METRIC_GAUGE,
                                          "Memory for blocks in transit that is in use"};
static const struct metric places_held = {"torus_share_places_held", "", METRIC_GAUGE,
                                          "Places of a resource that all users together hold"};
static const struct metric places = {"torus_share_places", "", METRIC_GAUGE,
                                     "Places of a resource that there are for all users"};
static const struct metric bytes_held = {"torus_share_held_bytes", "bytes", METRIC_GAUGE,
                                         "Bytes of a resource that all users together hold"};
static const struct metric share_bytes = {"torus_share_bytes", "bytes", METRIC_GAUGE,
                                          "Bytes of a resource that there are for all users"};

static void write_info(struct exposition *x, const struct router *router)
{
    const struct torus *t = router_torus(router);
    const uint32_t rank = router_rank(router);
    uint32_t at[TORUS_MAX_DIMS];
    char dims[TORUS_TEXT_SIZE], rank_text[16], coordinates[TORUS_MAX_DIMS * 11], peer[32];
    size_t length = 0;

    torus_coordinates(t, rank, at);
    for (unsigned i = 0; i < t->dims; i++)
        length += (size_t)snprintf(coordinates + length, sizeof coordinates - length, "%s%u",
                                   i > 0 ? "," : "", at[i]);
    (void)snprintf(rank_text, sizeof rank_text, "%u", rank);
    (void)snprintf(peer, sizeof peer, "%u.%u", PROTOCOL_VERSION, router_minor(router));
    const struct label labels[] = {{"version", TORUSD_VERSION},
                                   {"peer_protocol", peer},
                                   {"torus", torus_format(t, dims)},
                                   {"rank", rank_text},
                                   {"coordinates", coordinates}};
    exposition_metric(x, &node_info);
    exposition_value(x, labels, sizeof labels / sizeof *labels, 1);
}

/* Only the faults of this node's own ports, so that sums over nodes count each once. */
static void write_faults(struct exposition *x, const struct router *router)
{
    unsigned count[LINK_FAULTS] = {0};
    struct fault_report report;

    for (unsigned i = 0; router_fault(router, i, &report) && report.rank == router_rank(router) &&
                         i < TORUS_MAX_PORTS;
         i++)
        count[report.fault.code]++;
    exposition_metric(x, &faults);
    for (enum link_fault_code code = LINK_FAULT_NONE + 1; code < LINK_FAULTS; code++) {
        const struct label label = {"code", link_fault_name(code)};
        exposition_value(x, &label, 1, count[code]);
    }
}

static bool counts_bytes(enum share share)
{
    static const char end[] = "_bytes";
    const char *name = shares_name(share);
    const size_t length = strlen(name);

    return length >= sizeof end && strcmp(name + length - (sizeof end - 1), end) == 0;
}

static void write_share(struct exposition *x, const struct metric *metric, bool of_bytes,
                        const struct shares *all,
                        uint64_t (*value)(const struct shares *all, enum share share))
{
    exposition_metric(x, metric);
    for (enum share share = 0; share < SHARES; share++) {
        const struct label label = {"resource", shares_name(share)};
        if (counts_bytes(share) == of_bytes)
            exposition_value(x, &label, 1, (double)value(all, share));
    }
}

void metrics_of_node(struct exposition *x, struct metrics_view *v)
{
    const struct torus_view *torus = view_torus(v);

    write_info(x, v->router);
    exposition_single(x, &nodes, router_torus(v->router)->nodes);
    exposition_single(x, &whole, torus->links_down == 0);
    exposition_single(x, &nodes_down, torus->nodes_down);
    exposition_single(x, &links_down, torus->links_down);
    exposition_single(x, &changes, (double)torus->changes);
    write_faults(x, v->router);
    exposition_single(x, &budget, (double)shares_capacity(v->shares, SHARE_TRANSIT));
    exposition_single(x, &reserved, (double)exchanges_reserved(v->exchanges));
    exposition_single(x, &memory_used, (double)router_pool(v->router)->in_use * SLAB_SIZE);
    write_share(x, &places_held, false, v->shares, shares_total);
    write_share(x, &places, false, v->shares, shares_capacity);
    write_share(x, &bytes_held, true, v->shares, shares_total);
    write_share(x, &share_bytes, true, v->shares, shares_capacity);
}

/* Metrics of the process, by the names that monitoring expects of any program, and of the requests for metrics. */

#define NANOSECOND 1e-9

static const struct metric started = {"process_start_time_seconds", "seconds", METRIC_GAUGE,
                                      "When the daemon has started, in seconds since 1970"};
static const struct metric processor = {
    "process_cpu_seconds", "seconds", METRIC_COUNTER,
    "Processor time of all threads of the daemon, of user and system"};
static const struct metric resident = {"process_resident_memory_bytes", "bytes", METRIC_GAUGE,
                                       "Memory of the daemon that is in RAM"};
static const struct metric descriptors = {"process_max_fds", "", METRIC_GAUGE,
                                          "How many files and connections the daemon may open"};
static const struct metric loop_used = {"torus_loop_cpu_seconds", "seconds", METRIC_COUNTER,
                                        "Processor time of the thread that moves all data"};
static const struct metric loop_delayed = {
    "torus_loop_delayed_seconds", "seconds", METRIC_COUNTER,
    "Time for which that thread could have run, and no processor was free"};
static const struct metric scrapes = {"torus_metrics_requests", "", METRIC_COUNTER,
                                      "Requests for these metrics"};
static const struct metric dropped = {
    "torus_metrics_dropped_connections", "", METRIC_COUNTER,
    "Connections of monitoring that were closed because they took too long, or were too many"};

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* Returns -1 if that is not known. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long size, pages;
    const bool known = file != NULL && fscanf(file, "%llu %llu", &size, &pages) == 2;

    if (file != NULL)
        (void)fclose(file);
    return known ? (double)pages * (double)sysconf(_SC_PAGESIZE) : -1;
}

static void write_loop(struct exposition *x, const struct metrics_view *v)
{
    uint64_t used, delayed;

    v->processor(v->processor_context, &used, &delayed);
    exposition_single(x, &loop_used, (double)used * NANOSECOND);
    exposition_single(x, &loop_delayed, (double)delayed * NANOSECOND);
}

void metrics_of_process(struct exposition *x, struct metrics_view *v)
{
    const double bytes = resident_bytes();
    struct rusage usage;
    struct rlimit limit;

    exposition_single(x, &started, v->started);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        exposition_single(x, &processor, seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
    if (bytes >= 0)
        exposition_single(x, &resident, bytes);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        exposition_single(x, &descriptors, (double)limit.rlim_cur);
    write_loop(x, v);
    exposition_single(x, &scrapes, (double)v->scrapes);
    exposition_single(x, &dropped, (double)v->dropped);
}

/* Metrics of IP routes, from the latest report of torus-routed on this host. */

static const struct metric runs = {"torus_routed_up", "", METRIC_GAUGE,
                                   "Whether torus-routed runs on this host, and reports its state"};
static const struct metric route_forwards = {
    "torus_routed_forwards", "", METRIC_GAUGE,
    "Whether packets of other hosts may pass through this host"};
static const struct metric problem = {"torus_routed_problem", "", METRIC_GAUGE,
                                      "Whether something keeps routes from being set"};
static const struct metric routes = {"torus_routes", "", METRIC_GAUGE,
                                     "Other hosts, by the state of the route to them"};
static const struct metric lost = {"torus_route_ways_lost", "", METRIC_COUNTER,
                                   "How often a port has left the route to a host"};
static const struct metric gained = {"torus_route_ways_gained", "", METRIC_COUNTER,
                                     "How often a port has come into the route to a host"};
static const struct metric unchanged = {
    "torus_routes_unchanged_seconds", "seconds", METRIC_GAUGE,
    "Time since a route changed, or torus-routed took its place"};

void metrics_of_routes(struct exposition *x, struct metrics_view *v)
{
    const struct route_counts *c = v->routes;

    exposition_single(x, &runs, c->runs);
    if (!c->runs || !c->known)
        return;
    exposition_single(x, &route_forwards, c->forwards);
    exposition_single(x, &problem, c->problem);
    exposition_metric(x, &routes);
    for (enum route_state state = 0; state < ROUTE_STATES; state++) {
        const struct label label = {"state", route_state_name(state)};
        exposition_value(x, &label, 1, c->hosts[state]);
    }
    exposition_single(x, &lost, (double)c->ways_lost);
    exposition_single(x, &gained, (double)c->ways_gained);
    exposition_single(x, &unchanged, (double)(uv_now(v->loop) - c->changed) * 1e-3);
}

/* Metrics of exchanges, groups and copies at this node. */

static const struct metric exchanges_now = {"torus_exchanges", "", METRIC_GAUGE,
                                            "Exchanges and barriers at this node, by their state"};
static const struct metric exchanges_ended = {
    "torus_exchange_attempts", "", METRIC_COUNTER,
    "Attempts that have ended at this node, by operation and outcome"};
static const struct metric delivered = {
    "torus_exchange_delivered_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks that exchanges have delivered at this node"};
static const struct metric duration = {
    "torus_exchange_duration_seconds", "seconds", METRIC_HISTOGRAM,
    "Time from the request, or from the first message about it, until an exchange has succeeded"};
static const struct metric groups_now = {"torus_groups", "", METRIC_GAUGE,
                                         "Groups of programs at this node, by their state"};
static const struct metric calls = {"torus_group_calls", "", METRIC_COUNTER,
                                    "Calls that programs of this node have made in groups"};
static const struct metric calls_done = {"torus_group_calls_done", "", METRIC_COUNTER,
                                         "Calls in groups that are done at this node"};
static const struct metric group_sent = {
    "torus_group_sent_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks for other members, in calls that are done"};
static const struct metric group_received = {
    "torus_group_received_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks from other members, in calls that are done"};
static const struct metric copies_now = {"torus_copies", "", METRIC_GAUGE,
                                         "Copies of trees that this node takes part in"};
static const struct metric copies_ended = {
    "torus_copy_attempts", "", METRIC_COUNTER,
    "Attempts of copies that have ended at this node, by outcome"};
static const struct metric copy_bytes = {
    "torus_copy_moved_bytes", "bytes", METRIC_COUNTER,
    "Bytes of files that have moved in copies in which this node has taken part"};

static void write_labelled(struct exposition *x, const char *name, const char *value, double number)
{
    const struct label label = {name, value};

    exposition_value(x, &label, 1, number);
}

static void write_ended(struct exposition *x, const struct exchange_totals *totals)
{
    static const struct {
        enum exchange_state state;
        const char *outcome;
    } outcomes[] = {{EXCHANGE_FINISHED, "finished"},
                    {EXCHANGE_COMMITTED, "committed"},
                    {EXCHANGE_WITHDRAWN, "withdrawn"},
                    {EXCHANGE_FAILED, "failed"},
                    {EXCHANGE_IN_DOUBT, "in_doubt"}};

    exposition_metric(x, &exchanges_ended);
    for (enum schedule_operation operation = 0; operation < OPERATIONS; operation++)
        for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
            const struct label labels[] = {{"operation", schedule_operation_name(operation)},
                                           {"outcome", outcomes[i].outcome}};
            exposition_value(x, labels, 2, (double)totals->ended[operation][outcomes[i].state]);
        }
}

static void write_exchanges(struct exposition *x, const struct exchanges *exchanges)
{
    struct exchange_counts counts;

    exchanges_count(exchanges, &counts);
    exposition_metric(x, &exchanges_now);
    write_labelled(x, "state", "waiting", counts.waiting);
    write_labelled(x, "state", "under_way", counts.under_way);
    write_labelled(x, "state", "in_doubt", counts.in_doubt);
    write_labelled(x, "state", "unconfirmed", counts.unconfirmed);
    write_ended(x, &counts.totals);
    exposition_single(x, &delivered, (double)counts.totals.delivered_bytes);
    exposition_metric(x, &duration);
    exposition_histogram(x, &counts.totals.duration);
}

static void write_groups(struct exposition *x, const struct groups *groups)
{
    struct groups_counts counts;

    groups_count(groups, &counts);
    exposition_metric(x, &groups_now);
    write_labelled(x, "state", "open", counts.open);
    write_labelled(x, "state", "opening", counts.opening);
    exposition_single(x, &calls, (double)counts.calls);
    exposition_single(x, &calls_done, (double)counts.calls_done);
    exposition_single(x, &group_sent, (double)counts.bytes_sent);
    exposition_single(x, &group_received, (double)counts.bytes_received);
}

static void write_copies(struct exposition *x, const struct copies *copies)
{
    struct copies_counts counts;

    copies_count(copies, &counts);
    exposition_single(x, &copies_now, counts.under_way);
    exposition_metric(x, &copies_ended);
    write_labelled(x, "outcome", "ended", (double)counts.ended);
    write_labelled(x, "outcome", "failed", (double)counts.failed);
    exposition_single(x, &copy_bytes, (double)counts.bytes);
}

void metrics_of_work(struct exposition *x, struct metrics_view *v)
{
    write_exchanges(x, v->exchanges);
    write_groups(x, v->groups);
    write_copies(x, v->copies);
}
