/* torusctl plan: what an algorithm's schedule costs on a torus, and how it goes. */
#include <stddef.h>

#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/named_algorithm.h"
#include "client/cli/plan_picture.h"
#include "client/cli/plan_report.h"
#include "client/cli/routes.h"

struct plan_arguments {
    const char *dims;
    const char *algorithm;
    const char *node;
    bool routes;
    struct picture_arguments picture;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct plan_arguments, dims),
     "the torus: 8x8, 6, 3x4x5; 4x8m if the 8 does not wrap"},
    {"--algorithm", "NAME", offsetof(struct plan_arguments, algorithm),
     "one of 'torusctl algorithms' (default: one that accepts the torus)"},
    {"--node", "RANK", offsetof(struct plan_arguments, node),
     "also show what this node sends, relays and receives, by step"},
    {"--routes", NULL, offsetof(struct plan_arguments, routes),
     "print the route of every block instead, one JSON object per line"},
    {"--svg", "FILE", offsetof(struct plan_arguments, picture.file),
     "also draw it into FILE, a torus for each step; '-' is standard output"},
    {"--steps", "STEPS", offsetof(struct plan_arguments, picture.steps),
     "draw only these steps: 3, or 0-7"},
    {"--source", "RANK", offsetof(struct plan_arguments, picture.source),
     "draw only the blocks of this source"},
    {"--load", NULL, offsetof(struct plan_arguments, picture.load),
     "draw what every channel carries in all, instead of the steps"},
    {0},
};

static const struct field schedule_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"algorithm", "algorithm", FORMAT_PLAIN},
    {"ports", "port_model", FORMAT_PLAIN},
    {"startups", "startups", FORMAT_PLAIN},
    {"transmission", "transmission", FORMAT_PLAIN},
    {"critical path", "critical_path", FORMAT_PLAIN},
    {"lower bound", "bound", FORMAT_PLAIN},
    {"bound of", "bound_of", FORMAT_PLAIN},
    {"efficiency", "efficiency", FORMAT_PERCENT},
    {"contended steps", "contended_steps", FORMAT_PLAIN},
    {"port model kept", "port_model_kept", FORMAT_PLAIN},
    {"minimal routes", "minimal", FORMAT_PLAIN},
    {"node", "node", FORMAT_PLAIN},
    {"most in transit", "peak_transit", FORMAT_PLAIN},
    {0},
};
static const struct field message_fields[] = {
    {"step", "step", FORMAT_PLAIN},     {"node", "does", FORMAT_PLAIN},
    {"port", "port", FORMAT_PLAIN},     {"leg", "hops", FORMAT_PLAIN},
    {"blocks", "blocks", FORMAT_PLAIN}, {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_RECORD, .fields = schedule_fields},
    {.layout = LAYOUT_TABLE, .key = "messages", .fields = message_fields},
};

