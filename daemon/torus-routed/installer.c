#include "daemon/torus-routed/installer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cluster/ip_routes.h"

/* The addresses of the two ends of every cable, as 'torusctl init' gives them (client/cli/cluster/host_files.c). */
#define DIALLING_ADDRESS "fe80::a"
#define LISTENING_ADDRESS "fe80::b"

/* Connections that are not spread take the port that they would take if all links had the same rate, unless it has less
 * than this part of the largest weight. */
#define CHOSEN_PART 2u

int installer_init(struct installer *i)
{
    i->families = i->hosts->v6 ? FAMILIES : 1;
    for (unsigned family = 0; family < i->families; family++) {
        i->installed[family] = calloc(i->hosts->count, sizeof *i->installed[family]);
        if (i->installed[family] == NULL)
            return -1;
    }
    return 0;
}

void installer_free(struct installer *i)
{
    for (unsigned family = 0; family < FAMILIES; family++)
        free(i->installed[family]);
    *i = (struct installer){0};
}

static unsigned ports(const struct installer *i)
{
    return torus_ports(i->planner->torus);
}

static bool differs(const struct netlink_interface *a, const struct netlink_interface *b)
{
    return a->index != b->index || a->mtu != b->mtu || a->up != b->up;
}

bool installer_look_at_cables(struct installer *i, char names[][IFNAMSIZ])
{
    unsigned least = 0, most = 0;
    bool changed = false;

    for (unsigned port = 0; port < ports(i); port++) {
        struct cable *cable = &i->cable[port], fresh = {.name = ""};
        (void)strcpy(fresh.name, names[port]);
        if (!netlink_interface(i->netlink, fresh.name, &fresh.interface) &&
            names[port][0] != '\0' && cable->interface.index != 0 &&
            if_indextoname(cable->interface.index, fresh.name) != NULL)
            (void)netlink_interface(i->netlink, fresh.name, &fresh.interface);
        changed |= differs(&fresh.interface, &cable->interface);
        fresh.proved = cable->proved && fresh.interface.carrier &&
                       fresh.interface.index == cable->interface.index;
        *cable = fresh;
        if (fresh.interface.index == 0)
            continue;
        least = least == 0 || fresh.interface.mtu < least ? fresh.interface.mtu : least;
        most = fresh.interface.mtu > most ? fresh.interface.mtu : most;
    }
    i->mtu = least < most ? least : 0;
    return changed;
}

int installer_sent(const struct installer *i, uint64_t sent[TORUS_MAX_PORTS])
{
    memset(sent, 0, TORUS_MAX_PORTS * sizeof *sent);
    for (unsigned port = 0; port < ports(i); port++)
        if (i->cable[port].interface.index != 0 &&
            netlink_sent(i->netlink, i->cable[port].interface.index, &sent[port]) != 0)
            return -1;
    return 0;
}

void installer_prove_cables(struct installer *i, uint32_t up)
{
    for (unsigned port = 0; port < ports(i); port++)
        i->cable[port].proved |= (up & 1u << port) != 0 && i->cable[port].interface.carrier;
}

uint32_t installer_direct(const struct installer *i, uint32_t to)
{
    uint32_t result = 0;

    for (unsigned port = 0; port < ports(i) && i->planner->route[to].hops == PLANNER_FAR; port++)
        if (torus_neighbour(i->planner->torus, i->planner->self, port) == to &&
            i->cable[port].proved && i->cable[port].interface.carrier)
            result |= 1u << port;
    return result;
}

/* Returns those of these ports whose weight is at least the `part`th part of the largest. */
static uint32_t heaviest(const struct route_planner *p, uint32_t to, uint32_t usable, unsigned part)
{
    unsigned most = 0;
    uint32_t result = 0;

    for (uint32_t left = usable; left != 0; left &= left - 1) {
        const unsigned weight = route_planner_weight(p, to, (unsigned)__builtin_ctz(left));
        most = weight > most ? weight : most;
    }
    for (uint32_t left = usable; left != 0; left &= left - 1)
        if (part * route_planner_weight(p, to, (unsigned)__builtin_ctz(left)) >= most)
            result |= left & -left;
    return result;
}

uint32_t installer_used(const struct installer *i, uint32_t to)
{
    uint32_t usable = i->planner->route[to].ports;

    for (unsigned port = 0; port < ports(i); port++)
        if (!i->cable[port].interface.up)
            usable &= ~(1u << port);
    if (usable == 0)
        return 0;
    if (i->spread == NULL || i->spread[to])
        return heaviest(i->planner, to, usable, ROUTE_WEIGHT_SUM);
    return 1u << ip_routes_choose(i->planner->torus, i->planner->self, to,
                                  heaviest(i->planner, to, usable, CHOSEN_PART));
}

unsigned installer_weight(const struct installer *i, uint32_t to, unsigned port)
{
    const unsigned weight = route_planner_weight(i->planner, to, port);

    return weight > 0 ? weight : 1;
}

bool installer_knows(const struct installer *i, uint32_t to)
{
    bool known = true;

    for (unsigned family = 0; family < i->families; family++)
        known &= i->installed[family][to].known;
    return known;
}

