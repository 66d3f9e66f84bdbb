#include "client/cli/measuring/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/daemon_torus.h"
#include "client/cli/algorithms/found_routes.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/terminal/quantile.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/text.h"

#define PASSES 3u
#define SMALL_SECONDS 0.08 /* approximate time for one algorithm with single bytes in one pass */
#define SMALL_MOST 100u
#define WARM_UP 3u
#define FIRST_BLOCK 1024u
#define BLOCK_MOST (UINT64_C(1) << 28)
#define BUSY_SECONDS 0.8
#define BUSY_ENOUGH 0.5 /* seconds after which no larger block is tried */
#define BUSY_TIMES 2u   /* further measurements of this block; the fastest counts */
#define BETWEEN_FIRST UINT64_C(16)
#define BETWEEN_LAST (UINT64_C(1024) * 1024)
#define BETWEEN_GROWTH 4u
/* Exchanges that take longer than this are not measured, because the rate predicts them well. For blocks above LARGE
 * the limit is lower, unless links are so fast that processors limit the exchange. */
#define BETWEEN_SECONDS 0.4
#define LARGE UINT64_C(65536)
#define LARGE_SECONDS 0.2
#define BETWEEN_LEAST 5.0
#define BETWEEN_MOST 40.0
#define HOPELESS 3.0 /* an algorithm is not measured if it takes this times the shortest time */
#define NEARLY                                                                                     \
    1.25 /* an algorithm of up to this times the shortest time may be chosen, so it is measured */
#define GROWTH_MOST                                                                                \
    8.0 /* of the block at a time, because the first exchanges are slow: TCP starts slowly */

/* The algorithms that are measured at every size. Their numbers of steps, messages and blocks differ most. */
static const char *const names[] = {"tree",   "pair",     "pair-s2", "pair-s4", "dim",
                                    "dim-s2", "dim-tree", "stream",  "at2",     "direct"};

/* The connection for the measurements, and their progress. */
struct meter {
    struct torus_client *client;
    struct progress progress;
    char now[80];
};

/* Runs an exchange `repeat` times. Returns 0 with a quantile of the times in *seconds (part 0.5: the median) and,
 * unless `result` is NULL, *result, which the caller frees; or -1 with *failed. */
static int measure(struct meter *m, const char *algorithm, uint64_t block_bytes, uint32_t repeat,
                   double part, double *seconds, struct torus_result **result,
                   struct torus_error *failed)
{
    struct torus_request request;
    struct torus_result *r;
    double *each;

    torus_request_init(&request);
    request.algorithm = algorithm;
    request.block_bytes = block_bytes;
    request.repeat = repeat;
    if (torus_client_exchange(m->client, &request, progress_update, &m->progress, &r, failed) != 0)
        return -1;
    each = calloc(r->each_count + 1, sizeof *each);
    if (each == NULL) {
        *failed = (struct torus_error){TORUS_ERROR_MEMORY, "out of memory", ""};
        torus_result_free(r);
        return -1;
    }
    for (size_t i = 0; i < r->each_count; i++)
        each[i] = (double)r->each[i] / 1e9;
    sort_values(each, r->each_count);
    *seconds =
        r->each_count > 0 ? quantile(each, r->each_count, part) : (double)r->nanoseconds / 1e9;
    free(each);
    if (*seconds < 1e-9)
        *seconds = 1e-9; /* callers divide by it */
    if (result != NULL)
        *result = r;
    else
        torus_result_free(r);
    return 0;
}

/* Measures all algorithms with single bytes, in several passes. The shortest median of the passes counts, because
 * other load on the nodes can only make it longer. */
