/* torusctl sweep: counts schedules on many tori, and finds how the counts grow. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/algorithms/plan_report.h"
#include "client/cli/drawing/chart.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"
#include "client/cli/terminal/progress.h"
#include "client/theory/growth.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/work.h"

#define TORI_MOST 256
#define NAMES_MOST 64
#define NAME_ROOM 512
#define DEFAULT_LIMIT_MS 2000
#define QUICK_SECONDS 0.5 /* for the work of WORK_QUICK, see work.h */

struct sweep_arguments {
    const char *dims;
    const char *step;
    const char *algorithms;
    const char *limit;
    bool csv;
    const char *plot;
};

static const struct option options[] = {
    {"--dims", "LIST", offsetof(struct sweep_arguments, dims),
     "tori, and ranges of tori: 4x4..64x64, 8x8x8. A range doubles the\n"
     "sides that its end has longer"},
    {"--step", "N", offsetof(struct sweep_arguments, step),
     "add N to these sides, instead of doubling them"},
    {"--algorithms", "NAMES", offsetof(struct sweep_arguments, algorithms),
     "some of 'torusctl algorithms', and python:FILE (default: all for exchanges\n"
     "that accept the torus)"},
    {"--limit", "SECONDS", offsetof(struct sweep_arguments, limit),
     "leave out a schedule whose count would take longer, as estimated\n"
     "(default: 2)"},
    {"--csv", NULL, offsetof(struct sweep_arguments, csv), "print the counts as CSV"},
    {"--plot", "FILE", offsetof(struct sweep_arguments, plot),
     "also draw the counts into FILE, as SVG; '-' is standard output"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("tori", "torus_count"), FIELD("complete")),
    TABLE("results", FIELD("torus", "dims", FORMAT_TORUS), FIELD("algorithm"),
          FIELD("ports", "port_model"), FIELD("startups"), FIELD("transmission"),
          FIELD("critical path", "critical_path"), FIELD("bound"),
          FIELD("efficiency", "efficiency", FORMAT_PERCENT),
          FIELD("not counted because", "refused")),
    {.layout = LAYOUT_TABLE,
     .key = "fits",
     .title = "How the counts grow:",
     FIELDS(FIELD("algorithm"), FIELD("count", "of"), FIELD("tori", "torus_count"),
            FIELD("formula"), FIELD("exact"), FIELD("off by", "worst", FORMAT_PERCENT))},
};

struct swept {
    struct torus torus[TORI_MOST];
    size_t tori;
    char name[NAMES_MOST][NAME_ROOM];
    size_t names;
    bool all; /* no names were given: all algorithms that accept a torus */
    bool
        sides; /* each torus has equal sides, which are the sizes of the fits; otherwise nodes are */
    double limit; /* seconds for a count */
    json_t *results;
    bool stopped; /* by the user */
};

/* ---- The tori -------------------------------------------------------------------------------- */

static int add_torus(struct swept *s, const struct torus *t, struct error *e)
{
    if (s->tori == TORI_MOST)
        return error_set(e, ERROR_USAGE, "more than %d tori", TORI_MOST);
    s->torus[s->tori++] = *t;
    return 0;
}

/* Makes the next torus of a range. Returns whether there is one. */
static bool grow(struct torus *t, const struct torus *last, uint32_t step)
{
    bool grown = false;
    uint64_t nodes = 1;

    for (unsigned i = 0; i < t->dims; i++) {
        if (last->size[i] != t->size[i]) {
            uint64_t size = step > 0 ? (uint64_t)t->size[i] + step : 2 * (uint64_t)t->size[i];
            if (size > last->size[i])
                return false;
            t->size[i] = (uint32_t)size;
            grown = true;
        }
        nodes *= t->size[i];
    }
    t->nodes = (uint32_t)nodes;
    return grown;
}

