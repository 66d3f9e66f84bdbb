/* Metrics of this node's ports. */
#include <stdio.h>

#include "daemon/torusd/metrics/metrics.h"
#include "daemon/torusd/router/router.h"

#define NANOSECOND 1e-9

/* Sets the value of a port. Returns false if it is not known: then there is no sample. */
typedef bool port_value(const struct port_info *port, double *value);

static bool is_up(const struct port_info *port, double *value)
{
    *value = port->state == PORT_UP;
    return true;
}

static bool is_held(const struct port_info *port, double *value)
{
    *value = port->state == PORT_HELD;
    return true;
}

static bool is_encrypted(const struct port_info *port, double *value)
{
    *value = port->encrypted;
    return port->state == PORT_UP;
}

static bool connects(const struct port_info *port, double *value)
{
    *value = port->connects;
    return true;
}

static bool sent(const struct port_info *port, double *value)
{
    *value = (double)port->totals.tx_bytes;
    return true;
}

static bool received(const struct port_info *port, double *value)
{
    *value = (double)port->totals.rx_bytes;
    return true;
}

static bool retransmits(const struct port_info *port, double *value)
{
    *value = (double)port->totals.retransmits;
    return true;
}

static bool queue(const struct port_info *port, double *value)
{
    *value = (double)port->queue_bytes;
    return true;
}

static bool unacked(const struct port_info *port, double *value)
{
    *value = (double)port->stat.unacked;
    return true;
}

static bool round_trip(const struct port_info *port, double *value)
{
    *value = port->stat.rtt_us * 1e-6;
    return port->stat.rtt_us > 0;
}

static bool mtu(const struct port_info *port, double *value)
{
    *value = port->stat.mtu;
    return port->stat.mtu > 0;
}

static bool clock_ahead(const struct port_info *port, double *value)
{
    *value = (double)port->clock_ahead * NANOSECOND;
    return port->clock_known;
}

static bool clock_error(const struct port_info *port, double *value)
{
    *value = (double)port->clock_error * NANOSECOND;
    return port->clock_known;
}

static const struct {
    struct metric metric;
    port_value *value;
} rows[] = {
    {{"torus_link_up", "", METRIC_GAUGE, "Whether the link of a port is up"}, is_up},
    {{"torus_link_held", "", METRIC_GAUGE, "Whether the link flaps, and is not used for now"},
     is_held},
    {{"torus_link_encrypted", "", METRIC_GAUGE, "Whether a link that is up is encrypted"},
     is_encrypted},
    {{"torus_link_connects", "", METRIC_COUNTER, "How many times the link has come up"}, connects},
    {{"torus_link_sent_bytes", "bytes", METRIC_COUNTER, "Bytes that were sent over the link"},
     sent},
    {{"torus_link_received_bytes", "bytes", METRIC_COUNTER,
      "Bytes that were received over the link"},
     received},
    {{"torus_link_retransmitted_packets", "", METRIC_COUNTER,
      "Packets that TCP has sent again over the link"},
     retransmits},
    {{"torus_link_queue_bytes", "bytes", METRIC_GAUGE, "Bytes of frames that wait for the link"},
     queue},
    {{"torus_link_unacked_bytes", "bytes", METRIC_GAUGE,
      "Bytes that were sent and that the system of the neighbour has not acknowledged"},
     unacked},
    {{"torus_link_round_trip_seconds", "seconds", METRIC_GAUGE,
      "The round-trip time of the link, as TCP measures it"},
     round_trip},
    {{"torus_link_mtu_bytes", "bytes", METRIC_GAUGE, "The MTU of the route over the link"}, mtu},
    {{"torus_link_clock_ahead_seconds", "seconds", METRIC_GAUGE,
      "By how much the monotonic clock of the neighbour is ahead of the clock of this node"},
     clock_ahead},
    {{"torus_link_clock_error_seconds", "seconds", METRIC_GAUGE,
      "How wrong torus_link_clock_ahead_seconds may be"},
     clock_error},
};
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
    double value;

    look_at_ports(&ports, v->router);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        exposition_metric(x, &rows[row].metric);
        for (unsigned i = 0; i < ports.count; i++) {
            const struct label labels[] = {{"port", ports.port[i].name},
                                           {"neighbour", ports.port[i].neighbour}};
            if (rows[row].value(&ports.port[i].info, &value))
                exposition_value(x, labels, 2, value);
        }
    }
    write_forwarding(x, v->router, &ports);
    if (v->tcp != NULL)
        write_interfaces(x, v->tcp, &ports);
}
