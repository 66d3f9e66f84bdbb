#include "daemon/lib/cluster/route_planner.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "proto/elapsed.h"
#include "proto/sha256.h"

/* A hop of flooding may gather changes for a moment (daemon/torusd/router/flood.c), and the processes have to run. */
#define SETTLE_MS 50u
#define SETTLE_MS_A_HOP 10u
/* In larger networks, all links count as alike: to compare costs would take longer than nodes may take to hear of a loss. */
#define RATED_MOST 1024u

static size_t channels_of(const struct route_planner *p)
{
    return (size_t)p->torus->nodes * torus_ports(p->torus);
}

int route_planner_init(struct route_planner *p, const struct torus *torus, uint32_t self,
                       uint64_t convergence_time)
{
    *p = (struct route_planner){.torus = torus,
                                .self = self,
                                .convergence_time = convergence_time,
                                .procedure = PLANNER_CAREFUL};
    p->up = calloc(torus->nodes, sizeof *p->up);
    p->forwards = calloc(torus->nodes, sizeof *p->forwards);
    p->route = calloc(torus->nodes, sizeof *p->route);
    p->hops = calloc(torus->nodes, sizeof *p->hops);
    p->queue = calloc((3 + (size_t)torus_ports(torus)) * torus->nodes, sizeof *p->queue);
    p->confirmed = calloc(torus->nodes, sizeof *p->confirmed);
    p->kbit = calloc(channels_of(p), sizeof *p->kbit);
    p->rate = calloc(channels_of(p), sizeof *p->rate);
    p->fresh_rate = calloc(channels_of(p), sizeof *p->fresh_rate);
    p->weight = calloc(channels_of(p), sizeof *p->weight);
    p->fresh_weight = calloc(channels_of(p), sizeof *p->fresh_weight);
    if (p->up == NULL || p->forwards == NULL || p->route == NULL || p->hops == NULL ||
        p->queue == NULL || p->confirmed == NULL || p->kbit == NULL || p->rate == NULL ||
        p->fresh_rate == NULL || p->weight == NULL || p->fresh_weight == NULL ||
        route_paths_init(&p->paths, torus) != 0) {
        route_planner_free(p);
        return -1;
    }
    for (size_t i = 0; i < channels_of(p); i++)
        p->rate[i] = DAMAGE_FULL_RATE;
    for (uint32_t to = 0; to < torus->nodes; to++)
        p->route[to] = (struct planner_route){.hops = PLANNER_FAR, .is_new = true};
    p->heard = PLANNER_NEVER;
    return 0;
}

void route_planner_free(struct route_planner *p)
{
    free(p->up);
    free(p->forwards);
    free(p->route);
    free(p->hops);
    free(p->queue);
    free(p->confirmed);
    free(p->kbit);
    free(p->rate);
    free(p->fresh_rate);
    free(p->weight);
    free(p->fresh_weight);
    route_paths_free(&p->paths);
    *p = (struct route_planner){0};
}

uint32_t route_planner_convergence_ms(const struct torus *torus)
{
    uint32_t hops = 0;

    for (unsigned dim = 0; dim < torus->dims; dim++)
        hops += torus_farthest(torus, dim, torus_centre(torus, dim));
    return SETTLE_MS + SETTLE_MS_A_HOP * hops;
}

void route_planner_adopt(struct route_planner *p, uint32_t to, uint32_t ports)
{
    p->route[to].ports = ports;
}

void route_planner_measure(const struct torus *torus, const uint32_t *up, const bool *forwards,
                           uint32_t from, uint32_t *hops, uint32_t *queue)
{
    uint32_t first = 0, last = 0;

    for (uint32_t i = 0; i < torus->nodes; i++)
        hops[i] = PLANNER_FAR;
    hops[from] = 0;
    queue[last++] = from;
    while (first < last) {
        uint32_t at = queue[first++];
        if (at != from && forwards != NULL && !forwards[at])
            continue;
        for (unsigned port = 0; port < torus_ports(torus); port++) {
            uint32_t next = torus_neighbour(torus, at, port);
            if (next == TORUS_NO_NODE || (up[at] & 1u << port) == 0 || hops[next] != PLANNER_FAR)
                continue;
            hops[next] = hops[at] + 1;
            queue[last++] = next;
        }
    }
}

static void measure(const struct route_planner *p, uint32_t from, bool links)
{
    route_planner_measure(p->torus, p->up, links ? NULL : p->forwards, from, p->hops, p->queue);
}

