/* torusctl perf: measures the time of a collective operation of a group. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/measuring/perf.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/tracing/trace_file.h"
#include "proto/text.h"

#define DEFAULT_SIZES "1-1MiB"
#define DEFAULT_NAME "perf"
#define DEFAULT_WARM_UP 2
#define DEFAULT_PAUSE_NS 20000000
#define DEFAULT_OPENING_MS 60000
#define MOST_WARM_UP 1000

struct perf_arguments {
    const char *operation, *sizes, *repeat, *warm_up, *pause, *part, *root, *type, *combination,
        *name, *timeout, *trace;
    bool verify, registered, ordinary, unchecked;
};

static const struct option options[] = {
    {"OPERATION", "OPERATION", offsetof(struct perf_arguments, operation),
     "alltoall, alltoallv, allgather, gather, scatter, broadcast, barrier,\nallreduce, reduce or "
     "reduce-scatter"},
    {"--sizes", "SIZES", offsetof(struct perf_arguments, sizes),
     "sizes, separated by commas: 64,4KiB; 1-1MiB means 1, 4, 16 and so on up\n"
     "to 1MiB (default: 1-1MiB)"},
    {"--repeat", "K", offsetof(struct perf_arguments, repeat),
     "calls of each size (default: as many as a second allows, 5 to 100)"},
    {"--warm-up", "K", offsetof(struct perf_arguments, warm_up),
     "calls before these, which are not counted (default: 2)"},
    {"--pause", "SECONDS", offsetof(struct perf_arguments, pause),
     "pause before each call, 0 for none (default: 0.02)"},
    {"--verify", NULL, offsetof(struct perf_arguments, verify),
     "fill and check all data, outside of the measured time"},
    {"--registered", NULL, offsetof(struct perf_arguments, registered),
     "use memory shared with the daemon (default)"},
    {"--ordinary", NULL, offsetof(struct perf_arguments, ordinary),
     "use ordinary memory, which is copied once"},
    {"--unchecked", NULL, offsetof(struct perf_arguments, unchecked),
     "send blocks without digests"},
    {"--part", "DIMENSIONS", offsetof(struct perf_arguments, part),
     "make the calls in each part of the torus along these dimensions: 1 for\n"
     "the rows of 4x8, 0,2 for planes (default: in the whole torus)"},
    {"--root", "RANK", offsetof(struct perf_arguments, root),
     "rank of the member that broadcasts, or receives the result of reduce\n"
     "(default: 0)"},
    {"--type", "TYPE", offsetof(struct perf_arguments, type),
     "type of the elements of reductions: int8 to int64, uint8 to uint64,\n"
     "float32 or float64 (default: float64)"},
    {"--op", "OPERATOR", offsetof(struct perf_arguments, combination),
     "operator of reductions: sum, product, min, max, and, or, xor (default:\n"
     "sum)"},
    {"--name", "NAME", offsetof(struct perf_arguments, name),
     "name of the group; runs at the same time need different names (default:\n"
     "perf)"},
    {"--timeout", "SECONDS", offsetof(struct perf_arguments, timeout),
     "time limit for opening the group (default: 60), and for each call\n"
     "(default: none)"},
    {"--trace", "FILE", offsetof(struct perf_arguments, trace),
     "record what each port does; rank 0 writes it to FILE (see 'torusctl help\n"
     "trace'). Give the option on every node"},
    {0},
};

/* The group and part in which the plan is carried out. */
struct place {
    struct torus_group *whole, *part; /* the same without --part */
    struct torus torus, part_torus;
    double link_mbit;
    uint64_t timeout_ms;
    json_t *report; /* at rank 0, once it has been printed */
};

/* ---- The arguments --------------------------------------------------------------------------- */

static int resolve_operation(struct perf_plan *plan, const struct cli *cli, const char *name)
{
    char known[256] = "";

    for (const struct perf_operation *o = perf_operations; o->name != NULL; o++) {
        size_t used = strlen(known);
        if (name != NULL && strcmp(name, o->name) == 0)
            plan->operation = o;
        (void)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", o->name);
    }
    if (name == NULL)
        return cli_fail_usage(cli, "the operation is missing: give one of %s", known);
    if (plan->operation == NULL)
        return cli_fail_usage(cli, "'%.40s' is not an operation: give one of %s", name, known);
    return EXIT_DONE;
}

/* Rejects options that do not apply to the operation. */
static int refuse_useless(const struct perf_plan *plan, const struct cli *cli,
                          const struct perf_arguments *a)
{
    const struct perf_operation *o = plan->operation;
    const char *useless = NULL;

    if (o->fill == NULL)
        useless = a->sizes != NULL ? "--sizes"
                  : a->verify      ? "--verify"
                  : a->registered  ? "--registered"
                  : a->ordinary    ? "--ordinary"
                                   : NULL;
    if (!o->reduces && useless == NULL)
        useless = a->type != NULL ? "--type" : a->combination != NULL ? "--op" : NULL;
    if (!o->rooted && useless == NULL && a->root != NULL)
        useless = "--root";
    if (useless != NULL)
        return cli_fail_usage(cli, "%s does not apply to %s", useless, o->name);
    if (a->registered && a->ordinary)
        return cli_fail_usage(cli, "--registered and --ordinary: give one or the other");
    return EXIT_DONE;
}