static int add_range(struct swept *s, const struct torus *first, const struct torus *last,
                     uint32_t step, struct error *e)
{
    struct torus t = *first, next = *first;
    bool alike = first->dims == last->dims && torus_is_plain(first) && torus_is_plain(last);

    for (unsigned i = 0; alike && i < t.dims; i++)
        alike = first->wrap[i] == last->wrap[i] && first->size[i] <= last->size[i];
    if (!alike)
        return error_set(e, ERROR_USAGE,
                         "a range is between two tori, or meshes, of as many dimensions, the "
                         "smaller one first: 4x4..64x64");
    do {
        t = next;
        if (add_torus(s, &t, e) != 0)
            return -1;
    } while (grow(&next, last, step));
    return 0;
}

static int read_tori(struct swept *s, const char *text, uint32_t step, struct error *e)
{
    char item[NAME_ROOM];
    struct torus first, last;

    while (text != NULL) {
        if (parse_item(&text, item, sizeof item, e) != 0)
            return -1;
        char *end = strstr(item, "..");
        if (end != NULL)
            *end = '\0';
        if (torus_parse(&first, item, e) != 0)
            return -1;
        if (end == NULL
                ? add_torus(s, &first, e) != 0
                : torus_parse(&last, end + 2, e) != 0 || add_range(s, &first, &last, step, e) != 0)
            return -1;
    }
    return 0;
}

static bool has_equal_sides(const struct torus *t)
{
    for (unsigned i = 1; i < t->dims; i++)
        if (t->size[i] != t->size[0])
            return false;
    return torus_is_plain(t);
}

/* ---- The algorithms -------------------------------------------------------------------------- */

static int add_name(struct swept *s, const char *name, struct error *e)
{
    for (size_t i = 0; i < s->names; i++)
        if (strcmp(s->name[i], name) == 0)
            return error_set(e, ERROR_USAGE, "%.80s is given twice", name);
    if (s->names == NAMES_MOST)
        return error_set(e, ERROR_USAGE, "more than %d algorithms", NAMES_MOST);
    (void)snprintf(s->name[s->names++], NAME_ROOM, "%s", name);
    return 0;
}

static int read_names(struct swept *s, const char *text, struct error *e)
{
    char item[NAME_ROOM];

    s->all = text == NULL;
    for (size_t i = 0; s->all && i < algorithm_count(); i++)
        if (algorithm_at(i)->operation == OPERATION_EXCHANGE &&
            add_name(s, algorithm_at(i)->name, e) != 0)
            return -1;
    while (text != NULL) {
        if (parse_item(&text, item, sizeof item, e) != 0 ||
            (!python_algorithm_is_name(item) && named_algorithm(item, NULL, e) == NULL) ||
            add_name(s, item, e) != 0)
            return -1;
    }
    return 0;
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* Adds the counts of a schedule to its row. */
static int set_counts(json_t *row, const struct algorithm *a, const struct schedule_report *r)
{
    return json_object_set_new(row, "operation",
                               json_string(schedule_operation_name(a->operation))) |
           json_object_set_new(row, "port_model", json_string(algorithm_ports_name(a))) |
           json_object_set_new(row, "busiest", json_number(r->busiest / a->segments)) |
           plan_set_report(row, a, r) | plan_set_efficiency(row, a, r);
}

/* Whether a count stays within the limit, as estimated. The estimate does not depend on the time, so that the same
 * command has the same rows on every machine. */
static int check_limit(const struct swept *s, const struct torus *t, const struct algorithm *a,
                       struct error *e)
{
    const double seconds = work_to_verify(t, a) / (double)WORK_QUICK * QUICK_SECONDS;

    if (seconds <= s->limit)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the count would take about %.2g s, and the limit is %.3g s (--limit)",
                     seconds, s->limit);
}

/* Counts an algorithm of torusctl. Sets *accepted to whether it accepts the torus. Returns 0 with the counts in the row,
 * or -1 with *e. */
