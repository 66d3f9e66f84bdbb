/* torusctl predict: predicts the times of exchanges by the cost model, for the implemented algorithms and for those
 * that the papers compare them with. */
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/theory/formula.h"
#include "daemon/lib/command_line/options.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"

/* The counts of algorithms on a torus and their predicted times, as JSON. */

#define MOST_SIZES 32

struct prediction {
    struct torus torus;
    const char *algorithm;            /* NULL: all algorithms for the operation */
    const struct algorithm *schedule; /* also this schedule from a file; NULL: none */
    const struct damage *rates;       /* of the channels; NULL: all alike */
    struct detour *found;             /* the routes for these rates; NULL: none */
    enum schedule_operation operation;
    struct cost_parameters parameters;
    uint64_t size[MOST_SIZES]; /* block sizes, in bytes */
    size_t sizes;
};

/* Calls `visit` with the name of every implemented algorithm, then of every other algorithm that has a formula. Stops
 * when `visit` returns a value other than 0, and returns this value, or 0. */
typedef int visit_fn(const char *name, enum schedule_operation operation, void *arg);

static int for_each_name(visit_fn *visit, void *arg)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < algorithm_count(); i++)
        r = visit(algorithm_at(i)->name, algorithm_at(i)->operation, arg);
    for (size_t i = 0; r == 0 && i < formula_count(); i++)
        if (algorithm_find(formula_at(i)->algorithm) == NULL)
            r = visit(formula_at(i)->algorithm, formula_at(i)->operation, arg);
    return r;
}

/* ---- Names ----------------------------------------------------------------------------------- */

struct names {
    struct suggestion suggestion;
    char known[ALGORITHM_NAMES_SIZE];
};

static int add_name(const char *name, enum schedule_operation operation, void *arg)
{
    struct names *n = arg;
    size_t used = strlen(n->known);

    (void)operation;
    suggest(&n->suggestion, name);
    (void)snprintf(n->known + used, sizeof n->known - used, "%s%s", used > 0 ? ", " : "", name);
    return 0;
}

/* Returns 0 with the operation of the algorithm, or -1 with *e, which lists the known names. */
static int prediction_check_name(const char *name, enum schedule_operation *operation,
                                 struct error *e)
{
    struct names n = {.suggestion = {.word = name}};
    const struct family *family = family_of_best(name);
    const struct algorithm *a = family != NULL ? family->base : algorithm_find(name);
    const struct formula *f = formula_find(name);

    if (a != NULL || f != NULL) {
        *operation = a != NULL ? a->operation : f->operation;
        return 0;
    }
    (void)for_each_name(add_name, &n);
    const char *best = n.suggestion.best;
    return error_set(e, ERROR_USAGE, "unknown algorithm '%.40s'%s%s%s; known are: %s", name,
                     best != NULL ? " (did you mean " : "", best != NULL ? best : "",
                     best != NULL ? "?)" : "", n.known);
}

/* ---- One algorithm --------------------------------------------------------------------------- */

struct building {
    const struct prediction *p;
    struct error *e;
    json_t *algorithms, *refused, *times;
};

static int set_counts(json_t *o, const struct cost *c)
{
    int r = json_object_set_new(o, "from", json_string(cost_origin_name(c->from))) |
            json_object_set_new(o, "startups", json_number(c->counts.startups)) |
            json_object_set_new(o, "transmission", json_number(c->counts.transmission)) |
            json_object_set_new(o, "rearranged", json_number(c->counts.rearranged)) |
            json_object_set_new(o, "hops", json_number(c->counts.hops));
    if (c->from == COST_ENUMERATED)
        r |= json_object_set_new(o, "critical_path", json_number(c->critical_path));
    if (c->has_formula) {
        r |= json_object_set_new(o, "formula_startups", json_number(c->formula.startups));
        r |= json_object_set_new(o, "formula_transmission", json_number(c->formula.transmission));
    }
    return r;
}

