#include "client/cli/reporting/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/reporting/find_links.h"
#include "client/cli/reporting/find_programs.h"
#include "client/cli/reporting/finding_list.h"
#include "client/cli/reporting/plan_check.h"

#define WAIT_LEAST 0.2 /* of the run: a disk or source that took less is not to blame */

/* --- the run beside its plan --- */

static void find_algorithm(struct finding_list *l)
{
    struct plan_check c;
    struct finding *f;

    plan_check_make(json_object_get(l->data->own, "run"), &l->data->torus, &c);
    if (!plan_check_blames_algorithm(&c))
        return;
    f = finding_add(l, FINDING_ALGORITHM, TORUS_NO_NODE,
                    c.plan_seconds - (c.better != NULL ? c.better_seconds : c.bound_seconds));
    if (f == NULL)
        return;
    int n = snprintf(f->text, sizeof f->text,
                     "The algorithm %s is slow on this torus, whatever the links do: its busiest "
                     "channel carries %.4g blocks one after the other, which take %.3g s; %.4g "
                     "blocks, %.3g s, are the least.",
                     c.algorithm, c.blocks, c.plan_seconds, c.bound_blocks, c.bound_seconds);
    if (c.better != NULL && n > 0 && (size_t)n < sizeof f->text)
        (void)snprintf(f->text + n, sizeof f->text - (size_t)n,
                       " %s needs %.4g: use --algorithm %s, or auto.", c.better, c.better_blocks,
                       c.better);
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

/* Adds a finding for each node that waited for something longer than the median of the nodes, by at least this part of
 * the run. */
static void find_waits(struct finding_list *l, enum finding_kind kind, enum torus_trace_state state,
                       double (*time)(const struct trace_data *d, uint32_t node,
                                      enum torus_trace_state state),
                       double least, const char *sentence)
{
    const struct trace_data *d = l->data;
    const double usual = finding_usual_time(d, state, time);

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        double own = d->node[node].traced ? time(d, node, state) : 0;
        /* Threads that read and write find no processor either while the daemon finds none. */
        const double delayed = finding_processor_time(d, node, TORUS_TRACE_PROCESSOR);
        const double part =
            kind == FINDING_PROCESSOR || delayed <= 0 ? 1 : 1 - delayed / d->seconds;
        const double cost = (own - usual) * part;
        struct finding *f = cost > least * d->seconds ? finding_add(l, kind, node, cost) : NULL;
        char name[FINDING_LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "%s %s %.0f %% of the time, other nodes %.0f %%.",
                           finding_label(d, node, name), sentence, finding_share(d, own),
                           finding_share(d, usual));
    }
}

/* --- all together --- */

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
    find_waits(&l, FINDING_SOURCE, TORUS_TRACE_SOURCE, finding_longest, WAIT_LEAST,
               "waited for its own files or program in");
    find_waits(&l, FINDING_DISK, TORUS_TRACE_SINK, finding_longest, WAIT_LEAST,
               "waited for its disk to take what had arrived in");
    find_waits(&l, FINDING_PROCESSOR, TORUS_TRACE_PROCESSOR, finding_processor_time, 0,
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
    static const char *const names[] = {"algorithm", "down",   "link",    "resending",
                                        "source",    "disk",   "program", "processor",
                                        "missing",   "nothing"};

    return names[kind];
}
