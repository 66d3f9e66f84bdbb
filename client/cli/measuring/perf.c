#include "client/cli/measuring/perf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"
#include "daemon/lib/schedule/detour/detour.h"

#define LEAST 5     /* repetitions */
#define MOST 100    /* repetitions */
#define SECONDS 1.0 /* approximate time for one size */

uint32_t perf_repetitions(double seconds)
{
    double fit = seconds > 0 ? SECONDS / seconds : MOST;

    return fit < LEAST ? LEAST : fit > MOST ? MOST : (uint32_t)fit;
}

/* A measurement under way. */
struct running {
    struct perf_job job;
    struct torus_group *whole;
    uint64_t wrong; /* wrong blocks or elements at this member */
};

static int fail_memory(struct torus_error *e)
{
    *e = (struct torus_error){.code = TORUS_ERROR_MEMORY, .text = "out of memory"};
    return -1;
}

static struct timespec now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t;
}

static double seconds_since(struct timespec t)
{
    struct timespec n = now();
    return (double)(n.tv_sec - t.tv_sec) + (double)(n.tv_nsec - t.tv_nsec) / 1e9;
}

/* Pauses, until limiters of the links let short messages pass at once again, and then waits in a barrier. The barrier
 * comes last, so that all members start at the same time and are awake. */