/* The algorithm if none was named: an optimal one if there is one. */
static const struct algorithm *shown_first(const struct torus *t)
{
    static const char *const names[] = {"at2", "ar"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (algorithm_find(names[i])->accepts(t, NULL) == 0)
            return algorithm_find(names[i]);
    return algorithm_find("direct"); /* accepts any */
}

/* Reads the torus and the algorithm from the arguments. Returns 0, or the exit code after having
 * printed what is wrong with them. */
static int resolve(const struct cli *cli, const struct plan_arguments *a, struct torus *t,
                   const struct algorithm **algorithm)
{
    struct error e;

    if (a->dims == NULL)
        return cli_fail_usage(cli, "--dims is missing: give the torus, such as --dims 8x8");
    if (torus_parse(t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (a->algorithm == NULL)
        *algorithm = shown_first(t);
    else
        *algorithm = named_algorithm(a->algorithm, NULL, &e);
    if (*algorithm == NULL || algorithm_accepts(*algorithm, t, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    return EXIT_DONE;
}

/* Adds what one node does. */
static int add_node(json_t *o, const struct torus *t, const struct algorithm *algorithm,
                    uint32_t rank, struct error *e)
{
    struct plan plan;
    int r = 0;

    if (plan_build(&plan, t, algorithm, rank, e) != 0)
        return -1;
    r |= json_object_set_new(o, "node", json_integer(rank));
    r |= json_object_set_new(o, "peak_transit", json_integer(plan.peak_transit));
    r |= plan_set_messages(o, t, &plan);
    plan_free(&plan);
    return r == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the plan");
}

static int print_plan(const struct cli *cli, const struct plan_arguments *a, const struct torus *t,
                      const struct algorithm *algorithm, const uint32_t *rank)
{
    struct schedule_report report;
    struct error e;
    json_t *o;
    int r = 0;

    if (schedule_verify(t, algorithm, &report, &e) != 0)
        return cli_fail(cli, &e);
    int code = plan_picture(cli, &a->picture, t, algorithm, &report, rank);
    if (code != EXIT_DONE || plan_picture_is_output(&a->picture))
        return code;
    o = json_object();
    r |= json_set_torus(o, t);
    r |= json_object_set_new(o, "algorithm", json_string(algorithm->name));
    r |= json_object_set_new(o, "port_model", json_string(port_model_name(algorithm->port_model)));
    r |= plan_set_report(o, algorithm, &report);
    if (!cli->json)
        r |= plan_set_efficiency(o, algorithm, &report);
    if (r == 0 && rank != NULL && add_node(o, t, algorithm, *rank, &e) != 0) {
        json_decref(o);
        return cli_fail(cli, &e);
    }
    if (r != 0) {
        json_decref(o);
        o = NULL;
    }
    return cli_print(cli, o, &(struct view){sections, sizeof sections / sizeof sections[0]});
}

static int run(struct cli *cli, const void *arguments)
{
    const struct plan_arguments *a = arguments;
    const struct algorithm *algorithm = NULL;
    struct torus torus;
    struct error e;
    uint32_t rank;
    int code = resolve(cli, a, &torus, &algorithm);

    if (code != EXIT_DONE)
        return code;
    if (a->node != NULL && a->routes)
        return cli_fail_usage(cli, "--node and --routes: give one or the other");
    if (a->routes && plan_picture_option(&a->picture) != NULL)
        return cli_fail_usage(cli, "%s and --routes: give one or the other",
                              plan_picture_option(&a->picture));
    if (a->node != NULL && parse_number(a->node, torus.nodes - 1, &rank, &e) != 0)
        return cli_fail_usage(cli, "--node: %s", e.text);
    if (!a->routes)
        return print_plan(cli, a, &torus, algorithm, a->node != NULL ? &rank : NULL);
    if (routes_print(stdout, &torus, algorithm, &e) != 0)
        return cli_fail(cli, &e);
    return EXIT_DONE;
}

extern const struct command command_plan;
const struct command command_plan = {
    .name = "plan",
    .summary = "Show what a schedule costs on a torus, and its routes",
    .usage = "--dims DIMS [--algorithm NAME] [--node RANK | --routes] [--json]\n"
             "                     [--svg FILE [--steps STEPS] [--source RANK] [--load]]",
    .details =
        "Follows every route of the algorithm, and counts:\n"
        "  startups       steps of the schedule\n"
        "  transmission   blocks on the busiest channel, summed over the steps\n"
        "  critical path  in block times, if nodes wait only for what they need themselves\n"
        "  lower bound    block times that no schedule with these ports can beat\n"
        "  bound of       the ports it is for; with one port, also whether a node that relays a "
        "block\n"
        "                 has to receive it first (single hops) or not (cut-through)\n"
        "  efficiency     lower bound / transmission\n"
        "  contended      steps in which two combined messages use one channel\n"
        "  port model     kept if no step is contended and, with one port, no node starts, or "
        "ends,\n"
        "                 two combined messages in a step; with single hops, if all legs are one "
        "hop\n"
        "  minimal        whether every route is a shortest path\n"
        "\n"
        "--routes prints, for each source, destination and segment, the legs of the route as\n"
        "[step, dimension, direction, hops]; the direction is 1 or -1.\n"
        "\n"
        "--svg draws the torus once for each step, with an arrow for each combined message: its\n"
        "colour shows the port, its thickness the number of blocks. Contended channels are "
        "marked.\n"
        "Of an algorithm that streams by default, the load of the channels is drawn instead,\n"
        "unless --steps is given. With --node, only what that node does is drawn. Of more than\n"
        "two dimensions, planes are drawn side by side. A picture has at most 1024 nodes and\n"
        "40000 arrows.\n"
        "\n"
        "examples:\n"
        "  torusctl plan --dims 8x8 --algorithm at2\n"
        "  torusctl plan --dims 8x8 --algorithm at2 --node 0\n"
        "  torusctl plan --dims 4x4 --algorithm direct --routes | jq -c 'select(.src == 0)'\n"
        "  torusctl plan --dims 8x8 --algorithm at2 --svg at2.svg\n"
        "  torusctl plan --dims 5x5 --algorithm yangwang --source 12 --svg - > broadcast.svg\n",
    .options = options,
    .arguments_size = sizeof(struct plan_arguments),
    .run = run,
};
