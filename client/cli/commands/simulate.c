/* torusctl simulate: runs schedules in time, on tori and on networks that only the papers have. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/theory/broadcast_bound.h"
#include "client/theory/formula.h"
#include "client/theory/multistage.h"
#include "client/theory/product_run.h"
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/algorithm.h"

/* The machine that a schedule runs on, as the user gives it. */
struct machine_arguments {
    const char *ts, *tp, *tw, *block_size;
    const char *mode, *switching, *place, *ports, *queue, *buffer, *lanes, *slots;
    bool barrier;
};

struct simulate_arguments {
    const char *network;
    const char *stages[MULTISTAGE_KINDS]; /* by kind: the number of inputs */
    const char *dims;
    const char *algorithm;
    const char *import;
    const char *q;
    const char *radix;
    const char *square;
    bool rows;
    struct machine_arguments machine;
    struct link_arguments links;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct simulate_arguments, dims),
     "run a schedule on a torus, a mesh or a graph: 5x7, 3x4x5, 4x8m"},
    {"--algorithm", "NAME", offsetof(struct simulate_arguments, algorithm),
     "one of 'torusctl algorithms' (default: stream); with --network: a1 or\n"
     "a2 (default: a2)"},
    {"--q", "N", offsetof(struct simulate_arguments, q), "with --algorithm cccube: in N packets"},
    {"--import", "FILE", offsetof(struct simulate_arguments, import),
     "run the schedule in this file instead: output of plan --export torusd;\n"
     "or, with --dims, a file of MSCCL, ForestColl or TE-CCL"},
    {"--mode", "MODE", offsetof(struct simulate_arguments, machine.mode),
     "stepped or streaming (default: as the daemon runs the algorithm)"},
    {"--barrier", NULL, offsetof(struct simulate_arguments, machine.barrier),
     "stepped: all nodes wait for the end of each step"},
    {"--switching", "MODE", offsetof(struct simulate_arguments, machine.switching),
     "store, cut-through or wormhole (default: store when streaming,\n"
     "otherwise cut-through)"},
    {"--ports", "NUMBER", offsetof(struct simulate_arguments, machine.ports),
     "messages that a node sends, or receives, at a time: one, 2, 3 or all\n"
     "(default: the algorithm's)"},
    {"--queue", "NAME", offsetof(struct simulate_arguments, machine.queue),
     "which message goes first: fifo, longest (the one with the longest path\n"
     "ahead) or step (the one of the lowest step) (default: longest when\n"
     "streaming, otherwise step)"},
    {"--buffer", "SIZE", offsetof(struct simulate_arguments, machine.buffer),
     "wormhole: bytes that a node buffers after each channel (default: 8)"},
    {"--lanes", "NUMBER", offsetof(struct simulate_arguments, machine.lanes),
     "wormhole: 1, or 2 lanes of half the rate on each channel, of which rings\n"
     "use the second one after their last node (default: 1)"},
    {"--slots", "NUMBER", offsetof(struct simulate_arguments, machine.slots),
     "store, cut-through: messages that a node buffers after each channel\n"
     "(default: any number)"},
    {"--ts", "US", offsetof(struct simulate_arguments, machine.ts),
     "microseconds to start a message (default: 0)"},
    {"--tp", "US", offsetof(struct simulate_arguments, machine.tp),
     "microseconds to switch a message at each hop (default: 0)"},
    {"--tw", "US", offsetof(struct simulate_arguments, machine.tw),
     "microseconds to transmit a byte (default: 0.011)"},
    {"--block-size", "SIZE", offsetof(struct simulate_arguments, machine.block_size),
     "bytes of a block (default: 1KiB)"},
    {"--switch", "PLACE", offsetof(struct simulate_arguments, machine.place),
     "channel, input or output: what is busy while a message is switched, its\n"
     "channel or a switch at the input or output buffer (default: channel)"},
    RATE_OPTIONS(simulate_arguments, links),
    {"--network", "NETWORK", offsetof(struct simulate_arguments, network),
     "run an exchange on a product such as 'complete:4 x complete:3'"},
    {"--banyan", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_BANYAN]),
     "run an exchange on a banyan network of N inputs, a power of two up to\n"
     "1024 (with --radix R: of R)"},
    {"--omega", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_OMEGA]),
     "run an exchange on an omega network"},
    {"--baseline", "N", offsetof(struct simulate_arguments, stages[MULTISTAGE_BASELINE]),
     "run an exchange on a baseline network"},
    {"--radix", "R", offsetof(struct simulate_arguments, radix),
     "with --banyan, --omega and --baseline: switches of R x R (default: 2)"},
    {"--square", "NAME", offsetof(struct simulate_arguments, square),
     "with --banyan, --omega and --baseline: iterated, products or shift\n"
     "(default: iterated)"},
    {"--rows", NULL, offsetof(struct simulate_arguments, rows),
     "with --banyan, --omega and --baseline: also print the rows and the\n"
     "switch settings"},
    {0},
};

