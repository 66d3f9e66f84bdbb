#include "client/cli/reporting/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/reporting/find_programs.h"
#include "client/cli/reporting/finding_list.h"
#include "proto/text.h"

/* A port says nothing about its link if it was busy for a smaller part of the run, or for less time without a pause. */
#define BUSY_LEAST 0.02
#define LONG_LEAST 0.06  /* seconds (port_time) */
#define LONG_SOME 0.03   /* enough for the median of all */
#define BYTES_LEAST 0.05 /* of what the port that carried most has carried */
#define SLOWER 0.75      /* of the median: a link that is slower than this stands out */

static double share(const struct trace_data *d, double seconds)
{
    return d->seconds > 0 ? 100 * seconds / d->seconds : 0;
}

static double busy_time(const struct port_time *p)
{
    return p->state[TORUS_TRACE_LINK] + p->state[TORUS_TRACE_RESENDING];
}

/* Returns how many bytes a link must have carried to tell a rate: more than messages that only say how far nodes are. */
static double least_bytes(const struct trace_data *d)
{
    double most = 0;

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (d->node[node].port[port].bytes > most)
                most = d->node[node].port[port].bytes;
    return BYTES_LEAST * most;
}

/* Whether the port was busy for long enough, with enough bytes (least_bytes()). */
static bool was_busy(const struct trace_data *d, const struct port_time *p, double least)
{
    return p->neighbour != TORUS_NO_NODE && busy_time(p) > BUSY_LEAST * d->seconds &&
           p->bytes > least;
}

/* --- what nodes wait for --- */

/* The time that the port of a node which waited longest for this spent waiting. */
static double longest(const struct trace_data *d, uint32_t node, enum torus_trace_state state)
{
    double most = 0;

    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (d->node[node].port[port].state[state] > most)
            most = d->node[node].port[port].state[state];
    return most;
}

static double processor_time(const struct trace_data *d, uint32_t node,
                             enum torus_trace_state state)
{
    double waits = longest(d, node, state), delayed = d->node[node].delayed;

    return waits > delayed ? waits : delayed;
}

/* The median of a time over the nodes that have a trace. */
static double usual_time(const struct trace_data *d, enum torus_trace_state state,
                         double (*time)(const struct trace_data *d, uint32_t node,
                                        enum torus_trace_state state))
{
    double *all = calloc(d->torus.nodes + 1u, sizeof *all), result;
    size_t count = 0;

    for (uint32_t node = 0; all != NULL && node < d->torus.nodes; node++)
        if (d->node[node].traced)
            all[count++] = time(d, node, state);
    result = all != NULL ? finding_median(all, count) : 0;
    free(all);
    return result;
}

/* --- links --- */

/* What a link carried while it was busy, in bytes a second. Less than it could carry, if it was busy with short messages. */
static double rate_of(const struct port_time *p)
{
    return p->long_time >= LONG_SOME ? p->long_bytes / p->long_time : p->bytes / busy_time(p);
}

static double resending_of(const struct port_time *p)
{
    return p->state[TORUS_TRACE_RESENDING];
}

/* The median of a value over all ports that were busy. */
static double usual_of_ports(const struct trace_data *d, double (*value)(const struct port_time *p))
{
    const unsigned ports = torus_ports(&d->torus);
    const double least = least_bytes(d);
    double *all = calloc((size_t)d->torus.nodes * ports + 1, sizeof *all), result;
    size_t count = 0;

    for (uint32_t node = 0; all != NULL && node < d->torus.nodes; node++)
        for (unsigned port = 0; port < ports; port++)
            if (was_busy(d, &d->node[node].port[port], least))
                all[count++] = value(&d->node[node].port[port]);
    result = all != NULL ? finding_median(all, count) : 0;
    free(all);
    return result;
}

struct usual {
    double rate, resending, disk, processor;
};

/* How much longer than other nodes one waited for its disk, or for a processor. A link is slow in such a time, too, since
 * nobody takes what arrives. */
static double excuse_of(const struct trace_data *d, uint32_t node, const struct usual *usual)
{
    double disk = longest(d, node, TORUS_TRACE_SINK) - usual->disk;
    double processor = processor_time(d, node, TORUS_TRACE_PROCESSOR) - usual->processor;
    double most = disk > processor ? disk : processor;

    return most > 0 ? most : 0;
}