static json_t *counts_row(const char *name, bool runs_here, const char *ports, const char *source,
                          const struct cost *c)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "algorithm", json_string(name)) |
            json_object_set_new(o, "runs_here", json_boolean(runs_here)) |
            json_object_set_new(o, "port_model", json_string(ports)) |
            json_object_set_new(o, "source", json_string(source)) | set_counts(o, c);
    return json_checked(o, r);
}

static json_t *algorithm_row(const char *name, const struct cost *c)
{
    const struct algorithm *a = algorithm_find(name);
    const struct formula *f = formula_find(name);
    const char *ports = a != NULL ? algorithm_ports_name(a) : port_model_name(f->port_model);

    return counts_row(name, a != NULL, ports, f != NULL ? f->source : a->source, c);
}

static json_t *time_row(const struct prediction *p, const char *name, const struct cost *c,
                        uint64_t size)
{
    struct cost_time time = cost_price(&c->counts, &p->parameters, (double)size);
    json_t *o = json_object();
    int r = json_object_set_new(o, "block_size", json_count(size)) |
            json_object_set_new(o, "algorithm", json_string(name)) |
            json_object_set_new(o, "from", json_string(cost_origin_name(c->from))) |
            json_object_set_new(o, "time_us", json_number(time.total)) |
            json_object_set_new(o, "startup_us", json_number(time.startups)) |
            json_object_set_new(o, "transmission_us", json_number(time.transmission)) |
            json_object_set_new(o, "rearrangement_us", json_number(time.rearrangement)) |
            json_object_set_new(o, "hop_us", json_number(time.hops));
    if (c->has_formula) {
        time = cost_price(&c->formula, &p->parameters, (double)size);
        r |= json_object_set_new(o, "formula_time_us", json_number(time.total));
    }
    return json_checked(o, r);
}

static json_t *refused_row(const char *name, const struct error *why)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "algorithm", json_string(name)) |
            json_object_set_new(o, "reason", json_string(why->text));
    return json_checked(o, r);
}

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the prediction");
}

/* The parameters by which the best member of a family is chosen. */
struct offer {
    const struct cost_parameters *parameters;
    uint64_t size;
};

static double degree_time(const struct family *f, const struct torus *t, uint32_t degree,
                          void *context)
{
    const struct offer *offer = context;
    const struct cost_counts c = f->counts(f, t, degree);
    return cost_price(&c, offer->parameters, (double)offer->size).total;
}

/* Finds the costs of an algorithm by its name. Returns 0 with *c, or -1 with *e. */
static int find_cost(const struct prediction *p, const char *name, struct cost *c, struct error *e)
{
    const struct torus *t = &p->torus;
    const struct algorithm *named = algorithm_find(name), *a = named;
    struct detour *found = NULL;
    int rc = -1;

    if (named != NULL)
        a = found_routes(named, t, &found, e);
    if (a == named)
        return cost_find(t, name, p->rates, c, e);
    if (a != NULL) {
        *c = (struct cost){0};
        rc = cost_enumerate(t, a, p->rates, c, e);
    }
    detour_free(found);
    return rc;
}

/* Adds the rows of an algorithm: its counts, and its times for the block sizes for which it is chosen[i] (`chosen`
 * NULL: for all sizes). Returns 0, or -1 with *b->e. */
static int add_algorithm(struct building *b, const char *name,
                         const struct algorithm *const *chosen)
{
    const struct prediction *p = b->p;
    const struct algorithm *a = chosen != NULL ? algorithm_find(name) : NULL;
    struct error why;
    struct cost c;
    int r = 0;

    if (find_cost(p, name, &c, &why) == 0) {
        r |= json_array_append_new(b->algorithms, algorithm_row(name, &c));
        for (size_t i = 0; i < p->sizes; i++)
            if (chosen == NULL || chosen[i] == a)
                r |= json_array_append_new(b->times, time_row(p, name, &c, p->size[i]));
    } else if (p->algorithm == NULL) {
        r |= json_array_append_new(b->refused, refused_row(name, &why));
    } else {
        *b->e = why;
        return -1;
    }
    return r == 0 ? 0 : no_memory(b->e);
}