/* Whether any route to a node leads over cables. */
static bool has_next_hops(const struct installer *i, uint32_t to)
{
    bool next_hops = false;

    for (unsigned family = 0; family < i->families; family++)
        next_hops |= i->installed[family][to].kind == NETLINK_NEXT_HOPS;
    return next_hops;
}

enum route_state installer_state(const struct installer *i, uint32_t to, bool diverted)
{
    const struct planner_route *r = &i->planner->route[to];

    if (diverted && has_next_hops(i, to))
        return ROUTE_DIVERTED;
    if (!installer_knows(i, to))
        return ROUTE_MISSING;
    if (r->hops == PLANNER_FAR)
        return installer_direct(i, to) != 0 ? ROUTE_DIRECT
               : r->linked                  ? ROUTE_BLOCKED
                                            : ROUTE_UNREACHABLE;
    if (r->ports == 0)
        return ROUTE_WAITS;
    return r->ports == r->nearer ? ROUTE_ROUTED : ROUTE_CHANGES;
}

/* --- what the kernel has --- */

static struct ip gateway(const struct installer *i, unsigned port, unsigned family)
{
    const struct torus *t = i->planner->torus;
    uint32_t next = torus_neighbour(t, i->planner->self, port);
    struct ip ip = {.family = AF_INET6};

    if (family == 0)
        return i->hosts->host[next].ip[0];
    (void)inet_pton(AF_INET6,
                    torus_port_dials(t, next, torus_port_opposite(t, port)) ? DIALLING_ADDRESS
                                                                            : LISTENING_ADDRESS,
                    &ip.v6);
    return ip;
}

/* Returns the bits of the ports of a route's hops; *known tells whether all of them are ports. */
static uint32_t ports_of(const struct installer *i, const struct netlink_route *r, unsigned family,
                         bool *known)
{
    uint32_t result = 0;

    for (unsigned hop = 0; hop < r->hops; hop++) {
        uint32_t before = result;
        for (unsigned port = 0; port < ports(i); port++) {
            if (torus_neighbour(i->planner->torus, i->planner->self, port) == TORUS_NO_NODE ||
                i->cable[port].interface.index != r->hop[hop].interface)
                continue;
            struct ip wanted = gateway(i, port, family);
            if (ip_equal(&wanted, &r->hop[hop].gateway))
                result |= 1u << port;
        }
        *known &= result != before;
    }
    return result;
}

/* Stores the weights of a route's hops by port, if it has several. */
static void weights_of(const struct installer *i, const struct netlink_route *r,
                       uint16_t weight[TORUS_MAX_PORTS])
{
    memset(weight, 0, TORUS_MAX_PORTS * sizeof *weight);
    for (unsigned hop = 0; hop < r->hops && r->hops > 1; hop++)
        for (unsigned port = 0; port < ports(i); port++)
            if (i->cable[port].interface.index == r->hop[hop].interface)
                weight[port] = (uint16_t)r->hop[hop].weight;
}

static bool has_weights(const struct installed *installed)
{
    bool any = false;

    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        any |= installed->weight[port] > 1;
    return any;
}

/* Returns the number of routes that differ in weights. */
static unsigned count_weighted(const struct installer *i, unsigned family)
{
    unsigned count = 0;

    for (uint32_t to = 0; to < i->hosts->count; to++)
        count += i->installed[family][to].known && has_weights(&i->installed[family][to]);
    return count;
}

/* Whether a route has the source and the congestion control that put() gives. */
static bool has_attributes(const struct installer *i, const struct netlink_route *r,
                           unsigned family)
{
    if (r->kind != NETLINK_NEXT_HOPS)
        return true;
    return ip_equal(&r->source, &i->hosts->host[i->planner->self].ip[family]) &&
           strcmp(r->congestion != NULL ? r->congestion : "",
                  i->congestion != NULL ? i->congestion : "") == 0;
}

struct looking {
    struct installer *installer;
    unsigned family;
    uint32_t next;      /* routes come in the order of their addresses, as hosts often do */
    struct ip *strange; /* routes to no host */
    size_t stranger;
    void (*adopt)(void *context, uint32_t to, uint32_t ports);
    void *context;
};

/* A previous process has used these cables for their neighbour. */
static void adopt_cables(struct installer *i, uint32_t to, uint32_t used)
{
    for (unsigned port = 0; port < ports(i); port++)
        if (torus_neighbour(i->planner->torus, i->planner->self, port) != to)
            used &= ~(1u << port);
    installer_prove_cables(i, used);
}

static void on_route(void *context, const struct netlink_route *r)
{
    struct looking *l = context;
    struct installer *i = l->installer;

    for (uint32_t n = 0; l->family < i->families && n < i->hosts->count; n++) {
        uint32_t to = (l->next + n) % i->hosts->count;
        struct installed *installed = &i->installed[l->family][to];
        if (to == i->planner->self || !ip_equal(&r->to, &i->hosts->host[to].ip[l->family]))
            continue;
        l->next = to + 1;
        installed->known = has_attributes(i, r, l->family);
        installed->kind = r->kind;
        installed->mtu = r->mtu;
        installed->ports = ports_of(i, r, l->family, &installed->known);
        weights_of(i, r, installed->weight);
        if (l->adopt != NULL && l->family == 0) {
            adopt_cables(i, to, installed->ports);
            l->adopt(l->context, to, installed->ports);
        }
        return;
    }
    struct ip *more = reallocarray(l->strange, l->stranger + 1, sizeof *more);
    if (more != NULL) {
        l->strange = more;
        l->strange[l->stranger++] = r->to;
    }
}

