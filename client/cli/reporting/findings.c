#include "client/cli/reporting/findings.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/theory/cost.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/text.h"

/* ---- The list of findings -------------------------------------------------------------------- */

#define FINDINGS_OF_A_KIND                                                                         \
    (FINDINGS_MOST / FINDING_NOTHING) /* more findings of a kind are only counted */

/* The findings of a report while they are collected. */
struct finding_list {
    const struct trace_data *data;
    struct finding *list;
    unsigned count;
    unsigned all[FINDING_NOTHING + 1]; /* of each kind, also those that are not in the list */
};

#define FINDING_LABEL_SIZE 120

#define WORTH 0.05 /* of the run: less is not worth a sentence */

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
    if (of_kind < FINDINGS_OF_A_KIND)
        return true;
    if (l->list[last].seconds >= seconds)
        return false;
    l->count--;
    memmove(&l->list[last], &l->list[last + 1], (l->count - last) * sizeof *l->list);
    return true;
}

/* Adds a finding that has cost that many seconds. Returns it, for the text; NULL: it is not worth a sentence, or there
 * are enough of its kind that are worse. */
static struct finding *finding_add(struct finding_list *l, enum finding_kind kind, uint32_t node,
                                   double seconds)
{
    struct finding *f;
    unsigned at;

    if (seconds <= 0 || seconds < WORTH * l->data->seconds || l->data->seconds <= 0)
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

/* A time as a part of the run, in percent. */
static double share_of(const struct trace_data *d, double seconds)
{
    return d->seconds > 0 ? 100 * seconds / d->seconds : 0;
}

/* The longest time that a port of the node waited for this. */
static double longest_wait(const struct trace_data *d, uint32_t node, enum torus_trace_state state)
{
    double most = 0;

    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (d->node[node].port[port].state[state] > most)
            most = d->node[node].port[port].state[state];
    return most;
}

/* The same of TORUS_TRACE_PROCESSOR, or what the system says about it, if that is more. */
static double processor_time(const struct trace_data *d, uint32_t node,
                             enum torus_trace_state state)
{
    const double waits = longest_wait(d, node, state), delayed = d->node[node].delayed;

    return waits > delayed ? waits : delayed;
}

/* The median of such a time over the nodes that have a trace. */
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

/* "alpha (node 3)", or "node 3". Returns `text`. */
static const char *label(const struct trace_data *d, uint32_t node, char text[FINDING_LABEL_SIZE])
{
    const char *name = d->node[node].name;
    bool says_rank = strstr(name, "node ") != NULL;

    (void)snprintf(text, FINDING_LABEL_SIZE, says_rank ? "%.90s" : "%.90s (node %" PRIu32 ")", name,
                   node);
    text_clean(text); /* a long name may have been cut within a character */
    return text;
}

/* Adds to the last finding of each kind how many more there are. */
static void count_others(struct finding_list *l)
{
    unsigned seen[FINDING_NOTHING + 1] = {0};

    for (unsigned i = 0; i < l->count; i++) {
        struct finding *f = &l->list[i];
        const bool is_link =
            f->kind == FINDING_LINK || f->kind == FINDING_RESENDING || f->kind == FINDING_DOWN;
        const size_t used = strlen(f->text);
        if (++seen[f->kind] < FINDINGS_OF_A_KIND || l->all[f->kind] <= FINDINGS_OF_A_KIND)
            continue;
        const unsigned more = l->all[f->kind] - FINDINGS_OF_A_KIND;
        (void)snprintf(
            f->text + used, sizeof f->text - used, " The same holds for %u more %s.", more,
            is_link ? text_plural(more, "link", "links") : text_plural(more, "node", "nodes"));
    }
}

/* ---- The run beside its plan ----------------------------------------------------------------- */

/* What a run's algorithm costs on links without a fault, beside the bound and other algorithms. */
struct plan_check {
    double seconds;       /* what the run took */
    double bound_seconds; /* what no algorithm that uses all ports can beat; 0: not known */
    const char *algorithm;
    double blocks, bound_blocks; /* on the busiest channel, one after another; 0: not known */
    double plan_seconds;         /* of the blocks, at the rate of the links; 0: not known */
    const char *
        better; /* an algorithm that carries the least blocks; NULL: none carries fewer, or not known */
    double better_blocks, better_seconds;
};

#define SLOW_PLAN 1.4   /* times the bound: a plan that costs less is not to blame */
#define BETTER 0.8      /* of the blocks: an algorithm that needs more is not worth a sentence */
#define OF_THE_RUN 0.25 /* the plan explains at least this much of the time beyond the bound */
#define SLOW_RUN                                                                                   \
    0.7 /* a run that reaches this much of the bound is not compared with other algorithms */

static double number_of(const json_t *run, const char *name)
{
    const double value = json_number_value(json_object_get(run, name));

    return value > 0 && value < 1e15 ? value : 0;
}

/* Blocks on the critical path; where routes are not followed, blocks on the busiest channel of each step, summed over
 * the steps. 0: not known. */
static double blocks_of(const struct torus *t, const struct algorithm *a)
{
    struct cost cost;
    struct error e;

    if (cost_find(t, a->name, NULL, &cost, &e) != 0)
        return 0;
    return cost.critical_path > 0 ? cost.critical_path : cost.counts.transmission;
}

/* The algorithm with the fewest blocks. Among equal ones, one that runs without steps, because no node waits for the
 * step of another node. */
static void find_better(const struct torus *t, const struct algorithm *own, struct plan_check *c)
{
    bool streams = false;

    c->better_blocks = BETTER * c->blocks;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        struct error e;
        if (a->operation != own->operation || algorithm_accepts(a, t, &e) != 0 ||
            (!cost_can_enumerate(t, a) && a->family == NULL))
            continue;
        const double blocks = blocks_of(t, a);
        if (blocks <= 0 || blocks > c->better_blocks ||
            (blocks >= c->better_blocks && c->better != NULL && (streams || !a->streaming)))
            continue;
        c->better = a->name;
        streams = a->streaming;
        c->better_blocks = blocks;
    }
    if (c->better != NULL)
        c->better_seconds = c->plan_seconds * c->better_blocks / c->blocks;
}