/* ---- Products -------------------------------------------------------------------------------- */

static const struct section product_sections[] = {
    RECORD(NULL, FIELD("network"), FIELD("nodes", "node_count"), FIELD("algorithm"),
           FIELD("blocks delivered", "delivered"), FIELD("hops of all blocks", "hops"),
           FIELD("messages arrived", "messages"), FIELD("startups"), FIELD("transmission"),
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
    RECORD(NULL, FIELD("inputs"), FIELD("radix"), FIELD("stages"), FIELD("square"),
           FIELD("messages delivered", "delivered"), FIELD("conflicts"), FIELD("steps"),
           FIELD("whole stages", "whole_stages")),
    TABLE("rows", FIELD("row"), FIELD("stages", "settings"),
          FIELD("outputs of inputs 0, 1, ...", "outputs")),
};

static json_t *row_value(const struct multistage *net, enum banyan_square s, uint32_t row)
{
    char settings[BANYAN_RUN_MOST_STAGES + 1];
    json_t *outputs = json_array();
    int r = 0;

    for (uint32_t input = 0; input < multistage_inputs(net); input++)
        r |= json_array_append_new(outputs, json_integer(banyan_entry(net, s, row, input)));
    if (r != 0) {
        json_decref(outputs);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:o}", "row", (int)row, "settings",
                     banyan_row_settings(net, s, row, settings), "outputs", outputs);
}

static json_t *banyan_value(const struct multistage *net, enum banyan_square s,
                            const struct banyan_report *report, bool rows)
{
    const uint32_t n = multistage_inputs(net);
    json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:s, s:o, s:i, s:i, s:b}", "simulated",
                          multistage_name(net->kind), "inputs", (int)n, "radix", (int)net->radix,
                          "stages", (int)net->stages, "square", banyan_square_name(s), "delivered",
                          json_count(report->delivered), "conflicts", 0, "steps",
                          (int)report->ticks, "whole_stages", report->whole_stages);
    json_t *list = json_array();
    int r = 0;

    for (uint32_t row = 0; rows && row < n; row++)
        r |= json_array_append_new(list, row_value(net, s, row));
    if (rows)
        r |= json_object_set(o, "rows", list);
    json_decref(list);
    return json_checked(o, r);
}

/* Sets the stages of a network with this number of inputs. */
static int parse_inputs(const char *text, struct multistage *net, struct error *e)
{
    uint32_t n;

    if (parse_number(text, BANYAN_RUN_MOST_INPUTS, &n, e) != 0)
        return -1;
    for (net->stages = 0; multistage_inputs(net) < n;)
        net->stages++;
    if (multistage_inputs(net) == n)
        return 0;
    return error_set(e, ERROR_USAGE, "%u is not a power of %s", n,
                     net->radix == 2 ? "two" : "the radix");
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
                           enum multistage_kind kind)
{
    const char *name = multistage_name(kind);
    struct multistage net = {.kind = kind, .radix = 2};
    enum banyan_square square = BANYAN_ITERATED;
    struct banyan_report report;
    struct error e;