static int count_named(const struct swept *s, const char *name, const struct torus *t, json_t *row,
                       bool *accepted, struct error *e)
{
    struct schedule_report report;
    struct detour *found;
    const struct algorithm *a = found_routes(algorithm_find(name), t, &found, e);
    int r = -1;

    *accepted = a != NULL && algorithm_accepts(a, t, e) == 0;
    if (*accepted && check_limit(s, t, a, e) == 0)
        r = schedule_verify(t, a, &report, e);
    if (r == 0 && set_counts(row, a, &report) != 0)
        r = error_set(e, ERROR_MEMORY, "out of memory for the counts");
    detour_free(found);
    return r;
}

/* The same for a function in Python. */
static int count_python(const char *name, const struct torus *t, json_t *row, struct error *e)
{
    struct schedule_file file = {0};
    int r = schedule_file_read(&file, name, t, e);

    if (r == 0 && set_counts(row, imported_algorithm(file.imported), &file.report) != 0)
        r = error_set(e, ERROR_MEMORY, "out of memory for the counts");
    schedule_file_free(&file);
    return r;
}

/* Counts a schedule, and adds its row. Returns 0, or -1 if memory is short. */
static int count_one(struct swept *s, const char *name, const struct torus *t)
{
    json_t *row = json_object();
    char dims[TORUS_TEXT_SIZE];
    struct error e = {.text = ""};
    bool accepted = true;

    long_work_next("%.40s on %.80s", name, torus_format(t, dims));
    int r = json_set_torus(row, t) |
            json_object_set_new(row, "node_count", json_integer(t->nodes)) |
            json_object_set_new(row, "algorithm", json_string(name));
    const int counted = python_algorithm_is_name(name)
                            ? count_python(name, t, row, &e)
                            : count_named(s, name, t, row, &accepted, &e);
    const bool ended = counted != 0 && interrupt_seen(); /* a signal ends the wait for python3 */
    if (counted != 0)
        r |= json_object_set_new(row, "refused", json_string(e.text));
    if (r != 0 || ended || (s->all && !accepted)) {
        json_decref(row);
        return r;
    }
    return json_array_append_new(s->results, row);
}

static int count_all(struct swept *s)
{
    int r = 0;

    interrupt_arm(NULL);
    for (size_t i = 0; i < s->tori; i++) {
        for (size_t k = 0; k < s->names && r == 0 && !s->stopped; k++) {
            r = count_one(s, s->name[k], &s->torus[i]);
            s->stopped = interrupt_seen();
        }
    }
    interrupt_disarm();
    long_work_end();
    return r;
}

/* ---- Fits ------------------------------------------------------------------------------------ */

static double size_of(const struct swept *s, const json_t *row)
{
    return json_number_value(s->sides ? json_array_get(json_object_get(row, "dims"), 0)
                                      : json_object_get(row, "node_count"));
}

/* Writes the points of a count of an algorithm, which are in points[TORI_MOST]. Returns how many. */
static size_t points_of(const struct swept *s, const char *name, const char *count,
                        struct growth_point *points)
{
    size_t found = 0, i;
    json_t *row;

    json_array_foreach(s->results, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "algorithm")), name) != 0 ||
            json_object_get(row, count) == NULL)
            continue;
        points[found++] = (struct growth_point){
            .size = size_of(s, row), .count = json_number_value(json_object_get(row, count))};
    }
    return found;
}

static json_t *fit_row(const struct swept *s, const char *name, const char *count,
                       const struct growth *g, size_t points)
{
    char formula[GROWTH_TEXT_SIZE];
    json_t *o = json_object();
    int r = json_object_set_new(o, "algorithm", json_string(name)) |
            json_object_set_new(o, "of", json_string(count)) |
            json_object_set_new(o, "torus_count", json_integer((json_int_t)points)) |
            json_object_set_new(o, "formula",
                                json_string(growth_format(g, s->sides ? "n" : "N", formula))) |
            json_object_set_new(o, "exact", json_boolean(g->exact)) |
            json_object_set_new(o, "exponent", json_real(g->exponent)) |
            json_object_set_new(o, "factor", json_real(g->factor)) |
            json_object_set_new(o, "worst", json_real(g->worst));
    return json_checked(o, r);
}

