/* torusctl simulate: simulates schedules on networks that only the papers have, and streaming on a torus in ticks. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/theory/broadcast_run.h"
#include "client/theory/formula.h"
#include "client/theory/multistage.h"
#include "client/theory/product_run.h"
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/algorithm.h"

/* An all-to-all broadcast in time (client/theory/broadcast_run.h), with the options and the output of
 * 'torusctl simulate'. */

struct broadcast_arguments {
    const char *ts, *tp, *tw, *block_size;
    const char *queue, *switching;
};

#define BROADCAST_OPTIONS(arguments, member)                                                       \
    {"--ts", "US", offsetof(struct arguments, member.ts),                                          \
     "with a broadcast: microseconds to start (default: 75)"},                                     \
        {"--tp", "US", offsetof(struct arguments, member.tp),                                      \
         "with a broadcast: microseconds to switch a message (default: 1)"},                       \
        {"--tw", "US", offsetof(struct arguments, member.tw),                                      \
         "with a broadcast: microseconds to transmit a byte (default: 0.011)"},                    \
        {"--block-size", "SIZE", offsetof(struct arguments, member.block_size),                    \
         "with a broadcast: bytes of a message (default: 1KiB)"},                                  \
        {"--queue", "NAME", offsetof(struct arguments, member.queue),                              \
         "with a broadcast: fifo, or longest, by which the message with the\n"                     \
         "longest path ahead goes first (default: fifo)"},                                         \
    {                                                                                              \
        "--switch", "PLACE", offsetof(struct arguments, member.switching),                         \
            "with a broadcast: input or output, the buffers that switch\n"                         \
            "(default: input)"                                                                     \
    }

#define BROADCAST_ONLY                                                                             \
    "--ts, --tp, --tw, --block-size, --queue and --switch are for --dims with an allgather "       \
    "algorithm, such as yangwang"

static const struct section broadcast_sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
           FIELD("algorithm"), FIELD("queue"), FIELD("switches at", "switch"),
           FIELD("startup, us", "startup_us"), FIELD("switching, us", "switching_us"),
           FIELD("transmission, us", "transmission_us"), FIELD("arrivals"),
           FIELD("on the busiest channel", "busiest"), FIELD("delay, us", "delay_us"),
           FIELD("(formula)", "formula_us"), FIELD("above the formula, us", "excess_us"),
           FIELD("lower bound, us", "bound_us")),
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
    if (READ_OPTION(&e, "--block-size", a->block_size, parse_size, &bytes) != 0 ||
        READ_OPTION(&e, "--queue", a->queue, parse_named, queue_names, &queue) != 0 ||
        READ_OPTION(&e, "--switch", a->switching, parse_named, switch_names, &place) != 0)
        return cli_fail(cli, &e);
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

    return json_checked(o, o == NULL || json_set_torus(o, t) != 0);
}

static bool broadcast_arguments_given(const struct broadcast_arguments *a)
{
    return a->ts != NULL || a->tp != NULL || a->tw != NULL || a->block_size != NULL ||
           a->queue != NULL || a->switching != NULL;
}

/* Runs an allgather algorithm, and prints what it took. Returns the exit code. */
static int simulated_broadcast(const struct cli *cli, const struct broadcast_arguments *a,
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
    return cli_print(cli, broadcast_value(t, algorithm, &model, &report), VIEW(broadcast_sections));
}

struct simulate_arguments {
    const char *network;
    const char *stages[MULTISTAGE_KINDS]; /* by kind: the number of inputs */
    const char *dims;
    const char *algorithm;
    const char *q;
    const char *square;
    bool rows;
    struct broadcast_arguments broadcast;
    struct link_arguments links;
};

static const struct option options[] = {
    {"--network", "NETWORK", offsetof(struct simulate_arguments, network),
     "run an exchange on a product such as 'complete:4 x complete:3'"},
    {"--banyan", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_BANYAN]),
     "run an exchange on a banyan network of N = 1, 2, 4 ... 1024 inputs"},
    {"--omega", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_OMEGA]),
     "run an exchange on an omega network"},
    {"--baseline", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_BASELINE]),
     "run an exchange on a baseline network"},
    {"--dims", "DIMS", offsetof(struct simulate_arguments, dims),
     "run a streaming exchange, or a broadcast of all nodes, on a torus: 5x7,\n"
     "3x4x5, 4x8m"},
    {"--algorithm", "NAME", offsetof(struct simulate_arguments, algorithm),
     "with --network: a1 or a2 (default: a2); with --dims: one of 'torusctl\n"
     "algorithms' (default: stream)"},
    {"--q", "N", offsetof(struct simulate_arguments, q),
     "with --dims and --algorithm cccube: in N packets"},
    RATE_OPTIONS(simulate_arguments, links),
    {"--square", "NAME", offsetof(struct simulate_arguments, square),
     "with --banyan, --omega and --baseline: iterated, products or shift\n"
     "(default: iterated)"},
    BROADCAST_OPTIONS(simulate_arguments, broadcast),
    {"--rows", NULL, offsetof(struct simulate_arguments, rows),
     "with --banyan, --omega and --baseline: also print the rows and the\n"
     "switch settings"},
    {0},
};