/* Adds the best member of a family for each block size. A member that is best for several sizes is listed once. */
static int add_best(struct building *b, const struct family *f)
{
    const struct prediction *p = b->p;
    const struct algorithm *chosen[MOST_SIZES];
    int r = 0;

    if (algorithm_accepts(f->base, &p->torus, b->e) != 0)
        return -1;
    for (size_t i = 0; i < p->sizes; i++) {
        struct offer offer = {&p->parameters, p->size[i]};
        chosen[i] = family_of_degree(f, family_best(f, &p->torus, degree_time, &offer));
        if (chosen[i] == NULL)
            return no_memory(b->e);
    }
    for (size_t i = 0; i < p->sizes && r == 0; i++) {
        bool listed = false;
        for (size_t k = 0; k < i; k++)
            listed |= chosen[k] == chosen[i];
        if (!listed)
            r = add_algorithm(b, chosen[i]->name, chosen);
    }
    return r;
}

/* The costs of routes that were found, which run without steps. */
static struct cost cost_of_stream(const struct algorithm *a)
{
    struct cost c = {.from = COST_ENUMERATED};
    uint32_t longest;

    a->methods->streamed(a, &longest, &c.counts.transmission);
    c.counts.startups = longest;
    c.critical_path = c.counts.transmission;
    return c;
}

/* Adds a schedule from a file, or the routes that were found. */
static int add_schedule(struct building *b, const struct algorithm *a)
{
    const struct prediction *p = b->p;
    struct cost c = {0};
    int r;

    if (a->detour != NULL)
        c = cost_of_stream(a);
    else if (cost_enumerate(&p->torus, a, p->rates, &c, b->e) != 0)
        return -1;
    r = json_array_append_new(b->algorithms,
                              counts_row(a->name, true, algorithm_ports_name(a), a->source, &c));
    for (size_t i = 0; i < p->sizes; i++)
        r |= json_array_append_new(b->times, time_row(p, a->name, &c, p->size[i]));
    return r == 0 ? 0 : no_memory(b->e);
}

/* ---- The whole prediction -------------------------------------------------------------------- */

static int add_if_wanted(const char *name, enum schedule_operation operation, void *arg)
{
    struct building *b = arg;
    return operation == b->p->operation ? add_algorithm(b, name, NULL) : 0;
}

static int compare_times(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t size_x = json_integer_value(json_object_get(x, "block_size"));
    json_int_t size_y = json_integer_value(json_object_get(y, "block_size"));
    double time_x = json_number_value(json_object_get(x, "time_us"));
    double time_y = json_number_value(json_object_get(y, "time_us"));

    if (size_x != size_y)
        return size_x < size_y ? -1 : 1;
    return time_x < time_y ? -1 : time_x > time_y;
}

/* Returns a copy of the list, sorted by block size and time, or NULL if memory is short. */
static json_t *sorted(json_t *list)
{
    size_t count = json_array_size(list), i;
    json_t **rows = calloc(count + 1, sizeof *rows);
    json_t *copy = json_array(), *row;
    int r = 0;

    if (rows == NULL) {
        json_decref(copy);
        return NULL;
    }
    json_array_foreach(list, i, row) rows[i] = row;
    qsort(rows, count, sizeof *rows, compare_times);
    for (i = 0; i < count; i++)
        r |= json_array_append(copy, rows[i]);
    free(rows);
    return json_checked(copy, r);
}

static json_t *parameters(const struct cost_parameters *p)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "ts", json_number(p->ts)) |
            json_object_set_new(o, "tw", json_number(p->tw)) |
            json_object_set_new(o, "rho", json_number(p->rho)) |
            json_object_set_new(o, "tp", json_number(p->tp));
    return json_checked(o, r);
}

