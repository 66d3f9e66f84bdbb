#include "client/cli/exchange_run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/arguments.h"
#include "client/cli/candidates.h"
#include "client/cli/exchange_report.h"
#include "client/cli/interrupt.h"
#include "client/cli/named_algorithm.h"
#include "client/cli/progress.h"

/* The library's operations are those that the schedules know. */
_Static_assert((int)TORUS_EXCHANGE == OPERATION_EXCHANGE, "");
_Static_assert((int)TORUS_ALLGATHER == OPERATION_ALLGATHER, "");
_Static_assert((int)TORUS_BROADCAST == OPERATION_BROADCAST, "");
_Static_assert((int)TORUS_BARRIER == OPERATION_BARRIER, "");

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Checks that the options go together. Returns 0, or the exit code after having said why not. */
static int check(const struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *a)
{
    if (operation == TORUS_BARRIER)
        return EXIT_DONE;
    if (operation == TORUS_BROADCAST && a->root == NULL)
        return cli_fail_usage(cli, "--root is missing: give the rank of the node to send from");
    if (a->block_size == NULL && a->from == NULL && a->to == NULL)
        return cli_fail_usage(cli,
                              "say what to %s: --block-size SIZE for a generated pattern, or "
                              "--from %s --to FOLDER for files",
                              cli->command->name, operation == TORUS_EXCHANGE ? "FOLDER" : "FILE");
    if ((a->from == NULL) != (a->to == NULL))
        return cli_fail_usage(cli, "--from and --to go together: %s is missing",
                              a->from == NULL ? "--from" : "--to");
    if (a->block_size != NULL && a->from != NULL)
        return cli_fail_usage(cli, "--block-size is for generated patterns: files have their own "
                                   "sizes, leave it out with --from and --to");
    if (a->repeat != NULL && a->from != NULL)
        return cli_fail_usage(cli, "--repeat is for generated patterns: files are exchanged once, "
                                   "leave it out with --from and --to");
    if (a->missing_ok && a->from == NULL)
        return cli_fail_usage(cli, "--missing-ok is for files: it needs --from and --to");
    return EXIT_DONE;
}

int parse_repeat(const char *text, uint32_t *repeat, struct error *e)
{
    if (parse_number(text, TORUS_REPEAT_MOST, repeat, e) != 0)
        return error_wrap(e, "--repeat");
    if (*repeat == 0)
        return error_set(e, ERROR_USAGE, "--repeat: at least 1");
    return 0;
}

int parse_mode(const char *text, struct error *e)
{
    if (strcmp(text, "stepped") == 0 || strcmp(text, "streaming") == 0)
        return 0;
    return error_set(e, ERROR_USAGE, "--mode: '%.40s' is neither stepped nor streaming", text);
}

/* Fills what the request says; *from and *to are to be freed. */
static int fill(struct torus_exchange_request *request, const struct exchange_arguments *a,
                char **from, char **to, struct error *e)
{
    const enum operation operation = (enum operation)request->operation;
    const struct algorithm *algorithm;

    request->algorithm = TORUS_AUTO;
    if (a->algorithm != NULL && strcmp(a->algorithm, TORUS_AUTO) != 0) {
        algorithm = named_algorithm(a->algorithm, &operation, e);
        if (algorithm == NULL)
            return -1;
        request->algorithm = algorithm->name;
    }
    if (a->block_size != NULL && parse_size(a->block_size, &request->block_bytes, e) != 0)
        return error_wrap(e, "--block-size");
    if (a->from != NULL && parse_folder(a->from, from, e) != 0)
        return error_wrap(e, "--from");
    if (a->to != NULL && parse_folder(a->to, to, e) != 0)
        return error_wrap(e, "--to");
    if (a->root != NULL && parse_number(a->root, TORUS_MAX_NODES - 1, &request->root, e) != 0)
        return error_wrap(e, "--root");
    if (a->repeat != NULL && parse_repeat(a->repeat, &request->repeat, e) != 0)
        return -1;
    if (a->mode != NULL && parse_mode(a->mode, e) != 0)
        return -1;
    request->mode = a->mode;
    if (a->timeout != NULL && parse_seconds(a->timeout, &request->timeout_ms, e) != 0)
        return error_wrap(e, "--timeout");
    request->from = *from;
    request->to = *to;
    request->missing_ok = a->missing_ok;
    request->barrier = a->name;
    return 0;
}

