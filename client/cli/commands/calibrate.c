/* torusctl calibrate: measures the costs of exchanges on this torus, and sends them to all nodes.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/exchanging/candidates.h"
#include "client/cli/measuring/calibration.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"

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

static const struct field small_fields[] = {
    {"single bytes by", "algorithm", FORMAT_PLAIN},
    {"steps", "steps", FORMAT_PLAIN},
    {"messages", "messages", FORMAT_PLAIN},
    {"measured", "seconds", FORMAT_SECONDS},
    {"predicted", "predicted_seconds", FORMAT_SECONDS},
    {0},
};
static const struct field busy_fields[] = {
    {"all links busy with blocks of", "block_bytes", FORMAT_BYTES},
    {"for", "seconds", FORMAT_SECONDS},
    {"median rate of a link, by TCP", "median_bps", FORMAT_RATE},
    {0},
};
static const struct field link_fields[] = {
    {"node", "node", FORMAT_PLAIN},
    {"port", "port", FORMAT_PLAIN},
    {"to node", "neighbour", FORMAT_PLAIN},
    {"min rtt", "min_rtt_us", FORMAT_MICROS},
    {"rate", "rate_bps", FORMAT_RATE},
    {"slow", "slow", FORMAT_PLAIN},
    {0},
};
static const struct section show_sections[] = {
    {.layout = LAYOUT_RECORD, .key = "costs", .fields = calibration_fields},
};
static const struct section sections[] = {
    {.layout = LAYOUT_TABLE, .key = "single_bytes", .fields = small_fields},
    {.layout = LAYOUT_RECORD, .key = "busy", .fields = busy_fields},
    {.layout = LAYOUT_TABLE, .key = "slow_links", .title = "slow links", .fields = link_fields},
    {.layout = LAYOUT_RECORD, .key = "costs", .fields = calibration_fields},
    {.layout = LAYOUT_TABLE, .key = "links", .fields = link_fields},
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
    r |= json_object_set_new(busy, "median_bps", median > 0 ? json_number(median) : json_null());
    r |= json_set_torus(o, &run->torus);
    r |= set_small(o, run);
    r |= json_object_set_new(o, "busy", busy);
    r |= set_links(o, run, median);
    r |= json_object_set_new(o, "costs", calibration_value(now));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static int measure(const struct cli *cli, bool per_link)
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
    json_t *o = json_object();

    if (json_object_set_new(o, "costs", calibration_value(calibration)) != 0) {
        json_decref(o);
        o = NULL;
    }
    return cli_print(cli, o, &(struct view){show_sections, 1});
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
    return a->show ? show(cli) : a->reset ? reset(cli) : measure(cli, a->per_link);
}

extern const struct command command_calibrate;
const struct command command_calibrate = {
    .name = "calibrate",
    .summary = "Measure the costs of exchanges on this torus",
    .usage = "[--per-link | --show | --reset] [--json]",
    .details =
        "Unless an algorithm is named, 'torusctl exchange' chooses the one with the shortest\n"
        "predicted time. The prediction uses the costs of a step, a message and a byte. This\n"
        "command measures the costs in a few seconds (in a minute if links are slow), and sends\n"
        "them to all nodes, which keep them across restarts. The torus should be idle.\n"
        "\n"
        "Exchanges of single bytes by several algorithms give the costs of a step and of a\n"
        "message. An exchange that keeps all links busy in both directions for most of a second\n"
        "gives the rate of a link. For sizes in between, the command measures every algorithm\n"
        "that is fast at that size; the daemon that was asked remembers the results.\n"
        "\n"
        "TCP reports how fast each direction of each link was. The command lists links below\n"
        "80 % of the median rate, because every exchange waits for the slowest link.\n"
        "\n"
        "examples:\n"
        "  torusctl calibrate\n"
        "  torusctl calibrate --show\n"
        "  torusctl calibrate --json | jq '.slow_links'\n",
    .options = options,
    .arguments_size = sizeof(struct calibrate_arguments),
    .needs_daemon = true,
    .run = run,
};
