/* torusctl bench: a sweep over block sizes and algorithms on the running torus, each of them in a
 * session of exchanges back to back. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/exchange_report.h"
#include "client/cli/exchange_run.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/named_algorithm.h"
#include "client/cli/progress.h"

#define MOST_SIZES 64
#define MOST_ALGORITHMS (MOST_FIELDS - 4) /* columns of the table beside theirs, and its end */
#define DEFAULT_SIZES "1,64,1KiB,16KiB,64KiB"
#define DEFAULT_REPEAT 10

struct bench_arguments {
    const char *algorithms, *sizes, *repeat, *mode, *timeout;
    bool csv;
};

static const struct option options[] = {
    {"--algorithms", "NAMES", offsetof(struct bench_arguments, algorithms),
     "with commas between: at2,direct,auto; else, or with 'all', all that take the torus"},
    {"--sizes", "SIZES", offsetof(struct bench_arguments, sizes),
     "of blocks, with commas between: 64,4KiB; else " DEFAULT_SIZES},
    {"--repeat", "K", offsetof(struct bench_arguments, repeat),
     "exchanges back to back for each size and algorithm; else 10"},
    {"--mode", "MODE", offsetof(struct bench_arguments, mode),
     "stepped or streaming; else whichever suits each algorithm"},
    {"--timeout", "SECONDS", offsetof(struct bench_arguments, timeout),
     "give up one size and algorithm after so long; else the daemon's default"},
    {"--csv", NULL, offsetof(struct bench_arguments, csv),
     "print a line for each size and algorithm, with commas between"},
    {0},
};

struct sweep {
    struct cli *cli;
    struct torus torus;
    double link_mbit;
    const char *algorithm[MOST_ALGORITHMS]; /* names */
    size_t algorithms;
    uint64_t size[MOST_SIZES];
    size_t sizes;
    uint32_t repeat;
    const char *mode;
    uint64_t timeout_ms;
    struct progress progress;
    char now[96];    /* what is running */
    json_t *results; /* an object for each size and algorithm that was run */
    size_t failed;   /* of them */
    bool stopped;    /* before the end: by the user, or because the daemon has gone */
};

/* ---- What was asked for ---------------------------------------------------------------------- */

static int add_algorithm(struct sweep *s, const char *name, struct error *e)
{
    for (size_t i = 0; i < s->algorithms; i++)
        if (strcmp(s->algorithm[i], name) == 0)
            return error_set(e, ERROR_USAGE, "%s is there twice", name);
    if (s->algorithms == MOST_ALGORITHMS)
        return error_set(e, ERROR_USAGE, "more than %d algorithms", (int)MOST_ALGORITHMS);
    s->algorithm[s->algorithms++] = name;
    return 0;
}

/* Every algorithm that can be run here, in the mode that was asked for. */
static int add_all(struct sweep *s, struct error *e)
{
    bool all_port = s->mode != NULL && strcmp(s->mode, "streaming") == 0;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == OPERATION_EXCHANGE && a->accepts(&s->torus, e) == 0 &&
            (!all_port || a->port_model == PORT_MODEL_ALL) && add_algorithm(s, a->name, e) != 0)
            return -1;
    }
    return 0;
}

static int parse_algorithms(const char *text, struct sweep *s, struct error *e)
{
    static const enum operation exchange = OPERATION_EXCHANGE;
    char one[64];

    while (text != NULL) {
        if (parse_item(&text, one, sizeof one, e) != 0)
            return -1;
        if (strcmp(one, TORUS_AUTO) == 0) {
            if (add_algorithm(s, TORUS_AUTO, e) != 0)
                return -1;
            continue;
        }
        const struct algorithm *a = named_algorithm(one, &exchange, e);
        if (a == NULL)
            return -1;
        if (a->operation != OPERATION_EXCHANGE)
            return error_set(e, ERROR_USAGE, "%s is no algorithm for exchanges", a->name);
        if (add_algorithm(s, a->name, e) != 0)
            return -1;
    }
    return 0;
}