    if (a->algorithm != NULL)
        return cli_fail_usage(cli,
                              "--algorithm: omit it with --%s; --square chooses the order of the "
                              "messages",
                              name);
    if (READ_OPTION(&e, "--radix", a->radix, parse_number, BANYAN_RUN_MOST_INPUTS, &net.radix) != 0)
        return cli_fail(cli, &e);
    if (net.radix < 2)
        return cli_fail_usage(cli, "--radix %u: give 2 or more", net.radix);
    if (parse_inputs(a->stages[kind], &net, &e) != 0)
        return cli_fail_usage(cli, "--%s: %s", name, e.text);
    if (a->square != NULL && parse_square(a->square, &square, &e) != 0)
        return cli_fail_usage(cli, "--square: %s", e.text);
    if (banyan_run(&net, square, &report, &e) != 0)
        return cli_fail(cli, &e);
    return cli_print(cli, banyan_value(&net, square, &report, a->rows),
                     &(struct view){banyan_sections, 2});
}

/* ---- Schedules in time ----------------------------------------------------------------------- */

static const char *const switching_names[] = {"store", "cut-through", "wormhole", NULL};
static const char *const queue_names[] = {"fifo", "longest", "step", NULL};
static const char *const place_names[] = {"channel", "input", "output", NULL};

#define PICOSECONDS 1e6 /* in a microsecond: whole, so that equal times are equal */

/* A schedule, and what it runs on. */
struct schedule_run {
    const struct torus *torus;
    const struct algorithm *algorithm;
    struct simulation simulation;
    uint64_t block; /* time to transmit a block, in picoseconds */
    double least;   /* lower bound in blocks on channels of different rates; otherwise 0 */
};

static uint64_t picoseconds(double micros)
{
    double most = (double)SIMULATE_TIME_MOST * IMPORTED_SEGMENTS_MOST;
    return (uint64_t)llround(fmin(micros * PICOSECONDS, most));
}

static bool machine_arguments_given(const struct machine_arguments *a)
{
    return a->ts != NULL || a->tp != NULL || a->tw != NULL || a->block_size != NULL ||
           a->mode != NULL || a->switching != NULL || a->place != NULL || a->ports != NULL ||
           a->queue != NULL || a->buffer != NULL || a->lanes != NULL || a->slots != NULL ||
           a->barrier;
}

static int parse_ports(const char *text, uint32_t *ports, struct error *e)
{
    *ports = strcmp(text, "all") == 0 ? 0 : 1;
    if (*ports == 0 || strcmp(text, "one") == 0)
        return 0;
    if (parse_number(text, TORUS_MAX_PORTS, ports, e) != 0 || *ports == 0)
        return error_set(e, ERROR_USAGE, "'%.40s' is not a number of ports: give one, 2, 3 or all",
                         text);
    return 0;
}

/* The times of the machine. */
static int read_times(const struct cli *cli, const struct machine_arguments *a,
                      struct schedule_run *run)
{
    double ts = 0, tp = 0, tw = cost_paragon.tw;
    uint64_t bytes = 1024, buffer = 8;
    struct error e;
    int code;

    if ((code = cli_read_micros(cli, "--ts", a->ts, &ts)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tp", a->tp, &tp)) != EXIT_DONE ||
        (code = cli_read_micros(cli, "--tw", a->tw, &tw)) != EXIT_DONE)
        return code;
    if (READ_OPTION(&e, "--block-size", a->block_size, parse_size, &bytes) != 0 ||
        READ_OPTION(&e, "--buffer", a->buffer, parse_size, &buffer) != 0)
        return cli_fail(cli, &e);
    run->simulation.timed.startup = picoseconds(ts);
    run->simulation.switching = picoseconds(tp);
    run->simulation.segment = picoseconds(tw * (double)bytes / run->algorithm->segments);
    run->simulation.timed.buffer = picoseconds(tw * (double)buffer);
    run->block = run->simulation.segment * run->algorithm->segments;
    return EXIT_DONE;
}

static int check_machine(const struct schedule_run *run, const struct machine_arguments *a,
                         struct error *e)
{
    const struct simulation *s = &run->simulation;
    const bool worms = s->timed.switching == TIMED_WORMHOLE;
    const struct refusal refusals[] = {
        REFUSAL(s->streaming && a->barrier, "--barrier: streaming has no steps"),
        REFUSAL(!worms && a->buffer != NULL, "--buffer is for --switching wormhole"),
        REFUSAL(!worms && a->lanes != NULL, "--lanes is for --switching wormhole"),
        REFUSAL(s->lanes < 1 || s->lanes > 2, "--lanes: give 1 or 2"),
        REFUSAL(worms && a->slots != NULL, "--slots is for --switching store and cut-through"),
        REFUSAL(
            s->place != SIMULATE_IN_CHANNEL && (!s->streaming || s->timed.switching != TIMED_STORE),
            "--switch %s is for --mode streaming with --switching store", place_names[s->place]),
        REFUSAL(s->place != SIMULATE_IN_CHANNEL && a->slots != NULL,
                "--slots and --switch %s: give "
                "one or the other",
                place_names[s->place]),
        {0}};

