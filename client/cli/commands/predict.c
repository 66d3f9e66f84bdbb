/* torusctl predict: predicts the times of exchanges by the cost model, for the implemented algorithms and for those
 * that the papers compare them with. */
#include <stddef.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/algorithms/prediction.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"

struct predict_arguments {
    const char *dims;
    const char *algorithm;
    const char *q;
    const char *schedule;
    const char *operation;
    const char *block_size;
    const char *ts, *tw, *rho, *tp;
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
    {0},
};

static const struct field torus_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"nodes", "node_count", FORMAT_PLAIN},
    {"operation", "operation", FORMAT_PLAIN},
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

static int parse_operation(const char *text, enum operation *operation, struct error *e)
{
    static const enum operation known[] = {OPERATION_EXCHANGE, OPERATION_ALLGATHER};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text, operation_name(known[i])) == 0) {
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
        return e.code == ERROR_USAGE ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
    p->torus = *imported_torus(file->imported);
    p->schedule = imported_algorithm(file->imported);
    p->operation = p->schedule->operation;
    return EXIT_DONE;
}

/* Reads the arguments. Returns EXIT_DONE, or another exit code after printing the reason. */
static int resolve(const struct cli *cli, const struct predict_arguments *a, struct prediction *p,
                   struct schedule_file *file)
{
    enum operation wanted;
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
                              operation_name(p->operation));
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
    return cli_print(cli, value, &(struct view){sections, sizeof sections / sizeof sections[0]});
}

static int run(struct cli *cli, const void *arguments)
{
    struct prediction p = {.parameters = cost_paragon};
    struct schedule_file file = {0};
    int code = resolve(cli, arguments, &p, &file);

    if (code == EXIT_DONE && p.schedule != NULL && p.operation != p.schedule->operation)
        code = cli_fail_usage(cli, "--schedule: %s is for operation %s, not %s", p.schedule->name,
                              operation_name(p.schedule->operation), operation_name(p.operation));
    if (code == EXIT_DONE)
        code = predict(cli, &p);
    schedule_file_free(&file);
    return code;
}

extern const struct command command_predict;
const struct command command_predict = {
    .name = "predict",
    .summary = "Compare the times of algorithms on a torus by the cost model",
    .usage = "--dims DIMS [--algorithm NAME|all [--q N|best]] [--schedule FILE]\n"
             "       [--block-size SIZE[,SIZE...]] [--operation exchange|allgather]\n"
             "       [--ts US] [--tw US] [--rho US] [--tp US] "
             "[--json]",
    .details =
        "The time for blocks of m bytes is\n"
        "\n"
        "  startups*ts + transmission*m*tw + rearranged*m*rho + hops*tp\n"
        "\n"
        "  startups       steps of the schedule\n"
        "  transmission   blocks on the busiest channel, summed over the steps\n"
        "  rearranged     blocks that a node moves in its memory between phases\n"
        "  hops           hops of the longest leg of each step, summed over the steps\n"
        "\n"
        "The default parameters are those of the Intel Paragon, which the papers use. The price\n"
        "of an all-port algorithm is for nodes that use all their ports at once. The price of a\n"
        "one-port algorithm is for nodes that send one message and receive one message at a\n"
        "time.\n"
        "\n"
        "'counted by' says where the counts come from. An 'enumeration' follows every route, as\n"
        "'torusctl plan' does. A 'formula' comes from the paper: it is used if the algorithm is\n"
        "not implemented here, or if the torus is too large to follow all routes. If routes were\n"
        "enumerated, the columns '(formula)' show the counts of the formula beside them.\n"
        "Rearranged blocks are always counted as in the paper, or 0 if the paper counts none\n"
        "(then compare with --rho 0). The hops of formulas are also counted as in the paper.\n"
        "\n"
        "--algorithm cccube --q 5, or cccube-q5, is cccube in 5 packets. Any number up to half\n"
        "of the nodes is possible. --q best, or cccube-best, selects for each block size the\n"
        "number with the shortest time (on more than 256 nodes: among 1 to 128 packets and the\n"
        "powers of two).\n"
        "\n"
        "If the transmission is above the formula but the critical path is not, the formula\n"
        "assumes that rings of different dimensions proceed without waiting for each other.\n"
        "\n"
        "examples:\n"
        "  torusctl predict --dims 16x16\n"
        "  torusctl predict --dims 128x128 --algorithm at2 --block-size 1KiB,64KiB\n"
        "  torusctl predict --dims 8x8 --algorithm cccube --q best --block-size 64,1KiB\n"
        "  torusctl predict --dims 4x4 --ts 30 --tw 0.008 --rho 0   # about Gbit Ethernet\n",
    .options = options,
    .arguments_size = sizeof(struct predict_arguments),
    .run = run,
};
