#include "client/cli/algorithms/simulated_broadcast.h"

#include <math.h>

#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/json.h"
#include "client/theory/broadcast_bound.h"
#include "client/theory/broadcast_run.h"
#include "client/theory/formula.h"

static const struct field broadcast_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"nodes", "node_count", FORMAT_PLAIN},
    {"algorithm", "algorithm", FORMAT_PLAIN},
    {"queue", "queue", FORMAT_PLAIN},
    {"switches at", "switch", FORMAT_PLAIN},
    {"startup, us", "startup_us", FORMAT_PLAIN},
    {"switching, us", "switching_us", FORMAT_PLAIN},
    {"transmission, us", "transmission_us", FORMAT_PLAIN},
    {"arrivals", "arrivals", FORMAT_PLAIN},
    {"on the busiest channel", "busiest", FORMAT_PLAIN},
    {"delay, us", "delay_us", FORMAT_PLAIN},
    {"(formula)", "formula_us", FORMAT_PLAIN},
    {"above the formula, us", "excess_us", FORMAT_PLAIN},
    {"lower bound, us", "bound_us", FORMAT_PLAIN},
    {0},
};
static const struct section broadcast_sections[] = {
    {.layout = LAYOUT_RECORD, .fields = broadcast_fields},
};

static const char *const queue_names[] = {"fifo", "longest", NULL};
static const char *const switch_names[] = {"input", "output", NULL};

#define PICOSECONDS 1e6 /* in a microsecond: whole, so that equal times are equal */

static uint64_t picoseconds(double micros)
{
    double most = (double)BROADCAST_RUN_MOST_TIME + 1;
    return (uint64_t)llround(fmin(micros * PICOSECONDS, most));
}

static int parse_model(const struct cli *cli, const struct broadcast_arguments *a,
                       struct broadcast_model *m)
{
    double ts = cost_paragon.ts, tp = 1, tw = cost_paragon.tw;
    uint64_t bytes = 1024;
    size_t queue = BROADCAST_FIFO, place = BROADCAST_SWITCH_INPUT;
    struct error e;
    int code;

    if ((code = cli_read_micros(cli, "--ts", a->ts, &ts)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tp", a->tp, &tp)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tw", a->tw, &tw)) != EXIT_DONE)
        return code;
    if (a->block_size != NULL && parse_size(a->block_size, &bytes, &e) != 0)
        return cli_fail_usage(cli, "--block-size: %s", e.text);
    if (a->queue != NULL && parse_named(a->queue, queue_names, &queue, &e) != 0)
        return cli_fail_usage(cli, "--queue: %s", e.text);
    if (a->switching != NULL && parse_named(a->switching, switch_names, &place, &e) != 0)
        return cli_fail_usage(cli, "--switch: %s", e.text);
    *m = (struct broadcast_model){.startup = picoseconds(ts),
                                  .switching = picoseconds(tp),
                                  .transmission = picoseconds(tw * (double)bytes),
                                  .queue = (enum broadcast_queue)queue,
                                  .place = (enum broadcast_switch)place};
    return EXIT_DONE;
}

/* The delay by the formula in the paper, in picoseconds; below 0 if no formula with overlapped switching
 * covers the torus. */
static double formula_delay(const struct torus *t, const struct algorithm *a,
                            const struct broadcast_model *m)
{
    const struct formula *f = formula_find(a->name);
    struct cost_parameters p = {
        .ts = (double)m->startup, .tp = (double)m->switching, .tw = (double)m->transmission};
    struct cost_counts counts;

    if (f == NULL || formula_counts(f, t, &counts, NULL) != 0 || !counts.overlapped)
        return -1;
    return cost_price(&counts, &p, 1).total;
}

/* Theorem 1 of the paper, in picoseconds; below 0 on a single node. */
static double bound_delay(const struct torus *t, const struct broadcast_model *m)
{
    if (t->nodes == 1)
        return -1;
    struct product p = product_of_torus(t);
    return (double)m->startup + (double)m->switching +
           (double)broadcast_bound_all_to_all(&p) * (double)m->transmission;
}

static json_t *broadcast_value(const struct torus *t, const struct algorithm *a,
                               const struct broadcast_model *m, const struct broadcast_report *r)
{
    double formula = formula_delay(t, a, m);
    double excess = (double)r->delay - formula, bound = bound_delay(t, m);
    json_t *o = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "simulated",
        "broadcast", "node_count", (int)t->nodes, "algorithm", a->name, "queue",
        queue_names[m->queue], "switch", switch_names[m->place], "startup_us",
        json_number((double)m->startup / PICOSECONDS), "switching_us",
        json_number((double)m->switching / PICOSECONDS), "transmission_us",
        json_number((double)m->transmission / PICOSECONDS), "arrivals", json_count(r->arrivals),
        "busiest", json_count(r->busiest), "delay_us", json_number((double)r->delay / PICOSECONDS),
        "bound_us", bound < 0 ? json_null() : json_number(bound / PICOSECONDS), "formula_us",
        formula < 0 ? json_null() : json_number(formula / PICOSECONDS), "excess_us",
        formula < 0 ? json_null() : json_number(excess / PICOSECONDS));

    if (o != NULL && json_set_torus(o, t) == 0)
        return o;
    json_decref(o);
    return NULL;
}

bool broadcast_arguments_given(const struct broadcast_arguments *a)
{
    return a->ts != NULL || a->tp != NULL || a->tw != NULL || a->block_size != NULL ||
           a->queue != NULL || a->switching != NULL;
}

int simulated_broadcast(const struct cli *cli, const struct broadcast_arguments *a,
                        const struct torus *t, const struct algorithm *algorithm)
{
    struct broadcast_report report;
    struct broadcast_model model;
    struct error e;
    int code = parse_model(cli, a, &model);

    if (code != EXIT_DONE)
        return code;
    if (broadcast_run(t, algorithm, &model, &report, &e) != 0)
        return e.code == ERROR_REFUSED ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    return cli_print(cli, broadcast_value(t, algorithm, &model, &report),
                     &(struct view){broadcast_sections, 1});
}