    return refuse(refusals, e);
}

/* Reads the machine. Returns EXIT_DONE, or another exit code after printing the reason. */
static int read_machine(const struct cli *cli, const struct machine_arguments *a,
                        struct schedule_run *run)
{
    const struct algorithm *algorithm = run->algorithm;
    struct simulation *s = &run->simulation;
    enum torus_mode mode = algorithm->streaming ? TORUS_MODE_STREAMING : TORUS_MODE_STEPPED;
    struct error e;

    if (READ_OPTION(&e, "--mode", a->mode, parse_mode, &mode) != 0)
        return cli_fail(cli, &e);
    s->streaming = mode == TORUS_MODE_STREAMING;
    size_t switching = s->streaming ? TIMED_STORE : TIMED_CUT_THROUGH;
    size_t queue = s->streaming ? TIMED_LONGEST : TIMED_STEP, place = SIMULATE_IN_CHANNEL;
    s->timed.ports = algorithm->port_model == PORT_MODEL_ONE ? 1 : algorithm->ports;
    s->timed.barrier = a->barrier;
    s->lanes = 1;
    if (READ_OPTION(&e, "--switching", a->switching, parse_named, switching_names, &switching) !=
            0 ||
        READ_OPTION(&e, "--queue", a->queue, parse_named, queue_names, &queue) != 0 ||
        READ_OPTION(&e, "--switch", a->place, parse_named, place_names, &place) != 0 ||
        READ_OPTION(&e, "--ports", a->ports, parse_ports, &s->timed.ports) != 0 ||
        READ_OPTION(&e, "--lanes", a->lanes, parse_number, 2, &s->lanes) != 0 ||
        READ_OPTION(&e, "--slots", a->slots, parse_number, 1000000, &s->timed.slots) != 0)
        return cli_fail(cli, &e);
    s->timed.switching = (enum timed_switching)switching;
    s->timed.queue = (enum timed_queue)queue;
    s->place = (enum simulate_place)place;
    if (check_machine(run, a, &e) != 0)
        return cli_fail(cli, &e);
    return read_times(cli, a, run);
}

/* ---- What is known about it beside the run ----------------------------------------------------- */

/* The delay by the formula in the paper, in picoseconds; below 0 if no formula with overlapped switching
 * covers the torus. */
static double formula_delay(const struct schedule_run *run)
{
    const struct simulation *s = &run->simulation;
    const struct formula *f = formula_find(run->algorithm->name);
    struct cost_parameters p = {
        .ts = (double)s->timed.startup, .tp = (double)s->switching, .tw = (double)run->block};
    struct cost_counts counts;

    if (!s->streaming || s->timed.switching != TIMED_STORE || s->timed.ports != 0 || f == NULL ||
        formula_counts(f, run->torus, &counts, NULL) != 0 || !counts.overlapped)
        return -1;
    return cost_price(&counts, &p, 1).total;
}

/* Blocks that some channel, or port, carries one after another. */
static double bound_blocks(const struct schedule_run *run)
{
    const struct product p = product_of_torus(run->torus);
    const bool stores =
        run->simulation.timed.switching == TIMED_STORE || run->algorithm->single_hops;
    const uint32_t ports = run->simulation.timed.ports, segments = run->algorithm->segments;

    if (run->algorithm->operation == OPERATION_EXCHANGE) {
        if (ports == 1 && run->least == 0)
            return stores ? product_bound_single_hops(&p) : product_bound_one_port(&p);
        return fmax(run->least, product_bound_all_port(&p));
    }
    double links = torus_fewest_links(run->torus);
    if (ports != 0)
        links = fmin(links, ports);
    return ceil((run->torus->nodes - 1) * (double)segments / links) / segments;
}

/* A lower bound on the time, in picoseconds: a startup, a switching, and what a channel has to carry; or what a block
 * needs from one end of the network to the other if it is stored at each hop. Theorem 1 of Yang and Wang. */
static double bound_time(const struct schedule_run *run)
{
    const struct simulation *s = &run->simulation;
    const double hops = s->timed.switching == TIMED_STORE ? torus_diameter(run->torus) : 1;

    if (run->torus->nodes == 1)
        return 0;
    return (double)s->timed.startup + (double)s->switching +
           fmax(bound_blocks(run) * (double)run->block, hops * (double)s->segment);
}

/* ---- Printing ---------------------------------------------------------------------------------- */

static const struct section schedule_sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
           FIELD("algorithm"), FIELD("operation"), FIELD("rates"), FIELD("mode"),
           FIELD("switching"), FIELD("switches at", "switch"), FIELD("lanes"), FIELD("ports"),
           FIELD("queue"), FIELD("barrier"), FIELD("segments of a block", "segments"),
           FIELD("messages arrived", "messages"), FIELD("waits for others", "waited"),
           FIELD("blocks, busiest channel", "busiest"), FIELD("startup, us", "startup_us"),
           FIELD("switching, us", "switching_us"), FIELD("a block, us", "block_us"),
           FIELD("time, us", "time_us"), FIELD("(formula)", "formula_us"),
           FIELD("above the formula, us", "excess_us"), FIELD("lower bound, us", "bound_us"),
           FIELD("block times", "block_times"), FIELD("efficiency", "efficiency", FORMAT_PERCENT),
           FIELD("deadlock, messages", "deadlock_messages")),
    {.layout = LAYOUT_TABLE,
     .key = "deadlock",
     .title = "each message waits for the next one, the last of the circle for the first",
     FIELDS(FIELD("step"), FIELD("message"), FIELD("waits for", "waits_for"))},
};

