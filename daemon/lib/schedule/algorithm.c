#include "daemon/lib/schedule/algorithm.h"

#include "daemon/lib/schedule/product.h"

int algorithm_refuse(const struct algorithm *a, const struct torus *t, struct error *e)
{
    char text[TORUS_TEXT_SIZE];
    return error_set(e, ERROR_REFUSED, "%s takes %s, not %s", a->name, a->accepts_text,
                     torus_format(t, text));
}

int algorithm_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    bool own = a->methods != NULL && a->methods->accepts != NULL;

    if (!torus_is_plain(t) && !a->any_graph)
        return algorithm_refuse(a, t, e);
    if (own)
        return a->methods->accepts(a, t, e);
    return a->takes == NULL || a->takes(t) ? 0 : algorithm_refuse(a, t, e);
}

uint32_t algorithm_max_legs(const struct algorithm *a, const struct torus *t)
{
    bool own = a->methods != NULL && a->methods->max_legs != NULL;

    return own ? a->methods->max_legs(a, t) : a->max_legs(t);
}

void algorithm_period(const struct algorithm *a, const struct torus *t, uint32_t *period)
{
    if (a->methods != NULL && a->methods->period != NULL)
        a->methods->period(a, t, period);
    else
        a->period(t, period);
}

uint32_t algorithm_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                         uint32_t destination, uint32_t segment, struct leg *legs)
{
    if (a->methods != NULL && a->methods->route != NULL)
        return a->methods->route(a, t, source, destination, segment, legs);
    return a->route(t, source, destination, segment, legs);
}

const struct damage *algorithm_damage(const struct algorithm *a)
{
    return a->methods != NULL && a->methods->damage != NULL ? a->methods->damage(a) : NULL;
}

const char *port_model_name(enum port_model model)
{
    switch (model) {
    case PORT_MODEL_ALL:
        return "all-port";
    case PORT_MODEL_ONE:
        return "one-port";
    }
    return "unknown";
}

const char *algorithm_ports_name(const struct algorithm *a)
{
    static const char *const names[] = {"2-port", "3-port", "4-port", "5-port",
                                        "6-port", "7-port", "8-port"};

    if (a->ports < 2 || a->ports - 2 >= sizeof names / sizeof names[0])
        return port_model_name(a->port_model);
    return names[a->ports - 2];
}

/* The larger of the all-port bound and the time in which nodes receive all blocks by their ports: by single hops also
 * those that they pass on. */
static double bound_of_ports(const struct torus *t, const struct algorithm *a)
{
    const struct product p = product_of_torus(t);
    const double blocks = a->single_hops ? product_average_status(&p) : t->nodes - 1.0;
    const double links = torus_bound_all_port(t), nodes = blocks / a->ports;
    return links > nodes ? links : nodes;
}

const char *schedule_operation_name(enum schedule_operation operation)
{
    switch (operation) {
    case OPERATION_EXCHANGE:
        return "exchange";
    case OPERATION_ALLGATHER:
        return "allgather";
    case OPERATION_BROADCAST:
        return "broadcast";
    case OPERATION_GROUP:
        return "group";
    case OPERATION_BARRIER:
        return "barrier";
    }
    return "unknown";
}

double algorithm_bound(const struct algorithm *a, const struct torus *t)
{
    if (a->detour != NULL)
        return a->methods->bound(a);
    if (a->operation == OPERATION_ALLGATHER && a->segments == 1)
        return torus_bound_broadcast(t);
    if (a->operation == OPERATION_ALLGATHER) {
        uint64_t in = (uint64_t)(t->nodes - 1) * a->segments, links = torus_fewest_links(t);
        return links > 0 ? (double)(in / links + (in % links != 0)) / a->segments : 0;
    }
    if (a->methods != NULL && a->methods->bound != NULL)
        return a->methods->bound(a);
    if (a->port_model == PORT_MODEL_ALL)
        return a->ports == 0 ? torus_bound_all_port(t) : bound_of_ports(t, a);
    if (!a->single_hops)
        return torus_bound_one_port(t);
    struct product p = product_of_torus(t);
    return product_bound_single_hops(&p);
}

const char *algorithm_bound_name(const struct algorithm *a)
{
    if (a->operation == OPERATION_ALLGATHER && a->detour == NULL)
        return "all-to-all broadcast, all-port";
    if (a->methods != NULL && a->methods->bound_name != NULL)
        return a->methods->bound_name(a);
    static const char *const single[] = {
        "2-port, single hops", "3-port, single hops", "4-port, single hops", "5-port, single hops",
        "6-port, single hops", "7-port, single hops", "8-port, single hops"};
    if (a->port_model == PORT_MODEL_ALL)
        return a->single_hops ? single[a->ports - 2] : algorithm_ports_name(a);
    return a->single_hops ? "one-port, single hops" : "one-port, cut-through";
}