static int wait_for_members(const struct running *run, struct torus_error *e)
{
    uint64_t pause = run->job.plan->pause_ns;
    struct timespec until = now();

    until.tv_sec += (time_t)(pause / 1000000000);
    until.tv_nsec += (long)(pause % 1000000000);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (pause > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    return torus_barrier(run->whole, e);
}

static bool verifies(const struct running *run)
{
    return run->job.plan->verify && run->job.plan->operation->wrong != NULL;
}

/* Checks the contents after all members have ended the call: if members share a processor, an earlier check would
 * delay members that are still being timed. */
static int check(struct running *run, struct torus_error *e)
{
    if (!verifies(run))
        return 0;
    if (torus_barrier(run->whole, e) != 0)
        return -1;
    run->wrong += run->job.plan->operation->wrong(&run->job);
    return 0;
}

/* Prepares timed calls: fills the send area with contents that can be checked, and waits for all members. */
static int prepare_calls(struct running *run, struct torus_error *e)
{
    run->job.number++;
    if (verifies(run))
        run->job.plan->operation->fill(&run->job);
    return wait_for_members(run, e);
}

/* Makes several calls, and sets *seconds to their time at this member. Only the contents of the last call are
 * checked. */
static int time_calls(struct running *run, unsigned calls, double *seconds, struct torus_error *e)
{
    const struct perf_operation *operation = run->job.plan->operation;
    struct timespec began;

    if (prepare_calls(run, e) != 0)
        return -1;
    began = now();
    for (unsigned i = 0; i < calls; i++)
        if (operation->call(&run->job, e) != 0)
            return -1;
    *seconds = seconds_since(began);
    return check(run, e);
}

static int take_longest(const struct running *run, double *seconds, size_t count,
                        struct torus_error *e)
{
    return torus_allreduce(run->whole, TORUS_IN_PLACE, seconds, count, TORUS_FLOAT64, TORUS_MAX, e);
}

/* Makes calls that are not counted. Sets *repeat to the number of repetitions, the same at all members. */
static int warm_up(struct running *run, size_t *repeat, struct torus_error *e)
{
    const struct perf_plan *plan = run->job.plan;
    double seconds = 0;

    for (uint32_t i = 0; i < plan->warm_up || (i == 0 && plan->repeat == 0); i++)
        if (time_calls(run, 1, &seconds, e) != 0)
            return -1;
    if (take_longest(run, &seconds, 1, e) != 0)
        return -1;
    *repeat =
        plan->repeat > 0 ? plan->repeat : perf_repetitions(seconds + (double)plan->pause_ns / 1e9);
    return 0;
}

/* Times calls back to back: one batch after another, with only the clock read in between. */
static int time_batches(struct running *run, struct perf_row *row, struct torus_error *e)
{
    const struct perf_operation *operation = run->job.plan->operation;
    struct timespec began;

    if (prepare_calls(run, e) != 0)
        return -1;
    for (size_t i = 0; i < row->repeat; i++) {
        began = now();
        for (unsigned k = 0; k < PERF_BATCH; k++)
            if (operation->call(&run->job, e) != 0)
                return -1;
        row->period[i] = seconds_since(began) / PERF_BATCH;
    }
    return check(run, e);
}

static int measure(struct running *run, struct perf_row *row, struct torus_error *e)
{
    bool small = row->bytes < PERF_SMALL;

    if (warm_up(run, &row->repeat, e) != 0)
        return -1;
    row->latency = calloc(row->repeat, sizeof *row->latency);
    row->period = small ? calloc(row->repeat, sizeof *row->period) : NULL;
    if (row->latency == NULL || (small && row->period == NULL))
        return fail_memory(e);
    for (size_t i = 0; i < row->repeat; i++)
        if (time_calls(run, 1, &row->latency[i], e) != 0)
            return -1;
    if (small && time_batches(run, row, e) != 0)
        return -1;
    if (take_longest(run, row->latency, row->repeat, e) != 0 ||
        (small && take_longest(run, row->period, row->repeat, e) != 0))
        return -1;
    row->wrong = run->wrong;
    if (torus_allreduce(run->whole, TORUS_IN_PLACE, &row->wrong, 1, TORUS_UINT64, TORUS_SUM, e) !=
        0)
        return -1;
    sort_values(row->latency, row->repeat);
    if (small)
        sort_values(row->period, row->repeat);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int allocate_area(struct running *run, uint8_t **area, size_t size, struct torus_error *e)
{
    if (size == 0)
        return 0;
    if (!run->job.plan->ordinary)
        *area = torus_memory_new(run->whole, size, e);
    else if ((*area = calloc(1, size)) == NULL)
        return fail_memory(e);
    return *area != NULL ? 0 : -1;
}

static void release_area(struct running *run, uint8_t *area)
{
    if (!run->job.plan->ordinary)
        torus_memory_free(run->whole, area);
    else
        free(area);
}

static int prepare(struct running *run, struct torus_error *e)
{
    struct perf_job *job = &run->job;
    size_t *lists = calloc(4 * (size_t)job->members, sizeof *lists);

    if (lists == NULL)
        return fail_memory(e);
    job->send_bytes = lists;
    job->send_offset = lists + job->members;
    job->receive_bytes = lists + 2 * (size_t)job->members;
    job->receive_offset = lists + 3 * (size_t)job->members;
    if (perf_lay_out(job, e) != 0 || allocate_area(run, &job->send, job->send_size, e) != 0 ||
        allocate_area(run, &job->receive, job->receive_size, e) != 0)
        return -1;
    return 0;
}

int perf_run(const struct perf_plan *plan, size_t index, struct torus_group *whole,
             struct torus_group *part, const struct torus *t, struct perf_row *row,
             struct torus_error *e)
{
    struct running run = {.whole = whole,
                          .job = {.plan = plan,
                                  .group = part,
                                  .rank = torus_group_rank(part),
                                  .members = torus_group_size(part),
                                  .bytes = plan->size[index]}};
    int r = prepare(&run, e);

    *row = (struct perf_row){.bytes = run.job.bytes};
    if (r == 0) {
        r = measure(&run, row, e);
        row->received = perf_received(&run.job);
        row->bound = perf_bound(&run.job, t);
    }
    release_area(&run, run.job.send);
    release_area(&run, run.job.receive);
    free(run.job.send_bytes);
    if (r != 0)
        perf_row_release(row);
    return r;
}

void perf_row_release(struct perf_row *row)
{
    free(row->latency);
    free(row->period);
    *row = (struct perf_row){0};
}

/* --- rates of links --- */

/* The same network in which everything goes the other way. */
static int reverse(struct damage *to, const struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;

    if (damage_init(to, t, e) != 0)
        return -1;
    for (uint32_t node = 0; node < t->nodes; node++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (damage_has_link(d, node, port) &&
                damage_set_rate(to, torus_neighbour(t, node, port), torus_port_opposite(t, port),
                                damage_rate(d, node, port), e) != 0) {
                damage_free(to);
                return -1;
            }
    return 0;
}

/* The bound of a reduction to the root, which is a broadcast backwards; 0 without memory. */
static double reduce_bound(const struct damage *d, uint32_t root)
{
    struct damage back;
    double cut = 0;

    if (reverse(&back, d, NULL) == 0) {
        cut = detour_least_cut(&back, root);
        damage_free(&back);
    }
    return cut > 0 ? 1 / cut : 0;
}

/* In blocks. Returns 0 for operations of which no bound is known. */
static double rated_bound(const struct perf_plan *plan, const struct damage *d)
{
    const char *name = plan->operation->name;

    if (strcmp(name, "alltoall") == 0)
        return detour_exchange_bound(d);
    if (strcmp(name, "allgather") == 0)
        return detour_gather_bound(d);
    if (strcmp(name, "broadcast") == 0)
        return 1 / detour_least_cut(d, plan->root);
    return strcmp(name, "reduce") == 0 ? reduce_bound(d, plan->root) : 0;
}

void perf_row_set_rates(struct perf_row *row, const struct perf_plan *plan, const struct torus *t,
                        bool whole, const struct torus_group_info *info)
{
    struct damage d;

    if (info->rates[0] == '\0')
        return;
    (void)snprintf(row->rates, sizeof row->rates, "%s", info->rates);
    row->full_bps = (double)info->full_bps;
    if (!whole || damage_init(&d, t, NULL) != 0)
        return;
    if (damage_parse_rates(&d, info->rates, false, NULL) ==
        0) /* not if they are cut, or not for *t */
        row->rated_bound = (double)row->bytes * rated_bound(plan, &d);
    damage_free(&d);
}

/* --- the report --- */

const char *const perf_types[] = {NULL,     "int8",   "int16",  "int32",   "int64",   "uint8",
                                  "uint16", "uint32", "uint64", "float32", "float64", NULL};
const char *const perf_operators[] = {NULL,  "sum", "product", "min", "max",
                                      "and", "or",  "xor",     NULL};

/* Adds the median and the quartiles under the three keys. */
static int set_times(json_t *o, const char *const key[3], const double *sorted, size_t count)
{
    static const double part[] = {0.5, 0.25, 0.75};
    int r = 0;

    for (size_t i = 0; i < 3; i++)
        r |= json_object_set_new(
            o, key[i], sorted != NULL ? json_real(quantile(sorted, count, part[i])) : json_null());
    return r;
}

static json_t *each(const double *seconds, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; seconds != NULL && i < count; i++)
        (void)json_array_append_new(list, json_real(seconds[i]));
    return list;
}

/* Adds the rate, the bound and their ratio, for calls back to back if these were measured. */
static int set_rates(json_t *o, const struct perf_row *row, double link_mbit)
{
    const double *times = row->period != NULL ? row->period : row->latency;
    double time = quantile(times, row->repeat, 0.5);
    const bool rated = row->rates[0] != '\0';
    const double bps = rated ? row->full_bps : link_mbit * 1e6;
    const double bound = bps > 0 ? (rated ? row->rated_bound : row->bound) * 8 / bps : 0;
    int r = 0;

    if (rated)
        r |= json_object_set_new(o, "rates", json_string(row->rates)) |
             json_object_set_new(o, "full_bits_per_second", json_positive(bps)) |
             json_object_set_new(o, "equal_bound_seconds",
                                 json_positive(bps > 0 ? row->bound * 8 / bps : 0));
    return r |
           json_object_set_new(o, "bits_per_second",
                               row->received > 0 && time > 0 ? json_real(row->received * 8 / time)
                                                             : json_null()) |
           json_object_set_new(o, "bound_seconds", bound > 0 ? json_real(bound) : json_null()) |
           json_object_set_new(
               o, "ratio", bound > 0 ? json_real(round(time / bound * 1e3) / 1e3) : json_null());
}

json_t *perf_row_value(const struct perf_plan *plan, const struct perf_row *row, double link_mbit)
{
    static const char *const latency[] = {"latency_seconds", "latency_q1_seconds",
                                          "latency_q3_seconds"};
    static const char *const period[] = {"period_seconds", "period_q1_seconds",
                                         "period_q3_seconds"};
    json_t *o = json_object();
    int r = 0;

    if (plan->operation->fill != NULL)
        r |= json_object_set_new(o, "bytes", json_count(row->bytes));
    r |= json_object_set_new(o, "repeat", json_count(row->repeat));
    r |= set_times(o, latency, row->latency, row->repeat);
    r |= set_times(o, period, row->period, row->repeat);
    r |= set_rates(o, row, link_mbit);
    r |= json_object_set_new(o, "latency_seconds_each", each(row->latency, row->repeat));
    r |= json_object_set_new(o, "period_seconds_each", each(row->period, row->repeat));
    if (plan->verify) {
        r |= json_object_set_new(o, "wrong", json_count(row->wrong));
        r |= json_object_set_new(o, "contents", json_string(row->wrong == 0 ? "right" : "WRONG"));
    }
    return json_checked(o, r);
}

static json_t *dimensions(uint32_t mask)
{
    json_t *list = json_array();

    for (unsigned d = 0; d < TORUS_MAX_DIMS; d++)
        if ((mask >> d & 1) != 0)
            (void)json_array_append_new(list, json_integer(d));
    return list;
}

json_t *perf_value(const struct perf_plan *plan, const struct torus *whole,
                   const struct torus *part, double link_mbit, json_t *rows)
{
    char text[TORUS_TEXT_SIZE];
    json_t *o = json_object();
    int r = json_set_torus(o, whole);

    r |= json_object_set_new(o, "node_count", json_integer(whole->nodes));
    r |= json_object_set_new(o, "link_mbit", json_positive(link_mbit));
    r |= json_object_set_new(o, "operation", json_string(plan->operation->name));
    if (plan->dimensions != 0) {
        r |= json_object_set_new(o, "part", json_string(torus_format(part, text)));
        r |= json_object_set_new(o, "part_dimensions", dimensions(plan->dimensions));
    }
    if (plan->operation->reduces) {
        r |= json_object_set_new(o, "type", json_string(perf_types[plan->type]));
        r |= json_object_set_new(o, "operator", json_string(perf_operators[plan->combination]));
    }
    if (plan->operation->rooted)
        r |= json_object_set_new(o, "root", json_integer(plan->root));
    r |= json_object_set_new(o, "memory", json_string(plan->ordinary ? "ordinary" : "registered"));
    r |= json_object_set_new(o, "pause_seconds", json_real((double)plan->pause_ns / 1e9));
    r |= json_object_set_new(o, "warm_up", json_integer(plan->warm_up));
    r |= json_object_set_new(o, "verified", json_boolean(plan->verify));
    r |= json_object_set_new(o, "results", rows);
    return json_checked(o, r);
}

#define SUMMARY_FIELDS                                                                             \
    FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),                            \
        FIELD("links", "link_mbit", FORMAT_MBIT), FIELD("operation"), FIELD("part"),               \
        FIELD("type"), FIELD("operator"), FIELD("root"), FIELD("memory"),                          \
        FIELD("pause", "pause_seconds", FORMAT_SECONDS)
#define RESULT_FIELDS(...)                                                                         \
    FIELD("size", "bytes", FORMAT_BYTES), FIELD("calls", "repeat"),                                \
        FIELD("latency", "latency_seconds", FORMAT_SECONDS),                                       \
        FIELD("25 %", "latency_q1_seconds", FORMAT_SECONDS),                                       \
        FIELD("75 %", "latency_q3_seconds", FORMAT_SECONDS),                                       \
        FIELD("back to back", "period_seconds", FORMAT_SECONDS),                                   \
        FIELD("25 %", "period_q1_seconds", FORMAT_SECONDS),                                        \
        FIELD("75 %", "period_q3_seconds", FORMAT_SECONDS),                                        \
        FIELD("per node", "bits_per_second", FORMAT_RATE),                                         \
        FIELD("bound", "bound_seconds", FORMAT_SECONDS), __VA_ARGS__ FIELD("ratio"),               \
        FIELD("contents")

static const struct section sections[] = {
    RECORD(NULL, SUMMARY_FIELDS),
    TABLE("results", RESULT_FIELDS()),
};
/* The rates are those of the last size. */
static const struct section rated_sections[] = {
    RECORD(NULL, SUMMARY_FIELDS, RATES_FIELDS),
    TABLE("results", RESULT_FIELDS(EQUAL_BOUND_FIELD, )),
};

const struct view *perf_view(bool rated)
{
    static const struct view view = {sections, 2}, rated_view = {rated_sections, 2};

    return rated ? &rated_view : &view;
}

/* --- the calls of one size, measured by the member where they take longest --- */
