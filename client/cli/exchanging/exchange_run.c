#include "client/cli/exchanging/exchange_run.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/copying/copy_run.h"
#include "client/cli/exchanging/candidates.h"
#include "client/cli/exchanging/exchange_report.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/tracing/trace_file.h"

/* The operations of libtorus and of schedules have the same numbers. */
_Static_assert((int)TORUS_EXCHANGE == OPERATION_EXCHANGE, "");
_Static_assert((int)TORUS_ALLGATHER == OPERATION_ALLGATHER, "");
_Static_assert((int)TORUS_BROADCAST == OPERATION_BROADCAST, "");

/* Whether an algorithm is named, instead of left to the daemon. */
static bool names_algorithm(const struct exchange_arguments *a)
{
    return a->algorithm != NULL && strcmp(a->algorithm, TORUS_AUTO) != 0;
}

/* Checks that the options go together, and reads --on-failure into the request. Returns 0, or -1 with *e. */
static int check(struct torus_request *request, const struct exchange_arguments *a,
                 const char *command, struct error *e)
{
    if (READ_OPTION(e, "--on-failure", a->on_failure, parse_on_failure, &request->shrink,
                    &request->wait) != 0)
        return -1;
    const bool exchange = request->operation == TORUS_EXCHANGE, files = a->from != NULL;
    const struct refusal refusals[] = {
        REFUSAL(!exchange && request->shrink,
                "--on-failure shrink is for exchanges: give fail or wait to %s", command),
        REFUSAL(request->operation == TORUS_BROADCAST && a->sender == NULL,
                "--root is missing: give the rank of the node that sends"),
        REFUSAL(!a->trees && a->block_size == NULL && !files && a->to == NULL,
                "nothing to %s: give --block-size SIZE for a generated pattern, or --from %s --to "
                "FOLDER for files",
                command, exchange ? "FOLDER" : "FILE"),
        REFUSAL(files != (a->to != NULL) || (a->trees && !files),
                "--from and --to go together: %s is missing", files ? "--to" : "--from"),
        REFUSAL(files && a->block_size != NULL,
                "--block-size is for generated patterns; files have their own sizes: omit it with "
                "--from and --to"),
        REFUSAL(files && a->repeat != NULL, "--repeat is for generated patterns; files are "
                                            "exchanged once: omit it with --from and --to"),
        REFUSAL(!files && (a->missing_ok || a->replace),
                "%s is for files: it requires --from and --to",
                a->missing_ok ? "--missing-ok" : "--replace"),
        REFUSAL(a->trees && a->schedule != NULL,
                "--schedule does not go with --trees: trees move in many exchanges, and the nodes "
                "keep the schedule of a file for one: give --algorithm"),
        REFUSAL(a->trees && a->explain,
                "--explain does not go with --trees: what moves is known only when the trees have "
                "been compared, and then the nodes choose; the report names what they have chosen"),
        REFUSAL(a->schedule != NULL && (a->algorithm != NULL || a->q != NULL),
                "--schedule and %s: give one or the other",
                a->algorithm != NULL ? "--algorithm" : "--q"),
        REFUSAL(a->schedule != NULL && (a->explain || a->dry_run),
                "%s lists the algorithms for auto: omit it with --schedule",
                a->explain ? "--explain" : "--dry-run"),
        REFUSAL(request->shrink && (a->schedule != NULL || names_algorithm(a)),
                "--on-failure shrink needs algorithm auto, the only one that can leave out nodes: "
                "omit %s",
                a->schedule != NULL ? "--schedule" : "--algorithm"),
        REFUSAL(a->trees && a->mode != NULL && !names_algorithm(a),
                "--mode with --trees needs --algorithm NAME: without one, the nodes choose "
                "algorithm and mode together"),
        {0},
    };
    return refuse(refusals, e);
}

/* Returns the algorithm that --algorithm and --q name, for the daemon, or NULL with *e. */
static const char *algorithm_of(const struct exchange_arguments *a, enum torus_operation operation,
                                struct error *e)
{
    const char *name = spelled_algorithm(a->algorithm, a->q, e);

    if (name == NULL)
        return a->q != NULL ? NULL : TORUS_AUTO;
    return requested_algorithm(name, (enum schedule_operation)operation, e);
}