/* Returns the digest of what the nodes state to which links lead; never 0. */
static uint64_t digest_view(const struct route_planner *p)
{
    char text[SHA256_TEXT_SIZE];
    uint32_t length = 0;

    for (uint32_t i = 0; i < p->torus->nodes; i++)
        if (p->route[i].linked) {
            p->queue[length++] = htole32(i);
            p->queue[length++] = htole32(p->up[i]);
            p->queue[length++] = htole32(p->forwards[i]);
            for (unsigned port = 0; p->rated && port < torus_ports(p->torus); port++)
                p->queue[length++] = htole32(p->rate[i * torus_ports(p->torus) + port]);
        }
    sha256_text(p->queue, length * sizeof *p->queue, text);
    text[16] = '\0';
    return strtoull(text, NULL, 16) | 1u;
}

/* Finds out to which nodes links lead. */
static void find_linked(struct route_planner *p)
{
    measure(p, p->self, true);
    for (uint32_t to = 0; to < p->torus->nodes; to++)
        p->route[to].linked = p->hops[to] != PLANNER_FAR;
}

/* Takes over what the links that are up can carry, relative to the fastest of them. Returns whether that has changed. */
static bool compare_rates(struct route_planner *p)
{
    const unsigned ports = torus_ports(p->torus);
    uint32_t *kbit = p->queue; /* has room for that */
    bool changed;

    for (uint32_t i = 0; i < p->torus->nodes; i++)
        for (unsigned port = 0; port < ports; port++)
            kbit[i * ports + port] = p->route[i].linked && (p->up[i] & 1u << port) != 0
                                         ? p->kbit[(size_t)i * ports + port]
                                         : 0;
    if (p->torus->nodes > RATED_MOST)
        memset(kbit, 0, channels_of(p) * sizeof *kbit);
    p->rated = damage_relative_rates(kbit, channels_of(p), p->fresh_rate);
    changed = memcmp(p->rate, p->fresh_rate, channels_of(p) * sizeof *p->rate) != 0;
    memcpy(p->rate, p->fresh_rate, channels_of(p) * sizeof *p->rate);
    return changed;
}

static struct route_links links_of(const struct route_planner *p)
{
    return (struct route_links){p->torus, p->up, p->forwards, p->rate};
}

/* Finds the ports that are nearer if all links have the same rate. Links lead both ways, so distances do, too. */
static void compare_hops(struct route_planner *p)
{
    for (unsigned port = 0; port < torus_ports(p->torus); port++) {
        uint32_t next = torus_neighbour(p->torus, p->self, port);
        if (next == TORUS_NO_NODE || (p->up[p->self] & 1u << port) == 0)
            continue;
        measure(p, next, false);
        for (uint32_t to = 0; to < p->torus->nodes; to++)
            if (p->hops[to] < p->route[to].hops && (p->forwards[next] || next == to))
                p->route[to].nearer |= 1u << port;
    }
}

static void compare_costs(struct route_planner *p)
{
    const struct route_links links = links_of(p);

    for (uint32_t to = 0; to < p->torus->nodes; to++) {
        route_paths_find(&p->paths, &links, to);
        p->route[to].nearer = p->paths.nearer[p->self];
        p->route[to].longest = p->paths.hops[p->self];
    }
}

/* Computes what is known about all routes. */
static void compute(struct route_planner *p)
{
    measure(p, p->self, false);
    for (uint32_t to = 0; to < p->torus->nodes; to++) {
        struct planner_route *r = &p->route[to];
        r->is_new |= r->hops != p->hops[to];
        r->hops = r->longest = p->hops[to];
        r->nearer = 0;
    }
    if (p->rated)
        compare_costs(p);
    else
        compare_hops(p);
}

static void use(struct route_planner *p, struct planner_route *r, uint32_t ports, uint64_t now)
{
    if (r->ports == ports)
        return;
    p->lost += (unsigned)__builtin_popcount(r->ports & ~ports);
    p->gained += (unsigned)__builtin_popcount(ports & ~r->ports);
    p->changed = now;
    r->ports = ports;
    r->since = now;
    r->is_new = true;
}

/* Takes over the link states: *lost and *found say what has changed. Another rate is like a link that comes up: nothing is
 * broken. */
static void compare(struct route_planner *p, const uint32_t *up, const bool *forwards,
                    const uint32_t *kbit, bool *lost, bool *found)
{
    bool rerated = false;

    for (uint32_t i = 0; i < p->torus->nodes; i++) {
        const bool may = forwards == NULL || forwards[i];
        *lost |= p->forwards[i] && !may;
        *found |= may && !p->forwards[i];
        p->forwards[i] = may;
        *lost |= (p->up[i] & ~up[i]) != 0;
        *found |= (up[i] & ~p->up[i]) != 0;
        p->up[i] = up[i];
    }
    for (size_t i = 0; i < channels_of(p); i++) {
        const uint32_t now = kbit != NULL ? kbit[i] : 0;
        rerated |= p->kbit[i] != now;
        p->kbit[i] = now;
    }
    if (!*lost && !*found && !rerated && p->heard != PLANNER_NEVER)
        return;
    find_linked(p);
    *found |= compare_rates(p);
}

