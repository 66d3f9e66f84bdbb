/* torusctl plan: shows the costs and the routes of a schedule on a torus. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/algorithms/plan_report.h"
#include "client/cli/animation/animation.h"
#include "client/cli/drawing/svg.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/plan.h"

struct plan_arguments {
    const char *dims;
    const char *algorithm;
    const char *q;
    struct link_arguments links;
    const char *import;
    const char *node;
    struct export_arguments export;
    bool routes;
    struct picture_arguments picture;
    struct animation_arguments animation;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct plan_arguments, dims),
     "dimensions of the torus: 8x8, 6, 3x4x5; 4x8m if the 8 does not wrap"},
    {"--algorithm", "NAME", offsetof(struct plan_arguments, algorithm),
     "one of 'torusctl algorithms', or python:FILE, a function in Python\n"
     "(default: one that accepts the torus)"},
    {"--q", "N", offsetof(struct plan_arguments, q), "with --algorithm cccube: in N packets"},
    {"--without", "LIST", offsetof(struct plan_arguments, links.without),
     "routes of an exchange, or with --algorithm disjoint of an allgather, while\n"
     "these links and nodes are down: 3:+0,7 are the link at port +0 of node 3,\n"
     "and node 7"},
    RATE_OPTIONS(plan_arguments, links),
    {"--import", "FILE", offsetof(struct plan_arguments, import),
     "verify the schedule in this file instead: output of --export torusd; or,\n"
     "with --dims, a file of MSCCL, ForestColl or TE-CCL"},
    {"--node", "RANK", offsetof(struct plan_arguments, node),
     "also show what this node sends, relays and receives in each step"},
    {"--routes", NULL, offsetof(struct plan_arguments, routes),
     "print the route of every block instead, one JSON object per line"},
    {"--period", NULL, offsetof(struct plan_arguments, export.period),
     "with --export torusd: print only the routes from which all others follow\n"
     "when they are moved along the torus"},
    {"--export", "FORMAT", offsetof(struct plan_arguments, export.format),
     "print the schedule as a file instead: torusd, msccl or goal"},
    {"--block-size", "SIZE", offsetof(struct plan_arguments, export.block_size),
     "with --export goal: size of a block (default: 64KiB)"},
    {"--svg", "FILE", offsetof(struct plan_arguments, picture.file),
     "also draw the schedule into FILE, a torus for each step; '-' is standard\n"
     "output"},
    {"--html", "FILE", offsetof(struct plan_arguments, animation.file),
     "also make a page for a browser in which the schedule plays, step by step"},
    {"--trace", "FILE", offsetof(struct plan_arguments, animation.trace),
     "with --html: steps take as long as in this run, which 'torusctl exchange --trace' has "
     "recorded"},
    {"--compare", "NAME", offsetof(struct plan_arguments, animation.compare),
     "with --html: play this algorithm beside it"},
    {"--steps", "STEPS", offsetof(struct plan_arguments, picture.steps),
     "draw only these steps: 3, or 0-7"},
    {"--source", "RANK", offsetof(struct plan_arguments, picture.source),
     "draw, or play, only the blocks of this source"},
    {"--load", NULL, offsetof(struct plan_arguments, picture.load),
     "draw the blocks that each channel carries in all steps, instead of the\n"
     "steps"},
    {0},
};

static const struct field schedule_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"algorithm", "algorithm", FORMAT_PLAIN},
    {"without", "without", FORMAT_PLAIN},
    {"rates", "rates", FORMAT_PLAIN},
    {"digest", "digest", FORMAT_PLAIN},
    {"operation", "operation", FORMAT_PLAIN},
    {"mode", "mode", FORMAT_PLAIN},
    {"segments", "segments", FORMAT_PLAIN},
    {"disjoint trees", "trees", FORMAT_PLAIN},
    {"verified", "verified", FORMAT_PLAIN},
    {"ports", "port_model", FORMAT_PLAIN},
    {"startups", "startups", FORMAT_PLAIN},
    {"transmission", "transmission", FORMAT_PLAIN},
    {"busiest channel", "busiest", FORMAT_PLAIN},
    {"streamed", "streamed", FORMAT_PLAIN},
    {"critical path", "critical_path", FORMAT_PLAIN},
    {"lower bound", "bound", FORMAT_PLAIN},
    {"bound of", "bound_of", FORMAT_PLAIN},
    {"broadcast, bound", "broadcast_bound", FORMAT_PLAIN},
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

/* Returns the algorithm to show if none was named: an optimal one if it accepts the torus. */
static const struct algorithm *shown_first(const struct torus *t)
{
    static const char *const names[] = {"at2", "ar"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (algorithm_accepts(algorithm_find(names[i]), t, NULL) == 0)
            return algorithm_find(names[i]);
    return algorithm_find("direct"); /* accepts every torus */
}

/* Reads the torus and the algorithm from a file. */
static int resolve_import(const struct cli *cli, const struct plan_arguments *a, struct torus *t,
                          struct schedule_file *file, const struct algorithm **algorithm)
{
    struct error e;

    long_work_next("%.80s", a->import);
    if (a->algorithm != NULL || a->q != NULL)
        return cli_fail_usage(cli, "--import and %s: give one or the other",
                              a->algorithm != NULL ? "--algorithm" : "--q");
    if (schedule_file_read(file, a->import, a->dims != NULL ? t : NULL, &e) != 0)
        return cli_fail(cli, &e);
    *t = *imported_torus(file->imported);
    *algorithm = imported_algorithm(file->imported);
    return EXIT_DONE;
}

/* Takes the algorithm with this name of the found routes; without it, they are freed. */
static int use_found(const struct cli *cli, struct detour *found, const char *name,
                     const struct algorithm **algorithm)
{
    struct error e;

    *algorithm = found_named(found, name, &e);
    if (*algorithm != NULL)
        return EXIT_DONE;
    detour_free(found);
    return cli_fail_usage(cli, "%s", e.text);
}

/* `stream` and `disjoint` where factors are neither rings nor lines: their routes are found. */
static int resolve_found(const struct cli *cli, const struct plan_arguments *a, const char *name,
                         const struct torus *t, const struct algorithm **algorithm)
{
    struct detour *found;
    struct error e;

    long_work_next("the routes of %s on %.80s", name != NULL ? name : FOUND_NAME, a->dims);
    if (detour_new_whole(&found, t, &e) != 0)
        return cli_fail(cli, &e);
    return use_found(cli, found, name, algorithm);
}

/* Whether the arguments ask for the routes of a named algorithm, or of a file, on links of different rates, rather than
 * for routes that are found for these links. */
static bool is_named(const struct plan_arguments *a)
{
    return a->import != NULL || a->q != NULL ||
           (a->algorithm != NULL && strcmp(a->algorithm, FOUND_DISJOINT_NAME) != 0);
}

/* Routes for what the links can carry. */
static int resolve_damage(const struct cli *cli, const struct plan_arguments *a,
                          const struct damage *damage, const struct algorithm **algorithm)
{
    struct detour *detour = NULL;
    struct error e;

    long_work_next("the routes for these links");
    if (detour_new(&detour, damage, &e) != 0)
        return cli_fail(cli, &e);
    return use_found(cli, detour, a->algorithm, algorithm);
}

/* Reads what the links can carry: no damage if nothing was given. */
static int read_links(const struct cli *cli, const struct plan_arguments *a, struct torus *t,
                      struct damage *damage)
{
    struct error e;

    *damage = (struct damage){0};
    if (!link_arguments_given(&a->links))
        return EXIT_DONE;
    if (a->dims == NULL)
        return cli_fail_usage(cli, "%s needs --dims", link_arguments_option(&a->links));
    if (torus_parse(t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (a->links.without != NULL && a->algorithm != NULL && a->import == NULL && is_named(a))
        return cli_fail_usage(cli,
                              "--without and --algorithm: only --algorithm " FOUND_DISJOINT_NAME
                              " can be given as well");
    if (a->links.without != NULL && (a->import != NULL || a->q != NULL))
        return cli_fail_usage(cli, "--without and %s: give one or the other",
                              a->import != NULL ? "--import" : "--q");
    return link_arguments_read(cli, &a->links, t, damage);
}

/* Reads the torus and the algorithm from the arguments. Returns EXIT_DONE, or another exit code after printing the
 * reason. */
static int resolve(const struct cli *cli, const struct plan_arguments *a,
                   const struct damage *damage, struct torus *t, struct schedule_file *file,
                   const struct algorithm **algorithm)
{
    struct error e;

    if (a->dims == NULL && a->import == NULL)
        return cli_fail_usage(cli, "--dims is missing: give the torus, such as --dims 8x8");
    if (a->dims != NULL && torus_parse(t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (damage->dead != NULL && !is_named(a))
        return resolve_damage(cli, a, damage, algorithm);
    if (a->import != NULL)
        return resolve_import(cli, a, t, file, algorithm);
    const char *name = spelled_algorithm(a->algorithm, a->q, &e);
    if (name == NULL && a->q != NULL)
        return cli_fail_usage(cli, "%s", e.text);
    if (!torus_is_plain(t) && (name == NULL || found_is_name(name, t)))
        return resolve_found(cli, a, name, t, algorithm);
    *algorithm = name != NULL ? named_algorithm(name, NULL, &e) : shown_first(t);
    if (*algorithm == NULL || algorithm_accepts(*algorithm, t, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    return EXIT_DONE;
}

/* Adds the messages of one node. */
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

/* For a schedule from a file: adds its header, and what has been verified. */
static int set_imported(json_t *o, const struct torus *t, const struct algorithm *a)
{
    uint64_t blocks = (uint64_t)t->nodes * (t->nodes - 1);

    return json_object_set_new(o, "digest", json_string(imported_digest(a->imported))) |
           json_object_set_new(o, "operation", json_string(schedule_operation_name(a->operation))) |
           json_object_set_new(o, "mode", json_string(a->streaming ? "streaming" : "stepped")) |
           json_object_set_new(o, "segments", json_integer(a->segments)) |
           json_object_set_new(
               o, "verified",
               json_sprintf("every segment of all %" PRIu64 " blocks arrives once", blocks));
}

/* Draws the picture and makes the page, if they were asked for. */
static int draw(const struct cli *cli, const struct plan_arguments *a, const struct torus *t,
                const struct algorithm *algorithm, const struct damage *rates,
                const struct schedule_report *report, const uint32_t *rank)
{
    const struct animated animated = {.algorithm = algorithm, .rates = rates, .report = report};
    struct picture_arguments picture = a->picture;

    if (picture.file == NULL && a->animation.file != NULL)
        picture.source = NULL; /* it is for the page */
    int code = plan_picture(cli, &picture, t, algorithm, rates, report, rank);
    return code != EXIT_DONE ? code
                             : plan_animation(cli, &a->animation, a->picture.source, t, &animated);
}

/* Runs the schedule on channels of these rates, and finds the bound for them. */
static int verify_rated(const struct torus *t, const struct algorithm *a,
                        const struct damage *rates, struct schedule_report *report,
                        const char **bound_of, struct error *e)
{
    const bool exchange = a->operation == OPERATION_EXCHANGE;
    struct detour *found;

    if (schedule_verify_rated(t, a, rates, report, e) != 0 || detour_new(&found, rates, e) != 0)
        return -1;
    if (exchange)
        detour_find_bound(found);
    const struct algorithm *its = exchange ? detour_algorithm(found) : detour_gather(found);
    if (algorithm_bound(its, t) > report->bound) {
        report->bound = algorithm_bound(its, t);
        *bound_of = algorithm_bound_name(its);
    }
    detour_free(found);
    return 0;
}

/* `rates`: of the channels, on which a schedule for equal ones runs; NULL: none were given. */
static int print_plan(const struct cli *cli, const struct plan_arguments *a, const struct torus *t,
                      const struct algorithm *algorithm, const struct damage *rates,
                      const uint32_t *rank)
{
    const char *bound_of = algorithm_bound_name(algorithm);
    struct schedule_report report;
    char text[1024];
    struct error e;
    json_t *o;
    int r = 0;

    if (rates != NULL ? verify_rated(t, algorithm, rates, &report, &bound_of, &e) != 0
                      : schedule_verify(t, algorithm, &report, &e) != 0)
        return cli_fail(cli, &e);
    int code = draw(cli, a, t, algorithm, rates, &report, rank);
    if (code != EXIT_DONE || plan_picture_is_output(&a->picture) ||
        plan_animation_is_output(&a->animation))
        return code;
    o = json_object();
    r |= json_set_torus(o, t);
    r |= json_object_set_new(o, "algorithm", json_string(algorithm->name));
    r |= json_object_set_new(o, "port_model", json_string(algorithm_ports_name(algorithm)));
    if (algorithm->imported != NULL)
        r |= set_imported(o, t, algorithm) |
             json_object_set_new(o, "busiest", json_number(report.busiest / algorithm->segments));
    if (algorithm->detour != NULL)
        r |= plan_set_found(o, t, algorithm, &report, &e);
    else
        r |= plan_set_report(o, algorithm, &report);
    if (rates != NULL)
        r |= json_object_set_new(o, "rates",
                                 json_string(damage_format_rates(rates, text, sizeof text))) |
             json_object_set_new(o, "busiest", json_number(report.busiest / algorithm->segments)) |
             json_object_set_new(o, "bound_of", json_string(bound_of));
    if (!cli->json && algorithm->detour == NULL)
        r |= plan_set_efficiency(o, algorithm, &report);
    if (r == 0 && rank != NULL && add_node(o, t, algorithm, *rank, &e) != 0) {
        json_decref(o);
        return cli_fail(cli, &e);
    }
    o = json_checked(o, r);
    return cli_print(cli, o, VIEW(sections));
}

static int show(const struct cli *cli, const struct plan_arguments *a, const struct torus *t,
                const struct algorithm *algorithm, const struct damage *rates)
{
    char dims[TORUS_TEXT_SIZE];
    struct error e;
    uint32_t rank;

    long_work_next("the routes of %s on %s", algorithm->name, torus_format(t, dims));
    if ((a->node != NULL) + a->routes + (a->export.format != NULL) > 1)
        return cli_fail_usage(cli, "--node, --routes and --export: give one of them");
    if ((a->routes || a->export.format != NULL) &&
        (a->animation.file != NULL || a->animation.compare != NULL || a->animation.trace != NULL))
        return cli_fail_usage(cli, "--html and %s: give one or the other",
                              a->routes ? "--routes" : "--export");
    if ((a->routes || a->export.format != NULL) && plan_picture_option(&a->picture) != NULL)
        return cli_fail_usage(cli, "%s and %s: give one or the other",
                              plan_picture_option(&a->picture),
                              a->routes ? "--routes" : "--export");
    if (a->export.format == NULL && (a->export.period || a->export.block_size != NULL))
        return cli_fail_usage(cli, "%s is for --export",
                              a->export.period ? "--period" : "--block-size");
    if (a->node != NULL && parse_number(a->node, t->nodes - 1, &rank, &e) != 0)
        return cli_fail_usage(cli, "--node: %s", e.text);
    if (a->node != NULL && algorithm->detour != NULL &&
        detour_damage(algorithm->detour)->gone[rank])
        return cli_fail_usage(cli, "--node: node %u is down", rank);
    if (a->export.format != NULL)
        return plan_export(cli, &a->export, t, algorithm);
    if (!a->routes)
        return print_plan(cli, a, t, algorithm, rates, a->node != NULL ? &rank : NULL);
    if (plan_export_check(t, algorithm, false, &e) != 0 ||
        schedule_export_routes(stdout, t, algorithm, &e) != 0)
        return cli_fail(cli, &e);
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    struct plan_arguments given = *(const struct plan_arguments *)arguments;
    const struct plan_arguments *a = &given;
    const struct algorithm *algorithm = NULL;
    struct schedule_file file = {0};
    struct damage damage;
    struct torus torus;
    if (given.import == NULL)
        python_algorithm_take(&given.algorithm, &given.import);
    int code = read_links(cli, a, &torus, &damage);

    if (code != EXIT_DONE)
        return code;
    code = resolve(cli, a, &damage, &torus, &file, &algorithm);
    if (code == EXIT_DONE)
        code = show(cli, a, &torus, algorithm, damage.dead != NULL && is_named(a) ? &damage : NULL);
    if (algorithm != NULL)
        detour_free(algorithm->detour);
    damage_free(&damage);
    schedule_file_free(&file); /* last, because the algorithm may be in the file */
    return code;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "Show what a schedule costs on a torus, and its routes",
    .usage = "--dims DIMS [--algorithm NAME [--q N]] [--without LIST] | --import FILE\n"
             "       [--rate LIST] [--link-rate LIST] [--rates FILE]\n"
             "       [--node RANK | --routes | --export FORMAT] [--json]\n"
             "       [--svg FILE [--steps STEPS] [--source RANK] [--load]]\n"
             "       [--html FILE [--trace FILE] [--compare NAME] [--source RANK]]",
    .options = options,
    .arguments_size = sizeof(struct plan_arguments),
    .run = run,
};
