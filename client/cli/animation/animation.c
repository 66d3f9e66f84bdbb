#include "client/cli/animation/animation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/animation/animation_page.h"
#include "client/cli/animation/phase_name.h"
#include "client/cli/reporting/trace_data.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/web/page.h"
#include "client/cli/web/web_texts.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/plan.h"

/* ---- How long the steps took in a run -------------------------------------------------------- */

/* How long the steps of a schedule took in a run, by its trace. */
struct measured_steps {
    char run[64];   /* its id */
    uint32_t count; /* the schedule's steps */
    double
        *seconds; /* how long each step took, from the end of the previous step, at the last node */
};

/* The ends of the steps, at the last node; and when the first step began, at the first node. */
struct ends {
    double begin, *end;
    uint32_t count;
};

/* Finds in a node's events the first round whose steps are all there, and adds them. Returns whether there is one. */
static bool add_node_steps(struct ends *ends, const json_t *events)
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

static int check_run(const struct trace_data *d, const char *path, const struct torus *t,
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
        if (!d->node[node].traced || !add_node_steps(&ends, d->node[node].events))
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

static void measured_steps_free(struct measured_steps *m)
{
    free(m->seconds);
    *m = (struct measured_steps){.count = 0};
}

/* Reads a file of 'torusctl exchange --trace'. In a run of several rounds or repetitions, the first one that is
 * recorded completely counts. Returns 0 with *m, which the caller gives to measured_steps_free(); or -1 with *e: it is
 * no trace (ERROR_USAGE); the run was on another torus, with another algorithm, or not in steps (ERROR_REFUSED). */
static int measured_steps_read(struct measured_steps *m, const char *path, const struct torus *t,
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
        r = check_run(&d, path, t, schedule, e) != 0 ? -1 : measure(m, &d, path, e);
    trace_data_free(&d);
    if (r != 0)
        measured_steps_free(m);
    return r;
}

/* ---- The messages of a schedule -------------------------------------------------------------- */

struct collecting {
    const struct torus *torus;
    const struct algorithm *algorithm;
    uint32_t source; /* whose blocks are shown; TORUS_NO_NODE: all */
    json_t *steps;   /* an array of messages for each step */
    uint64_t *blocks;
};

static int too_many(const struct torus *t, struct error *e)
{
    return error_set(
        e, ERROR_REFUSED,
        "the messages have more than %u blocks, too many for a page: show the blocks of one "
        "source with --source RANK%s",
        ANIMATION_MOST_BLOCKS, t->nodes > 64 ? ", or a smaller torus" : "");
}

static json_t *block_json(const struct collecting *c, const struct plan_block *b)
{
    json_int_t nodes = c->torus->nodes, at = (json_int_t)b->segment * nodes + b->source;

    return json_integer(c->algorithm->operation == OPERATION_EXCHANGE ? at * nodes + b->destination
                                                                      : at);
}

/* Adds a message, unless none of its blocks is shown. */
static int add_message(const struct collecting *c, const struct plan *p,
                       const struct plan_message *m, struct error *e)
{
    json_t *o = json_array(), *step;
    uint32_t shown = 0;
    int r = json_array_append_new(o, json_integer(p->rank)) |
            json_array_append_new(o, json_integer(m->port)) |
            json_array_append_new(o, json_integer(m->hops));

    for (uint32_t i = 0; i < m->blocks; i++) {
        const struct plan_block *b = &p->block[m->first + i];
        if (c->source != TORUS_NO_NODE && b->source != c->source)
            continue;
        r |= json_array_append_new(o, block_json(c, b));
        shown++;
    }
    *c->blocks += shown;
    while (r == 0 && json_array_size(c->steps) <= m->step)
        r |= json_array_append_new(c->steps, json_array());
    step = json_array_get(c->steps, m->step);
    if (shown > 0)
        r |= json_array_append(step, o);
    json_decref(o);
    if (*c->blocks > ANIMATION_MOST_BLOCKS)
        return too_many(c->torus, e);
    return r == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the page");
}

static int add_node(const struct collecting *c, uint32_t node, struct error *e)
{
    struct plan plan;
    int r = 0;

    if (plan_build(&plan, c->torus, c->algorithm, node, e) != 0)
        return -1;
    for (uint32_t i = 0; r == 0 && i < plan.sends; i++)
        r = add_message(c, &plan, &plan.send[i], e);
    plan_free(&plan);
    return r;
}

/* Returns the steps with their names and reasons. */
static json_t *name_steps(const struct collecting *c)
{
    json_t *named = json_array(), *messages;
    size_t step;
    int r = 0;

    json_array_foreach(c->steps, step, messages)
    {
        char name[PHASE_NAME_SIZE], reason[PHASE_REASON_SIZE];
        phase_name(c->algorithm, c->torus, (uint32_t)step, name);
        phase_reason(c->algorithm, c->torus, (uint32_t)step, reason);
        r |= json_array_append_new(
            named, json_pack("{s:s, s:s, s:O}", "name", name, "why", reason, "messages", messages));
    }
    return json_checked(named, r);
}

static json_t *describe(const struct torus *t, const struct animated *a, json_t *steps)
{
    const struct algorithm *g = a->algorithm;
    double segments = g->segments;

    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:i, s:f, s:f, s:i, s:o}", "name", g->name,
        "summary", g->summary != NULL ? g->summary : "", "paper",
        g->source != NULL ? g->source : "", "operation", schedule_operation_name(g->operation),
        "ports", algorithm_ports_name(g), "segments", (int)g->segments, "streaming",
        (int)g->streaming, "gather", (int)(g->operation != OPERATION_EXCHANGE), "startups",
        (int)a->report->startups, "transmission", a->report->transmission / segments, "bound",
        algorithm_bound(g, t), "contended", (int)a->report->contended_steps, "steps", steps);

    if (o != NULL && a->measured != NULL) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < a->measured->count; i++)
            (void)json_array_append_new(list, json_real(a->measured->seconds[i]));
        (void)json_object_set_new(o, "measured", list);
        (void)json_object_set_new(o, "run", json_string(a->measured->run));
    }
    return o;
}

