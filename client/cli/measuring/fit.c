#include "client/cli/measuring/fit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"
#include "client/theory/cost.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/text.h"

#define SAME                                                                                       \
    1e-9 /* startups and bytes count as proportional if 1 - their squared correlation is below */

/* Returns Student's t for 95 %: this part of the distribution lies between -t and t. */
static double student(size_t degrees)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                               2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                               2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    if (degrees <= sizeof t / sizeof t[0])
        return t[degrees - 1];
    /* The first terms of the expansion for many degrees of freedom; exact to four decimals here. */
    return 1.95996 + 2.3722 / (double)degrees + 2.8225 / (double)(degrees * degrees);
}

/* Sums over all points, for x = startups / seconds and y = bytes / seconds: the relative residuals are those of the
 * linear model 1 = ts x + tw y. */
struct sums {
    double xx, xy, yy, x, y;
};

static int add_up(const struct fit_point *points, size_t count, struct sums *s, struct error *e)
{
    if (count < FIT_LEAST_POINTS)
        return error_set(
            e, ERROR_REFUSED, "%zu %s not enough for a fit: measure at least %d block sizes", count,
            text_plural(count, "measurement is", "measurements are"), FIT_LEAST_POINTS);
    for (size_t i = 0; i < count; i++) {
        const struct fit_point *p = &points[i];
        if (!(p->seconds > 0) || !isfinite(p->seconds))
            return error_set(e, ERROR_REFUSED, "a measured time of %g seconds cannot be fitted",
                             p->seconds);
        double x = p->startups / p->seconds, y = p->bytes / p->seconds;
        s->xx += x * x;
        s->xy += x * y;
        s->yy += y * y;
        s->x += x;
        s->y += y;
    }
    if (!(s->xx * s->yy - s->xy * s->xy > SAME * s->xx * s->yy))
        return error_set(e, ERROR_REFUSED,
                         "the measurements cannot separate startups from bytes: measure at least "
                         "three block sizes, such as 256, 4KiB and 64KiB");
    return 0;
}

double fit_seconds(const struct fit *fit, const struct fit_point *point)
{
    return fit->ts.value * point->startups + fit->tw.value * point->bytes;
}

double fit_residual(const struct fit *fit, const struct fit_point *point)
{
    return 1 - fit_seconds(fit, point) / point->seconds;
}

/* Sets the figures of the residuals. Returns the sum of their squares, or -1 if memory is short. */
static double set_residuals(const struct fit_point *points, size_t count, struct fit *fit)
{
    double *size = calloc(count, sizeof *size), squares = 0;

    if (size == NULL)
        return -1;
    fit->worst = -1;
    for (size_t i = 0; i < count; i++) {
        double residual = fit_residual(fit, &points[i]);
        size[i] = fabs(residual);
        squares += residual * residual;
        if (size[i] > fit->worst) {
            fit->worst = size[i];
            fit->worst_point = i;
        }
    }
    sort_values(size, count);
    fit->median = quantile(size, count, 0.5);
    free(size);
    return squares;
}

/* Returns the sum of squared residuals if the model is one time for all points, the weighted mean. */
static double squares_of_mean(const struct fit_point *points, size_t count)
{
    double weights = 0, times = 0;

    /* The weights are 1 / seconds^2. */
    for (size_t i = 0; i < count; i++) {
        weights += 1 / (points[i].seconds * points[i].seconds);
        times += 1 / points[i].seconds;
    }
    return (double)count - times * times / weights;
}

static void set_interval(struct fit_value *v, double half)
{
    v->low = v->value - half;
    v->high = v->value + half;
}