/* Who chose the algorithm, and what was expected of it. `predictions` may be NULL. */
static int set_choice(const struct cli *cli, json_t *value,
                      const struct torus_exchange_request *request,
                      const struct torus_exchange_result *result,
                      const struct torus_candidates *predictions)
{
    double predicted =
        predictions != NULL ? candidates_seconds(predictions, result->algorithm, result->mode) : -1;
    int r = json_object_set_new(value, "requested", json_string(request->algorithm));

    if (!cli->json && strcmp(request->algorithm, TORUS_AUTO) == 0)
        r |= json_object_set_new(value, "algorithm",
                                 json_sprintf("%s (" TORUS_AUTO ")", result->algorithm));
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

static int print_result(const struct cli *cli, const struct exchange_arguments *a,
                        const struct torus_exchange_request *request,
                        const struct torus_exchange_result *result,
                        const struct torus_candidates *predictions, double call_seconds)
{
    struct view view = exchange_report_view(a->repeat != NULL, a->per_node);
    struct error e;
    json_t *value = exchange_report(result, call_seconds, a->repeat != NULL, &e);
    int code;

    if (value == NULL)
        return cli_fail(cli, &e);
    if (set_choice(cli, value, request, result, predictions) != 0) {
        json_decref(value);
        value = NULL;
    }
    code = cli_print(cli, value, &view);
    if (code == EXIT_DONE && !result->verified) {
        (void)fprintf(stderr, "torusctl: exchange %s: delivered, but not verified\n", result->id);
        code = EXIT_FAILED;
    }
    return code;
}

static int exchange(const struct cli *cli, const struct exchange_arguments *a,
                    const struct torus_exchange_request *request,
                    const struct torus_candidates *predictions)
{
    struct torus_exchange_result *result;
    struct torus_client_error e;
    struct progress progress;
    double began = now(), took;
    int code, r;

    progress_begin(&progress, true);
    interrupt_arm(cli->client);
    r = torus_exchange_run(cli->client, request, progress_update, &progress, &result, &e);
    took = now() - began;
    interrupt_disarm();
    progress_end(&progress);
    if (r != 0)
        return cli_fail_client(cli, &e);
    code = print_result(cli, a, request, result, predictions, took);
    torus_exchange_result_free(result);
    return code;
}

/* Says what is predicted, for people before the exchange begins, and does the exchange. */
static int explain(const struct cli *cli, const struct exchange_arguments *a,
                   const struct torus_exchange_request *request)
{
    struct torus_candidates *predictions;
    struct torus_client_error e;
    int code = EXIT_DONE;

    if (torus_client_candidates(cli->client, request, &predictions, &e) != 0)
        return cli_fail_client(cli, &e);
    if (a->dry_run || !cli->json)
        code = cli_print(cli, candidates_value(predictions), &candidates_view);
    if (code == EXIT_DONE && !a->dry_run) {
        if (!cli->json)
            (void)putchar('\n');
        (void)fflush(stdout);
        code = exchange(cli, a, request, predictions);
    }
    torus_client_candidates_free(predictions);
    return code;
}

int exchange_run(struct cli *cli, enum torus_operation operation,
                 const struct exchange_arguments *a)
{
    struct torus_exchange_request request = {.operation = operation};
    char *from = NULL, *to = NULL;
    struct error e;
    int code = check(cli, operation, a);

    if (code != EXIT_DONE)
        return code;
    if (fill(&request, a, &from, &to, &e) != 0)
        code = cli_fail(cli, &e);
    if (code == EXIT_DONE)
        code = cli_connect(cli);
    if (code == EXIT_DONE)
        code =
            a->explain || a->dry_run ? explain(cli, a, &request) : exchange(cli, a, &request, NULL);
    free(from);
    free(to);
    return code;
}