/* Fills the request from the options. Returns 0, or -1 with *e. In either case the caller frees *from and *to. */
static int fill(struct torus_request *request, const struct exchange_arguments *a, char **from,
                char **to, struct error *e)
{
    request->algorithm = algorithm_of(a, request->operation, e);
    if (request->algorithm == NULL ||
        READ_OPTION(e, "--block-size", a->block_size, parse_size, &request->block_bytes) != 0 ||
        READ_OPTION(e, "--from", a->from, parse_folder, from) != 0 ||
        READ_OPTION(e, "--to", a->to, parse_folder, to) != 0 ||
        READ_OPTION(e, "--root", a->sender, parse_number, TORUS_MAX_NODES - 1, &request->sender) !=
            0 ||
        READ_OPTION(e, "--repeat", a->repeat, parse_repeat, &request->repeat) != 0 ||
        READ_OPTION(e, "--mode", a->mode, parse_mode, &request->mode) != 0 ||
        READ_OPTION(e, "--timeout", a->timeout, parse_seconds, &request->timeout_ms) != 0)
        return -1;
    request->from = *from;
    request->to = *to;
    request->missing_ok = a->missing_ok;
    request->replace = a->replace;
    request->trace = a->trace != NULL;
    return 0;
}

/* Adds the requested algorithm and, unless `predictions` is NULL, the predictions. */
static int set_choice(const struct cli *cli, json_t *value, const char *requested,
                      const struct torus_result *result, const struct torus_candidates *predictions)
{
    double predicted = predictions != NULL ? candidates_seconds(predictions, result) : -1;
    int r = json_object_set_new(value, "requested", json_string(requested));

    if (!cli->json)
        r |= link_rates_shorten(value);
    if (!cli->json && leaves_choice(requested))
        r |= json_object_set_new(value, "algorithm",
                                 json_sprintf("%s (%s)", result->algorithm, requested));
    if (predictions == NULL)
        return r;
    r |= json_object_set_new(value, "predicted_seconds",
                             predicted >= 0 ? json_real(predicted) : json_null());
    if (cli->json) {
        json_t *all = candidates_value(predictions);
        r |= json_object_update_missing(value, all);
        json_decref(all);
    }
    return r;
}

static int print_result(struct cli *cli, const struct exchange_arguments *a, const char *requested,
                        const struct torus_result *result,
                        const struct torus_candidates *predictions, const char *bound_of,
                        double call_seconds)
{
    struct view view = exchange_report_view(a->repeat != NULL, a->per_node);
    char warning[512];
    struct torus torus;
    struct error e;
    int known = daemon_torus_parse(cli, result->dims, &torus);

    if (known != EXIT_DONE)
        return known;
    json_t *value = exchange_report(result, call_seconds, a->repeat != NULL, &e);

    if (value == NULL)
        return cli_fail(cli, &e);
    if (set_choice(cli, value, requested, result, predictions) != 0 ||
        (bound_of != NULL && json_object_set_new(value, "bound_of", json_string(bound_of)) != 0)) {
        json_decref(value);
        value = NULL;
    }
    if (value != NULL)
        (void)json_incref(value);
    int code = cli_print(cli, value, &view);
    if (code == EXIT_DONE && a->trace != NULL)
        code = trace_file_write(cli, a->trace, result->id, value);
    json_decref(value);
    exchange_report_warning(result, warning, sizeof warning);
    if (warning[0] != '\0')
        cli_warn(warning);
    return code;
}

/* Runs the request, and prints the result. `bound_of` names the model of the lower
 * bound if the schedule is from a file. */
static int exchange(struct cli *cli, const struct exchange_arguments *a,
                    const struct torus_request *request, const struct torus_candidates *predictions,
                    const char *bound_of)
{
    struct torus_result *result;
    struct torus_error e;
    struct progress progress;
    double began = clock_seconds(), took;
    int code, r;

    progress_begin(&progress);
    interrupt_arm(cli->client);
    r = torus_client_exchange(cli->client, request, progress_update, &progress, &result, &e);
    took = clock_seconds() - began;
    interrupt_disarm();
    progress_end(&progress);
    if (r != 0)
        return cli_fail_client(cli, &e);
    code = print_result(cli, a, a->schedule != NULL ? request->schedule : request->algorithm,
                        result, predictions, bound_of, took);
    torus_result_free(result);
    return code;
}