/* Returns {dims, nodes, operation, parameters, algorithms, refused, times}. Each algorithm has an object in
 * `algorithms`, with its counts and their origin, or in `refused`, with the reason why it has no counts. `times` has
 * an object for each algorithm and block size, by block size, fastest first. Returns NULL with *e if p->algorithm has
 * no counts on this torus, or if memory is short. */
static json_t *prediction_value(const struct prediction *p, struct error *e)
{
    struct building b = {
        .p = p, .e = e, .algorithms = json_array(), .refused = json_array(), .times = json_array()};
    json_t *o = json_object();
    const struct family *f = p->algorithm != NULL ? family_of_best(p->algorithm) : NULL;
    char rates[1024];
    int r = f != NULL              ? add_best(&b, f)
            : p->algorithm != NULL ? add_algorithm(&b, p->algorithm, NULL)
                                   : for_each_name(add_if_wanted, &b);

    if (r == 0 && p->schedule != NULL)
        r = add_schedule(&b, p->schedule);
    if (r == 0 && p->found != NULL && p->algorithm == NULL && p->operation == OPERATION_EXCHANGE)
        r = add_schedule(&b, detour_algorithm(p->found));
    if (r == 0) {
        r |= json_set_torus(o, &p->torus);
        r |= json_object_set_new(o, "node_count", json_integer(p->torus.nodes));
        r |=
            json_object_set_new(o, "operation", json_string(schedule_operation_name(p->operation)));
        if (p->rates != NULL)
            r |= json_object_set_new(
                o, "rates", json_string(damage_format_rates(p->rates, rates, sizeof rates)));
        r |= json_object_set_new(o, "parameters", parameters(&p->parameters));
        r |= json_object_set(o, "algorithms", b.algorithms);
        r |= json_object_set(o, "refused", b.refused);
        r |= json_object_set_new(o, "times", sorted(b.times));
        if (r != 0)
            (void)no_memory(e);
    }
    json_decref(b.algorithms);
    json_decref(b.refused);
    json_decref(b.times);
    return json_checked(o, r);
}

struct predict_arguments {
    const char *dims;
    const char *algorithm;
    const char *q;
    const char *schedule;
    const char *operation;
    const char *block_size;
    const char *ts, *tw, *rho, *tp;
    struct link_arguments links;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct predict_arguments, dims),
     "dimensions of the torus: 8x8, 6, 3x4x5; 4x8m if the 8 does not wrap"},
    {"--algorithm", "NAME", offsetof(struct predict_arguments, algorithm),
     "compare only this algorithm (default: all)"},
    Q_OPTION(predict_arguments),
    {"--schedule", "FILE", offsetof(struct predict_arguments, schedule),
     "also predict the schedule in this file (see 'torusctl help plan')"},
    {"--operation", "WHAT", offsetof(struct predict_arguments, operation),
     "exchange or allgather: the operation of the algorithms (default:\nexchange)"},
    {"--block-size", "SIZES", offsetof(struct predict_arguments, block_size),
     "sizes of blocks, separated by commas (default: 64,1KiB,16KiB)"},
    {"--ts", "US", offsetof(struct predict_arguments, ts),
     "microseconds to start a message (default: 75)"},
    {"--tw", "US", offsetof(struct predict_arguments, tw),
     "microseconds to transmit a byte (default: 0.011)"},
    {"--rho", "US", offsetof(struct predict_arguments, rho),
     "microseconds to rearrange a byte in memory (default: 0.014)"},
    {"--tp", "US", offsetof(struct predict_arguments, tp),
     "microseconds for each hop of the longest leg of a step (default: 0)"},
    RATE_OPTIONS(predict_arguments, links),
    {0},
};

