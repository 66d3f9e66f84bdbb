#include "client/cli/reporting/find_links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/text.h"

/* A port says nothing about packets that were sent again if it was busy for a smaller part of the run, or carried less. */
#define BUSY_LEAST 0.02
#define BYTES_LEAST 0.05 /* of what the port that carried most has carried */
#define AS_SLOW 1.25     /* directions of a cable whose rates differ by less are equally slow */

/* The figures of a usual link in this run. */
struct usual {
    double rate, resending;
};

/* One direction of a cable. */
struct direction {
    uint32_t node;
    unsigned port;
};

static const struct port_time *port_of(const struct finding_list *l, struct direction at)
{
    return &l->data->node[at.node].port[at.port];
}

static struct direction opposite_of(const struct finding_list *l, struct direction at)
{
    return (struct direction){port_of(l, at)->neighbour,
                              torus_port_opposite(&l->data->torus, at.port)};
}

/* Returns how many bytes a link must have carried to tell something: more than messages that only say how far nodes are. */
static double least_bytes(const struct trace_data *d)
{
    double most = 0;

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            most = fmax(most, d->node[node].port[port].bytes);
    return BYTES_LEAST * most;
}

static bool was_busy(const struct trace_data *d, const struct port_time *p, double least)
{
    return p->neighbour != TORUS_NO_NODE && port_busy_time(p) > BUSY_LEAST * d->seconds &&
           p->bytes > least;
}

/* The least rate that a link has, as far as this run tells: what it carried while bytes waited for it, or were on it. */
static double rate_at_least(const struct port_time *p)
{
    return fmax(p->link.least, p->bytes / port_busy_time(p));
}

static double resending_of(const struct port_time *p)
{
    return p->state[TORUS_TRACE_RESENDING];
}

struct rated {
    double value, bytes;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct rated *)a)->value, y = ((const struct rated *)b)->value;

    return (x > y) - (x < y);
}

/* The median of a value over all bytes that busy ports carried. Ports that carried few, such as those at the ends of a
 * tree, count for little: a link may pass a few packets at once after a pause, faster than its rate. */
static double usual_of_ports(const struct trace_data *d, double (*value)(const struct port_time *p))
{
    const unsigned ports = torus_ports(&d->torus);
    const double least = least_bytes(d);
    struct rated *all = calloc((size_t)d->torus.nodes * ports + 1, sizeof *all);
    double bytes = 0, below = 0, result = 0;
    size_t count = 0;

    for (uint32_t node = 0; all != NULL && node < d->torus.nodes; node++)
        for (unsigned port = 0; port < ports; port++) {
            const struct port_time *p = &d->node[node].port[port];
            if (!was_busy(d, p, least))
                continue;
            all[count++] = (struct rated){value(p), p->bytes};
            bytes += p->bytes;
        }
    if (count > 0)
        qsort(all, count, sizeof *all, by_value);
    for (size_t i = 0; i < count && below < bytes / 2; i++) {
        result = all[i].value;
        below += all[i].bytes;
    }
    free(all);
    return result;
}

/* The time for which an end of a link found no processor: its system may have sent and taken nothing meanwhile. */
static double excuse_of(const struct finding_list *l, struct direction at)
{
    return fmax(finding_processor_time(l->data, at.node, TORUS_TRACE_PROCESSOR),
                finding_processor_time(l->data, port_of(l, at)->neighbour, TORUS_TRACE_PROCESSOR));
}

/* What a slow direction has cost; 0: it is not slow. */
static double cost_of(const struct finding_list *l, struct direction at, const struct usual *usual)
{
    const struct port_time *p = port_of(l, at);

    if (!link_rate_is_slow(&p->link, usual->rate))
        return 0;
    return p->link.loaded - p->link.carried / usual->rate - excuse_of(l, at);
}

/* Names the slower direction of a cable. The other one is no second fault: its acknowledgements come back through the
 * first one. Returns whether the cable is slow. */