static int measure_small(struct meter *m, struct calibration_run *run, struct torus_error *failed)
{

    for (unsigned pass = 0; pass <= PASSES; pass++)
        for (size_t i = 0; i < run->measured; i++) {
            const char *name = run->algorithm[i]->name;
            double repeat = WARM_UP, seconds;
            (void)snprintf(m->now, sizeof m->now, "single bytes, pass %u of %u: %s", pass, PASSES,
                           name);
            if (pass > 0)
                repeat = SMALL_SECONDS / run->seconds[i];
            if (repeat > SMALL_MOST)
                repeat = SMALL_MOST;
            if (measure(m, name, 1, repeat > WARM_UP ? (uint32_t)repeat : WARM_UP, 0.5, &seconds,
                        NULL, failed) != 0)
                return -1;
            /* The first pass warms up caches and TCP. Its times only give the number of repetitions. */
            if (pass <= 1 || seconds < run->seconds[i])
                run->seconds[i] = seconds;
        }
    predict_fit(run->counts, run->seconds, run->measured, &run->costs);
    return 0;
}

static int measure_busy(struct meter *m, struct calibration_run *run, struct torus_error *failed,
                        struct error *e)
{
    const struct algorithm *stream = run->stream;
    struct predict_counts counts;

    if (predict_count(&run->torus, stream, true, &counts, e) != 0)
        return -1;
    run->block_bytes = FIRST_BLOCK;
    for (;;) {
        (void)snprintf(m->now, sizeof m->now, "all links busy: blocks of %llu KiB",
                       (unsigned long long)run->block_bytes / 1024);
        if (measure(m, stream->name, run->block_bytes, 1, 0, &run->block_seconds, NULL, failed) !=
            0)
            return -1;
        if (run->block_seconds >= BUSY_ENOUGH || run->block_bytes >= BLOCK_MOST)
            break;
        double growth = BUSY_SECONDS / run->block_seconds;
        run->block_bytes =
            (uint64_t)((double)run->block_bytes * (growth < GROWTH_MOST ? growth : GROWTH_MOST));
    }
    double first = run->block_seconds;
    if (measure(m, stream->name, run->block_bytes, BUSY_TIMES, 0, &run->block_seconds, &run->busy,
                failed) != 0)
        return -1;
    if (first < run->block_seconds)
        run->block_seconds = first;
    run->costs.bytes_per_second =
        predict_rate(&counts, &run->costs, run->block_bytes, run->block_seconds);
    return 0;
}

/* The state while sizes between one byte and busy links are measured. */
struct between {
    uint64_t bytes;
    double longest;                       /* seconds; exchanges that take longer are not measured */
    double ratio[CALIBRATION_ALGORITHMS]; /* by algorithm: last measured time / predicted time */
    double expected[CALIBRATION_ALGORITHMS]; /* by algorithm: seconds */
};

static int measure_at(struct meter *m, const struct calibration_run *run, struct between *b,
                      size_t i, double *seconds, struct torus_error *failed)
{
    const char *name = run->algorithm[i]->name;
    double repeat = SMALL_SECONDS / b->expected[i];

    (void)snprintf(m->now, sizeof m->now, "blocks of %llu %s: %s", (unsigned long long)b->bytes,
                   text_plural(b->bytes, "byte", "bytes"), name);
    repeat = repeat > BETWEEN_MOST ? BETWEEN_MOST : repeat < BETWEEN_LEAST ? BETWEEN_LEAST : repeat;
    if (measure(m, name, b->bytes, (uint32_t)repeat, 0.5, seconds, NULL, failed) != 0)
        return -1;
    b->ratio[i] *= *seconds / b->expected[i];
    return 0;
}

/* Measures one size with every algorithm that may be the fastest. The model is too optimistic about algorithms that
 * were not measured. So an algorithm is also measured if the model nearly prefers it to the fastest measured one. */
static int measure_size(struct meter *m, const struct calibration_run *run, struct between *b,
                        struct torus_error *failed)
{
    double best = b->longest, fastest = INFINITY, seconds;