/* ---- Products -------------------------------------------------------------------------------- */

static const struct section product_sections[] = {
    RECORD(NULL, FIELD("network"), FIELD("nodes", "node_count"), FIELD("algorithm"),
           FIELD("blocks delivered", "delivered"), FIELD("hops of all blocks", "hops"),
           FIELD("messages"), FIELD("startups"), FIELD("transmission"),
           FIELD("(formula)", "formula_transmission"), FIELD("lower bound", "bound"),
           FIELD("efficiency", "efficiency", FORMAT_PERCENT)),
};

static json_t *product_value(const struct product *p, enum product_algorithm a,
                             const struct product_report *r)
{
    char text[PRODUCT_TEXT_SIZE];
    double bound = product_bound_single_hops(p);
    json_t *efficiency =
        r->transmission > 0 ? json_real(bound / (double)r->transmission) : json_null();

    return json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "simulated",
                     "product", "network", product_format(p, text), "node_count", (int)p->nodes,
                     "algorithm", product_algorithm_name(a), "delivered", json_count(r->blocks),
                     "hops", json_count(r->hops), "messages", json_count(r->messages), "startups",
                     json_count(r->steps), "transmission", json_count(r->transmission),
                     "formula_transmission", json_count(product_blocks(p, a)), "bound",
                     json_number(bound), "efficiency", efficiency);
}

static int parse_product_algorithm(const char *name, enum product_algorithm *a, struct error *e)
{
    static const enum product_algorithm known[] = {PRODUCT_A1, PRODUCT_A2};

    *a = PRODUCT_A2;
    for (size_t i = 0; name != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, product_algorithm_name(known[i])) == 0) {
            *a = known[i];
            return 0;
        }
    }
    return name == NULL
               ? 0
               : error_set(e, ERROR_USAGE, "'%.40s' is not for --network: give a1 or a2", name);
}

static int simulate_product(const struct cli *cli, const struct simulate_arguments *a)
{
    enum product_algorithm algorithm;
    struct product_report report;
    struct product p;
    struct error e;

    if (product_parse(&p, a->network, &e) != 0)
        return cli_fail_usage(cli, "--network: %s", e.text);
    if (parse_product_algorithm(a->algorithm, &algorithm, &e) != 0)
        return cli_fail_usage(cli, "--algorithm: %s", e.text);
    if (product_run(&p, algorithm, product_route, &report, &e) != 0)
        return e.code == ERROR_REFUSED ? cli_fail_usage(cli, "--network: %s", e.text)
                                       : cli_fail(cli, &e);
    return cli_print(cli, product_value(&p, algorithm, &report), VIEW(product_sections));
}

/* ---- Banyan, omega and baseline networks ----------------------------------------------------- */

static const struct section banyan_sections[] = {
    RECORD(NULL, FIELD("inputs"), FIELD("stages"), FIELD("square"),
           FIELD("messages delivered", "delivered"), FIELD("conflicts"), FIELD("steps"),
           FIELD("whole stages", "whole_stages")),
    TABLE("rows", FIELD("row"), FIELD("stages", "settings"),
          FIELD("outputs of inputs 0, 1, ...", "outputs")),
};

static json_t *row_value(enum multistage network, unsigned m, enum banyan_square s, uint32_t row)
{
    char settings[BANYAN_RUN_MOST_STAGES + 1];
    json_t *outputs = json_array();
    int r = 0;

    for (uint32_t input = 0; input < 1u << m; input++)
        r |= json_array_append_new(outputs, json_integer(banyan_entry(network, m, s, row, input)));
    if (r != 0) {
        json_decref(outputs);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:o}", "row", (int)row, "settings",
                     banyan_row_settings(network, m, s, row, settings), "outputs", outputs);
}

