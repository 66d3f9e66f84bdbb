/* Metrics of a node, of its memory, and of the torus as this node knows it. */
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/metrics/metrics.h"
#include "daemon/torusd/router/router.h"
#include "proto/version.h"

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
static const struct metric used = {"torus_memory_used_bytes", "bytes", METRIC_GAUGE,
                                   "Memory for blocks in transit that is in use"};
static const struct metric places_held = {"torus_share_places_held", "", METRIC_GAUGE,
                                          "Places of a resource that all users together hold"};
static const struct metric places = {"torus_share_places", "", METRIC_GAUGE,
                                     "Places of a resource that there are for all users"};
static const struct metric bytes_held = {"torus_share_held_bytes", "bytes", METRIC_GAUGE,
                                         "Bytes of a resource that all users together hold"};
static const struct metric bytes = {"torus_share_bytes", "bytes", METRIC_GAUGE,
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
    exposition_single(x, &used, (double)router_pool(v->router)->in_use * SLAB_SIZE);
    write_share(x, &places_held, false, v->shares, shares_total);
    write_share(x, &places, false, v->shares, shares_capacity);
    write_share(x, &bytes_held, true, v->shares, shares_total);
    write_share(x, &bytes, true, v->shares, shares_capacity);
}
