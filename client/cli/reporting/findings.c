#include "client/cli/reporting/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define WORTH 0.05       /* of the run: less is not worth a sentence */
#define BUSY_LEAST 0.02  /* of the run: a port that was busy for less says nothing about its link */
#define BYTES_LEAST 0.05 /* of what the port that carried most has carried */
#define SLOWER 0.75      /* of the median: a link that is slower than this stands out */

#define OF_A_KIND (FINDINGS_MOST / FINDING_NOTHING) /* more findings of a kind are only counted */

struct finding_list {
    const struct trace_data *data;
    struct finding *list;
    unsigned count;
    unsigned all[FINDING_NOTHING + 1]; /* of each kind, also those that are not in the list */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of `count` values, which are sorted; 0 if there are none. */
static double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Makes room for a finding of a kind of which the list has as many as it may. Returns whether it is worse than one of
 * these. */
static bool displace(struct finding_list *l, enum finding_kind kind, double seconds)
{
    unsigned of_kind = 0, last = 0;

    for (unsigned i = 0; i < l->count; i++)
        if (l->list[i].kind == kind) {
            of_kind++;
            last = i;
        }
    if (of_kind < OF_A_KIND)
        return true;
    if (l->list[last].seconds >= seconds)
        return false;
    l->count--;
    memmove(&l->list[last], &l->list[last + 1], (l->count - last) * sizeof *l->list);
    return true;
}

/* Adds a finding, unless it is not worth a sentence, or there are enough of its kind that are worse. */
static struct finding *add(struct finding_list *l, enum finding_kind kind, uint32_t node,
                           double seconds)
{
    struct finding *f;
    unsigned at;

    if (seconds < WORTH * l->data->seconds)
        return NULL;
    l->all[kind]++;
    if (!displace(l, kind, seconds))
        return NULL;
    for (at = l->count++; at > 0 && l->list[at - 1].seconds < seconds; at--)
        l->list[at] = l->list[at - 1];
    f = &l->list[at];
    *f = (struct finding){.kind = kind, .node = node, .seconds = seconds};
    return f;
}

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
static bool tells_rate(const struct trace_data *d, const struct port_time *p, double least)
{
    return p->neighbour != TORUS_NO_NODE && busy_time(p) > BUSY_LEAST * d->seconds &&
           p->bytes > least;
}

#define LABEL_SIZE 120

/* "alpha (node 3)", or "node 3". Returns `text`. */
static const char *label(const struct trace_data *d, uint32_t node, char text[LABEL_SIZE])
{
    const char *name = d->node[node].name;
    bool says_rank = strstr(name, "node ") != NULL;

    (void)snprintf(text, LABEL_SIZE, says_rank ? "%.90s" : "%.90s (node %" PRIu32 ")", name, node);
    return text;
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
    result = all != NULL ? median(all, count) : 0;
    free(all);
    return result;
}

/* --- links --- */

/* What a link carried while it was busy, in bytes a second. */
static double rate_of(const struct port_time *p)
{
    return p->bytes / busy_time(p);
}

static double resending_of(const struct port_time *p)
{
    return p->state[TORUS_TRACE_RESENDING];
}

/* The median of a value over all ports that tell a rate. */
static double usual_of_ports(const struct trace_data *d, double (*value)(const struct port_time *p))
{
    const unsigned ports = torus_ports(&d->torus);
    const double least = least_bytes(d);
    double *all = calloc((size_t)d->torus.nodes * ports + 1, sizeof *all), result;
    size_t count = 0;

    for (uint32_t node = 0; all != NULL && node < d->torus.nodes; node++)
        for (unsigned port = 0; port < ports; port++)
            if (tells_rate(d, &d->node[node].port[port], least))
                all[count++] = value(&d->node[node].port[port]);
    result = all != NULL ? median(all, count) : 0;
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
    double rate = p->bytes / busy_time(p), again = p->state[TORUS_TRACE_RESENDING];
    double excuse = fmax(excuse_of(d, node, usual), excuse_of(d, p->neighbour, usual));
    char name[TORUS_PORT_NAME_SIZE], from[LABEL_SIZE], to[LABEL_SIZE];
    struct finding *f;

    (void)torus_port_name(&d->torus, node, port, name);
    (void)label(d, node, from);
    (void)label(d, p->neighbour, to);
    if (rate < SLOWER * usual->rate) {
        f = add(l, FINDING_LINK, node, busy_time(p) - p->bytes / usual->rate - excuse);
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "The link from %s to %s (port %s) is slow: it carried %.4g Mbit/s while "
                           "it was busy, other "
                           "links %.4g Mbit/s%s.",
                           from, to, name, rate * 8e-6, usual->rate * 8e-6,
                           p->resent > 0 ? ", and TCP sent packets again" : "");
    } else {
        f = p->resent > 0 ? add(l, FINDING_RESENDING, node, again - usual->resending - excuse)
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
            if (tells_rate(d, &d->node[node].port[port], least))
                judge_link(l, node, port, &usual);
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
        struct finding *f = add(l, kind, node, own - usual);
        char name[LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "%s %s %.0f %% of the time, other nodes %.0f %%.", label(d, node, name),
                           sentence, share(d, own), share(d, usual));
    }
}

/* --- programs --- */

/* A call of a program. */
struct call {
    json_int_t operation, number;
    double at;    /* when it was made */
    double pause; /* since the program's former call ended */
};

