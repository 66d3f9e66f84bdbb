/* torusctl bench: compares algorithms on the running torus, for several block sizes. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/measuring/bench_runs.h"
#include "client/cli/measuring/bench_texts.h"
#include "client/cli/measuring/fit.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/web/page.h"
#include "client/cli/web/web_texts.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"

/* A result of exchanges whose routes were found for different rates of links, or NULL. */
static const json_t *rated_result(const struct bench_runs *s)
{
    json_t *result;
    size_t i;

    json_array_foreach(s->results, i, result)
    {
        if (json_is_number(json_object_get(result, "bound_seconds")) &&
            json_object_get(result, "rates") != NULL &&
            json_integer_value(json_object_get(result, "block_bytes")) > 0)
            return result;
    }
    return NULL;
}

static double number_of(const json_t *result, const char *key)
{
    return json_number_value(json_object_get(result, key));
}

/* --- the page --- */

/* Blocks that the busiest channel carries at least, one after another, on links of *link_mbit. */
static double bound_blocks(const struct bench_runs *s, double *link_mbit)
{
    const json_t *rated = rated_result(s);

    *link_mbit = s->link_mbit;
    if (rated == NULL)
        return torus_bound_all_port(&s->torus);
    const double full = number_of(rated, "full_bits_per_second");
    *link_mbit = full / 1e6;
    return number_of(rated, "bound_seconds") * full / (8 * number_of(rated, "block_bytes"));
}

/* Writes the page to a file ("-": standard output). Returns EXIT_DONE, or another exit code after printing the reason,
 * without a new file. */
static int bench_page_write(const struct cli *cli, const char *file, const struct bench_runs *s)
{
    static const char *const scripts[] = {web_texts_js, bench_js, NULL};
    char network[TORUS_TEXT_SIZE];
    const json_t *rated = rated_result(s);
    double link_mbit, blocks = bound_blocks(s, &link_mbit);
    json_t *data =
        json_pack("{s:s, s:I, s:I, s:f, s:f, s:O}", "network", torus_format(&s->torus, network),
                  "node_count", (json_int_t)s->torus.nodes, "repeat", (json_int_t)s->repeat,
                  "link_mbit", link_mbit, "bound_blocks", blocks, "results", s->results);

    if (rated != NULL) {
        (void)json_object_set(data, "rates", json_object_get(rated, "rates"));
        (void)link_rates_shorten(data);
    }

    return page_file_write(cli, file,
                           &(struct page){.body = bench_html,
                                          .style = web_style_css,
                                          .more_style = bench_css,
                                          .scripts = scripts,
                                          .data = data});
}

/* --- the report --- */

/* ---- The table ------------------------------------------------------------------------------- */

static double seconds_of(const json_t *result)
{
    return json_number_value(json_object_get(result, "seconds"));
}

/* Returns the result with the shortest time for a size, or NULL if all have failed. */
static json_t *best_of(const struct bench_runs *s, uint64_t size)
{
    json_t *result, *best = NULL;
    size_t i;

    json_array_foreach(s->results, i, result)
    {
        if (json_integer_value(json_object_get(result, "block_bytes")) == (json_int_t)size &&
            json_object_get(result, "error") == NULL &&
            (best == NULL || seconds_of(result) < seconds_of(best)))
            best = result;
    }
    return best;
}

/* Returns the times for a size by the names of algorithms, with a star after the shortest. NULL if no exchange of
 * this size was run. */
static json_t *row_of(const struct bench_runs *s, uint64_t size)
{
    const json_t *best = best_of(s, size);
    json_t *row = NULL, *result;
    size_t k;

    json_array_foreach(s->results, k, result)
    {
        char cell[FORMAT_SIZE] = "failed";
        if (json_integer_value(json_object_get(result, "block_bytes")) != (json_int_t)size)
            continue;
        if (row == NULL)
            row = json_object();
        if (json_object_get(result, "error") == NULL)
            format_seconds(cell, seconds_of(result));
        if (result == best)
            strncat(cell, " *", sizeof cell - strlen(cell) - 1);
        (void)json_object_set_new(row, json_string_value(json_object_get(result, "algorithm")),
                                  json_string(cell));
    }
    return row;
}

