#include "client/cli/animation/measured_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/reporting/trace_data.h"

/* The ends of the steps, at the last node; and when the first step began, at the first node. */
struct ends {
    double begin, *end;
    uint32_t count;
};

/* Finds in a node's events the first round whose steps are all there, and adds them. Returns whether there is one. */
static bool add_node(struct ends *ends, const json_t *events)
{
    double began = 0, *own = calloc(ends->count, sizeof *own);
    uint32_t next = 0;
    const json_t *event;
    size_t i;

    if (own == NULL)
        return false;
    json_array_foreach(events, i, event)
    {
        double at = json_number_value(json_array_get(event, 0));
        json_int_t kind = json_integer_value(json_array_get(event, 1));
        json_int_t step = json_integer_value(json_array_get(event, 2));
        if (kind == TORUS_TRACE_PHASE && next == 0)
            began = at;
        if (kind != TORUS_TRACE_STEP)
            continue;
        next = step == (json_int_t)next ? next + 1 : 0;
        if (next > 0)
            own[next - 1] = at;
        if (next == ends->count)
            break;
    }
    if (next == ends->count) {
        ends->begin = began < ends->begin ? began : ends->begin;
        for (uint32_t step = 0; step < ends->count; step++)
            ends->end[step] = own[step] > ends->end[step] ? own[step] : ends->end[step];
    }
    free(own);
    return next == ends->count;
}

static int check(const struct trace_data *d, const char *path, const struct torus *t,
                 const struct animated *schedule, struct error *e)
{
    const json_t *run = json_object_get(d->own, "run");
    const char *name = json_string_value(json_object_get(run, "algorithm"));
    char own[TORUS_TEXT_SIZE], other[TORUS_TEXT_SIZE];

    if (schedule->algorithm->streaming)
        return error_set(e, ERROR_REFUSED, "--trace: %s runs without steps",
                         schedule->algorithm->name);
    if (strcmp(torus_format(t, own), torus_format(&d->torus, other)) != 0)
        return error_set(e, ERROR_REFUSED,
                         "%.200s is a trace of a run on %s, and the schedule is for %s", path,
                         other, own);
    if (name == NULL || strcmp(name, schedule->algorithm->name) != 0)
        return error_set(
            e, ERROR_REFUSED,
            "%.200s is a trace of a run with %.40s, and the schedule is %s: trace a run with "
            "'torusctl exchange --algorithm %s --mode stepped --trace FILE'",
            path, name != NULL ? name : "another algorithm", schedule->algorithm->name,
            schedule->algorithm->name);
    return 0;
}

static int measure(struct measured_steps *m, const struct trace_data *d, const char *path,
                   struct error *e)
{
    struct ends ends = {.begin = d->seconds, .end = m->seconds, .count = m->count};
    double before;

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        if (!d->node[node].traced || !add_node(&ends, d->node[node].events))
            return error_set(e, ERROR_REFUSED,
                             "%.200s does not tell when the %" PRIu32
                             " steps were over at node %" PRIu32
                             ": trace a run with --mode stepped",
                             path, m->count, node);
    before = ends.begin;
    for (uint32_t step = 0; step < m->count; step++) {
        double end = ends.end[step] > before ? ends.end[step] : before;
        m->seconds[step] = end - before;
        before = end;
    }
    return 0;
}

int measured_steps_read(struct measured_steps *m, const char *path, const struct torus *t,
                        const struct animated *schedule, struct error *e)
{
    struct trace_data d;
    int r;

    *m = (struct measured_steps){.count = schedule->report->startups};
    if (trace_data_read(&d, path, e) != 0)
        return -1;
    m->seconds = calloc(m->count + 1u, sizeof *m->seconds);
    (void)snprintf(m->run, sizeof m->run, "%s", d.id);
    if (m->seconds == NULL)
        r = error_set(e, ERROR_MEMORY, "out of memory for the trace");
    else
        r = check(&d, path, t, schedule, e) != 0 ? -1 : measure(m, &d, path, e);
    trace_data_free(&d);
    if (r != 0)
        measured_steps_free(m);
    return r;
}

void measured_steps_free(struct measured_steps *m)
{
    free(m->seconds);
    *m = (struct measured_steps){.count = 0};
}