static int resolve_reduction(struct perf_plan *plan, const struct cli *cli,
                             const struct perf_arguments *a)
{
    size_t type = TORUS_FLOAT64, combination = TORUS_SUM;
    struct error e;

    if (READ_OPTION(&e, "--type", a->type, parse_named, perf_types, &type) != 0 ||
        READ_OPTION(&e, "--op", a->combination, parse_named, perf_operators, &combination) != 0)
        return cli_fail(cli, &e);
    plan->type = (enum torus_type)type;
    plan->combination = (enum torus_operator)combination;
    if (type >= TORUS_FLOAT32 && combination >= TORUS_AND)
        return cli_fail_usage(cli, "--op: %s is for integers, not for %s; give --type uint64",
                              perf_operators[combination], perf_types[type]);
    return EXIT_DONE;
}

/* Reads the arguments, as far as possible without the daemon. Returns EXIT_DONE, or another exit code after printing
 * the reason. */
static int resolve(struct perf_plan *plan, struct place *place, const struct cli *cli,
                   const struct perf_arguments *a)
{
    uint64_t milliseconds = DEFAULT_PAUSE_NS / 1000000;
    struct error e;
    int code = resolve_operation(plan, cli, a->operation);

    if (code == EXIT_DONE)
        code = refuse_useless(plan, cli, a);
    if (code == EXIT_DONE)
        code = trace_file_check(cli, a->trace);
    if (code == EXIT_DONE)
        code = resolve_reduction(plan, cli, a);
    if (code != EXIT_DONE)
        return code;
    plan->warm_up = DEFAULT_WARM_UP;
    plan->verify = a->verify;
    plan->ordinary = a->ordinary;
    if (parse_sizes(plan->operation->fill == NULL ? "0"
                    : a->sizes != NULL            ? a->sizes
                                                  : DEFAULT_SIZES,
                    plan->size, PERF_MOST_SIZES, &plan->sizes, &e) != 0)
        return cli_fail_usage(cli, "--sizes: %s", e.text);
    if (READ_OPTION(&e, "--repeat", a->repeat, parse_repeat, &plan->repeat) != 0 ||
        READ_OPTION(&e, "--warm-up", a->warm_up, parse_number, MOST_WARM_UP, &plan->warm_up) != 0)
        return cli_fail(cli, &e);
    if (a->pause != NULL && strcmp(a->pause, "0") == 0)
        milliseconds = 0;
    else if (a->pause != NULL && parse_seconds(a->pause, &milliseconds, &e) != 0)
        return cli_fail_usage(cli, "--pause: %s", e.text);
    plan->pause_ns = milliseconds * 1000000;
    place->timeout_ms = DEFAULT_OPENING_MS;
    if (READ_OPTION(&e, "--timeout", a->timeout, parse_seconds, &place->timeout_ms) != 0 ||
        READ_OPTION(&e, "--part", a->part, parse_dimensions, TORUS_MAX_DIMS, &plan->dimensions) !=
            0 ||
        READ_OPTION(&e, "--root", a->root, parse_number, TORUS_MAX_NODES - 1, &plan->root) != 0)
        return cli_fail(cli, &e);
    return EXIT_DONE;
}

/* ---- The group ------------------------------------------------------------------------------- */

/* Connects to the daemon unless that is done. */
static int connect_once(struct cli *cli)
{
    return cli->client == NULL ? cli_connect(cli) : EXIT_DONE;
}

/* Reads the dimensions of a group. */
static int read_dims(struct torus *t, const char *text, struct cli *cli)
{
    int code = strstr(text, "graph:") != NULL ? connect_once(cli) : EXIT_DONE;

    return code == EXIT_DONE ? daemon_torus_parse(cli, text, t) : code;
}

static int ask_rate(struct cli *cli, double *link_mbit)
{
    struct torus_status *status;
    struct torus_error failed;
    int code = connect_once(cli);

    if (code != EXIT_DONE)
        return code;
    if (torus_client_status(cli->client, &status, &failed) != 0)
        return cli_fail_client(cli, &failed);
    *link_mbit = status->link_mbit;
    torus_status_free(status);
    return EXIT_DONE;
}

static int open_group(struct place *place, struct cli *cli, const struct perf_arguments *a)
{
    struct torus_group_options o;
    struct torus_error failed;

    torus_group_options_init(&o);
    o.socket = cli->socket;
    o.name = a->name != NULL ? a->name : DEFAULT_NAME;
    o.timeout_ms = place->timeout_ms < UINT32_MAX ? (uint32_t)place->timeout_ms : UINT32_MAX;
    o.unchecked = a->unchecked;
    if (a->trace != NULL && setenv("TORUS_TRACE", "1", 1) != 0) /* this is how libtorus is told */
        return cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
    if (torus_group_open(&o, &place->whole, &failed) != 0)
        return cli_fail_client(cli, &failed);
    place->part = place->whole;
    if (a->timeout == NULL)
        torus_group_set_timeout(place->whole, 0);
    return read_dims(&place->torus, torus_group_dims(place->whole), cli);
}

