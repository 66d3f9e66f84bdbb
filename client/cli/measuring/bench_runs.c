#include "client/cli/measuring/bench_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/exchanging/exchange_report.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/terminal/quantile.h"

#define PASS_SECONDS 3.0 /* limit for one algorithm at one size in one pass */

/* Runs under way. */
struct running {
    struct bench_runs *runs;
    struct cli *cli;
    struct progress progress;
    char now[96]; /* title of the progress: the run under way */
};

int bench_runs_add(struct bench_runs *s, const char *name, struct error *e)
{
    for (size_t i = 0; i < s->algorithms; i++)
        if (strcmp(s->algorithm[i], name) == 0)
            return error_set(e, ERROR_USAGE, "%s is given twice", name);
    if (s->algorithms == BENCH_MOST_ALGORITHMS)
        return error_set(e, ERROR_USAGE, "more than %d algorithms", (int)BENCH_MOST_ALGORITHMS);
    s->algorithm[s->algorithms++] = name;
    return 0;
}

int bench_runs_add_schedule(struct bench_runs *s, const struct schedule_file *file, struct error *e)
{
    if (bench_runs_add(s, imported_algorithm(file->imported)->name, e) != 0)
        return -1;
    s->schedule[s->algorithms - 1] = file;
    return 0;
}

static uint32_t bench_runs_passes(const struct bench_runs *s)
{
    return s->passes > 0 ? s->passes : 1;
}

static json_t *failure(const struct torus_error *e)
{
    json_t *o = json_object();
    (void)json_object_set_new(o, "code", json_string(torus_error_name(e->code)));
    (void)json_object_set_new(o, "text", json_string(e->text));
    return o;
}

/* Returns the result of earlier passes, or NULL. */
static json_t *find_result(const struct bench_runs *s, uint64_t size, const char *name)
{
    json_t *o;
    size_t i;

    json_array_foreach(s->results, i, o)
    {
        if ((uint64_t)json_integer_value(json_object_get(o, "block_bytes")) == size &&
            strcmp(json_string_value(json_object_get(o, "algorithm")), name) == 0)
            return o;
    }
    return NULL;
}

/* In results whose routes were found for different rates of links. */
static const char *const of_rates[] = {"rates", "full_bits_per_second", "equal_bound_seconds"};

/* Removes the bounds of a result if another pass had other rates of links. */
static int compare_rates(json_t *o, const json_t *another)
{
    json_t *before = json_object_get(o, "rates"), *now = json_object_get(another, "rates");

    if (before == now || json_equal(before, now))
        return 0;
    for (size_t i = 0; i < sizeof of_rates / sizeof of_rates[0]; i++)
        (void)json_object_del(o, of_rates[i]);
    return json_object_set_new(o, "bound_seconds", json_null());
}

/* Adds the times of another pass to a result, and removes the figures that describe one pass only. If the other pass
 * has failed, the result becomes a failure. */
static int add_pass(json_t *o, const json_t *another)
{
    static const char *const of_one_pass[] = {"id", "seconds_spread", "efficiency", "call_seconds",
                                              "sustained_seconds"};
    json_t *each = json_object_get(o, "seconds_each");
    size_t count = json_array_size(each), i;
    double *seconds;

    if (json_object_get(another, "error") != NULL)
        return json_object_update_missing(o, (json_t *)another);
    if (json_array_extend(each, json_object_get(another, "seconds_each")) != 0 ||
        compare_rates(o, another) != 0)
        return -1;
    count = json_array_size(each);
    seconds = calloc(count + 1, sizeof *seconds);
    if (seconds == NULL)
        return -1;
    for (i = 0; i < count; i++)
        seconds[i] = json_number_value(json_array_get(each, i));
    sort_values(seconds, count);
    for (i = 0; i < sizeof of_one_pass / sizeof of_one_pass[0]; i++)
        (void)json_object_del(o, of_one_pass[i]);
    i = (size_t)(json_object_set_new(o, "seconds", json_real(quantile(seconds, count, 0.5))) |
                 json_object_set_new(o, "seconds_min", json_real(quantile(seconds, count, 0))) |
                 json_object_set_new(o, "seconds_max", json_real(quantile(seconds, count, 1))));
    free(seconds);
    return i == 0 ? 0 : -1;
}

/* Stores the result of a run, or adds it to that of earlier passes. Takes ownership of `o`. */
static int keep_result(struct bench_runs *s, json_t *o, uint64_t size, const char *name)
{
    json_t *before = find_result(s, size, name);
    int r;

    if (before == NULL)
        return json_array_append_new(s->results, o);
    r = add_pass(before, o);
    json_decref(o);
    return r;
}