    for (size_t i = 0; i < run->count; i++) {
        b->expected[i] = b->ratio[i] * predict_seconds(&run->counts[i], &run->costs, b->bytes);
        if (i < run->measured && b->expected[i] < best)
            best = b->expected[i];
    }
    if (best >= b->longest)
        return 0;
    for (size_t i = 0; i < run->count; i++) {
        if (b->expected[i] > (i < run->measured ? HOPELESS * best : NEARLY * fastest))
            continue;
        if (measure_at(m, run, b, i, &seconds, failed) != 0)
            return -1;
        fastest = seconds < fastest ? seconds : fastest;
    }
    return 0;
}

/* Measures sizes between one byte and busy links. The daemon remembers the results
 * (daemon/torusd/planning/choose.h); here they only decide what else to measure. */
static int measure_between(struct meter *m, const struct calibration_run *run,
                           struct torus_error *failed)
{
    struct between b;

    for (size_t i = 0; i < run->count; i++)
        b.ratio[i] = i < run->measured
                         ? run->seconds[i] / predict_seconds(&run->counts[i], &run->costs, 1)
                         : 1;
    for (b.bytes = BETWEEN_FIRST; b.bytes <= BETWEEN_LAST; b.bytes *= BETWEEN_GROWTH) {
        b.longest = b.bytes > LARGE ? LARGE_SECONDS : BETWEEN_SECONDS;
        if (measure_size(m, run, &b, failed) != 0)
            return -1;
    }
    return 0;
}

static int add_algorithm(struct calibration_run *run, const struct algorithm *a, struct error *e)
{
    if (a == NULL || run->count == CALIBRATION_ALGORITHMS || a->operation != OPERATION_EXCHANGE ||
        a->port_model != PORT_MODEL_ALL || algorithm_accepts(a, &run->torus, NULL) != 0 ||
        !predict_is_quick(&run->torus, a))
        return 0;
    if (predict_count(&run->torus, a, a->streaming, &run->counts[run->count], e) != 0)
        return -1;
    run->algorithm[run->count++] = a;
    return 0;
}

static bool is_named(const struct algorithm *a)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], a->name) == 0)
            return true;
    return false;
}

/* Finds the algorithms that accept the torus, and their counts: first the algorithms in names[], then the others. */
static int find_algorithms(struct calibration_run *run, struct error *e)
{
    run->stream = found_routes(algorithm_find(FOUND_NAME), &run->torus, &run->found, e);
    if (run->stream == NULL)
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (add_algorithm(
                run, strcmp(names[i], FOUND_NAME) == 0 ? run->stream : algorithm_find(names[i]),
                e) != 0)
            return -1;
    run->measured = run->count;
    for (size_t i = 0; i < algorithm_count(); i++)
        if (!is_named(algorithm_at(i)) && add_algorithm(run, algorithm_at(i), e) != 0)
            return -1;
    if (run->measured == 0)
        return error_set(e, ERROR_REFUSED,
                         "no algorithm that can measure the costs accepts this torus");
    return 0;
}

int calibration_measure(struct torus_client *client, struct calibration_run *run,
                        struct torus_error *failed, struct error *e)
{
    struct meter m = {.client = client};
    struct torus_status *status;
    int r;

    *run = (struct calibration_run){0};
    *e = (struct error){0};
    *failed = (struct torus_error){0};
    if (torus_client_status(client, &status, failed) != 0)
        return -1;
    r = daemon_torus_of_status(status, &run->torus, e);
    torus_status_free(status);
    if (r != 0)
        return -1;
    if (run->torus.nodes < 2)
        return error_set(e, ERROR_REFUSED, "a torus of one node has no links to calibrate");
    if (find_algorithms(run, e) != 0) {
        calibration_free(run);
        return -1;
    }
    progress_begin(&m.progress, true);
    m.progress.title = m.now;
    r = measure_small(&m, run, failed) != 0 || measure_busy(&m, run, failed, e) != 0 ||
                measure_between(&m, run, failed) != 0
            ? -1
            : 0;
    progress_end(&m.progress);
    if (r != 0)
        calibration_free(run);
    return r;
}

void calibration_free(struct calibration_run *run)
{
    torus_result_free(run->busy);
    run->busy = NULL;
    detour_free(run->found);
    run->found = NULL;
}