static json_t *banyan_value(enum multistage network, unsigned m, enum banyan_square s,
                            const struct banyan_report *report, bool rows)
{
    json_t *o =
        json_pack("{s:s, s:i, s:i, s:s, s:o, s:i, s:i, s:b}", "simulated", multistage_name(network),
                  "inputs", 1 << m, "stages", (int)m, "square", banyan_square_name(s), "delivered",
                  json_count(report->delivered), "conflicts", 0, "steps", (int)report->ticks,
                  "whole_stages", report->whole_stages);
    json_t *list = json_array();
    int r = 0;

    for (uint32_t row = 0; rows && row < 1u << m; row++)
        r |= json_array_append_new(list, row_value(network, m, s, row));
    if (rows)
        r |= json_object_set(o, "rows", list);
    json_decref(list);
    return json_checked(o, r);
}

static int parse_stages(const char *text, unsigned *m, struct error *e)
{
    uint32_t n;

    if (parse_number(text, 1u << BANYAN_RUN_MOST_STAGES, &n, e) != 0)
        return -1;
    for (*m = 0; *m <= BANYAN_RUN_MOST_STAGES; ++*m)
        if (1u << *m == n)
            return 0;
    return error_set(e, ERROR_USAGE, "%u is not a power of two", n);
}

static int parse_square(const char *name, enum banyan_square *s, struct error *e)
{
    for (*s = BANYAN_ITERATED; *s < BANYAN_SQUARES; ++*s)
        if (strcmp(name, banyan_square_name(*s)) == 0)
            return 0;
    return error_set(e, ERROR_USAGE, "'%.40s' is not a square: give iterated, products or shift",
                     name);
}

static int simulate_banyan(const struct cli *cli, const struct simulate_arguments *a,
                           enum multistage network)
{
    const char *name = multistage_name(network);
    enum banyan_square square = BANYAN_ITERATED;
    struct banyan_report report;
    struct error e;
    unsigned m;

    if (a->algorithm != NULL)
        return cli_fail_usage(cli,
                              "--algorithm: omit it with --%s; --square chooses the order of the "
                              "messages",
                              name);
    if (parse_stages(a->stages[network], &m, &e) != 0)
        return cli_fail_usage(cli, "--%s: %s", name, e.text);
    if (a->square != NULL && parse_square(a->square, &square, &e) != 0)
        return cli_fail_usage(cli, "--square: %s", e.text);
    if (banyan_run(network, m, square, &report, &e) != 0)
        return cli_fail(cli, &e);
    return cli_print(cli, banyan_value(network, m, square, &report, a->rows),
                     &(struct view){banyan_sections, 2});
}

/* ---- Streaming ------------------------------------------------------------------------------- */

static const struct section stream_sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
           FIELD("algorithm"), FIELD("rates"), FIELD("segments of a block", "segments"),
           FIELD("ticks"), FIELD("lower bound, ticks", "bound_ticks"),
           FIELD("efficiency", "efficiency", FORMAT_PERCENT), FIELD("block times", "block_times")),
};

static json_t *stream_value(const struct torus *t, const struct algorithm *a,
                            const struct damage *rates, double least, uint64_t ticks)
{
    uint64_t bound = simulate_bound(t, a), rated = (uint64_t)(least * a->segments);
    char text[1024];

    bound = rated > bound ? rated : bound;
    json_t *efficiency = ticks > 0 ? json_real((double)bound / (double)ticks) : json_null();
    json_t *o =
        json_pack("{s:s, s:i, s:s, s:i, s:o, s:o, s:o, s:o}", "simulated", "stream", "node_count",
                  (int)t->nodes, "algorithm", a->name, "segments", (int)a->segments, "ticks",
                  json_count(ticks), "bound_ticks", json_count(bound), "efficiency", efficiency,
                  "block_times", json_number((double)ticks / a->segments));

    int r = o == NULL || json_set_torus(o, t) != 0;
    if (r == 0 && rates != NULL)
        r = json_object_set_new(o, "rates",
                                json_string(damage_format_rates(rates, text, sizeof text)));
    return json_checked(o, r);
}

static int simulate_streaming(const struct cli *cli, const struct torus *t,
                              const struct algorithm *named)
{
    struct detour *found;
    struct error e;
    uint64_t ticks;
    int code;

    const struct algorithm *a = found_routes(named, t, &found, &e);
    if (a == NULL || simulate_stream(t, a, &ticks, &e) != 0)
        code = e.code == ERROR_REFUSED ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    else
        code = cli_print(cli, stream_value(t, a, NULL, 0, ticks), VIEW(stream_sections));
    detour_free(found);
    return code;
}