/* Prints the predictions, and runs the exchange unless --dry-run is given. With --json, the predictions are part of
 * the report. */
static int explain(struct cli *cli, const struct exchange_arguments *a,
                   const struct torus_request *request)
{
    struct torus_candidates *predictions;
    struct torus_error e;
    int code = EXIT_DONE;

    if (torus_client_candidates(cli->client, request, &predictions, &e) != 0)
        return cli_fail_client(cli, &e);
    if (a->dry_run || !cli->json) {
        json_t *value = candidates_value(predictions);
        if (!cli->json)
            (void)link_rates_shorten(json_object_get(value, "link_rates"));
        code = cli_print(cli, value, &candidates_view);
    }
    if (code == EXIT_DONE && !a->dry_run) {
        if (!cli->json)
            (void)putchar('\n');
        (void)fflush(stdout);
        code = exchange(cli, a, request, predictions, NULL);
    }
    torus_candidates_free(predictions);
    return code;
}

/* Reads a schedule file, and sends the schedule to the daemon. Returns EXIT_DONE with request->schedule and
 * *bound_of, or another exit code after printing the reason. */
static int send_schedule(struct cli *cli, const char *path, struct torus_request *request,
                         char digest[TORUS_DIGEST_SIZE], const char **bound_of)
{
    struct schedule_file file;
    struct torus_status *status;
    struct torus_error failed;
    struct torus torus;
    struct error e;
    int code = EXIT_DONE;

    if (torus_client_status(cli->client, &status, &failed) != 0)
        return cli_fail_client(cli, &failed);
    int r = daemon_torus_of_status(status, &torus, &e);
    torus_status_free(status);
    if (r != 0 || schedule_file_read(&file, path, &torus, &e) != 0)
        return cli_fail(cli, &e);
    if (torus_client_schedule(cli->client, file.text, file.length, digest, &failed) != 0)
        code = cli_fail_client(cli, &failed);
    request->schedule = digest;
    *bound_of = algorithm_bound_name(imported_algorithm(file.imported));
    schedule_file_free(&file);
    return code;
}

/* The one source of such a copy is an option here. */
static const struct option from_option = {"--from", "FOLDER", 0, ""};

/* Exchanges files and folders, which are copied by the rules of torusctl copy. */
static int exchange_trees(struct cli *cli, const struct exchange_arguments *a,
                          const struct torus_request *request)
{
    return copy_run(cli, TORUS_COPY_EXCHANGE,
                    &(struct copy_arguments){
                        .sources = {.count = 1, .given = {{&from_option, a->from}}},
                        .to = a->to,
                        .on_failure = a->on_failure,
                        .timeout = a->timeout,
                        .delete = a->replace,
                        .dry_run = a->dry_run,
                        .per_node = a->per_node,
                        .missing_ok = a->missing_ok,
                        .trace = a->trace,
                        .algorithm = request->algorithm,
                        .mode = request->mode,
                    });
}

int exchange_run(struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *given)
{
    struct exchange_arguments taken = *given;
    const struct exchange_arguments *a = &taken;
    struct torus_request request;
    char digest[TORUS_DIGEST_SIZE], *from = NULL, *to = NULL;
    const char *bound_of = NULL;
    struct error e;
    int code;

    if (operation != TORUS_BROADCAST && taken.schedule == NULL)
        python_algorithm_take(&taken.algorithm, &taken.schedule);
    torus_request_init(&request);
    request.operation = operation;
    if (check(&request, a, cli->command, &e) != 0)
        return cli_fail(cli, &e);
    code = trace_file_check(cli, a->trace);
    if (code == EXIT_DONE && fill(&request, a, &from, &to, &e) != 0)
        code = cli_fail(cli, &e);
    if (code == EXIT_DONE && !a->trees)
        code = cli_connect(cli);
    if (code == EXIT_DONE && a->schedule != NULL)
        code = send_schedule(cli, a->schedule, &request, digest, &bound_of);
    if (code == EXIT_DONE)
        code = a->trees                   ? exchange_trees(cli, a, &request)
               : a->explain || a->dry_run ? explain(cli, a, &request)
                                          : exchange(cli, a, &request, NULL, bound_of);
    free(from);
    free(to);
    return code;
}
