#include "client/cli/sweep.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/exchange_report.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/named_algorithm.h"
#include "client/cli/progress.h"

/* A sweep under way. */
struct running {
    struct sweep *sweep;
    struct cli *cli;
    struct progress progress;
    char now[96]; /* what is running */
};

int sweep_add(struct sweep *s, const char *name, struct error *e)
{
    for (size_t i = 0; i < s->algorithms; i++)
        if (strcmp(s->algorithm[i], name) == 0)
            return error_set(e, ERROR_USAGE, "%s is given twice", name);
    if (s->algorithms == SWEEP_MOST_ALGORITHMS)
        return error_set(e, ERROR_USAGE, "more than %d algorithms", (int)SWEEP_MOST_ALGORITHMS);
    s->algorithm[s->algorithms++] = name;
    return 0;
}

int sweep_add_schedule(struct sweep *s, const struct schedule_file *file, struct error *e)
{
    if (sweep_add(s, imported_algorithm(file->imported)->name, e) != 0)
        return -1;
    s->schedule[s->algorithms - 1] = file;
    return 0;
}

static json_t *failure(const struct torus_error *e)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "code", json_string(torus_error_name(e->code)));
    (void)json_object_set_new(o, "text", json_string(e->text));
    return o;
}

/* Adds what the session reported, or why it failed. Returns 0, or -1 with *e. */
static int add_result(struct sweep *s, uint64_t size, const char *name,
                      const struct torus_result *result, double took,
                      const struct torus_error *failed, struct error *e)
{
    static const char *const kept[] = {"id",          "mode",           "rounds",
                                       "seconds",     "seconds_each",   "seconds_min",
                                       "seconds_max", "seconds_spread", "bound_seconds",
                                       "efficiency",  "call_seconds",   "sustained_seconds"};
    json_t *o = json_object(), *report;
    int r = json_object_set_new(o, "block_bytes", json_count(size)) |
            json_object_set_new(o, "algorithm", json_string(name));

    if (result == NULL) {
        s->failed++;
        r |= json_object_set_new(o, "error", failure(failed));
    } else {
        report = exchange_report(result, took, true, e);
        if (report == NULL) {
            json_decref(o);
            return -1;
        }
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            r |= json_object_set(o, kept[i], json_object_get(report, kept[i]));
        if (leaves_choice(name))
            r |= json_object_set(o, "chosen", json_object_get(report, "algorithm"));
        json_decref(report);
    }
    if (r == 0 && json_array_append_new(s->results, o) == 0)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for the results");
}

/* Whether there is a daemon for another call: on this connection, or, if it has been closed, on a
 * new one. */
static bool can_go_on(struct running *run)
{
    struct torus_status *status;
    struct torus_client *another;

    if (torus_client_status(run->cli->client, &status, NULL) == 0) {
        torus_status_free(status);
        return true;
    }
    another = torus_client_open(run->cli->socket, NULL);
    if (another == NULL)
        return false;
    interrupt_disarm();
    torus_client_close(run->cli->client);
    run->cli->client = another;
    interrupt_arm(another);
    return true;
}

static int run_one(struct running *run, uint64_t size, size_t index, struct error *e)
{
    struct sweep *s = run->sweep;
    const struct schedule_file *file = s->schedule[index];
    const char *name = s->algorithm[index];
    char digest[TORUS_DIGEST_SIZE];
    struct torus_request request;
    struct torus_result *result;
    struct torus_error failed;
    char bytes[FORMAT_SIZE];
    double began = (double)progress_clock(), took;
    int r;

    torus_request_init(&request);
    if (file != NULL)
        request.schedule = digest;
    else
        request.algorithm = name;
    request.block_bytes = size;
    request.repeat = s->repeat;
    request.mode = s->mode;
    request.timeout_ms = s->timeout_ms;
    format_bytes(bytes, (double)size);
    (void)snprintf(run->now, sizeof run->now, "%zu of %zu: %s, %.20s",
                   json_array_size(s->results) + 1, s->sizes * s->algorithms, name, bytes);
    result = NULL;
    r = file != NULL ? torus_client_schedule(run->cli->client, file->text, file->length, digest,
                                             &failed) /* it may not be there any more */
                     : 0;
    if (r == 0)
        r = torus_client_exchange(run->cli->client, &request, progress_update, &run->progress,
                                  &result, &failed);
    if (r != 0 && (failed.code == TORUS_ERROR_CANCELLED || interrupt_seen())) {
        s->stopped = true;
        return 0;
    }
    took = ((double)progress_clock() - began) / 1e3;
    r = add_result(s, size, name, result, took, &failed, e);
    if (result == NULL)
        s->stopped = !can_go_on(run);
    torus_result_free(result);
    return r;
}

int sweep_run(struct sweep *s, struct cli *cli, struct error *e)
{
    struct running run = {.sweep = s, .cli = cli};
    int r = 0;

    s->results = json_array();
    if (s->results == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    progress_begin(&run.progress, true);
    run.progress.title = run.now;
    interrupt_arm(cli->client);
    for (size_t i = 0; i < s->sizes && r == 0; i++)
        for (size_t k = 0; k < s->algorithms && r == 0 && !s->stopped; k++)
            r = run_one(&run, s->size[i], k, e);
    interrupt_disarm();
    progress_end(&run.progress);
    if (r != 0)
        json_decref(s->results);
    return r;
}