static json_t *fits_of(const struct swept *s)
{
    static const char *const counts[] = {"startups", "transmission", "critical_path"};
    struct growth_point points[TORI_MOST];
    json_t *list = json_array();
    struct growth g;
    int r = 0;

    for (size_t i = 0; i < s->names; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            size_t count = points_of(s, s->name[i], counts[k], points);
            if (growth_fit(points, count, &g, NULL) == 0)
                r |= json_array_append_new(list, fit_row(s, s->name[i], counts[k], &g, count));
        }
    }
    return json_checked(list, r);
}

/* ---- Output ---------------------------------------------------------------------------------- */

static void print_csv(const struct swept *s)
{
    static const char *const columns[] = {
        "node_count",   "algorithm",       "operation", "port_model", "startups",
        "transmission", "critical_path",   "busiest",   "bound",      "bound_of",
        "efficiency",   "contended_steps", "minimal",   "refused"};
    char dims[FORMAT_SIZE];
    json_t *row;
    size_t i;

    (void)printf("dims");
    for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++)
        (void)printf(",%s", columns[k]);
    (void)putchar('\n');
    json_array_foreach(s->results, i, row)
    {
        format_field(dims, row, json_object_get(row, "network") != NULL ? "network" : "dims",
                     FORMAT_TORUS);
        json_t *text = json_string(dims);
        writer_csv(stdout, text);
        json_decref(text);
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
            (void)putchar(',');
            writer_csv(stdout, json_object_get(row, columns[k]));
        }
        (void)putchar('\n');
    }
}

static int print(const struct cli *cli, const struct swept *s)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "torus_count", json_integer((json_int_t)s->tori)) |
            json_object_set_new(o, "complete", json_boolean(!s->stopped)) |
            json_object_set_new(o, "over", json_string(s->sides ? "side" : "nodes")) |
            json_object_set(o, "results", s->results) | json_object_set_new(o, "fits", fits_of(s));

    return cli_print(cli, json_checked(o, r), VIEW(sections));
}

/* The series of a picture: a count of each algorithm, and each bound. */
struct picture {
    struct chart_series series[2 * NAMES_MOST];
    struct chart_point point[2 * NAMES_MOST][TORI_MOST];
    size_t count;
};

static void add_series(struct picture *p, const struct swept *s, const char *name,
                       const char *count)
{
    struct growth_point points[TORI_MOST];
    size_t found = points_of(s, name, count, points);

    if (found == 0)
        return;
    for (size_t i = 0; i < found; i++)
        p->point[p->count][i] = (struct chart_point){points[i].size, points[i].count};
    p->series[p->count] =
        (struct chart_series){.name = name, .points = p->point[p->count], .count = found};
    p->count++;
}

/* Adds the bounds that the rows name, each once a torus. */
static void add_bounds(struct picture *p, const struct swept *s)
{
    const size_t before = p->count;
    json_t *row;
    size_t i;

    json_array_foreach(s->results, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "bound_of"));
        size_t k = before;
        if (name == NULL)
            continue;
        while (k < p->count && strcmp(p->series[k].name, name) != 0)
            k++;
        if (k == 2 * NAMES_MOST)
            continue;
        if (k == p->count)
            p->series[p->count++] =
                (struct chart_series){.name = name, .is_bound = true, .points = p->point[k]};
        struct chart_point at = {size_of(s, row), json_number_value(json_object_get(row, "bound"))};
        size_t *count = &p->series[k].count;
        if (*count == 0 || (p->point[k][*count - 1].x != at.x && *count < TORI_MOST))
            p->point[k][(*count)++] = at;
    }
}