void route_planner_heard(struct route_planner *p, const uint32_t *up, const bool *forwards,
                         const uint32_t *kbit, uint64_t now)
{
    bool lost = false, found = false;

    compare(p, up, forwards, kbit, &lost, &found);
    if (found)
        p->found = now;
    if (!lost && !found && p->heard != PLANNER_NEVER)
        return;
    if (lost)
        p->procedure = PLANNER_FAST;
    else if (p->converged)
        p->procedure =
            p->procedure != PLANNER_SMOOTH && now <= p->converged_at + p->convergence_time
                ? PLANNER_CAREFUL
                : PLANNER_SMOOTH;
    if (p->heard == PLANNER_NEVER)
        p->changed = now;
    p->converged = p->weighed = false;
    p->heard = now;
    compute(p);
    p->may_confirm =
        p->procedure == PLANNER_FAST && elapsed(p->found, now) > PLANNER_CALM * p->convergence_time;
    p->digest = digest_view(p);
    p->confirmed[p->self] = 0;
    for (uint32_t to = 0; to < p->torus->nodes; to++) {
        struct planner_route *r = &p->route[to];
        if (p->procedure != PLANNER_SMOOTH)
            use(p, r, r->ports & r->nearer, now);
    }
}

void route_planner_weigh(struct route_planner *p)
{
    const struct route_links links = links_of(p);
    const unsigned ports = torus_ports(p->torus);

    if (p->weighed)
        return;
    p->weighed = true;
    if (!p->rated || route_weights_find(&links, p->self, ROUTE_EFFORT, p->fresh_weight) != 0)
        memset(p->fresh_weight, 0, channels_of(p));
    for (uint32_t to = 0; to < p->torus->nodes; to++)
        p->route[to].is_new |=
            memcmp(&p->weight[to * ports], &p->fresh_weight[to * ports], ports) != 0;
    memcpy(p->weight, p->fresh_weight, channels_of(p));
}

unsigned route_planner_weight(const struct route_planner *p, uint32_t to, unsigned port)
{
    return p->weight[(size_t)to * torus_ports(p->torus) + port];
}

/* Returns how long after the last change the first ports may be added. */
static uint64_t wait_of(const struct route_planner *p)
{
    return p->procedure == PLANNER_FAST ? p->convergence_time + 1 : p->convergence_time;
}

uint64_t route_planner_statement(const struct route_planner *p)
{
    return p->may_confirm ? p->digest : 0;
}

void route_planner_confirm(struct route_planner *p, uint32_t node, uint64_t digest)
{
    p->confirmed[node] = digest;
}

/* Whether all nodes to which links lead, and this one, have confirmed the last link states. */
static bool all_confirmed(const struct route_planner *p)
{
    if (!p->may_confirm)
        return false;
    for (uint32_t i = 0; i < p->torus->nodes; i++)
        if (p->route[i].linked && p->confirmed[i] != p->digest)
            return false;
    return true;
}

void route_planner_tick(struct route_planner *p, uint64_t now)
{
    uint64_t steps;

    if (p->converged || p->heard == PLANNER_NEVER ||
        (now < p->heard + wait_of(p) && !all_confirmed(p)))
        return;
    steps = elapsed(p->heard, now) / p->convergence_time;
    p->converged = true;
    for (uint32_t to = 0; to < p->torus->nodes; to++) {
        struct planner_route *r = &p->route[to];
        if (p->procedure == PLANNER_FAST || r->hops == PLANNER_FAR || r->longest <= steps)
            use(p, r, r->nearer, now);
        else
            p->converged &= r->ports == r->nearer;
    }
    if (!p->converged)
        return;
    /* Nodes that lack confirmations converge later: behave towards them as if this node had waited, too. */
    p->converged_at = now > p->heard + wait_of(p) ? now : p->heard + wait_of(p);
    p->waited = elapsed(p->heard, now);
}

uint64_t route_planner_deadline(const struct route_planner *p)
{
    uint64_t first = PLANNER_FAR;

    if (p->converged || p->heard == PLANNER_NEVER)
        return PLANNER_NEVER;
    if (p->procedure == PLANNER_FAST)
        return all_confirmed(p) ? p->heard : p->heard + wait_of(p);
    for (uint32_t to = 0; to < p->torus->nodes; to++) {
        const struct planner_route *r = &p->route[to];
        if (to != p->self && r->hops != PLANNER_FAR && r->longest < first && r->ports != r->nearer)
            first = r->longest;
    }
    return p->heard + p->convergence_time * (first == PLANNER_FAR ? 1 : first);
}
