/* Metrics of IP routes, as torus-routed on this host has told them last. */
#include <uv.h>

#include "daemon/torusd/control/route_counts.h"
#include "daemon/torusd/metrics/metrics.h"

static const struct metric runs = {"torus_routed_up", "", METRIC_GAUGE,
                                   "Whether torus-routed runs on this host, and tells its state"};
static const struct metric forwards = {"torus_routed_forwards", "", METRIC_GAUGE,
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
    "Time since a route has changed, or torus-routed has taken its place"};

void metrics_of_routes(struct exposition *x, struct metrics_view *v)
{
    const struct route_counts *c = v->routes;

    exposition_single(x, &runs, c->runs);
    if (!c->runs || !c->known)
        return;
    exposition_single(x, &forwards, c->forwards);
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