int fit_model(const struct fit_point *points, size_t count, struct fit *fit, struct error *e)
{
    struct sums s = {0};
    double determinant, squares, of_mean, spread;

    if (add_up(points, count, &s, e) != 0)
        return -1;
    *fit = (struct fit){.points = count};
    determinant = s.xx * s.yy - s.xy * s.xy;
    fit->ts.value = (s.x * s.yy - s.y * s.xy) / determinant;
    fit->tw.value = (s.y * s.xx - s.x * s.xy) / determinant;
    squares = set_residuals(points, count, fit);
    if (squares < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the fit");
    of_mean = squares_of_mean(points, count);
    fit->r2 = of_mean > 0 ? 1 - squares / of_mean : 0;
    spread = student(count - 2) * sqrt(squares / (double)(count - 2) / determinant);
    set_interval(&fit->ts, spread * sqrt(s.yy));
    set_interval(&fit->tw, spread * sqrt(s.xx));
    return 0;
}

/* --- the report --- */

#define TOGETHER "all"
#define LONGEST 8 /* algorithms slower than this times the bound are fitted on request only */
#define GOOD_MEDIAN 0.05 /* a fit needs no remark if its median residual is up to this, */
#define GOOD_WORST 0.15  /* and its worst residual up to this */

/* An algorithm of the runs, with its counts and its points in report.point[]. */
struct fitted {
    const char *name;
    double startups, blocks, hops;
    size_t first, count;
};

struct report {
    const struct cli *cli;
    const struct bench_runs *runs;
    struct fit_point *point;
    uint64_t *size; /* of each point */
    size_t points;
    struct fitted fitted[BENCH_MOST_ALGORITHMS];
    json_t *fits, *rows, *remarks;
    bool failed; /* out of memory */
};

/* ---- Counts ---------------------------------------------------------------------------------- */

/* Finds the counts of an algorithm or, unless `file` is NULL, of the schedule in the file. */
static int find_counts(const struct torus *t, const char *name, const struct schedule_file *file,
                       struct fitted *f, struct error *e)
{
    struct cost c;

    if (file != NULL) { /* the report counts segments */
        *f = (struct fitted){
            .name = name,
            .startups = file->report.startups,
            .blocks = file->report.critical_path / imported_algorithm(file->imported)->segments,
            .hops = (double)file->report.hops,
        };
        return 0;
    }
    if (cost_find(t, name, NULL, &c, e) != 0)
        return -1;
    *f = (struct fitted){
        .name = name,
        .startups = c.counts.startups,
        .blocks = c.from == COST_ENUMERATED ? c.critical_path : c.counts.transmission,
        .hops = c.counts.hops,
    };
    return 0;
}

int fit_add_neighbours(struct bench_runs *s, struct error *e)
{
    struct fitted f;

    if (s->torus.nodes < 2)
        return error_set(e, ERROR_REFUSED, "a torus of one node has no links to fit a model to");
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation != OPERATION_EXCHANGE || algorithm_accepts(a, &s->torus, NULL) != 0 ||
            find_counts(&s->torus, a->name, NULL, &f, NULL) != 0 || f.hops > f.startups ||
            f.blocks > LONGEST * torus_bound_all_port(&s->torus))
            continue;
        if (bench_runs_add(s, a->name, e) != 0)
            return -1;
    }
    if (s->algorithms == 0)
        return error_set(
            e, ERROR_REFUSED,
            "no algorithm that sends to neighbours only is fast enough on this torus: name the "
            "algorithms to fit with --algorithms");
    return 0;
}

/* ---- Points ---------------------------------------------------------------------------------- */

static void add_points(struct report *r, struct fitted *f)
{
    json_t *result;
    size_t i;

    f->first = r->points;
    json_array_foreach(r->runs->results, i, result)
    {
        const char *name = json_string_value(json_object_get(result, "algorithm"));
        uint64_t size = (uint64_t)json_integer_value(json_object_get(result, "block_bytes"));
        if (strcmp(name, f->name) != 0 || json_object_get(result, "error") != NULL)
            continue;
        r->size[r->points] = size;
        r->point[r->points++] = (struct fit_point){
            .startups = f->startups,
            .bytes = f->blocks * (double)size,
            .seconds = json_number_value(json_object_get(result, "seconds")),
        };
    }
    f->count = r->points - f->first;
}