static const struct field torus_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"nodes", "node_count", FORMAT_PLAIN},
    {"operation", "operation", FORMAT_PLAIN},
    {"rates", "rates", FORMAT_PLAIN},
    {0},
};
static const struct field parameter_fields[] = {
    {"ts, us per startup", "ts", FORMAT_PLAIN},
    {"tw, us per byte", "tw", FORMAT_PLAIN},
    {"rho, us per byte", "rho", FORMAT_PLAIN},
    {"tp, us per hop", "tp", FORMAT_PLAIN},
    {0},
};
static const struct field count_fields[] = {
    {"algorithm", "algorithm", FORMAT_PLAIN},
    {"runs here", "runs_here", FORMAT_PLAIN},
    {"ports", "port_model", FORMAT_PLAIN},
    {"counted by", "from", FORMAT_PLAIN},
    {"startups", "startups", FORMAT_PLAIN},
    {"(formula)", "formula_startups", FORMAT_PLAIN},
    {"transmission", "transmission", FORMAT_PLAIN},
    {"(formula)", "formula_transmission", FORMAT_PLAIN},
    {"critical path", "critical_path", FORMAT_PLAIN},
    {"rearranged", "rearranged", FORMAT_PLAIN},
    {"hops", "hops", FORMAT_PLAIN},
    {0},
};
static const struct field refused_fields[] = {
    {"not possible", "algorithm", FORMAT_PLAIN},
    {"reason", "reason", FORMAT_PLAIN},
    {0},
};
static const struct field time_fields[] = {
    {"block", "block_size", FORMAT_BYTES},
    {"algorithm", "algorithm", FORMAT_PLAIN},
    {"counted by", "from", FORMAT_PLAIN},
    {"time", "time_us", FORMAT_MICROS},
    {"(formula)", "formula_time_us", FORMAT_MICROS},
    {"startups", "startup_us", FORMAT_MICROS},
    {"transmission", "transmission_us", FORMAT_MICROS},
    {"rearrangement", "rearrangement_us", FORMAT_MICROS},
    {"hops", "hop_us", FORMAT_MICROS},
    {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_RECORD, .fields = torus_fields},
    {.layout = LAYOUT_RECORD, .key = "parameters", .fields = parameter_fields},
    {.layout = LAYOUT_TABLE, .key = "algorithms", .fields = count_fields},
    {.layout = LAYOUT_TABLE, .key = "times", .fields = time_fields},
    {.layout = LAYOUT_TABLE, .key = "refused", .fields = refused_fields},
};

static int parse_operation(const char *text, enum schedule_operation *operation, struct error *e)
{
    static const enum schedule_operation known[] = {OPERATION_EXCHANGE, OPERATION_ALLGATHER};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text, schedule_operation_name(known[i])) == 0) {
            *operation = known[i];
            return 0;
        }
    }
    return error_set(e, ERROR_USAGE, "'%.40s' is neither exchange nor allgather", text);
}

/* Reads the torus, from --dims or the schedule file, and the file, whose operation is the default. */
static int resolve_torus(const struct cli *cli, const struct predict_arguments *a,
                         struct prediction *p, struct schedule_file *file)
{
    struct error e;