struct call_list {
    struct call *call;
    size_t count;
};

static int by_call(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->operation != y->operation)
        return x->operation > y->operation ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Finds the calls of a node's program. Without memory there are none. */
static void read_calls(const struct trace_node_data *n, struct call_list *calls)
{
    double free_since = -HUGE_VAL;
    const json_t *event;
    size_t i;

    calls->call = calloc(json_array_size(n->events) + 1, sizeof *calls->call);
    if (calls->call == NULL)
        return;
    json_array_foreach(n->events, i, event)
    {
        double at = json_number_value(json_array_get(event, 0));
        json_int_t kind = json_integer_value(json_array_get(event, 1));
        if (kind == TORUS_TRACE_CALL_ENDED)
            free_since = at;
        if (kind == TORUS_TRACE_CALL_BEGUN)
            calls->call[calls->count++] =
                (struct call){json_integer_value(json_array_get(event, 2)),
                              json_integer_value(json_array_get(event, 3)), at, at - free_since};
    }
    qsort(calls->call, calls->count, sizeof *calls->call, by_call);
}

/* Adds to late[node] by how much each program made this call later than the median of the programs. A call that is late
 * because the former one was is not the program's fault. */
static void add_lateness(const struct call_list *calls, uint32_t nodes, const struct call *call,
                         double *times, double *late)
{
    size_t count = 0;

    for (uint32_t node = 0; node < nodes; node++) {
        const struct call *own =
            bsearch(call, calls[node].call, calls[node].count, sizeof *own, by_call);
        if (own != NULL)
            times[count++] = own->at;
    }
    double usual = median(times, count);
    for (uint32_t node = 0; node < nodes; node++) {
        const struct call *own =
            bsearch(call, calls[node].call, calls[node].count, sizeof *own, by_call);
        if (own != NULL && own->at > usual)
            late[node] += own->at - usual < own->pause ? own->at - usual : own->pause;
    }
}

static void find_late_programs(struct finding_list *l, const struct call_list *calls, double *times,
                               double *late)
{
    const uint32_t nodes = l->data->torus.nodes;
    const struct call_list *most = &calls[0];

    for (uint32_t node = 1; node < nodes; node++)
        if (calls[node].count > most->count)
            most = &calls[node];
    for (size_t i = 0; i < most->count; i++)
        add_lateness(calls, nodes, &most->call[i], times, late);
    for (uint32_t node = 0; node < nodes; node++) {
        struct finding *f = add(l, FINDING_PROGRAM, node, late[node]);
        char name[LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "The program at %s made its calls late: %zu %s, together %.3g s later "
                           "than the programs at other nodes.",
                           label(l->data, node, name), calls[node].count,
                           calls[node].count == 1 ? "call" : "calls", late[node]);
    }
}

static void find_programs(struct finding_list *l)
{
    const uint32_t nodes = l->data->torus.nodes;
    double *times = calloc(nodes, sizeof *times), *late = calloc(nodes, sizeof *late);
    struct call_list *calls = calloc(nodes, sizeof *calls);

    for (uint32_t node = 0; calls != NULL && node < nodes; node++)
        read_calls(&l->data->node[node], &calls[node]);
    if (times != NULL && late != NULL && calls != NULL)
        find_late_programs(l, calls, times, late);
    for (uint32_t node = 0; calls != NULL && node < nodes; node++)
        free(calls[node].call);
    free(calls);
    free(times);
    free(late);
}

/* --- all together --- */

static void say_nothing_stands_out(struct finding_list *l)
{
    const struct trace_data *d = l->data;
    double busy = 0, all = 0;
    struct finding *f = l->list;

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
    l->count = 1;
}

/* The last finding of each kind says how many more there are. */
static void count_others(struct finding_list *l)
{
    unsigned seen[FINDING_NOTHING + 1] = {0};

    for (unsigned i = 0; i < l->count; i++) {
        struct finding *f = &l->list[i];
        const bool is_link = f->kind == FINDING_LINK || f->kind == FINDING_RESENDING;
        const size_t used = strlen(f->text);
        if (++seen[f->kind] < OF_A_KIND || l->all[f->kind] == OF_A_KIND)
            continue;
        const unsigned more = l->all[f->kind] - OF_A_KIND;
        (void)snprintf(
            f->text + used, sizeof f->text - used, " The same holds for %u more %s.", more,
            is_link ? text_plural(more, "link", "links") : text_plural(more, "node", "nodes"));
    }
}

unsigned findings_make(const struct trace_data *d, struct finding *list)
{
    struct finding_list l = {.data = d, .list = list};

    find_links(&l);
    find_waits(&l, FINDING_SOURCE, TORUS_TRACE_SOURCE, longest,
               "waited for its own files or program in");
    find_waits(&l, FINDING_DISK, TORUS_TRACE_SINK, longest,
               "waited for its disk to take what had arrived in");
    find_waits(&l, FINDING_PROCESSOR, TORUS_TRACE_PROCESSOR, processor_time,
               "found no processor for torusd in");
    find_programs(&l);
    count_others(&l);
    if (l.count == 0)
        say_nothing_stands_out(&l);
    return l.count;
}

const char *finding_name(enum finding_kind kind)
{
    static const char *const names[] = {"link",    "resending", "source", "disk",
                                        "program", "processor", "nothing"};

    return names[kind];
}