static json_t *micros(double picos)
{
    return picos < 0 ? json_null() : json_number(picos / PICOSECONDS);
}

static json_t *deadlock_value(const struct torus *t, const struct simulate_report *r)
{
    json_t *list = json_array();
    char port[TORUS_PORT_NAME_SIZE];
    int rc = 0;

    for (uint32_t i = 0; i < r->timed.circle && i < TIMED_CIRCLE_MOST; i++) {
        const struct simulate_wait *w = &r->wait[i];
        rc |= json_array_append_new(
            list, json_pack("{s:i, s:o, s:o}", "step", (int)w->step, "message",
                            json_sprintf("%u -> %u", w->source, w->destination), "waits_for",
                            json_sprintf("port %s of node %u",
                                         torus_port_name(t, w->node, w->port, port), w->node)));
    }
    return json_checked(list, rc);
}

static int set_machine(json_t *o, const struct schedule_run *run)
{
    const struct simulation *s = &run->simulation;
    const uint32_t ports = s->timed.ports;

    return json_object_set_new(o, "mode", json_string(s->streaming ? "streaming" : "stepped")) |
           json_object_set_new(o, "switching", json_string(switching_names[s->timed.switching])) |
           json_object_set_new(o, "switch", json_string(place_names[s->place])) |
           json_object_set_new(o, "ports", ports == 0 ? json_string("all") : json_integer(ports)) |
           json_object_set_new(o, "queue", json_string(queue_names[s->timed.queue])) |
           (s->lanes > 1 ? json_object_set_new(o, "lanes", json_integer(s->lanes)) : 0) |
           json_object_set_new(o, "barrier", json_boolean(s->timed.barrier)) |
           json_object_set_new(o, "startup_us", micros((double)s->timed.startup)) |
           json_object_set_new(o, "switching_us", micros((double)s->switching)) |
           json_object_set_new(o, "block_us", micros((double)run->block));
}