    if (a->dims == NULL && a->schedule == NULL)
        return cli_fail_usage(cli, "--dims is missing: give the torus, such as --dims 8x8");
    if (a->dims != NULL && torus_parse(&p->torus, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (a->schedule == NULL)
        return EXIT_DONE;
    if (schedule_file_read(file, a->schedule, a->dims != NULL ? &p->torus : NULL, &e) != 0)
        return cli_fail(cli, &e);
    p->torus = *imported_torus(file->imported);
    p->schedule = imported_algorithm(file->imported);
    p->operation = p->schedule->operation;
    return EXIT_DONE;
}

/* Reads the arguments. Returns EXIT_DONE, or another exit code after printing the reason. */
static int resolve(const struct cli *cli, const struct predict_arguments *a, struct prediction *p,
                   struct schedule_file *file)
{
    enum schedule_operation wanted;
    struct error e;
    int code = resolve_torus(cli, a, p, file);

    if (code != EXIT_DONE)
        return code;
    if (a->operation != NULL && parse_operation(a->operation, &p->operation, &e) != 0)
        return cli_fail_usage(cli, "--operation: %s", e.text);
    if (parse_sizes(a->block_size != NULL ? a->block_size : "64,1KiB,16KiB", p->size, MOST_SIZES,
                    &p->sizes, &e) != 0)
        return cli_fail_usage(cli, "--block-size: %s", e.text);
    if ((code = cli_read_micros(cli, "--ts", a->ts, &p->parameters.ts)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tw", a->tw, &p->parameters.tw)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--rho", a->rho, &p->parameters.rho)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tp", a->tp, &p->parameters.tp)) != EXIT_DONE)
        return code;
    const char *name =
        a->algorithm != NULL && strcmp(a->algorithm, "all") != 0 ? a->algorithm : NULL;
    if (name == NULL && a->q == NULL)
        return EXIT_DONE;
    p->algorithm = spelled_algorithm(name, a->q, &e);
    if (p->algorithm == NULL)
        return cli_fail_usage(cli, "%s", e.text);
    wanted = p->operation;
    if (prediction_check_name(p->algorithm, &p->operation, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    if (a->operation != NULL && p->operation != wanted)
        return cli_fail_usage(cli, "--operation %s: %s is for %s", a->operation, a->algorithm,
                              schedule_operation_name(p->operation));
    return EXIT_DONE;
}

static int predict(const struct cli *cli, const struct prediction *p)
{
    struct error e;
    json_t *value = prediction_value(p, &e);

    if (value == NULL && e.code == ERROR_REFUSED)
        return cli_fail_usage(cli, "%s", e.text);
    if (value == NULL)
        return cli_fail(cli, &e);
    return cli_print(cli, value, VIEW(sections));
}

/* Reads the rates, and finds the routes for them. */
static int resolve_rates(const struct cli *cli, const struct predict_arguments *a,
                         struct prediction *p, struct damage *d)
{
    struct error e;
    int code = link_arguments_given(&a->links) ? link_arguments_read(cli, &a->links, &p->torus, d)
                                               : EXIT_DONE;

    if (code != EXIT_DONE || d->rate == NULL)
        return code;
    p->rates = d;
    return detour_new(&p->found, d, &e) == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

static int run(struct cli *cli, const void *arguments)
{
    struct predict_arguments given = *(const struct predict_arguments *)arguments;
    struct prediction p = {.parameters = cost_paragon};
    struct schedule_file file = {0};
    struct damage damage = {0};
    if (given.schedule == NULL)
        python_algorithm_take(&given.algorithm, &given.schedule);
    int code = resolve(cli, &given, &p, &file);

    if (code == EXIT_DONE)
        code = resolve_rates(cli, &given, &p, &damage);
    if (code == EXIT_DONE && p.schedule != NULL && p.operation != p.schedule->operation)
        code = cli_fail_usage(cli, "--schedule: %s is for operation %s, not %s", p.schedule->name,
                              schedule_operation_name(p.schedule->operation),
                              schedule_operation_name(p.operation));
    if (code == EXIT_DONE)
        code = predict(cli, &p);
    detour_free(p.found);
    damage_free(&damage);
    schedule_file_free(&file);
    return code;
}

const struct command command_predict = {
    .name = "predict",
    .summary = "Compare the times of algorithms on a torus by the cost model",
    .usage = "--dims DIMS [--algorithm NAME|all [--q N|best]] [--schedule FILE]\n"
             "       [--block-size SIZE[,SIZE...]] [--operation exchange|allgather]\n"
             "       [--ts US] [--tw US] [--rho US] [--tp US] "
             "[--rate LIST] [--link-rate LIST]\n"
             "       [--rates FILE] [--json]",
    .options = options,
    .arguments_size = sizeof(struct predict_arguments),
    .run = run,
};