void installer_look(struct installer *i, void (*adopt)(void *context, uint32_t to, uint32_t ports),
                    void *context)
{
    i->failures = 0;
    for (unsigned family = 0; family < FAMILIES; family++) {
        struct looking l = {.installer = i, .family = family, .adopt = adopt, .context = context};
        const unsigned before = family < i->families ? count_weighted(i, family) : 0;
        if (family < i->families)
            memset(i->installed[family], 0, i->hosts->count * sizeof *i->installed[family]);
        (void)netlink_list_routes(i->netlink, family == 0 ? AF_INET : AF_INET6, on_route, &l);
        if (before > 0)
            i->unweighted[family] = count_weighted(i, family) == 0;
        for (size_t n = 0; n < l.stranger; n++)
            (void)netlink_remove_route(i->netlink, &l.strange[n]);
        free(l.strange);
    }
}

/* --- what it should have --- */

static void put(struct installer *i, uint32_t to, unsigned family)
{
    const struct planner_route *r = &i->planner->route[to];
    const struct host_entry *self = &i->hosts->host[i->planner->self];
    struct installed *installed = &i->installed[family][to], wanted = {.known = true};
    struct netlink_route route = {.to = i->hosts->host[to].ip[family],
                                  .source = self->ip[family],
                                  .mtu = i->mtu,
                                  .congestion = i->congestion};

    wanted.ports = installer_used(i, to) | installer_direct(i, to);
    const bool several = (wanted.ports & (wanted.ports - 1)) != 0;
    for (unsigned port = 0; port < ports(i); port++) {
        if ((wanted.ports & 1u << port) == 0)
            continue;
        const unsigned weight =
            several && !i->unweighted[family] ? installer_weight(i, to, port) : 1;
        route.hop[route.hops++] =
            (struct netlink_hop){i->cable[port].interface.index, weight, gateway(i, port, family)};
        wanted.weight[port] = several ? (uint16_t)weight : 0;
    }
    wanted.kind = wanted.ports != 0        ? NETLINK_NEXT_HOPS
                  : r->hops == PLANNER_FAR ? NETLINK_UNREACHABLE
                                           : NETLINK_DROP;
    wanted.mtu = wanted.kind == NETLINK_NEXT_HOPS ? i->mtu : 0;
    if (installed->known && installed->kind == wanted.kind && installed->ports == wanted.ports &&
        installed->mtu == wanted.mtu &&
        memcmp(installed->weight, wanted.weight, sizeof wanted.weight) == 0)
        return;
    route.kind = wanted.kind;
    *installed = wanted;
    if (netlink_put_route(i->netlink, &route) == 0)
        return;
    installed->known = false;
    if (i->failures++ == 0)
        (void)error_set(&i->failure, ERROR_IO, "the route to %s (%s) cannot be set: %s",
                        i->hosts->host[to].name, family == 0 ? "IPv4" : "IPv6", strerror(errno));
}

void installer_put(struct installer *i, uint32_t to)
{
    if (to == i->planner->self)
        return;
    for (unsigned family = 0; family < i->families; family++)
        put(i, to, family);
}

void kernel_query_begin(struct kernel_query *a, const struct installer *installer)
{
    const struct host_addresses *hosts = installer->hosts;

    for (unsigned family = 0; family < installer->families; family++) {
        struct kernel_network network = {.family = 0};
        for (uint32_t i = 0; i < hosts->count; i++)
            kernel_network_add(&network, hosts->host[i].ip[family].family,
                               &hosts->host[i].ip[family].v6);
        kernel_network_write(&network, a->network[family], sizeof a->network[family]);
    }
    a->installer = installer;
    a->diverted = 0;
    a->works = kernel_routes_open(&a->kernel) == 0;
}

void kernel_query_end(struct kernel_query *a)
{
    kernel_routes_close(&a->kernel);
}

bool kernel_query_diverted(struct kernel_query *a, uint32_t to, struct kernel_answer *answer)
{
    const struct installer *i = a->installer;
    const struct host_entry *self = &i->hosts->host[i->planner->self], *host = &i->hosts->host[to];

    for (unsigned family = 0; a->works && family < i->families; family++) {
        const struct installed *installed = &i->installed[family][to];
        if (!installed->known || installed->kind != NETLINK_NEXT_HOPS ||
            kernel_route_ask(&a->kernel, host->ip[family].family, &host->ip[family].v6,
                             &self->ip[family].v6, a->network[family], answer) != 0 ||
            answer->ours)
            continue;
        if (a->diverted++ == 0)
            a->first = *answer;
        return true;
    }
    return false;
}