json_t *schedule_json(const struct torus *t, const struct animated *a, uint32_t source,
                      uint64_t *blocks, struct error *e)
{
    struct collecting c = {t, a->algorithm, source, json_array(), blocks};
    const struct detour *detour = a->algorithm->detour;
    json_t *o = NULL, *steps;
    int r = 0;

    for (uint32_t node = 0; r == 0 && node < t->nodes; node++) {
        long_work_next("the messages of node %" PRIu32 " of %" PRIu32, node, t->nodes);
        if (detour == NULL || !detour_damage(detour)->gone[node])
            r = add_node(&c, node, e);
    }
    if (r == 0) {
        steps = name_steps(&c);
        o = steps != NULL ? describe(t, a, steps) : NULL;
        if (o == NULL)
            (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    }
    json_decref(c.steps);
    return o;
}

/* ---- The page -------------------------------------------------------------------------------- */

/* The damage that one of the schedules is for; NULL: none. */
static const struct damage *damage_of(const struct animated *schedules, unsigned count)
{
    const struct damage *d = NULL;

    for (unsigned i = 0; i < count; i++) {
        const struct damage *own = algorithm_damage(schedules[i].algorithm);
        d = schedules[i].rates != NULL ? schedules[i].rates : own != NULL ? own : d;
    }
    return d;
}

/* The channels that are slower than the others: node, port, rate. */
static json_t *rates_json(const struct torus *t, const struct damage *d)
{
    json_t *list = json_array();
    int r = 0;

    for (uint32_t rank = 0; d != NULL && rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (damage_rate(d, rank, port) != DAMAGE_FULL_RATE)
                r |= json_array_append_new(
                    list, json_pack("[i, i, f]", (int)rank, (int)port,
                                    damage_rate(d, rank, port) / (double)DAMAGE_FULL_RATE));
    return json_checked(list, r);
}

/* Nodes that are down, ports whose links are down, and slow channels, which one of the schedules is for. */
static json_t *down_json(const struct torus *t, const struct animated *schedules, unsigned count)
{
    const struct damage *d = damage_of(schedules, count);
    json_t *nodes = json_array(), *ports = json_array();
    int r = 0;

    for (uint32_t rank = 0; d != NULL && rank < t->nodes; rank++) {
        if (d->gone[rank])
            r |= json_array_append_new(nodes, json_integer(rank));
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE && !damage_has_link(d, rank, port))
                r |= json_array_append_new(ports, json_pack("[i, i]", (int)rank, (int)port));
    }
    json_t *o =
        json_pack("{s:o, s:o, s:o}", "nodes", nodes, "ports", ports, "rates", rates_json(t, d));
    return json_checked(o, r);
}

static json_t *data_of(const struct torus *t, const struct animated *schedules, unsigned count,
                       uint32_t source, struct error *e)
{
    json_t *torus = torus_json(t, e), *list = json_array(), *o;
    uint64_t blocks = 0;
    bool complete = torus != NULL;

    for (unsigned i = 0; complete && i < count; i++) {
        json_t *one = schedule_json(t, &schedules[i], source, &blocks, e);
        complete = one != NULL && json_array_append_new(list, one) == 0;
    }
    if (!complete) {
        json_decref(torus);
        json_decref(list);
        return NULL;
    }
    o = json_pack("{s:o, s:o, s:I, s:o}", "torus", torus, "schedules", list, "source",
                  source != TORUS_NO_NODE ? (json_int_t)source : -1, "down",
                  down_json(t, schedules, count));
    if (o == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    return o;
}

/* Writes the page for `count` schedules (1 or 2) on a torus to a file ("-": standard output); only with the blocks of
 * `source`, unless it is TORUS_NO_NODE. Returns EXIT_DONE, or another exit code after printing the reason, without a
 * new file. */
static int write_page(const struct cli *cli, const char *file, const struct torus *t,
                      const struct animated *schedules, unsigned count, uint32_t source)
{
    static const char *const scripts[] = {web_texts_js,          web_colours_js,      web_torus_js,
                                          animation_schedule_js, animation_player_js, NULL};
    struct error e;
    json_t *data = data_of(t, schedules, count, source, &e);

    if (data == NULL)
        return cli_fail(cli, &e);
    return page_file_write(cli, file,
                           &(struct page){.body = animation_html,
                                          .style = web_style_css,
                                          .more_style = animation_css,
                                          .scripts = scripts,
                                          .data = data});
}

/* ---- The options of torusctl plan ------------------------------------------------------------ */

bool plan_animation_is_output(const struct animation_arguments *a)
{
    return a->file != NULL && strcmp(a->file, "-") == 0;
}

/* Finds the algorithm to compare with. Returns 0 with *algorithm, and with *found if that was made for it; or -1 with
 * *e. */
static int find(const char *name, const struct torus *t, enum schedule_operation operation,
                const struct algorithm **algorithm, struct detour **found, struct error *e)
{
    *found = NULL;
    if (!torus_is_plain(t) && found_is_name(name, t)) {
        if (detour_new_whole(found, t, e) != 0)
            return -1;
        *algorithm = found_named(*found, name, e);
    } else {
        *algorithm = named_algorithm(name, NULL, e);
    }
    if (*algorithm == NULL || algorithm_accepts(*algorithm, t, e) != 0)
        return -1;
    if ((*algorithm)->operation == operation)
        return 0;
    return error_set(e, ERROR_USAGE, "--compare: %s is for an %s, and the other schedule for an %s",
                     name, schedule_operation_name((*algorithm)->operation),
                     schedule_operation_name(operation));
}

static int write_both(const struct cli *cli, const struct animation_arguments *a,
                      const struct torus *t, const struct animated *schedule, uint32_t source)
{
    struct schedule_report report;
    struct animated both[2] = {*schedule, {.report = &report}};
    struct detour *found;
    struct error e;

    long_work_next("the routes of %.80s", a->compare);
    int r = find(a->compare, t, schedule->algorithm->operation, &both[1].algorithm, &found, &e);
    int code = r != 0 ? cli_fail_usage(cli, "%s", e.text) : EXIT_DONE;
    if (r == 0 && schedule_verify(t, both[1].algorithm, &report, &e) != 0)
        code = cli_fail(cli, &e);
    else if (r == 0)
        code = write_page(cli, a->file, t, both, 2, source);
    detour_free(found);
    return code;
}

int plan_animation(const struct cli *cli, const struct animation_arguments *a, const char *source,
                   const struct torus *t, const struct animated *schedule)
{
    uint32_t rank = TORUS_NO_NODE;
    struct error e;

    if (a->file == NULL && (a->compare != NULL || a->trace != NULL))
        return cli_fail_usage(cli, "%s is for a page: give its file with --html FILE",
                              a->compare != NULL ? "--compare" : "--trace");
    if (a->file == NULL)
        return EXIT_DONE;
    if (source != NULL && parse_number(source, t->nodes - 1, &rank, &e) != 0)
        return cli_fail_usage(cli, "--source: %s", e.text);
    struct animated timed = *schedule;
    struct measured_steps steps = {.count = 0};
    if (a->trace != NULL) {
        if (measured_steps_read(&steps, a->trace, t, schedule, &e) != 0)
            return e.code == ERROR_USAGE ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
        timed.measured = &steps;
    }
    int code = a->compare != NULL ? write_both(cli, a, t, &timed, rank)
                                  : write_page(cli, a->file, t, &timed, 1, rank);
    measured_steps_free(&steps);
    return code;
}
