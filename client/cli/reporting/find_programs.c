#include "client/cli/reporting/find_programs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITED_LEAST 0.3 /* of a program's lateness: for so long a port of its node waited for it */

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
    double usual = finding_median(times, count);
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
        const double waited = finding_longest(l->data, node, TORUS_TRACE_PROGRAM);
        struct finding *f = waited >= WAITED_LEAST * late[node]
                                ? finding_add(l, FINDING_PROGRAM, node, late[node])
                                : NULL;
        char name[FINDING_LABEL_SIZE];
        if (f != NULL)
            (void)snprintf(f->text, sizeof f->text,
                           "The program at %s made its calls late: %zu %s, together %.3g s later "
                           "than the programs at other nodes.",
                           finding_label(l->data, node, name), calls[node].count,
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

void find_programs(struct finding_list *l)
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