/* Adds what no exchange of this size can beat, at the rates of links if these differ. */
static void add_bounds(json_t *row, const struct bench_runs *s, uint64_t size)
{
    const json_t *rated = rated_result(s);

    if (rated != NULL) {
        const double times = (double)size / number_of(rated, "block_bytes");
        (void)json_object_set_new(row, "bound",
                                  json_real(times * number_of(rated, "bound_seconds")));
        (void)json_object_set_new(row, "equal_bound",
                                  json_real(times * number_of(rated, "equal_bound_seconds")));
    } else if (s->link_mbit > 0) {
        (void)json_object_set_new(
            row, "bound",
            json_real(torus_bound_all_port(&s->torus) * (double)size * 8 / (s->link_mbit * 1e6)));
    }
}

static json_t *table_of(const struct bench_runs *s)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *row = row_of(s, s->size[i]);
        if (row == NULL)
            continue;
        (void)json_object_set_new(row, "block", json_count(s->size[i]));
        add_bounds(row, s, s->size[i]);
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *failures_of(const struct bench_runs *s)
{
    json_t *rows = json_array(), *result;
    size_t i;

    json_array_foreach(s->results, i, result)
    {
        json_t *error = json_object_get(result, "error"), *row;
        if (error == NULL)
            continue;
        row = json_copy(result);
        (void)json_object_set(row, "reason", json_object_get(error, "text"));
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

/* Print the results. Return the exit code of printing; failed exchanges do not count. */
static int bench_print_text(const struct cli *cli, const struct bench_runs *s)
{
    struct field fields[MOST_FIELDS] = {{"block", "block", FORMAT_BYTES}};
    const struct section sections[] = {
        RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
               RATES_FIELDS, FIELD("exchanges each", "repeat"), FIELD("times")),
        {.layout = LAYOUT_TABLE, .key = "table", .fields = fields},
        TABLE("failures", FIELD("failed", "algorithm"), FIELD("block", "block_bytes", FORMAT_BYTES),
              FIELD("reason")),
    };
    size_t columns = 1;
    json_t *o = json_object();

    for (size_t k = 0; k < s->algorithms; k++)
        fields[columns++] = (struct field){s->algorithm[k], s->algorithm[k], FORMAT_PLAIN};
    const json_t *rated = rated_result(s);
    if (s->link_mbit > 0 || rated != NULL)
        fields[columns++] = (struct field){"bound", "bound", FORMAT_SECONDS};
    if (rated != NULL) {
        fields[columns++] = (struct field){"if links were equal", "equal_bound", FORMAT_SECONDS};
        (void)json_object_set(o, "rates", json_object_get(rated, "rates"));
        (void)json_object_set(o, "full_bits_per_second",
                              json_object_get(rated, "full_bits_per_second"));
        (void)link_rates_shorten(o);
    }
    (void)bench_runs_set(o, s);
    (void)json_object_set_new(o, "times", json_string("medians; * marks the shortest"));
    (void)json_object_set_new(o, "table", table_of(s));
    (void)json_object_set_new(o, "failures", failures_of(s));
    return cli_print(cli, o, &(struct view){sections, 3});
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static int bench_print_csv(const struct bench_runs *s)
{
    static const char *const columns[] = {"block_bytes",    "algorithm",         "mode",
                                          "seconds",        "seconds_min",       "seconds_max",
                                          "seconds_spread", "sustained_seconds", "bound_seconds",
                                          "efficiency"};
    json_t *result;
    size_t i;

    for (i = 0; i < sizeof columns / sizeof columns[0]; i++)
        (void)printf("%s,", columns[i]);
    (void)printf("repeat,error\n");
    json_array_foreach(s->results, i, result)
    {
        const json_t *error = json_object_get(result, "error");
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
            writer_csv(stdout, json_object_get(result, columns[k]));
            (void)putchar(',');
        }
        (void)printf("%u,", s->repeat);
        writer_csv(stdout, json_object_get(error, "text"));
        (void)putchar('\n');
    }
    return EXIT_DONE;
}

static int bench_print_json(const struct cli *cli, const struct bench_runs *s)
{
    json_t *o = json_object();

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *best = best_of(s, s->size[i]);
        if (best != NULL)
            (void)json_object_set_new(best, "best", json_true());
    }
    return cli_print(
        cli, json_checked(o, bench_runs_set(o, s) | json_object_set(o, "results", s->results)),
        NULL);
}