static int set_times(json_t *o, const struct schedule_run *run, const struct simulate_report *r)
{
    const double time = (double)r->timed.time, bound = bound_time(run),
                 formula = formula_delay(run);
    const bool ended = r->timed.circle == 0;
    int rc = json_object_set_new(o, "time_us", ended ? micros(time) : json_null()) |
             json_object_set_new(o, "block_times",
                                 ended && run->block > 0 ? json_number(time / (double)run->block)
                                                         : json_null()) |
             json_object_set_new(o, "bound_us", micros(bound)) |
             json_object_set_new(o, "efficiency",
                                 ended && time > 0 ? json_real(bound / time) : json_null());
    if (formula >= 0)
        rc |= json_object_set_new(o, "formula_us", micros(formula)) |
              json_object_set_new(o, "excess_us", json_number((time - formula) / PICOSECONDS));
    if (!ended)
        rc |= json_object_set_new(o, "deadlock_messages", json_integer(r->timed.circle)) |
              json_object_set_new(o, "deadlock", deadlock_value(run->torus, r));
    return rc;
}

static json_t *schedule_value(const struct schedule_run *run, const struct simulate_report *r)
{
    const struct algorithm *a = run->algorithm;
    char text[1024];
    json_t *o = json_pack("{s:s, s:i, s:s, s:s, s:i, s:o, s:o, s:o}", "simulated", "schedule",
                          "node_count", (int)run->torus->nodes, "algorithm", a->name, "operation",
                          schedule_operation_name(a->operation), "segments", (int)a->segments,
                          "messages", json_count(r->messages), "waited", json_count(r->waited),
                          "busiest", json_number((double)r->timed.busiest / a->segments));

    int rc = o == NULL || json_set_torus(o, run->torus) != 0;
    if (rc == 0)
        rc = set_machine(o, run) | set_times(o, run, r);
    if (rc == 0 && run->simulation.rates != NULL)
        rc = json_object_set_new(
            o, "rates", json_string(damage_format_rates(run->simulation.rates, text, sizeof text)));
    return json_checked(o, rc);
}

/* Runs the schedule, and prints what it took. */
static int run_schedule(const struct cli *cli, const struct machine_arguments *a,
                        struct schedule_run *run)
{
    struct simulate_report report;
    struct error e;
    int code = read_machine(cli, a, run);

    if (code != EXIT_DONE)
        return code;
    if (simulate_schedule(run->torus, run->algorithm, &run->simulation, &report, &e) != 0)
        return e.code == ERROR_REFUSED ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    code = cli_print(cli, schedule_value(run, &report), VIEW(schedule_sections));
    return code == EXIT_DONE && report.timed.circle > 0 ? EXIT_FAILED : code;
}

/* ---- Which schedule ---------------------------------------------------------------------------- */

/* An algorithm; `stream` and `disjoint` are found where they have no rule. */
static int simulate_named(const struct cli *cli, const struct simulate_arguments *a,
                          const struct torus *t, const struct algorithm *named)
{
    struct schedule_run run = {.torus = t};
    struct detour *found;
    struct error e;

    run.algorithm = found_routes(named, t, &found, &e);
    if (run.algorithm == NULL)
        return e.code == ERROR_REFUSED ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    int code = run_schedule(cli, &a->machine, &run);
    detour_free(found);
    return code;
}

/* On channels of different rates: the routes that are found for them or, if an algorithm is named, its routes. */
static int simulate_rated(const struct cli *cli, const struct simulate_arguments *a,
                          const struct torus *t, const struct damage *rates,
                          const struct algorithm *named)
{
    struct schedule_run run = {.torus = t, .simulation.rates = rates};
    struct detour *found = NULL;
    struct error e;

    if (detour_new(&found, rates, &e) != 0)
        return cli_fail(cli, &e);
    detour_find_bound(found);
    run.algorithm = named != NULL ? named : detour_algorithm(found);
    run.least = detour_bound(found);
    int code = run_schedule(cli, &a->machine, &run);
    detour_free(found);
    return code;
}