static json_t *interval(const struct fit_value *v)
{
    return json_pack("[f, f]", v->low, v->high);
}

static void add_row(struct report *r, const struct fitted *f, const struct fit *fit, size_t at)
{
    const struct fit_point *p = &r->point[at];
    json_t *o = json_pack("{s:s, s:o, s:f, s:f, s:f}", "algorithm", f->name, "block_bytes",
                          json_count(r->size[at]), "seconds", p->seconds, "model_seconds",
                          fit_seconds(fit, p), "residual", fit_residual(fit, p));
    r->failed |= o == NULL || json_array_append_new(r->rows, o) != 0;
}

/* Returns the fitted rate as a part of the rate of the links, or null if that is unknown. */
static json_t *rate_share(const struct bench_runs *s, const struct fit *fit)
{
    return s->link_mbit > 0 ? json_number(8 / (s->link_mbit * 1e6) / fit->tw.value) : json_null();
}

/* Adds a fit of one algorithm or, if `f` is NULL, of all algorithms together. */
static void add_fit(struct report *r, const struct fitted *f, const struct fit *fit)
{
    json_t *o = json_object();
    int bad = json_object_set_new(o, "algorithm", json_string(f != NULL ? f->name : TOGETHER));

    if (f != NULL) {
        bad |= json_object_set_new(o, "startups", json_number(f->startups)) |
               json_object_set_new(o, "critical_path", json_number(f->blocks)) |
               json_object_set_new(o, "hops", json_number(f->hops));
    }
    bad |= json_object_set_new(o, "points", json_count(fit->points)) |
           json_object_set_new(o, "ts_seconds", json_number(fit->ts.value)) |
           json_object_set_new(o, "ts_interval", interval(&fit->ts)) |
           json_object_set_new(o, "tw_seconds", json_number(fit->tw.value)) |
           json_object_set_new(o, "tw_interval", interval(&fit->tw)) |
           json_object_set_new(o, "rate_share", rate_share(r->runs, fit)) |
           json_object_set_new(o, "r2", json_number(fit->r2)) |
           json_object_set_new(o, "residual_median", json_number(fit->median)) |
           json_object_set_new(o, "residual_worst", json_number(fit->worst)) |
           json_array_append(r->fits, o);
    r->failed |= bad != 0;
    json_decref(o);
}

/* ---- Remarks --------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void remark(struct report *r, const char *format, ...)
{
    char text[FORMAT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->failed |= json_array_append_new(r->remarks, json_string(text)) != 0;
}

static void remark_startup(struct report *r, const struct fitted *f, const struct fit *fit)
{
    if (fit->ts.value <= 0)
        remark(
            r,
            "%s: ts is not above zero: small blocks take less time than the rate of large blocks "
            "allows. This happens on links that pass some bytes at once before they limit their "
            "rate, where the model does not hold for small blocks",
            f->name);
    else if (fit->ts.low <= 0)
        remark(r, "%s: ts may be zero: its interval includes zero", f->name);
}

static void remark_worst(struct report *r, const struct fitted *f, const struct fit *fit)
{
    char bytes[FORMAT_SIZE];
    double residual = fit_residual(fit, &r->point[f->first + fit->worst_point]);

    if (fit->median <= GOOD_MEDIAN && fit->worst <= GOOD_WORST)
        return;
    format_bytes(bytes, (double)r->size[f->first + fit->worst_point]);
    remark(r, "%s: blocks of %s take %.0f %% %s than the model says", f->name, bytes,
           fabs(1 / (1 - residual) - 1) * 100, residual > 0 ? "longer" : "less time");
}

static void remark_hops(struct report *r, const struct fitted *f)
{
    if (f->hops > f->startups)
        remark(
            r,
            "%s: legs go over several links (%g hops in %g steps), and relays pass on whole "
            "frames: each further hop adds the time of the first frame of the message, which the "
            "model does not count",
            f->name, f->hops, f->startups);
}

/* Adds a remark if times are shorter than the bytes take at the rate of the links. */
static void remark_too_fast(struct report *r, const struct fitted *f)
{
    char bytes[FORMAT_SIZE];
    uint64_t largest = 0;
    size_t count = 0;

    for (size_t i = f->first; i < f->first + f->count; i++)
        if (r->runs->link_mbit > 0 &&
            r->point[i].seconds < r->point[i].bytes * 8 / (r->runs->link_mbit * 1e6)) {
            largest = r->size[i] > largest ? r->size[i] : largest;
            count++;
        }
    format_bytes(bytes, (double)largest);
    if (count > 0)
        remark(r,
               "%s: %zu of %zu %s, up to blocks of %s, %s shorter than the bytes take at the "
               "links' rate: links pass bytes at once before they limit their rate",
               f->name, count, f->count, text_plural(f->count, "time", "times"), bytes,
               text_plural(count, "is", "are"));
}