static int open_part(struct place *place, struct cli *cli, const struct perf_plan *plan)
{
    struct torus_error failed;

    if (plan->dimensions >> place->torus.dims != 0)
        return cli_fail_usage(cli, "--part: the dimensions of %s are 0 to %u",
                              torus_group_dims(place->whole), place->torus.dims - 1);
    if (plan->dimensions != 0 &&
        torus_group_part(place->whole, plan->dimensions, &place->part, &failed) != 0) {
        place->part = place->whole;
        return cli_fail_client(cli, &failed);
    }
    if (plan->root >= torus_group_size(place->part))
        return cli_fail_usage(cli, "--root: the ranks are 0 to %u",
                              torus_group_size(place->part) - 1);
    return read_dims(&place->part_torus, torus_group_dims(place->part), cli);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Prints the rows at rank 0, also those of a run that has failed. */
static int print(struct place *place, const struct cli *cli, const struct perf_plan *plan,
                 json_t *rows)
{
    if (torus_group_rank(place->whole) != 0) {
        json_decref(rows);
        return EXIT_DONE;
    }
    const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
    json_t *rates = json_incref(json_object_get(last, "rates"));
    json_t *full = json_incref(json_object_get(last, "full_bits_per_second"));
    place->report = perf_value(plan, &place->torus, &place->part_torus, place->link_mbit, rows);
    if (rates != NULL && !cli->json) {
        (void)json_object_set(place->report, "rates", rates);
        (void)json_object_set(place->report, "full_bits_per_second", full);
        (void)link_rates_shorten(place->report);
    }
    const int code = cli_print(cli, json_incref(place->report), perf_view(rates != NULL));
    json_decref(rates);
    json_decref(full);
    return code;
}

/* Asks the daemon of rank 0, whose report it is, for the rates of links that the group now uses. */
static void ask_rates(const struct place *place, const struct cli *cli, const char *name,
                      const struct perf_plan *plan, struct perf_row *row)
{
    struct torus_status *status;

    if (torus_group_rank(place->whole) != 0 || torus_client_status(cli->client, &status, NULL) != 0)
        return;
    for (size_t i = 0; i < status->group_count; i++)
        if (strcmp(status->groups[i]->name, name) == 0)
            perf_row_set_rates(row, plan, &place->torus, place->part == place->whole,
                               status->groups[i]);
    torus_status_free(status);
}

static int measure(struct place *place, const struct cli *cli, const char *name,
                   const struct perf_plan *plan)
{
    json_t *rows = json_array();
    struct torus_error failed;
    uint64_t wrong = 0;
    int r = 0, code;

    for (size_t i = 0; i < plan->sizes && r == 0; i++) {
        struct perf_row row;
        r = perf_run(plan, i, place->whole, place->part, &place->part_torus, &row, &failed);
        if (r != 0)
            break;
        wrong += row.wrong;
        ask_rates(place, cli, name, plan, &row);
        (void)json_array_append_new(rows, perf_row_value(plan, &row, place->link_mbit));
        perf_row_release(&row);
    }
    if (r != 0 && (cli->json || json_array_size(rows) == 0)) {
        json_decref(rows);
        return cli_fail_client(cli, &failed);
    }
    code = print(place, cli, plan, rows);
    if (r != 0)
        return cli_fail_client(cli, &failed);
    if (wrong > 0)
        (void)fprintf(stderr, "torusctl: %llu %s arrived with wrong contents\n",
                      (unsigned long long)wrong,
                      text_plural(wrong, "block or element", "blocks or elements"));
    return wrong > 0 ? EXIT_FAILED : code;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct perf_arguments *a = arguments;
    struct perf_plan plan = {0};
    struct place place = {0};
    int code = resolve(&plan, &place, cli, a);

    if (code == EXIT_DONE)
        code = ask_rate(cli, &place.link_mbit);
    if (code == EXIT_DONE)
        code = open_group(&place, cli, a);
    if (code == EXIT_DONE)
        code = open_part(&place, cli, &plan);
    if (code == EXIT_DONE)
        code = measure(&place, cli, a->name != NULL ? a->name : DEFAULT_NAME, &plan);
    torus_group_close(place.whole);
    if (place.report != NULL && a->trace != NULL) {
        int traced = connect_once(cli);
        if (traced == EXIT_DONE)
            traced = trace_file_write(cli, a->trace, NULL, place.report);
        code = code == EXIT_DONE ? traced : code;
    }
    json_decref(place.report);
    return code;
}

const struct command command_perf = {
    .name = "perf",
    .summary = "Time a collective operation as programs call it",
    .usage = "OPERATION [--sizes SIZES] [--verify] [--trace FILE] [option...] [--json]",
    .options = options,
    .arguments_size = sizeof(struct perf_arguments),
    .needs_daemon = true,
    .run = run,
};