/* Whether the algorithm, not the torus, is why the run took much longer than the bound. */
static bool blames_algorithm(const struct plan_check *c)
{
    return c->plan_seconds > SLOW_PLAN * c->bound_seconds &&
           c->plan_seconds - c->bound_seconds > OF_THE_RUN * (c->seconds - c->bound_seconds);
}

/* Compares a run, as a trace file describes it (member "run"; NULL: nothing is known about it), with its plan. A run
 * that avoided links or left out nodes has another plan, and is not compared. */
static void check_plan(const json_t *run, const struct torus *t, struct plan_check *c)
{
    const char *name = json_string_value(json_object_get(run, "algorithm"));
    const struct algorithm *a = name != NULL ? algorithm_find(name) : NULL;

    *c = (struct plan_check){.seconds = number_of(run, "seconds"),
                             .bound_seconds = number_of(run, "bound_seconds"),
                             .algorithm = a != NULL ? a->name : NULL};
    if (a == NULL || c->bound_seconds <= 0 || c->seconds <= 0 ||
        json_object_get(run, "without") != NULL || json_object_get(run, "missing") != NULL)
        return;
    const double own_bound = algorithm_bound(a, t);
    if (own_bound <= 0)
        return;
    const double block = c->bound_seconds / own_bound;
    c->bound_blocks =
        a->operation == OPERATION_EXCHANGE ? torus_bound_all_port(t) : torus_bound_broadcast(t);
    c->bound_seconds = c->bound_blocks * block;
    if (c->bound_seconds > SLOW_RUN * c->seconds)
        return;
    c->blocks = blocks_of(t, a);
    c->plan_seconds = c->blocks * block;
    if (blames_algorithm(c))
        find_better(t, a, c);
}