/* What can be checked without the daemon. Returns 0, or the exit code after having said why not. */
static int resolve(struct sweep *s, const struct bench_arguments *a)
{
    struct error e;

    s->repeat = DEFAULT_REPEAT;
    s->mode = a->mode;
    if (a->csv && s->cli->json)
        return cli_fail_usage(s->cli, "--csv and --json: give one or the other");
    if (parse_sizes(a->sizes != NULL ? a->sizes : DEFAULT_SIZES, s->size, MOST_SIZES, &s->sizes,
                    &e) != 0)
        return cli_fail_usage(s->cli, "--sizes: %s", e.text);
    if ((a->repeat != NULL && parse_repeat(a->repeat, &s->repeat, &e) != 0) ||
        (a->mode != NULL && parse_mode(a->mode, &e) != 0))
        return cli_fail_usage(s->cli, "%s", e.text);
    if (a->timeout != NULL && parse_seconds(a->timeout, &s->timeout_ms, &e) != 0)
        return cli_fail_usage(s->cli, "--timeout: %s", e.text);
    if (a->algorithms != NULL && strcmp(a->algorithms, "all") != 0 &&
        parse_algorithms(a->algorithms, s, &e) != 0)
        return cli_fail_usage(s->cli, "--algorithms: %s", e.text);
    return EXIT_DONE;
}

/* Which torus it is, and which algorithms there are to run on it. */
static int meet_daemon(struct sweep *s)
{
    struct torus_client_status *status;
    struct torus_client_error failed;
    struct error e;
    int code = cli_connect(s->cli);

    if (code != EXIT_DONE)
        return code;
    if (torus_client_status(s->cli->client, &status, &failed) != 0)
        return cli_fail_client(s->cli, &failed);
    s->link_mbit = status->link_mbit;
    if (torus_parse(&s->torus, status->dims, &e) != 0) {
        e.code = ERROR_PROTOCOL;
        code = cli_fail(s->cli, &e);
    } else if (s->algorithms == 0 && add_all(s, &e) != 0) {
        code = cli_fail(s->cli, &e);
    }
    torus_client_status_free(status);
    return code;
}

/* ---- The sweep ------------------------------------------------------------------------------- */

static json_t *failure(const struct torus_client_error *e)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "code", json_string(torus_client_error_name(e->code)));
    (void)json_object_set_new(o, "text", json_string(e->text));
    return o;
}

/* Adds what the session reported, or why it failed. Returns 0, or -1 with *e. */
static int add_result(struct sweep *s, uint64_t size, const char *name,
                      const struct torus_exchange_result *result, double took,
                      const struct torus_client_error *failed, struct error *e)
{
    static const char *const kept[] = {"id",          "mode",           "rounds",
                                       "seconds",     "seconds_each",   "seconds_min",
                                       "seconds_max", "seconds_spread", "bound_seconds",
                                       "efficiency",  "call_seconds",   "sustained_seconds"};
    json_t *o = json_object(), *report;
    int r = json_object_set_new(o, "block_bytes", json_count(size)) |
            json_object_set_new(o, "algorithm", json_string(name));

    if (result == NULL) {
        s->failed++;
        r |= json_object_set_new(o, "error", failure(failed));
    } else {
        report = exchange_report(result, took, true, e);
        if (report == NULL) {
            json_decref(o);
            return -1;
        }
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            r |= json_object_set(o, kept[i], json_object_get(report, kept[i]));
        if (strcmp(name, TORUS_AUTO) == 0)
            r |= json_object_set(o, "chosen", json_object_get(report, "algorithm"));
        json_decref(report);
    }
    if (r == 0 && json_array_append_new(s->results, o) == 0)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for the results");
}

/* Whether there is a daemon for another call: on this connection, or, if it has been closed, on a
 * new one. */
static bool can_go_on(struct sweep *s)
{
    struct torus_client_status *status;
    struct torus_client *another;

    if (torus_client_status(s->cli->client, &status, NULL) == 0) {
        torus_client_status_free(status);
        return true;
    }
    another = torus_client_open(s->cli->socket, NULL);
    if (another == NULL)
        return false;
    interrupt_disarm();
    torus_client_close(s->cli->client);
    s->cli->client = another;
    interrupt_arm(another);
    return true;
}