/* On channels of different rates: the routes that are found for them or, if an algorithm is named, its routes. */
static int simulate_rated(const struct cli *cli, const struct torus *t, const struct damage *rates,
                          const struct algorithm *named)
{
    struct detour *found = NULL;
    struct error e;
    uint64_t ticks;
    int code;

    if (detour_new(&found, rates, &e) != 0)
        return cli_fail(cli, &e);
    detour_find_bound(found);
    const struct algorithm *a = named != NULL ? named : detour_algorithm(found);
    if (simulate_stream_rated(t, a, rates, &ticks, &e) != 0)
        code = e.code == ERROR_REFUSED ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    else
        code = cli_print(cli, stream_value(t, a, rates, detour_bound(found), ticks),
                         VIEW(stream_sections));
    detour_free(found);
    return code;
}

/* ---- Tori ------------------------------------------------------------------------------------ */

static int simulate_torus(const struct cli *cli, const struct simulate_arguments *a)
{
    const char *name;
    const struct algorithm *algorithm;
    struct torus t;
    struct error e;

    if (torus_parse(&t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    name = spelled_algorithm(a->algorithm, a->q, &e);
    if (name == NULL && a->q != NULL)
        return cli_fail_usage(cli, "%s", e.text);
    algorithm = named_algorithm(name != NULL ? name : "stream", NULL, &e);
    if (algorithm == NULL)
        return cli_fail_usage(cli, "--algorithm: %s", e.text);
    if (algorithm->operation == OPERATION_ALLGATHER && link_arguments_given(&a->links))
        return cli_fail_usage(cli, "%s: %s is not an exchange", link_arguments_option(&a->links),
                              algorithm->name);
    if (algorithm->operation == OPERATION_ALLGATHER)
        return simulated_broadcast(cli, &a->broadcast, &t, algorithm);
    if (broadcast_arguments_given(&a->broadcast))
        return cli_fail_usage(cli, "%s is an exchange: " BROADCAST_ONLY, algorithm->name);
    if (!link_arguments_given(&a->links))
        return simulate_streaming(cli, &t, algorithm);
    struct damage rates;
    int code = link_arguments_read(cli, &a->links, &t, &rates);
    if (code == EXIT_DONE) {
        code = simulate_rated(cli, &t, &rates, name != NULL ? algorithm : NULL);
        damage_free(&rates);
    }
    return code;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct cli *cli, const void *arguments)
{
    const struct simulate_arguments *a = arguments;
    int given = (a->network != NULL) + (a->dims != NULL);
    enum multistage kind = MULTISTAGE_BANYAN;
    bool multistage = false;

    for (enum multistage k = MULTISTAGE_BANYAN; k < MULTISTAGE_KINDS; k++) {
        if (a->stages[k] == NULL)
            continue;
        kind = k;
        multistage = true;
        given++;
    }
    if (given != 1)
        return cli_fail_usage(cli,
                              "%s: give --network NETWORK, --banyan N, --omega N, --baseline N or "
                              "--dims DIMS",
                              given == 0 ? "nothing to simulate" : "one thing at a time");
    if (!multistage && (a->square != NULL || a->rows))
        return cli_fail_usage(cli, "--square and --rows are for --banyan, --omega and --baseline");
    if (a->dims == NULL && a->q != NULL)
        return cli_fail_usage(cli, "--q is for --dims");
    if (a->dims == NULL && link_arguments_given(&a->links))
        return cli_fail_usage(cli, "%s is for --dims", link_arguments_option(&a->links));
    if (a->dims == NULL && broadcast_arguments_given(&a->broadcast))
        return cli_fail_usage(cli, BROADCAST_ONLY);
    if (a->network != NULL)
        return simulate_product(cli, a);
    return multistage ? simulate_banyan(cli, a, kind) : simulate_torus(cli, a);
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "Simulate schedules on other networks, streaming, and broadcasts in time",
    .usage =
        "--network NETWORK [--algorithm a1|a2] [--json]\n"
        "       --banyan N|--omega N|--baseline N [--square NAME] [--rows] [--json]\n"
        "       --dims DIMS [--algorithm NAME [--q N]] [--rate LIST] [--link-rate LIST]\n"
        "                [--rates FILE] [--json]\n"
        "       --dims DIMS --algorithm NAME [--ts US] [--tp US] [--tw US] [--block-size SIZE]\n"
        "                [--queue NAME] [--switch PLACE] [--json]",
    .options = options,
    .arguments_size = sizeof(struct simulate_arguments),
    .run = run,
};