static int simulate_imported(const struct cli *cli, const struct simulate_arguments *a)
{
    struct schedule_file file = {0};
    struct torus t;
    struct error e;
    int code;

    if (a->algorithm != NULL || a->q != NULL)
        return cli_fail_usage(cli, "--import and %s: give one or the other",
                              a->algorithm != NULL ? "--algorithm" : "--q");
    if (a->dims != NULL && torus_parse(&t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (schedule_file_read(&file, a->import, a->dims != NULL ? &t : NULL, &e) != 0)
        return cli_fail(cli, &e);
    struct schedule_run run = {.torus = imported_torus(file.imported),
                               .algorithm = imported_algorithm(file.imported)};
    struct damage rates = {0};
    code = link_arguments_given(&a->links) ? link_arguments_read(cli, &a->links, run.torus, &rates)
                                           : EXIT_DONE;
    if (code == EXIT_DONE)
        code = rates.rate != NULL ? simulate_rated(cli, a, run.torus, &rates, run.algorithm)
                                  : run_schedule(cli, &a->machine, &run);
    damage_free(&rates);
    schedule_file_free(&file);
    return code;
}

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
    if (!link_arguments_given(&a->links))
        return simulate_named(cli, a, &t, algorithm);
    struct damage rates;
    int code = link_arguments_read(cli, &a->links, &t, &rates);
    if (code == EXIT_DONE) {
        code = simulate_rated(cli, a, &t, &rates, name != NULL ? algorithm : NULL);
        damage_free(&rates);
    }
    return code;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct cli *cli, const void *arguments)
{
    const struct simulate_arguments *a = arguments;
    const bool on_links = a->dims != NULL || a->import != NULL;
    int given = (a->network != NULL) + on_links;
    enum multistage_kind kind = MULTISTAGE_BANYAN;
    bool multistage = false;

    for (enum multistage_kind k = MULTISTAGE_BANYAN; k < MULTISTAGE_KINDS; k++) {
        if (a->stages[k] == NULL)
            continue;
        kind = k;
        multistage = true;
        given++;
    }
    if (given != 1)
        return cli_fail_usage(cli,
                              "%s: give --dims DIMS, --import FILE, --network NETWORK, --banyan N, "
                              "--omega N or --baseline N",
                              given == 0 ? "nothing to simulate" : "one thing at a time");
    if (!multistage && (a->radix != NULL || a->square != NULL || a->rows))
        return cli_fail_usage(
            cli, "--radix, --square and --rows are for --banyan, --omega and --baseline");
    if (!on_links && a->q != NULL)
        return cli_fail_usage(cli, "--q is for --dims");
    if (!on_links && link_arguments_given(&a->links))
        return cli_fail_usage(cli, "%s is for --dims", link_arguments_option(&a->links));
    if (!on_links && machine_arguments_given(&a->machine))
        return cli_fail_usage(cli, "--ts, --ports and what else tells the machine are for --dims "
                                   "and --import");
    if (a->network != NULL)
        return simulate_product(cli, a);
    if (multistage)
        return simulate_banyan(cli, a, kind);
    return a->import != NULL ? simulate_imported(cli, a) : simulate_torus(cli, a);
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "Simulate schedules in time, on tori and on other networks",
    .usage = "--dims DIMS [--algorithm NAME [--q N]] | --import FILE\n"
             "       [--mode MODE] [--barrier] [--switching MODE] [--ports NUMBER] [--queue NAME]\n"
             "       [--buffer SIZE] [--lanes NUMBER] [--slots NUMBER] [--ts US] [--tp US]\n"
             "       [--tw US] [--block-size SIZE] [--switch PLACE] [--rate LIST]\n"
             "       [--link-rate LIST] [--rates FILE] [--json]\n"
             "       --network NETWORK [--algorithm a1|a2] [--json]\n"
             "       --banyan N|--omega N|--baseline N [--radix R] [--square NAME] [--rows]\n"
             "       [--json]",
    .options = options,
    .arguments_size = sizeof(struct simulate_arguments),
    .run = run,
};