static void find_algorithm(struct finding_list *l)
{
    struct plan_check c;
    struct finding *f;

    check_plan(json_object_get(l->data->own, "run"), &l->data->torus, &c);
    if (!blames_algorithm(&c))
        return;
    f = finding_add(l, FINDING_ALGORITHM, TORUS_NO_NODE,
                    c.plan_seconds - (c.better != NULL ? c.better_seconds : c.bound_seconds));
    if (f == NULL)
        return;
    int n = snprintf(f->text, sizeof f->text,
                     "The algorithm %s is slow on this torus, whatever the links do: its busiest "
                     "channel carries %.4g blocks one after another, which take %.3g s; %.4g "
                     "blocks, %.3g s, are the least.",
                     c.algorithm, c.blocks, c.plan_seconds, c.bound_blocks, c.bound_seconds);
    if (c.better != NULL && n > 0 && (size_t)n < sizeof f->text)
        (void)snprintf(f->text + n, sizeof f->text - (size_t)n,
                       " %s needs %.4g: use --algorithm %s, or auto.", c.better, c.better_blocks,
                       c.better);
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* Nothing is concluded from the retransmissions of a port that was busy for a smaller part of the run, or carried
 * less. */
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

/* Returns how many bytes a link must have carried to tell something: more than messages that only say how far nodes
 * are. */
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

/* The least rate that a link has, as far as this run tells: what it carried while bytes waited for it, or were on
 * it. */
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

static int by_rated_value(const void *a, const void *b)
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
        qsort(all, count, sizeof *all, by_rated_value);
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
    return fmax(processor_time(l->data, at.node, TORUS_TRACE_PROCESSOR),
                processor_time(l->data, port_of(l, at)->neighbour, TORUS_TRACE_PROCESSOR));
}

/* What a slow direction has cost; 0: it is not slow. */
static double cost_of(const struct finding_list *l, struct direction at, const struct usual *usual)
{
    const struct port_time *p = port_of(l, at);

    if (!link_rate_is_slow(&p->link, usual->rate))
        return 0;
    return p->link.loaded - p->link.carried / usual->rate - excuse_of(l, at);
}

/* Names the slower direction of a cable. The other one is not a second fault: its acknowledgements come back through
 * the first one. Returns whether the cable is slow. */
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
                   label(d, slow.node, from), label(d, p->neighbour, to), name,
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
                   label(d, at.node, from), label(d, p->neighbour, to), name, p->resent,
                   text_plural((uint64_t)p->resent, "packet", "packets"), share_of(d, again),
                   share_of(d, usual->resending));
}

/* Adds a finding for each cable of which a direction is slow, or on which TCP sent packets again. */
static void find_links(struct finding_list *l)
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

/* ---- Links that went down -------------------------------------------------------------------- */

/* The time at which a port says that its link went down; negative: the port says nothing. */
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
static void find_links_down(struct finding_list *l)
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
                label(d, node, near), name, label(d, to, far), at);
        }
}

/* ---- Programs that keep others waiting ------------------------------------------------------- */

#define WAITED_LEAST                                                                               \
    0.3 /* least seconds for which a port of its node waited for a program that is to blame */

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
 * because the previous one was is not the program's fault. */
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
        /* Lateness only counts if a port waited for it: the calls of a copy are torusd's own, and are never late. */
        const double waited = longest_wait(l->data, node, TORUS_TRACE_PROGRAM);
        struct finding *f = waited >= WAITED_LEAST * late[node]
                                ? finding_add(l, FINDING_PROGRAM, node, late[node])
                                : NULL;
        char name[FINDING_LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "The program at %s made its calls late: %zu %s, together %.3g s later "
                           "than the programs at other nodes.",
                           label(l->data, node, name), calls[node].count,
                           calls[node].count == 1 ? "call" : "calls", late[node]);
    }
}