static void judge_link(struct finding_list *l, uint32_t node, unsigned port,
                       const struct usual *usual)
{
    const struct trace_data *d = l->data;
    const struct port_time *p = &d->node[node].port[port];
    double rate = rate_of(p), again = p->state[TORUS_TRACE_RESENDING];
    double excuse = fmax(excuse_of(d, node, usual), excuse_of(d, p->neighbour, usual));
    char name[TORUS_PORT_NAME_SIZE], from[FINDING_LABEL_SIZE], to[FINDING_LABEL_SIZE];
    struct finding *f;

    (void)torus_port_name(&d->torus, node, port, name);
    (void)finding_label(d, node, from);
    (void)finding_label(d, p->neighbour, to);
    if (p->long_time >= LONG_LEAST && rate < SLOWER * usual->rate) {
        f = finding_add(l, FINDING_LINK, node, busy_time(p) - p->bytes / usual->rate - excuse);
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "The link from %s to %s (port %s) is slow: it carried %.4g Mbit/s while "
                           "it was busy, other "
                           "links %.4g Mbit/s%s.",
                           from, to, name, rate * 8e-6, usual->rate * 8e-6,
                           p->resent > 0 ? ", and TCP sent packets again" : "");
    } else {
        f = p->resent > 0
                ? finding_add(l, FINDING_RESENDING, node, again - usual->resending - excuse)
                : NULL;
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "On the link from %s to %s (port %s) TCP sent %.0f %s again, in "
                           "%.0f %% of the time; on other links usually in %.0f %%.",
                           from, to, name, p->resent,
                           text_plural((uint64_t)p->resent, "packet", "packets"), share(d, again),
                           share(d, usual->resending));
    }
    if (f != NULL)
        f->port = port;
}

static void find_links(struct finding_list *l)
{
    const struct trace_data *d = l->data;
    const struct usual usual = {usual_of_ports(d, rate_of), usual_of_ports(d, resending_of),
                                usual_time(d, TORUS_TRACE_SINK, longest),
                                usual_time(d, TORUS_TRACE_PROCESSOR, processor_time)};
    const double least = least_bytes(d);

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (was_busy(d, &d->node[node].port[port], least))
                judge_link(l, node, port, &usual);
}

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

/* Adds a finding for each link of which an end says that it went down, once. */
static void find_down(struct finding_list *l)
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

/* Adds the nodes that are not in the trace. */
static void find_missing(struct finding_list *l)
{
    const struct trace_data *d = l->data;

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        char name[FINDING_LABEL_SIZE];
        if (d->node[node].traced || ++l->all[FINDING_MISSING] > FINDINGS_OF_A_KIND)
            continue;
        struct finding *f = &l->list[l->count++];
        *f = (struct finding){.kind = FINDING_MISSING, .node = node};
        (void)snprintf(f->text, sizeof f->text,
                       "What %s did is not in the trace: it was down, or did not take part.",
                       finding_label(d, node, name));
    }
}

/* --- nodes --- */

/* Adds a finding for each node that waited for something longer than the median of the nodes. */
static void find_waits(struct finding_list *l, enum finding_kind kind, enum torus_trace_state state,
                       double (*time)(const struct trace_data *d, uint32_t node,
                                      enum torus_trace_state state),
                       const char *sentence)
{
    const struct trace_data *d = l->data;
    const double usual = usual_time(d, state, time);

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        double own = d->node[node].traced ? time(d, node, state) : 0;
        struct finding *f = finding_add(l, kind, node, own - usual);
        char name[FINDING_LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "%s %s %.0f %% of the time, other nodes %.0f %%.",
                           finding_label(d, node, name), sentence, share(d, own), share(d, usual));
    }
}

/* --- all together --- */

static void say_nothing_stands_out(struct finding_list *l)
{
    const struct trace_data *d = l->data;
    double busy = 0, all = 0;
    struct finding *f = &l->list[l->count++];

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; d->node[node].traced && port < torus_ports(&d->torus); port++)
            if (d->node[node].port[port].neighbour != TORUS_NO_NODE) {
                busy += busy_time(&d->node[node].port[port]);
                all += d->node[node].ended - d->node[node].began;
            }
    *f = (struct finding){.kind = FINDING_NOTHING, .node = TORUS_NO_NODE};
    (void)snprintf(f->text, sizeof f->text,
                   "No link, disk, program or processor stands out: links were busy for %.0f %% of "
                   "the time on average.",
                   all > 0 ? 100 * busy / all : 0);
}

unsigned findings_make(const struct trace_data *d, struct finding *list)
{
    struct finding_list l = {.data = d, .list = list};

    find_down(&l);
    find_links(&l);
    find_waits(&l, FINDING_SOURCE, TORUS_TRACE_SOURCE, longest,
               "waited for its own files or program in");
    find_waits(&l, FINDING_DISK, TORUS_TRACE_SINK, longest,
               "waited for its disk to take what had arrived in");
    find_waits(&l, FINDING_PROCESSOR, TORUS_TRACE_PROCESSOR, processor_time,
               "found no processor for torusd in");
    find_programs(&l);
    if (l.count == 0)
        say_nothing_stands_out(&l);
    find_missing(&l);
    finding_count_others(&l);
    return l.count;
}

const char *finding_name(enum finding_kind kind)
{
    static const char *const names[] = {"down",    "link",      "resending", "source", "disk",
                                        "program", "processor", "missing",   "nothing"};

    return names[kind];
}
