/* torusctl calibrate: measures the costs of exchanges on this torus, and sends them to all nodes.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <torus/torus.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/exchanging/candidates.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/terminal/quantile.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/predict.h"
#include "proto/text.h"

/* Measures the costs of exchanges on a running torus (daemon/lib/schedule/predict.h):
 *
 * - A step and a message: exchanges of single bytes by algorithms with different numbers of steps and messages. The
 *   costs are those that explain the medians best.
 * - A byte: an exchange that keeps all links busy in both directions for most of a second gives the rate. Every
 *   exchange waits for the slowest link, so this rate includes the slowest link and the limits of processors. The
 *   rates that TCP reports for each link are only shown: they tell which link is slow, but rise with every burst that
 *   a link passes.
 * - Sizes in between, where bursts and processors make each algorithm differ from the model: exchanges of several
 *   sizes, whose results the daemon that was asked remembers. Algorithms that the model would prefer to the measured
 *   ones are measured, too. */

#define CALIBRATION_ALGORITHMS 64 /* at most */

struct calibration_run {
    struct torus torus;
    struct predict_costs costs;
    size_t count;    /* number of algorithms that auto may choose on this torus */
    size_t measured; /* number of these, from the first on, that are measured with single bytes */
    const struct algorithm *algorithm[CALIBRATION_ALGORITHMS];
    const struct algorithm *stream; /* one of these, which keeps all links busy */
    struct detour *found;           /* NULL, or holds its routes: see found_routes() */
    struct predict_counts counts[CALIBRATION_ALGORITHMS];
    double seconds[CALIBRATION_ALGORITHMS]; /* median for one byte, if measured */
    uint64_t block_bytes;                   /* block size of the exchange with all links busy */
    double block_seconds;                   /* its time */
    struct torus_result *busy;              /* its result */
};

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

static void calibration_free(struct calibration_run *run)
{
    torus_result_free(run->busy);
    run->busy = NULL;
    detour_free(run->found);
    run->found = NULL;
}

/* Measures the costs, and shows the progress on a terminal. Returns 0 with *run, which the caller frees with
 * calibration_free(), or -1 with *failed if the daemon or an exchange has failed (then failed->code is not 0),
 * otherwise with *e. */
static int calibration_measure(struct torus_client *client, struct calibration_run *run,
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
    progress_begin(&m.progress);
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

/* A link is reported as slow if its TCP rate is below SLOW times the median, and if it limited the exchange. It did
 * if the TCP rate is about the rate of the bytes that the link carried: if the TCP rate is far higher, the link was
 * not the limit; if it is lower, TCP measured it from a few packets only. */
#define SLOW 0.8
#define LIMITS_MOST 1.5
#define LIMITS_LEAST 0.7

struct calibrate_arguments {
    bool show, reset, per_link;
};

static const struct option options[] = {
    {"--show", NULL, offsetof(struct calibrate_arguments, show),
     "print the costs in use, and measure nothing"},
    {"--reset", NULL, offsetof(struct calibrate_arguments, reset),
     "discard the measured costs, and use the default costs at all nodes"},
    {"--per-link", NULL, offsetof(struct calibrate_arguments, per_link),
     "show every link, not only the slow ones (always in JSON)"},
    {0},
};

#define LINK_FIELDS                                                                                \
    FIELDS(FIELD("node"), FIELD("port"), FIELD("to node", "neighbour"),                            \
           FIELD("min rtt", "min_rtt_us", FORMAT_MICROS), FIELD("rate", "rate_bps", FORMAT_RATE),  \
           FIELD("slow"))
static const struct section show_sections[] = {
    {.layout = LAYOUT_RECORD, .key = "costs", .fields = calibration_fields},
};
static const struct section sections[] = {
    TABLE("single_bytes", FIELD("single bytes by", "algorithm"), FIELD("steps"), FIELD("messages"),
          FIELD("measured", "seconds", FORMAT_SECONDS),
          FIELD("predicted", "predicted_seconds", FORMAT_SECONDS)),
    RECORD("busy", FIELD("all links busy with blocks of", "block_bytes", FORMAT_BYTES),
           FIELD("for", "seconds", FORMAT_SECONDS),
           FIELD("median rate of a link, by TCP", "median_bps", FORMAT_RATE)),
    {.layout = LAYOUT_TABLE, .key = "slow_links", .title = "slow links", LINK_FIELDS},
    {.layout = LAYOUT_RECORD, .key = "costs", .fields = calibration_fields},
    {.layout = LAYOUT_TABLE, .key = "links", LINK_FIELDS},
};

static int set_small(json_t *o, const struct calibration_run *run)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < run->measured; i++) {
        json_t *one = json_object();
        r |= json_object_set_new(one, "algorithm", json_string(run->algorithm[i]->name));
        r |= json_object_set_new(one, "steps", json_number(run->counts[i].steps));
        r |= json_object_set_new(one, "messages", json_number(run->counts[i].messages));
        r |= json_object_set_new(one, "seconds", json_real(run->seconds[i]));
        r |= json_object_set_new(one, "predicted_seconds",
                                 json_real(predict_seconds(&run->counts[i], &run->costs, 1)));
        r |= json_array_append_new(list, one);
    }
    return r | json_object_set_new(o, "single_bytes", list);
}

/* Returns the median of the known rates, or 0 if none is known. */
static double median_rate(const struct torus_result *x)
{
    double *rate, median = 0;
    size_t count = 0, ports = 0;

    for (size_t i = 0; i < x->node_count; i++)
        ports += x->node[i]->port_count;
    rate = calloc(ports + 1, sizeof *rate);
    if (rate == NULL)
        return 0;
    for (size_t i = 0; i < x->node_count; i++)
        for (size_t p = 0; p < x->node[i]->port_count; p++)
            if (x->node[i]->port[p]->rate_bps > 0)
                rate[count++] = (double)x->node[i]->port[p]->rate_bps;
    sort_values(rate, count);
    median = quantile(rate, count, 0.5);
    free(rate);
    return median;
}