static int draw(const struct cli *cli, const struct swept *s, const char *path)
{
    struct picture *load = calloc(1, sizeof *load), *startups = calloc(1, sizeof *startups);
    const char *label = s->sides ? "side n" : "nodes N";
    struct output_file file;
    struct error e = {.code = ERROR_MEMORY, .text = "out of memory for the picture"};
    int r = -1;

    if (load != NULL && startups != NULL && (r = output_file_open(&file, path, &e)) == 0) {
        for (size_t i = 0; i < s->names; i++) {
            add_series(load, s, s->name[i], "transmission");
            add_series(startups, s, s->name[i], "startups");
        }
        add_bounds(load, s);
        const struct chart_panel panels[] = {
            {"transmission, blocks", label, load->series, load->count},
            {"startups", label, startups->series, startups->count}};
        chart_draw(file.stream, "Schedules on tori, as torusctl sweep counts them", panels, 2);
        r = output_file_finish(&file, &e);
    }
    free(load);
    free(startups);
    return r == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int resolve(struct swept *s, const struct cli *cli, const struct sweep_arguments *a)
{
    uint64_t limit_ms = DEFAULT_LIMIT_MS;
    uint32_t step = 0;
    struct error e;

    if (a->dims == NULL)
        return cli_fail_usage(cli, "--dims is missing: give tori, such as --dims 4x4..64x64");
    if (a->csv && cli->json)
        return cli_fail_usage(cli, "--csv and --json: give one or the other");
    if (READ_OPTION(&e, "--limit", a->limit, parse_seconds, &limit_ms) != 0 ||
        READ_OPTION(&e, "--step", a->step, parse_number, TORUS_MAX_NODES, &step) != 0)
        return cli_fail(cli, &e);
    if (a->step != NULL && step == 0)
        return cli_fail_usage(cli, "--step 0: all tori of a range would be the same");
    if (read_tori(s, a->dims, step, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (read_names(s, a->algorithms, &e) != 0)
        return cli_fail_usage(cli, "--algorithms: %s", e.text);
    s->sides = true;
    for (size_t i = 0; i < s->tori; i++)
        s->sides =
            s->sides && has_equal_sides(&s->torus[i]) && s->torus[i].dims == s->torus[0].dims;
    s->limit = (double)limit_ms / 1000;
    return EXIT_DONE;
}

static int sweep(struct swept *s, const struct cli *cli, const struct sweep_arguments *a)
{
    struct error e = {.code = ERROR_MEMORY, .text = "out of memory for the counts"};
    int code = EXIT_DONE;

    s->results = json_array();
    if (s->results == NULL || count_all(s) != 0) {
        json_decref(s->results);
        return cli_fail(cli, &e);
    }
    if (a->plot != NULL)
        code = draw(cli, s, a->plot);
    if (code == EXIT_DONE && a->csv)
        print_csv(s);
    else if (code == EXIT_DONE && (a->plot == NULL || strcmp(a->plot, "-") != 0))
        code = print(cli, s);
    json_decref(s->results);
    if (s->stopped)
        (void)fprintf(stderr, "torusctl: interrupted; the counts so far are complete\n");
    return code == EXIT_DONE && s->stopped ? EXIT_FAILED : code;
}

static int run(struct cli *cli, const void *arguments)
{
    struct swept *s = calloc(1, sizeof *s);
    struct error e = {.code = ERROR_MEMORY, .text = "out of memory for the tori"};

    if (s == NULL)
        return cli_fail(cli, &e);
    int code = resolve(s, cli, arguments);
    if (code == EXIT_DONE)
        code = sweep(s, cli, arguments);
    free(s);
    return code;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "Count schedules on many tori, and show how the counts grow",
    .usage = "--dims LIST [--step N] [--algorithms NAMES] [--limit SECONDS]\n"
             "       [--csv|--json] [--plot FILE]",
    .options = options,
    .arguments_size = sizeof(struct sweep_arguments),
    .run = run,
};