/* Whether the run is a copy, whose calls are torusd's own: older releases say that these waited for programs. */
static bool is_copy(const struct trace_data *d)
{
    static const char *const copies[] = {"copy", "gather", "scatter"};
    const char *operation =
        json_string_value(json_object_get(json_object_get(d->own, "run"), "operation"));

    for (size_t i = 0; operation != NULL && i < sizeof copies / sizeof copies[0]; i++)
        if (strcmp(operation, copies[i]) == 0)
            return true;
    return false;
}

/* Adds a finding for each program that made its calls late. */
static void find_programs(struct finding_list *l)
{
    if (is_copy(l->data))
        return;
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

/* ---- Nodes ----------------------------------------------------------------------------------- */

#define WAIT_LEAST 0.2 /* of the run: a disk or source that took less is not to blame */

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
                       label(d, node, name));
    }
}

/* Adds a finding for each node that waited for something longer than the median of the nodes, by at least this part of
 * the run. */
static void find_waits(struct finding_list *l, enum finding_kind kind, enum torus_trace_state state,
                       double (*time)(const struct trace_data *d, uint32_t node,
                                      enum torus_trace_state state),
                       double least, const char *sentence)
{
    const struct trace_data *d = l->data;
    const double usual = usual_time(d, state, time);

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        double own = d->node[node].traced ? time(d, node, state) : 0;
        /* Threads that read and write find no processor either while the daemon finds none. */
        const double delayed = processor_time(d, node, TORUS_TRACE_PROCESSOR);
        const double part =
            kind == FINDING_PROCESSOR || delayed <= 0 ? 1 : 1 - delayed / d->seconds;
        const double cost = (own - usual) * part;
        struct finding *f = cost > least * d->seconds ? finding_add(l, kind, node, cost) : NULL;
        char name[FINDING_LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "%s %s %.0f %% of the time, other nodes %.0f %%.", label(d, node, name),
                           sentence, share_of(d, own), share_of(d, usual));
    }
}

/* ---- All together ---------------------------------------------------------------------------- */

static void say_nothing_stands_out(struct finding_list *l)
{
    const struct trace_data *d = l->data;
    double busy = 0, all = 0;
    bool older = false;
    struct finding *f = &l->list[l->count++];

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; d->node[node].traced && port < torus_ports(&d->torus); port++)
            if (d->node[node].port[port].neighbour != TORUS_NO_NODE) {
                older = older || !d->node[node].tells_loads;
                busy += port_busy_time(&d->node[node].port[port]);
                all += d->node[node].ended - d->node[node].began;
            }
    *f = (struct finding){.kind = FINDING_NOTHING, .node = TORUS_NO_NODE};
    (void)snprintf(f->text, sizeof f->text,
                   "No %sdisk, program or processor stands out: links were busy for %.0f %% of the "
                   "time on average.%s",
                   older ? "" : "link, ", all > 0 ? 100 * busy / all : 0,
                   older ? " Whether a link is slow is not known: a node has an older release of "
                           "torusd, which does not record what links held up."
                         : "");
}

unsigned findings_make(const struct trace_data *d, struct finding *list)
{
    struct finding_list l = {.data = d, .list = list};

    find_algorithm(&l);
    find_links_down(&l);
    find_links(&l);
    find_waits(&l, FINDING_SOURCE, TORUS_TRACE_SOURCE, longest_wait, WAIT_LEAST,
               "waited for its own files or program in");
    find_waits(&l, FINDING_DISK, TORUS_TRACE_SINK, longest_wait, WAIT_LEAST,
               "waited for its disk to take what had arrived in");
    find_waits(&l, FINDING_PROCESSOR, TORUS_TRACE_PROCESSOR, processor_time, 0,
               "found no processor for torusd in");
    find_programs(&l);
    if (l.count == 0)
        say_nothing_stands_out(&l);
    find_missing(&l);
    count_others(&l);
    return l.count;
}

const char *finding_name(enum finding_kind kind)
{
    static const char *const names[] = {"algorithm", "down",   "link",    "resending",
                                        "source",    "disk",   "program", "processor",
                                        "missing",   "nothing"};

    return names[kind];
}