static int run_one(struct sweep *s, uint64_t size, const char *name, struct error *e)
{
    const struct torus_exchange_request request = {
        .algorithm = name,
        .block_bytes = size,
        .repeat = s->repeat,
        .mode = s->mode,
        .timeout_ms = s->timeout_ms,
    };
    struct torus_exchange_result *result;
    struct torus_client_error failed;
    char bytes[FORMAT_SIZE];
    double began = (double)progress_clock();
    int r;

    format_bytes(bytes, (double)size);
    (void)snprintf(s->now, sizeof s->now, "%zu of %zu: %s, %.20s", json_array_size(s->results) + 1,
                   s->sizes * s->algorithms, name, bytes);
    r = torus_exchange_run(s->cli->client, &request, progress_update, &s->progress, &result,
                           &failed);
    if (r != 0 && failed.code == TORUS_ERROR_CANCELLED) {
        s->stopped = true;
        return 0;
    }
    if (r == 0 && !result->verified) {
        failed.code = TORUS_ERROR_DAMAGED;
        (void)snprintf(failed.text, sizeof failed.text, "delivered, but not verified");
        torus_exchange_result_free(result);
        result = NULL;
    }
    if (add_result(s, size, name, result, ((double)progress_clock() - began) / 1e3, &failed, e) !=
        0)
        r = -2;
    torus_exchange_result_free(result);
    if (r == -1)
        s->stopped = !can_go_on(s);
    return r == -2 ? -1 : 0;
}

static int run_all(struct sweep *s, struct error *e)
{
    int r = 0;

    progress_begin(&s->progress, true);
    s->progress.title = s->now;
    interrupt_arm(s->cli->client);
    for (size_t i = 0; i < s->sizes && r == 0; i++)
        for (size_t k = 0; k < s->algorithms && r == 0 && !s->stopped; k++)
            r = run_one(s, s->size[i], s->algorithm[k], e);
    interrupt_disarm();
    progress_end(&s->progress);
    return r;
}

/* ---- The table ------------------------------------------------------------------------------- */

static double seconds_of(const json_t *result)
{
    return json_number_value(json_object_get(result, "seconds"));
}

/* The shortest of a size; NULL if none has succeeded. */
static json_t *best_of(const struct sweep *s, uint64_t size)
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

/* A row for each size: the times by the algorithms' names, the best one with a star. */
static json_t *table_of(const struct sweep *s)
{
    json_t *rows = json_array(), *result;

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *row = json_object();
        const json_t *best = best_of(s, s->size[i]);
        size_t k, cells = 0;
        (void)json_object_set_new(row, "block", json_count(s->size[i]));
        if (s->link_mbit > 0)
            (void)json_object_set_new(row, "bound",
                                      json_real(torus_bound_all_port(&s->torus) *
                                                (double)s->size[i] * 8 / (s->link_mbit * 1e6)));
        json_array_foreach(s->results, k, result)
        {
            char cell[FORMAT_SIZE] = "failed";
            if (json_integer_value(json_object_get(result, "block_bytes")) !=
                (json_int_t)s->size[i])
                continue;
            cells++;
            if (json_object_get(result, "error") == NULL)
                format_seconds(cell, seconds_of(result));
            if (result == best)
                strncat(cell, " *", sizeof cell - strlen(cell) - 1);
            (void)json_object_set_new(row, json_string_value(json_object_get(result, "algorithm")),
                                      json_string(cell));
        }
        if (cells > 0)
            (void)json_array_append_new(rows, row);
        else
            json_decref(row);
    }
    return rows;
}

static json_t *failures_of(const struct sweep *s)
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

static int print_text(const struct sweep *s)
{
    static const struct field head_fields[] = {
        {"torus", "dims", FORMAT_TORUS},
        {"nodes", "nodes", FORMAT_PLAIN},
        {"exchanges each", "repeat", FORMAT_PLAIN},
        {"times", "times", FORMAT_PLAIN},
        {0},
    };
    static const struct field failure_fields[] = {
        {"failed", "algorithm", FORMAT_PLAIN},
        {"block", "block_bytes", FORMAT_BYTES},
        {"because", "reason", FORMAT_PLAIN},
        {0},
    };
    struct field fields[MOST_FIELDS] = {{"block", "block", FORMAT_BYTES}};
    const struct section sections[] = {
        {.layout = LAYOUT_RECORD, .fields = head_fields},
        {.layout = LAYOUT_TABLE, .key = "table", .fields = fields},
        {.layout = LAYOUT_TABLE, .key = "failures", .fields = failure_fields},
    };
    size_t columns = 1;
    json_t *o = json_object();

    for (size_t k = 0; k < s->algorithms; k++)
        fields[columns++] = (struct field){s->algorithm[k], s->algorithm[k], FORMAT_PLAIN};
    if (s->link_mbit > 0)
        fields[columns++] = (struct field){"bound", "bound", FORMAT_SECONDS};
    (void)json_set_torus(o, &s->torus);
    (void)json_object_set_new(o, "nodes", json_integer(s->torus.nodes));
    (void)json_object_set_new(o, "repeat", json_integer(s->repeat));
    (void)json_object_set_new(o, "times", json_string("medians, * the shortest"));
    (void)json_object_set_new(o, "table", table_of(s));
    (void)json_object_set_new(o, "failures", failures_of(s));
    return cli_print(s->cli, o, &(struct view){sections, 3});
}