static uint32_t neighbour(const struct torus *t, uint32_t rank, const char *name)
{
    char one[TORUS_PORT_NAME_SIZE];

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (strcmp(torus_port_name(t, rank, port, one), name) == 0)
            return torus_neighbour(t, rank, port);
    return TORUS_NO_NODE;
}

/* Returns whether the link is slow and limited the exchange. If processors are the limit, TCP measures bursts, whose
 * rates vary widely and mean nothing. */
static bool limited_exchange(const struct torus_node *n, const struct torus_port *port,
                             double median)
{
    double rate = (double)port->rate_bps;
    double carried = n->nanoseconds > 0 ? (double)port->tx_bytes * 8e9 / (double)n->nanoseconds : 0;

    return rate > 0 && rate < SLOW * median && rate < LIMITS_MOST * carried &&
           rate > LIMITS_LEAST * carried;
}

/* Lists each link twice, once from each end. The rate is the one at which this end sends. */
static int set_links(json_t *o, const struct calibration_run *run, double median)
{
    json_t *links = json_array(), *slow = json_array();
    int r = 0;

    for (size_t i = 0; i < run->busy->node_count; i++) {
        const struct torus_node *n = run->busy->node[i];
        for (size_t p = 0; p < n->port_count; p++) {
            const struct torus_port *port = n->port[p];
            bool is_slow = limited_exchange(n, port, median);
            uint32_t other = neighbour(&run->torus, n->rank, port->name);
            json_t *one = json_object();
            r |= json_object_set_new(one, "node", json_integer(n->rank));
            r |= json_object_set_new(one, "port", json_string(port->name));
            r |= json_object_set_new(one, "neighbour",
                                     other != TORUS_NO_NODE ? json_integer(other) : json_null());
            r |= json_object_set_new(one, "min_rtt_us", json_known(port->min_rtt_us));
            r |= json_object_set_new(one, "rate_bps", json_known(port->rate_bps));
            r |= json_object_set_new(one, "slow", json_boolean(is_slow));
            if (is_slow)
                r |= json_array_append(slow, one);
            r |= json_array_append_new(links, one);
        }
    }
    return r | json_object_set_new(o, "links", links) | json_object_set_new(o, "slow_links", slow);
}

static json_t *value_of(const struct calibration_run *run, const struct torus_calibration *now)
{
    json_t *o = json_object(), *busy = json_object();
    double median = median_rate(run->busy);
    int r = 0;

    r |= json_object_set_new(busy, "block_bytes", json_count(run->block_bytes));
    r |= json_object_set_new(busy, "seconds", json_real(run->block_seconds));
    r |= json_object_set_new(busy, "median_bps", json_positive(median));
    r |= json_set_torus(o, &run->torus);
    r |= set_small(o, run);
    r |= json_object_set_new(o, "busy", busy);
    r |= set_links(o, run, median);
    r |= json_object_set_new(o, "costs", calibration_value(now));
    return json_checked(o, r);
}

static int measure_costs(const struct cli *cli, bool per_link)
{
    struct torus_error failed;
    struct torus_calibration *now;
    struct calibration_run run;
    struct torus_costs costs;
    struct error e;
    int code, r;

    interrupt_arm(cli->client);
    r = calibration_measure(cli->client, &run, &failed, &e);
    interrupt_disarm();
    if (r != 0)
        return failed.code != TORUS_ERROR_NONE ? cli_fail_client(cli, &failed) : cli_fail(cli, &e);
    torus_costs_init(&costs);
    costs.step_seconds = run.costs.step;
    costs.message_seconds = run.costs.message;
    costs.bytes_per_second = run.costs.bytes_per_second;
    if (torus_client_calibrate(cli->client, &costs, &now, &failed) != 0)
        code = cli_fail_client(cli, &failed);
    else
        code = cli_print(cli, value_of(&run, now), &(struct view){sections, per_link ? 5 : 4});
    torus_calibration_free(now);
    calibration_free(&run);
    return code;
}

static int print_costs(const struct cli *cli, const struct torus_calibration *calibration)
{
    return cli_print(cli, json_pack("{s:o}", "costs", calibration_value(calibration)),
                     VIEW(show_sections));
}

static int show(const struct cli *cli)
{
    struct torus_status *status;
    struct torus_error failed;
    int code;

    if (torus_client_status(cli->client, &status, &failed) != 0)
        return cli_fail_client(cli, &failed);
    code = print_costs(cli, status->calibration);
    torus_status_free(status);
    return code;
}

static int reset(const struct cli *cli)
{
    struct torus_calibration *now;
    struct torus_error failed;
    int code;

    if (torus_client_calibrate(cli->client, NULL, &now, &failed) != 0)
        return cli_fail_client(cli, &failed);
    code = print_costs(cli, now);
    torus_calibration_free(now);
    return code;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct calibrate_arguments *a = arguments;
    int code;

    if (a->show && a->reset)
        return cli_fail_usage(cli, "--show and --reset: give one or the other");
    code = cli_connect(cli);
    if (code != EXIT_DONE)
        return code;
    return a->show ? show(cli) : a->reset ? reset(cli) : measure_costs(cli, a->per_link);
}

const struct command command_calibrate = {
    .name = "calibrate",
    .summary = "Measure the costs of exchanges on this torus",
    .usage = "[--per-link | --show | --reset] [--json]",
    .options = options,
    .arguments_size = sizeof(struct calibrate_arguments),
    .needs_daemon = true,
    .run = run,
};