/* ---- The report ------------------------------------------------------------------------------ */

/* Returns why exchanges of this algorithm failed, or NULL. */
static const char *failure_of(const struct report *r, const char *name)
{
    json_t *result, *error;
    size_t i;

    json_array_foreach(r->runs->results, i, result)
    {
        error = json_object_get(result, "error");
        if (error != NULL &&
            strcmp(json_string_value(json_object_get(result, "algorithm")), name) == 0)
            return json_string_value(json_object_get(error, "text"));
    }
    return NULL;
}

static void fit_one(struct report *r, size_t index)
{
    const char *name = r->runs->algorithm[index];
    struct fitted *f = &r->fitted[index];
    const char *failure = failure_of(r, name);
    struct fit fit;
    struct error e;

    if (failure != NULL)
        remark(r, "%s: failed: %s", name, failure);
    if (find_counts(&r->runs->torus, name, r->runs->schedule[index], f, &e) == 0)
        add_points(r, f);
    if (f->count == 0 && failure != NULL)
        return;
    if (f->name == NULL || fit_model(r->point + f->first, f->count, &fit, &e) != 0) {
        remark(r, "%s: no fit: %s", name, e.text);
        return;
    }
    add_fit(r, f, &fit);
    for (size_t i = f->first; i < f->first + f->count; i++)
        add_row(r, f, &fit, i);
    remark_startup(r, f, &fit);
    remark_too_fast(r, f);
    remark_hops(r, f);
    remark_worst(r, f, &fit);
}

static json_t *left_out(void)
{
    static const char *const lines[] = {
        "hops after the first of a leg (tp in the papers), and moving blocks in memory (rho)",
        "headers of packets and messages, packets that are not full, and acknowledgements, which "
        "share the links with data: part of ts and of tw",
        "processors: nodes that share processors handle their messages one after another, so "
        "ts grows with the messages of a step, and differs between algorithms",
        "nodes that do not wait for each other: each continues when its messages have arrived",
    };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        (void)json_array_append_new(list, json_string(lines[i]));
    return list;
}

static json_t *value_of(struct report *r)
{
    const struct bench_runs *s = r->runs;
    json_t *o = json_object();
    int bad = bench_runs_set(o, s) |
              json_object_set_new(o, "model",
                                  json_string("time = startups x ts + blocks on the critical path "
                                              "x bytes of a block x tw")) |
              json_object_set_new(o, "weights",
                                  json_string("squares of relative residuals; intervals hold with "
                                              "95 %")) |
              json_object_set(o, "fits", r->fits) | json_object_set(o, "points", r->rows) |
              json_object_set(o, "remarks", r->remarks) |
              json_object_set_new(o, "left_out", left_out()) |
              json_object_set(o, "results", s->results);

    return json_checked(o, bad != 0 || r->failed);
}