/* ---- For programs ---------------------------------------------------------------------------- */

static void print_quoted(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            (void)putchar('"');
        (void)putchar(*text);
    }
    (void)putchar('"');
}

static int print_csv(const struct sweep *s)
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
            const json_t *value = json_object_get(result, columns[k]);
            if (json_is_string(value))
                (void)printf("%s", json_string_value(value));
            else if (json_is_integer(value))
                (void)printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
            else if (json_is_real(value))
                (void)printf("%.9g", json_real_value(value));
            (void)putchar(',');
        }
        (void)printf("%u,", s->repeat);
        if (error != NULL)
            print_quoted(json_string_value(json_object_get(error, "text")));
        (void)putchar('\n');
    }
    return EXIT_DONE;
}

static int print_json(const struct sweep *s)
{
    json_t *o = json_object();
    int r = json_set_torus(o, &s->torus);

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *best = best_of(s, s->size[i]);
        if (best != NULL)
            r |= json_object_set_new(best, "best", json_true());
    }
    r |= json_object_set_new(o, "nodes", json_integer(s->torus.nodes));
    r |= json_object_set_new(o, "link_mbit",
                             s->link_mbit > 0 ? json_number(s->link_mbit) : json_null());
    r |= json_object_set_new(o, "repeat", json_integer(s->repeat));
    r |= json_object_set_new(o, "complete", json_boolean(!s->stopped));
    r |= json_object_set(o, "results", s->results);
    if (r != 0) {
        json_decref(o);
        o = NULL;
    }
    return cli_print(s->cli, o, NULL);
}

static int run(struct cli *cli, const void *arguments)
{
    const struct bench_arguments *a = arguments;
    struct sweep s = {.cli = cli};
    struct error e;
    int code = resolve(&s, a);

    if (code == EXIT_DONE)
        code = meet_daemon(&s);
    if (code != EXIT_DONE)
        return code;
    s.results = json_array();
    if (s.results == NULL || run_all(&s, &e) != 0) {
        if (s.results == NULL)
            (void)error_set(&e, ERROR_MEMORY, "out of memory");
        json_decref(s.results);
        return cli_fail(cli, &e);
    }
    code = cli->json ? print_json(&s) : a->csv ? print_csv(&s) : print_text(&s);
    if (s.stopped)
        (void)fprintf(stderr, "torusctl: ended early, %zu of %zu done\n",
                      json_array_size(s.results), s.sizes * s.algorithms);
    if (s.failed > 0)
        (void)fprintf(stderr, "torusctl: %zu of %zu failed\n", s.failed,
                      json_array_size(s.results));
    json_decref(s.results);
    return code == EXIT_DONE && (s.failed > 0 || s.stopped) ? EXIT_FAILED : code;
}

extern const struct command command_bench;
const struct command command_bench = {
    .name = "bench",
    .summary = "Measure algorithms against each other on the running torus",
    .usage = "[--algorithms NAMES|all] [--sizes SIZES] [--repeat K] [--mode MODE] [--csv|--json]",
    .details =
        "For each block size, the algorithms one after the other: each runs K exchanges of a\n"
        "generated pattern back to back, as 'torusctl exchange --repeat K' does, and the table\n"
        "shows the median of their times. The shortest of each size has a star. Where the links'\n"
        "rate is known, 'bound' is what no algorithm can beat.\n"
        "\n"
        "An algorithm that fails is shown as such, and the others go on; the exit status is 1\n"
        "then. Ctrl-C ends the sweep, and what has been measured is printed.\n"
        "\n"
        "examples:\n"
        "  torusctl bench\n"
        "  torusctl bench --algorithms at2,direct --sizes 1K,64K,1M --repeat 20\n"
        "  torusctl bench --sizes 64 --csv > 64.csv\n",
    .options = options,
    .arguments_size = sizeof(struct bench_arguments),
    .needs_daemon = true,
    .run = run,
};
