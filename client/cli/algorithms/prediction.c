#include "client/cli/algorithms/prediction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/found_routes.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/suggest.h"
#include "daemon/lib/command_line/options.h"
#include "daemon/lib/schedule/algorithms/families.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"

/* Calls `visit` with the name of every implemented algorithm, then of every other algorithm that has a formula. Stops
 * when `visit` returns a value other than 0, and returns this value, or 0. */
typedef int visit_fn(const char *name, enum operation operation, void *arg);

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

static int add_name(const char *name, enum operation operation, void *arg)
{
    struct names *n = arg;
    size_t used = strlen(n->known);

    (void)operation;
    suggest(&n->suggestion, name);
    (void)snprintf(n->known + used, sizeof n->known - used, "%s%s", used > 0 ? ", " : "", name);
    return 0;
}

int prediction_check_name(const char *name, enum operation *operation, struct error *e)
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
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
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
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *refused_row(const char *name, const struct error *why)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "algorithm", json_string(name)) |
            json_object_set_new(o, "reason", json_string(why->text));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
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
static int find_cost(const struct torus *t, const char *name, struct cost *c, struct error *e)
{
    const struct algorithm *named = algorithm_find(name), *a = named;
    struct detour *found = NULL;
    int rc = -1;

    if (named != NULL)
        a = found_routes(named, t, &found, e);
    if (a == named)
        return cost_find(t, name, c, e);
    if (a != NULL) {
        *c = (struct cost){0};
        rc = cost_enumerate(t, a, c, e);
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

    if (find_cost(&p->torus, name, &c, &why) == 0) {
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

/* Adds the schedule from a file. */
static int add_schedule(struct building *b)
{
    const struct prediction *p = b->p;
    const struct algorithm *a = p->schedule;
    struct cost c = {0};
    int r;

    if (cost_enumerate(&p->torus, a, &c, b->e) != 0)
        return -1;
    r = json_array_append_new(b->algorithms,
                              counts_row(a->name, true, algorithm_ports_name(a), a->source, &c));
    for (size_t i = 0; i < p->sizes; i++)
        r |= json_array_append_new(b->times, time_row(p, a->name, &c, p->size[i]));
    return r == 0 ? 0 : no_memory(b->e);
}

/* ---- The whole prediction -------------------------------------------------------------------- */

static int add_if_wanted(const char *name, enum operation operation, void *arg)
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
    if (r == 0)
        return copy;
    json_decref(copy);
    return NULL;
}

static json_t *parameters(const struct cost_parameters *p)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "ts", json_number(p->ts)) |
            json_object_set_new(o, "tw", json_number(p->tw)) |
            json_object_set_new(o, "rho", json_number(p->rho)) |
            json_object_set_new(o, "tp", json_number(p->tp));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *prediction_value(const struct prediction *p, struct error *e)
{
    struct building b = {
        .p = p, .e = e, .algorithms = json_array(), .refused = json_array(), .times = json_array()};
    json_t *o = json_object();
    const struct family *f = p->algorithm != NULL ? family_of_best(p->algorithm) : NULL;
    int r = f != NULL              ? add_best(&b, f)
            : p->algorithm != NULL ? add_algorithm(&b, p->algorithm, NULL)
                                   : for_each_name(add_if_wanted, &b);

    if (r == 0 && p->schedule != NULL)
        r = add_schedule(&b);
    if (r == 0) {
        r |= json_set_torus(o, &p->torus);
        r |= json_object_set_new(o, "node_count", json_integer(p->torus.nodes));
        r |= json_object_set_new(o, "operation", json_string(operation_name(p->operation)));
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
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}