static bool judge_rate(struct finding_list *l, struct direction there, const struct usual *usual)
{
    struct direction back = opposite_of(l, there), slow = there;
    const double cost_there = cost_of(l, there, usual), cost_back = cost_of(l, back, usual);
    const struct trace_data *d = l->data;
    const struct port_time *p;
    char name[TORUS_PORT_NAME_SIZE], from[FINDING_LABEL_SIZE], to[FINDING_LABEL_SIZE];
    struct finding *f;

    if (cost_there <= 0 && cost_back <= 0)
        return false;
    if (cost_there <= 0 ||
        (cost_back > 0 && port_of(l, back)->link.most < port_of(l, there)->link.most))
        slow = back;
    p = port_of(l, slow);
    const struct link_rate *other = &port_of(l, opposite_of(l, slow))->link;
    f = finding_add(l, FINDING_LINK, slow.node, fmax(cost_there, cost_back));
    if (f == NULL)
        return true;
    f->port = slow.port;
    (void)torus_port_name(&d->torus, slow.node, slow.port, name);
    (void)snprintf(f->text, sizeof f->text,
                   "The link from %s to %s (port %s) is slow%s: it carried %.4g Mbit/s while bytes "
                   "waited for it, other links %.4g Mbit/s%s.",
                   finding_label(d, slow.node, from), finding_label(d, p->neighbour, to), name,
                   cost_there > 0 && cost_back > 0 && other->most < AS_SLOW * p->link.most
                       ? " in both directions"
                       : "",
                   p->link.most * 8e-6, usual->rate * 8e-6,
                   p->resent > 0 ? ", and TCP sent packets again" : "");
    return true;
}

static void judge_resending(struct finding_list *l, struct direction at, const struct usual *usual)
{
    const struct trace_data *d = l->data;
    const struct port_time *p = port_of(l, at);
    const double again = resending_of(p);
    char name[TORUS_PORT_NAME_SIZE], from[FINDING_LABEL_SIZE], to[FINDING_LABEL_SIZE];
    struct finding *f = p->resent > 0 ? finding_add(l, FINDING_RESENDING, at.node,
                                                    again - usual->resending - excuse_of(l, at))
                                      : NULL;

    if (f == NULL)
        return;
    f->port = at.port;
    (void)torus_port_name(&d->torus, at.node, at.port, name);
    (void)snprintf(f->text, sizeof f->text,
                   "On the link from %s to %s (port %s) TCP sent %.0f %s again, in %.0f %% of the "
                   "time; on other links usually in %.0f %%.",
                   finding_label(d, at.node, from), finding_label(d, p->neighbour, to), name,
                   p->resent, text_plural((uint64_t)p->resent, "packet", "packets"),
                   finding_share(d, again), finding_share(d, usual->resending));
}

void find_links(struct finding_list *l)
{
    const struct trace_data *d = l->data;
    const double least = least_bytes(d);
    const struct usual usual = {usual_of_ports(d, rate_at_least), usual_of_ports(d, resending_of)};

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            const struct direction there = {node, port};
            if (port_of(l, there)->neighbour == TORUS_NO_NODE)
                continue;
            const struct direction back = opposite_of(l, there);
            /* each cable once, from its end with the lower number */
            const bool first = node < back.node || (node == back.node && port < back.port);
            const bool slow = first ? judge_rate(l, there, &usual)
                                    : cost_of(l, there, &usual) > 0 || cost_of(l, back, &usual) > 0;
            if (!slow && was_busy(d, port_of(l, there), least))
                judge_resending(l, there, &usual);
        }
}

/* --- links that went down --- */

/* When a port says that its link has gone down; negative: it does not. */
static double went_down_at(const struct trace_data *d, uint32_t node, unsigned port)
{
    const json_t *event;
    size_t i;

    json_array_foreach(
        d->node[node].events, i,
        event) if (json_integer_value(json_array_get(event, 1)) == TORUS_TRACE_LINK_DOWN &&
                   json_integer_value(json_array_get(event, 2)) ==
                       (json_int_t)port) return fmax(json_number_value(json_array_get(event, 0)),
                                                     0);
    return -1;
}

/* Adds a finding for a link of which an end says that it went down, once. */
void find_links_down(struct finding_list *l)
{
    const struct trace_data *d = l->data;

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            const uint32_t to = d->node[node].port[port].neighbour;
            const double at = to != TORUS_NO_NODE ? went_down_at(d, node, port) : -1;
            char name[TORUS_PORT_NAME_SIZE], near[FINDING_LABEL_SIZE], far[FINDING_LABEL_SIZE];
            struct finding *f;
            if (at < 0 ||
                (to < node && went_down_at(d, to, torus_port_opposite(&d->torus, port)) >= 0))
                continue;
            f = finding_add(l, FINDING_DOWN, node, d->seconds);
            if (f == NULL)
                continue;
            f->port = port;
            (void)torus_port_name(&d->torus, node, port, name);
            (void)snprintf(
                f->text, sizeof f->text,
                "The link between %s (port %s) and %s went down, %.3g s after the begin.",
                finding_label(d, node, near), name, finding_label(d, to, far), at);
        }
}
