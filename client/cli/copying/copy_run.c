#include "client/cli/copying/copy_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/copying/copy_report.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/tracing/trace_file.h"
#include "proto/text.h"

/* --- progress --- */

void copy_watch_begin(struct copy_watch *w, bool looks_only)
{
    *w = (struct copy_watch){.looks_only = looks_only};
    progress_begin(&w->progress);
    w->progress.doing = w->doing;
}

/* Writes what the copy does now: "comparing, 1200 files". */
static void set_doing(struct copy_watch *w, const struct torus_copy_progress *progress)
{
    const char *name = torus_copy_phase_name(progress->phase);

    if (progress->phase == TORUS_COPY_CALLING)
        (void)snprintf(w->doing, sizeof w->doing, "%s the nodes", name);
    else if (progress->phase == TORUS_COPY_PLACING && w->looks_only)
        (void)snprintf(w->doing, sizeof w->doing, "collecting the results");
    else if (progress->phase < TORUS_COPY_MOVING && progress->files > 0)
        (void)snprintf(w->doing, sizeof w->doing, "%s, %" PRIu64 " %s", name, progress->files,
                       text_plural(progress->files, "file", "files"));
    else
        (void)snprintf(w->doing, sizeof w->doing, "%s", name);
}

int copy_watch_update(void *watch, const struct torus_copy_progress *progress)
{
    struct copy_watch *w = watch;
    const bool moving = progress->phase == TORUS_COPY_MOVING;
    /* Only moving has bytes from which a rate and the remaining time follow. */
    const struct torus_progress shown = {
        .exchange = "",
        .state = TORUS_STATE_RUNNING,
        .done_bytes = moving ? progress->bytes : 0,
        .total_bytes = moving ? progress->bytes_of : 0,
        .missing = "",
        .waits_for = progress->waits_for,
    };

    set_doing(w, progress);
    w->moved = w->moved || (moving && progress->bytes > 0);
    if (!moving || progress->bytes < w->bytes) /* another attempt has a pace of its own */
        w->progress.from_ms = 0;
    w->bytes = moving ? progress->bytes : 0;
    return progress_update(&w->progress, &shown);
}

#define STAYS "what has arrived stays at the nodes for the next copy to the same target, for a day"

/* Completes the request by what the daemon knows. Returns an exit code; on failure the reason has been printed. */
static int ask_daemon(struct cli *cli, struct copy_order *o, const struct copy_arguments *a)
{
    struct torus_status *status;
    struct torus_error failed;
    struct torus torus;
    struct error e;
    int r;

    if (torus_client_status(cli->client, &status, &failed) != 0)
        return cli_fail_client(cli, &failed);
    r = daemon_torus_of_status(status, &torus, &e);
    if (r == 0)
        r = copy_order_place(o, a->nodes, status->rank, torus.nodes, &e);
    torus_status_free(status);
    return r == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

/* Prints why the copy has failed as a whole. */
static int print_failure(const struct cli *cli, const struct copy_order *o, bool moved,
                         struct torus_error *e)
{
    char text[sizeof e->text];
    const bool cancelled = e->code == TORUS_ERROR_CANCELLED;

    /* The daemon's text says this already if the copy timed out or the daemon was stopped. */
    if ((cancelled || (moved && e->code != TORUS_ERROR_TIMEOUT && e->code != TORUS_ERROR_LOST)) &&
        !o->copy.dry_run && !o->copy.verify) {
        (void)snprintf(text, sizeof text, "%s", e->text);
        (void)snprintf(e->text, sizeof e->text, "%.350s; " STAYS, text);
    }
    return cli_fail_client(cli, e);
}

static int print_result(const struct cli *cli, const struct copy_order *o, bool per_node,
                        const struct torus_copy_result *r)
{
    const bool failed = copy_report_failures(r) > 0;
    const bool differs = o->copy.verify && copy_report_differences(r) > 0;
    const bool table = per_node && r->node_count > 0;
    struct all_nodes names = {0};
    struct torus_error e;
    int code = EXIT_DONE;

    /* Names are an addition: if the survey fails, there are ranks. */
    if (cli->json || per_node || failed || differs || copy_report_removes(r) || r->absent_count > 0)
        (void)all_nodes_try(cli, &names, &e);
    if (!cli->json)
        copy_report_print(stdout, o, r, &names);
    if (!cli->json && table)
        (void)putchar('\n');
    if (cli->json || table)
        code = cli_print(cli, copy_report_value(o, r, &names), &copy_report_table);
    (void)fflush(stdout);
    copy_failures_print(stderr, o, r, &names);
    all_nodes_free(&names);
    return code == EXIT_DONE && (failed || differs || r->skipped > 0) ? EXIT_FAILED : code;
}

/* Writes the trace of the copy that has just ended. */
static int write_trace(struct cli *cli, const struct copy_order *o, const char *file,
                       const struct torus_copy_result *r)
{
    struct all_nodes none = {0};
    json_t *run = copy_report_value(o, r, &none);
    int code = trace_file_write(cli, file, NULL, run);

    json_decref(run);
    return code;
}

static int copy(struct cli *cli, struct copy_order *o, const struct copy_arguments *a)
{
    struct torus_copy_result *result;
    struct torus_error e;
    struct copy_watch watch;
    int code, r;

    copy_watch_begin(&watch, o->copy.dry_run || o->copy.verify);
    interrupt_arm(cli->client);
    r = torus_client_copy(cli->client, &o->copy, copy_watch_update, &watch, &result, &e);
    interrupt_disarm();
    progress_end(&watch.progress);
    if (r != 0)
        return print_failure(cli, o, watch.moved, &e);
    code = print_result(cli, o, a->per_node, result);
    if (a->trace != NULL) {
        int traced = write_trace(cli, o, a->trace, result);
        code = code == EXIT_DONE ? traced : code;
    }
    torus_copy_result_free(result);
    return code;
}

int copy_run(struct cli *cli, enum torus_copy_kind kind, const struct copy_arguments *a)
{
    struct copy_order *o = calloc(1, sizeof *o);
    struct error e = {.code = ERROR_MEMORY, .text = "out of memory"};
    int code = trace_file_check(cli, a->trace);

    cli->job = "copy";
    if (o == NULL)
        return cli_fail(cli, &e);
    if (code == EXIT_DONE && copy_order_make(o, kind, a, &e) != 0)
        code = cli_fail(cli, &e);
    if (code == EXIT_DONE)
        code = cli_connect(cli);
    if (code == EXIT_DONE)
        code = ask_daemon(cli, o, a);
    if (code == EXIT_DONE)
        code = copy(cli, o, a);
    copy_order_free(o);
    free(o);
    return code;
}
