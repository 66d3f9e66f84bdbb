#include "client/cli/reporting/finding_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define WORTH 0.05 /* of the run: less is not worth a sentence */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double finding_median(double *values, size_t count)
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

struct finding *finding_add(struct finding_list *l, enum finding_kind kind, uint32_t node,
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

double finding_share(const struct trace_data *d, double seconds)
{
    return d->seconds > 0 ? 100 * seconds / d->seconds : 0;
}

double finding_longest(const struct trace_data *d, uint32_t node, enum torus_trace_state state)
{
    double most = 0;

    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (d->node[node].port[port].state[state] > most)
            most = d->node[node].port[port].state[state];
    return most;
}

double finding_processor_time(const struct trace_data *d, uint32_t node,
                              enum torus_trace_state state)
{
    const double waits = finding_longest(d, node, state), delayed = d->node[node].delayed;

    return waits > delayed ? waits : delayed;
}

double finding_usual_time(const struct trace_data *d, enum torus_trace_state state,
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

const char *finding_label(const struct trace_data *d, uint32_t node, char text[FINDING_LABEL_SIZE])
{
    const char *name = d->node[node].name;
    bool says_rank = strstr(name, "node ") != NULL;

    (void)snprintf(text, FINDING_LABEL_SIZE, says_rank ? "%.90s" : "%.90s (node %" PRIu32 ")", name,
                   node);
    text_clean(text); /* a long name may have been cut within a character */
    return text;
}

void finding_count_others(struct finding_list *l)
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