/* Adds the result of a run, or the error if `result` is NULL. Returns 0, or -1 with *e. */
static int add_result(struct bench_runs *s, uint64_t size, const char *name,
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
        for (size_t i = 0; i < sizeof of_rates / sizeof of_rates[0]; i++)
            if (json_object_get(report, of_rates[i]) != NULL)
                r |= json_object_set(o, of_rates[i], json_object_get(report, of_rates[i]));
        if (leaves_choice(name))
            r |= json_object_set(o, "chosen", json_object_get(report, "algorithm"));
        if (s->passes > 0 && json_object_get(o, "seconds_each") == NULL)
            r |= json_object_set_new(o, "seconds_each",
                                     json_pack("[O]", json_object_get(o, "seconds")));
        json_decref(report);
    }
    if (r == 0 && keep_result(s, o, size, name) == 0)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for the results");
}

/* Returns whether the daemon answers, on this connection or on a new one, which then replaces this connection. */
static bool has_daemon(struct running *run)
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

/* Returns the number of exchanges of a run. If there are several passes, it is limited to the number that fits into
 * PASS_SECONDS, by the time of an earlier pass or a smaller block. */
static uint32_t affordable_repeat(const struct bench_runs *s, uint64_t size, const char *name)
{
    double longest = 0;
    size_t i;
    json_t *o;

    json_array_foreach(s->results, i, o)
    {
        uint64_t known = (uint64_t)json_integer_value(json_object_get(o, "block_bytes"));
        double seconds = json_number_value(json_object_get(o, "seconds"));
        if (known <= size && known > 0 &&
            strcmp(json_string_value(json_object_get(o, "algorithm")), name) == 0) {
            double expected = seconds * (double)(size / known);
            longest = known == size ? seconds : expected;
            if (known == size)
                break;
        }
    }
    if (s->passes == 0 || longest * s->repeat <= PASS_SECONDS)
        return s->repeat;
    return longest >= PASS_SECONDS ? 1 : (uint32_t)(PASS_SECONDS / longest);
}

static int run_one(struct running *run, uint64_t size, size_t index, struct error *e)
{
    struct bench_runs *s = run->runs;
    const struct schedule_file *file = s->schedule[index];
    const char *name = s->algorithm[index];
    char digest[TORUS_DIGEST_SIZE];
    struct torus_request request;
    struct torus_result *result;
    struct torus_error failed;
    char bytes[FORMAT_SIZE];
    const json_t *before = find_result(s, size, name);
    double began = clock_seconds(), took;
    int r;

    if (json_object_get(before, "error") != NULL) {
        s->runs++; /* it failed in an earlier pass, and would fail again */
        return 0;
    }
    torus_request_init(&request);
    if (file != NULL)
        request.schedule = digest;
    else
        request.algorithm = name;
    request.block_bytes = size;
    request.repeat = affordable_repeat(s, size, name);
    request.mode = s->mode;
    request.timeout_ms = s->timeout_ms;
    format_bytes(bytes, (double)size);
    (void)snprintf(run->now, sizeof run->now, "%zu of %zu: %s, %.20s", s->runs + 1, s->all_runs,
                   name, bytes);
    result = NULL;
    r = file != NULL
            ? torus_client_schedule(run->cli->client, file->text, file->length, digest,
                                    &failed) /* each time: the daemon may have been restarted */
            : 0;
    if (r == 0)
        r = torus_client_exchange(run->cli->client, &request, progress_update, &run->progress,
                                  &result, &failed);
    if (r != 0 && (failed.code == TORUS_ERROR_CANCELLED || interrupt_seen())) {
        s->stopped = true;
        return 0;
    }
    s->runs++;
    took = clock_seconds() - began;
    r = add_result(s, size, name, result, took, &failed, e);
    if (result == NULL)
        s->stopped = !has_daemon(run);
    torus_result_free(result);
    return r;
}

int bench_run_all(struct bench_runs *s, struct cli *cli, struct error *e)
{
    struct running run = {.runs = s, .cli = cli};
    int r = 0;

    s->all_runs = bench_runs_passes(s) * s->sizes * s->algorithms;
    s->results = json_array();
    if (s->results == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    progress_begin(&run.progress);
    run.progress.title = run.now;
    interrupt_arm(cli->client);
    for (uint32_t pass = 0; pass < bench_runs_passes(s); pass++)
        for (size_t i = 0; i < s->sizes; i++)
            for (size_t k = 0; k < s->algorithms && r == 0 && !s->stopped; k++)
                r = run_one(&run, s->size[i], k, e);
    interrupt_disarm();
    progress_end(&run.progress);
    if (r != 0)
        json_decref(s->results);
    return r;
}

int bench_runs_set(json_t *o, const struct bench_runs *s)
{
    return json_set_torus(o, &s->torus) |
           json_object_set_new(o, "node_count", json_integer(s->torus.nodes)) |
           json_object_set_new(o, "link_mbit", json_positive(s->link_mbit)) |
           json_object_set_new(o, "repeat", json_integer(s->repeat)) |
           json_object_set_new(o, "complete", json_boolean(!s->stopped));
}