static int print(const struct cli *cli, json_t *value)
{
    const struct section sections[] = {
        RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
               FIELD("links", "link_mbit", FORMAT_MBIT), FIELD("exchanges each", "repeat"),
               FIELD("model"), FIELD("least", "weights")),
        TABLE("fits", FIELD("algorithm"), FIELD("startups"),
              FIELD("critical path", "critical_path"), FIELD("ts", "ts_seconds", FORMAT_SECONDS),
              FIELD("from", "ts_from", FORMAT_SECONDS), FIELD("to", "ts_to", FORMAT_SECONDS),
              FIELD("1 / tw", "rate", FORMAT_RATE), FIELD("from", "rate_from", FORMAT_RATE),
              FIELD("to", "rate_to", FORMAT_RATE),
              FIELD("of the links'", "rate_share", FORMAT_PERCENT), FIELD("R^2", "r2"),
              FIELD("median residual", "residual_median", FORMAT_PERCENT),
              FIELD("worst", "residual_worst", FORMAT_PERCENT)),
        TABLE("points", FIELD("algorithm"), FIELD("block", "block_bytes", FORMAT_BYTES),
              FIELD("measured", "seconds", FORMAT_SECONDS),
              FIELD("model", "model_seconds", FORMAT_SECONDS),
              FIELD("residual", "residual", FORMAT_PERCENT)),
        RECORD(NULL, FIELD("remarks", "remarks", FORMAT_LINES),
               FIELD("the model leaves out", "left_out", FORMAT_LINES)),
    };
    return cli_print(cli, value, &(struct view){sections, 4});
}

/* Returns the rate for a time per byte, or null if the time is not above 0. */
static json_t *rate(const json_t *seconds)
{
    return json_number_value(seconds) > 0 ? json_real(8 / json_number_value(seconds)) : json_null();
}

/* Adds the fields that the text shows besides those in JSON. */
static void set_shown(json_t *fits)
{
    json_t *o;
    size_t i;

    json_array_foreach(fits, i, o)
    {
        const json_t *tw = json_object_get(o, "tw_interval");
        json_t *ts = json_object_get(o, "ts_interval");
        char text[32];
        (void)json_object_set(o, "ts_from", json_array_get(ts, 0));
        (void)json_object_set(o, "ts_to", json_array_get(ts, 1));
        (void)json_object_set_new(o, "rate", rate(json_object_get(o, "tw_seconds")));
        (void)json_object_set_new(o, "rate_from", rate(json_array_get(tw, 1)));
        (void)json_object_set_new(o, "rate_to", rate(json_array_get(tw, 0)));
        (void)snprintf(text, sizeof text, "%.5f", json_number_value(json_object_get(o, "r2")));
        (void)json_object_set_new(o, "r2", json_string(text));
    }
}

static int fit_all(struct report *r, struct error *e)
{
    const struct bench_runs *s = r->runs;
    struct fit fit;

    for (size_t k = 0; k < s->algorithms; k++)
        fit_one(r, k);
    if (json_array_size(r->fits) > 1 && fit_model(r->point, r->points, &fit, NULL) == 0)
        add_fit(r, NULL, &fit);
    if (json_array_size(r->fits) == 0)
        return error_set(e, ERROR_REFUSED, "nothing could be fitted: %s",
                         json_string_value(json_array_get(r->remarks, 0)));
    return 0;
}

int fit_print(const struct cli *cli, const struct bench_runs *s)
{
    size_t most = json_array_size(s->results) + 1;
    struct report r = {
        .cli = cli,
        .runs = s,
        .point = calloc(most, sizeof *r.point),
        .size = calloc(most, sizeof *r.size),
        .fits = json_array(),
        .rows = json_array(),
        .remarks = json_array(),
    };
    struct error e = {0};
    int code, bad = 0;

    if (r.point == NULL || r.size == NULL)
        bad = error_set(&e, ERROR_MEMORY, "out of memory for the fit");
    else
        bad = fit_all(&r, &e);
    if (bad == 0 && !cli->json)
        set_shown(r.fits);
    code = bad == 0 ? print(cli, value_of(&r)) : cli_fail(cli, &e);
    json_decref(r.fits);
    json_decref(r.rows);
    json_decref(r.remarks);
    free(r.point);
    free(r.size);
    return code;
}
