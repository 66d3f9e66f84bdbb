/* torusctl predict: how long an exchange takes by the cost model, for the algorithms here and for
 * those that the papers compare them with. */
#include <stddef.h>
#include <string.h>

#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/prediction.h"

struct predict_arguments {
    const char *dims;
    const char *algorithm;
    const char *operation;
    const char *block_size;
    const char *ts, *tw, *rho, *tp;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct predict_arguments, dims),
     "the torus: 8x8, 6, 3x4x5; 4x8m where the 8 does not wrap"},
    {"--algorithm", "NAME", offsetof(struct predict_arguments, algorithm),
     "one of them; else, or with 'all', every one"},
    {"--operation", "WHAT", offsetof(struct predict_arguments, operation),
     "exchange or allgather: what 'all' stands for; else exchange"},
    {"--block-size", "SIZES", offsetof(struct predict_arguments, block_size),
     "with commas between: 64,4KiB; else 64,1KiB,16KiB"},
    {"--ts", "US", offsetof(struct predict_arguments, ts),
     "microseconds to start a message; else 75"},
    {"--tw", "US", offsetof(struct predict_arguments, tw), "to transmit a byte; else 0.011"},
    {"--rho", "US", offsetof(struct predict_arguments, rho),
     "to rearrange a byte in memory; else 0.014"},
    {"--tp", "US", offsetof(struct predict_arguments, tp),
     "for each hop of the longest leg of a step; else 0"},
    {0},
};

static const struct field torus_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"nodes", "nodes", FORMAT_PLAIN},
    {"operation", "operation", FORMAT_PLAIN},
    {0},
};
static const struct field parameter_fields[] = {
    {"ts, us a startup", "ts", FORMAT_PLAIN},
    {"tw, us a byte", "tw", FORMAT_PLAIN},
    {"rho, us a byte", "rho", FORMAT_PLAIN},
    {"tp, us a hop", "tp", FORMAT_PLAIN},
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
    {"not on it", "algorithm", FORMAT_PLAIN},
    {"because", "reason", FORMAT_PLAIN},
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

/* A parameter of the machine, or what it is by default. */
static int parse_parameter(const struct cli *cli, const char *name, const char *text,
                           double *parameter)
{
    struct error e;
    if (text == NULL || parse_micros(text, parameter, &e) == 0)
        return EXIT_DONE;
    return cli_fail_usage(cli, "%s: %s", name, e.text);
}

/* What was asked for. Returns 0, or the exit code after having said what is wrong with it. */
static int resolve(const struct cli *cli, const struct predict_arguments *a, struct prediction *p)
{
    enum operation wanted;
    struct error e;
    int code;

    if (a->dims == NULL)
        return cli_fail_usage(cli, "--dims is missing: give the torus, such as --dims 8x8");
    if (torus_parse(&p->torus, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (a->operation != NULL && parse_operation(a->operation, &p->operation, &e) != 0)
        return cli_fail_usage(cli, "--operation: %s", e.text);
    if (parse_sizes(a->block_size != NULL ? a->block_size : "64,1KiB,16KiB", p->size, MOST_SIZES,
                    &p->sizes, &e) != 0)
        return cli_fail_usage(cli, "--block-size: %s", e.text);
    if ((code = parse_parameter(cli, "--ts", a->ts, &p->parameters.ts)) != EXIT_DONE ||
        (code = parse_parameter(cli, "--tw", a->tw, &p->parameters.tw)) != EXIT_DONE ||
        (code = parse_parameter(cli, "--rho", a->rho, &p->parameters.rho)) != EXIT_DONE ||
        (code = parse_parameter(cli, "--tp", a->tp, &p->parameters.tp)) != EXIT_DONE)
        return code;
    if (a->algorithm == NULL || strcmp(a->algorithm, "all") == 0)
        return EXIT_DONE;
    p->algorithm = a->algorithm;
    wanted = p->operation;
    if (prediction_check_name(p->algorithm, &p->operation, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    if (a->operation != NULL && p->operation != wanted)
        return cli_fail_usage(cli, "--operation %s: %s is for %s", a->operation, a->algorithm,
                              operation_name(p->operation));
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    struct prediction p = {.parameters = cost_paragon};
    struct error e;
    int code = resolve(cli, arguments, &p);

    if (code != EXIT_DONE)
        return code;
    json_t *value = prediction_value(&p, &e);
    if (value == NULL && e.code == ERROR_REFUSED)
        return cli_fail_usage(cli, "%s", e.text);
    if (value == NULL)
        return cli_fail(cli, &e);
    return cli_print(cli, value, &(struct view){sections, sizeof sections / sizeof sections[0]});
}

extern const struct command command_predict;
const struct command command_predict = {
    .name = "predict",
    .summary = "Compare by the cost model how long algorithms take on a torus",
    .usage = "--dims DIMS [--algorithm NAME|all] [--block-size SIZE[,SIZE...]]\n"
             "       [--operation exchange|allgather] [--ts US] [--tw US] [--rho US] [--tp US] "
             "[--json]",
    .details =
        "The time for blocks of m bytes is\n"
        "\n"
        "  startups*ts + transmission*m*tw + rearranged*m*rho + hops*tp\n"
        "\n"
        "  startups       steps of the schedule\n"
        "  transmission   blocks, the sum over steps of the most on any channel\n"
        "  rearranged     blocks that a node moves in its memory between phases\n"
        "  hops           sum over steps of the longest leg\n"
        "\n"
        "The default parameters are those measured on the Intel Paragon, which the papers use. An\n"
        "all-port algorithm is priced for nodes that use all their ports at once, a one-port\n"
        "algorithm for nodes that send one message and receive one at a time.\n"
        "\n"
        "'counted by' says where an algorithm's counts come from. 'enumeration': every route was\n"
        "walked, as 'torusctl plan' does. 'formula': by the formula in its paper, where nothing\n"
        "here runs the algorithm or the torus is too large to walk all routes. Beside what was\n"
        "enumerated stands what the formula says, in the columns (formula). Rearranged blocks are\n"
        "always the paper's, and 0 where it counts none (then compare with --rho 0); so are the\n"
        "hops of formulas.\n"
        "\n"
        "Where transmission is above the formula and the critical path is not, the formula lets\n"
        "the rings of different dimensions run side by side without waiting for each other.\n"
        "\n"
        "examples:\n"
        "  torusctl predict --dims 16x16\n"
        "  torusctl predict --dims 128x128 --algorithm at2 --block-size 1KiB,64KiB\n"
        "  torusctl predict --dims 4x4 --ts 30 --tw 0.008 --rho 0   # about Gbit Ethernet\n",
    .options = options,
    .arguments_size = sizeof(struct predict_arguments),
    .run = run,
};