#define DEFAULT_SIZES "1,64,1KiB,16KiB,64KiB"
#define DEFAULT_REPEAT 10
#define FIT_PASSES 3

struct bench_arguments {
    const char *algorithms, *q, *schedules, *sizes, *repeat, *mode, *timeout, *html;
    bool fit, csv;
};

static const struct option options[] = {
    {"--algorithms", "NAMES", offsetof(struct bench_arguments, algorithms),
     "algorithms, separated by commas: at2,direct,auto (default: all that\n"
     "accept the torus)"},
    {"--q", "N|best", offsetof(struct bench_arguments, q),
     "run cccube of --algorithms in N packets, or in the number of packets\n"
     "with the shortest predicted time"},
    {"--schedules", "FILES", offsetof(struct bench_arguments, schedules),
     "also run the schedules in these files, separated by commas (without\n"
     "--algorithms: run only these); see 'torusctl help plan'"},
    {"--sizes", "SIZES", offsetof(struct bench_arguments, sizes),
     "sizes of blocks, separated by commas: 64,4KiB; 1-1MiB means 1, 4, 16\nand so on up to 1MiB "
     "(default: " DEFAULT_SIZES ";\nwith --fit " FIT_SIZES ")"},
    {"--repeat", "K", offsetof(struct bench_arguments, repeat),
     "exchanges back to back for each size and algorithm (default: 10)"},
    {"--mode", "MODE", offsetof(struct bench_arguments, mode),
     "stepped or streaming (default: what suits each algorithm)"},
    {"--timeout", "SECONDS", offsetof(struct bench_arguments, timeout),
     "time limit for each size of each algorithm (default: the daemon's)"},
    {"--fit", NULL, offsetof(struct bench_arguments, fit),
     "fit the papers' cost model to the times of stepped algorithms (default:\nthose that only "
     "send to neighbours)"},
    {"--html", "FILE", offsetof(struct bench_arguments, html),
     "also make a page for a browser that plots the times; '-' is standard\noutput"},
    {"--csv", NULL, offsetof(struct bench_arguments, csv),
     "print one line of comma-separated values per size and algorithm"},
    {0},
};

#define PATH_ROOM 4096

/* ---- The arguments --------------------------------------------------------------------------- */

/* Adds every algorithm that accepts the torus and can run in the requested mode. */
static int add_all(struct bench_runs *s, struct error *e)
{
    bool all_port = s->mode == TORUS_MODE_STREAMING;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        bool found = !torus_is_plain(&s->torus) && strcmp(a->name, FOUND_NAME) == 0;
        if (a->operation == OPERATION_EXCHANGE &&
            (found || algorithm_accepts(a, &s->torus, e) == 0) &&
            (!all_port || a->port_model == PORT_MODEL_ALL) && bench_runs_add(s, a->name, e) != 0)
            return -1;
    }
    return 0;
}

static int parse_algorithms(const char *text, const char *q, struct bench_runs *s, struct error *e)
{
    char one[PATH_ROOM];
    bool spells = q == NULL;

    while (text != NULL) {
        if (parse_item(&text, one, sizeof one, e) != 0)
            return -1;
        if (python_algorithm_is_name(one)) /* for add_schedules(), which knows the torus */
            continue;
        bool is_base = q != NULL && has_q(one);
        const char *name = spelled_algorithm(one, is_base ? q : NULL, e);
        if (name == NULL)
            return -1;
        spells |= is_base;
        name = requested_algorithm(name, OPERATION_EXCHANGE, e);
        if (name == NULL)
            return -1;
        const struct algorithm *a = algorithm_find(name);
        if (a != NULL && a->operation != OPERATION_EXCHANGE)
            return error_set(e, ERROR_USAGE, "%s is not an algorithm for exchanges", a->name);
        if (bench_runs_add(s, name, e) != 0)
            return -1;
    }
    return spells ? 0 : error_set(e, ERROR_USAGE, "--q is for cccube, which is not in the list");
}

static size_t different_sizes(const struct bench_runs *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->sizes; i++) {
        size_t first = 0;
        while (s->size[first] != s->size[i])
            first++;
        count += first == i;
    }
    return count;
}

/* Checks and sets what --fit needs. */
static int resolve_fit(struct bench_runs *s, const struct cli *cli, const struct bench_arguments *a)
{
    if (a->csv)
        return cli_fail_usage(cli,
                              "--fit and --csv: give one or the other; --json has all figures");
    if (s->mode == TORUS_MODE_STREAMING)
        return cli_fail_usage(cli,
                              "--fit: the model counts steps, so it does not fit --mode streaming");
    if (different_sizes(s) < FIT_LEAST_POINTS)
        return cli_fail_usage(cli,
                              "--fit needs at least %d different block sizes: two sizes give the "
                              "costs, and only more show how well the model fits; give --sizes "
                              "256,4KiB,64KiB or omit --sizes",
                              FIT_LEAST_POINTS);
    for (size_t i = 0; i < s->algorithms; i++)
        if (strcmp(s->algorithm[i], TORUS_AUTO) == 0)
            return cli_fail_usage(cli, "--fit: auto may be another algorithm for each size; name "
                                       "the algorithms to fit");
    s->mode = TORUS_MODE_STEPPED;
    s->passes = FIT_PASSES;
    return EXIT_DONE;
}

/* Reads the arguments, as far as possible without the daemon. Returns EXIT_DONE, or another exit code after printing
 * the reason. */
static int resolve(struct bench_runs *s, const struct cli *cli, const struct bench_arguments *a)
{
    struct error e;

    s->repeat = DEFAULT_REPEAT;
    if (a->csv && cli->json)
        return cli_fail_usage(cli, "--csv and --json: give one or the other");
    if (parse_sizes(a->sizes != NULL ? a->sizes
                    : a->fit         ? FIT_SIZES
                                     : DEFAULT_SIZES,
                    s->size, BENCH_MOST_SIZES, &s->sizes, &e) != 0)
        return cli_fail_usage(cli, "--sizes: %s", e.text);
    if (READ_OPTION(&e, "--repeat", a->repeat, parse_repeat, &s->repeat) != 0 ||
        READ_OPTION(&e, "--mode", a->mode, parse_mode, &s->mode) != 0 ||
        READ_OPTION(&e, "--timeout", a->timeout, parse_seconds, &s->timeout_ms) != 0)
        return cli_fail(cli, &e);
    if (a->q != NULL && (a->algorithms == NULL || strcmp(a->algorithms, "all") == 0))
        return cli_fail_usage(cli, "--q is for cccube: name it in --algorithms");
    if (a->algorithms != NULL && strcmp(a->algorithms, "all") != 0 &&
        parse_algorithms(a->algorithms, a->q, s, &e) != 0)
        return cli_fail_usage(cli, "--algorithms: %s", e.text);
    return a->fit ? resolve_fit(s, cli, a) : EXIT_DONE;
}

/* Schedules from files. */
struct files {
    struct schedule_file file[BENCH_MOST_ALGORITHMS];
    size_t count;
};

/* Adds the schedules of a list; of a list of algorithms only those in Python. */
static int add_schedules(const char *text, bool only_python, struct bench_runs *s,
                         struct files *files, struct error *e)
{
    char path[PATH_ROOM];

    while (text != NULL) {
        if (parse_item(&text, path, sizeof path, e) != 0)
            return -1;
        if (only_python && !python_algorithm_is_name(path))
            continue;
        if (files->count == BENCH_MOST_ALGORITHMS)
            return error_set(e, ERROR_USAGE, "more than %d schedules", (int)BENCH_MOST_ALGORITHMS);
        struct schedule_file *file = &files->file[files->count];
        if (schedule_file_read(file, path, &s->torus, e) != 0)
            return -1;
        files->count++;
        if (imported_algorithm(file->imported)->operation != OPERATION_EXCHANGE)
            return error_set(e, ERROR_USAGE, "%s is not a schedule for exchanges", path);
        if (bench_runs_add_schedule(s, file, e) != 0)
            return -1;
    }
    return 0;
}

/* Adds the algorithms to run if the user names none. */
static int add_default(struct bench_runs *s, const struct bench_arguments *a, struct error *e)
{
    return a->fit && a->algorithms == NULL ? fit_add_neighbours(s, e) : add_all(s, e);
}

/* Asks the daemon for the torus, and finds the algorithms to run on it. */
static int find_torus(struct bench_runs *s, struct cli *cli, const struct bench_arguments *a,
                      struct files *files)
{
    bool all = a->algorithms != NULL ? strcmp(a->algorithms, "all") == 0 : a->schedules == NULL;
    struct torus_status *status;
    struct torus_error failed;
    struct error e;
    int code = cli_connect(cli);

    if (code != EXIT_DONE)
        return code;
    if (torus_client_status(cli->client, &status, &failed) != 0)
        return cli_fail_client(cli, &failed);
    s->link_mbit = status->link_mbit;
    if (daemon_torus_of_status(status, &s->torus, &e) != 0) {
        code = cli_fail(cli, &e);
    } else if ((all && add_default(s, a, &e) != 0) ||
               add_schedules(a->algorithms, true, s, files, &e) != 0 ||
               add_schedules(a->schedules, false, s, files, &e) != 0) {
        code = cli_fail(cli, &e);
    }
    torus_status_free(status);
    return code;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Makes all runs and prints their results. */
static int run_and_print(struct bench_runs *runs, struct cli *cli, const struct bench_arguments *a)
{
    struct error e;

    if (bench_run_all(runs, cli, &e) != 0)
        return cli_fail(cli, &e);
    bool only_page = a->html != NULL && strcmp(a->html, "-") == 0;
    int code = only_page   ? EXIT_DONE
               : a->fit    ? fit_print(cli, runs)
               : cli->json ? bench_print_json(cli, runs)
               : a->csv    ? bench_print_csv(runs)
                           : bench_print_text(cli, runs);
    if (a->html != NULL && code == EXIT_DONE)
        code = bench_page_write(cli, a->html, runs);
    if (runs->stopped)
        (void)fprintf(stderr, "torusctl: interrupted after %zu of %zu runs\n", runs->runs,
                      runs->all_runs);
    if (runs->failed > 0)
        (void)fprintf(stderr, "torusctl: %zu of %zu measurements failed\n", runs->failed,
                      json_array_size(runs->results));
    json_decref(runs->results);
    return code == EXIT_DONE && (runs->failed > 0 || runs->stopped) ? EXIT_FAILED : code;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct bench_arguments *a = arguments;
    struct files files = {.count = 0};
    struct bench_runs s = {0};
    int code = resolve(&s, cli, a);

    if (code == EXIT_DONE)
        code = find_torus(&s, cli, a, &files);
    if (code == EXIT_DONE)
        code = run_and_print(&s, cli, a);
    for (size_t i = 0; i < files.count; i++)
        schedule_file_free(&files.file[i]);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "Compare the algorithms on the running torus",
    .usage = "[--algorithms NAMES|all] [--q N|best] [--schedules FILES] [--sizes SIZES] "
             "[--repeat K]\n       [--mode MODE] [--fit] [--csv|--json] [--html FILE]",
    .options = options,
    .arguments_size = sizeof(struct bench_arguments),
    .needs_daemon = true,
    .run = run,
};
