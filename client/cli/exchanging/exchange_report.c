#include "client/cli/exchanging/exchange_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/text.h"

/* The first fields of the summary, for one exchange or several repetitions; and the table of ports. */
#define COMMON_FIELDS                                                                              \
    FIELD("exchange", "id"), FIELD("operation"), FIELD("torus", "dims", FORMAT_TORUS),             \
        FIELD("nodes", "node_count"), FIELD("algorithm"), FIELD("mode"),                           \
        FIELD("missing nodes", "missing"), FIELD("without"), FIELD("reroutes"), FIELD("damages"),  \
        FIELD("kept bytes", "kept_bytes", FORMAT_BYTES)

/* How a time compares with the bound, and what the schedule costs. */
#define BOUND_FIELDS                                                                               \
    FIELD("lower bound", "bound_seconds", FORMAT_SECONDS), FIELD("bound of", "bound_of"),          \
        FIELD("efficiency", "efficiency", FORMAT_PERCENT),                                         \
        FIELD("whole call", "call_seconds", FORMAT_SECONDS), FIELD("startups"),                    \
        FIELD("transmission"), FIELD("busiest channel", "channel_bytes", FORMAT_BYTES)

#define PORT_FIELDS                                                                                \
    FIELDS(FIELD("node", "rank"), FIELD("time", "seconds", FORMAT_SECONDS), FIELD("port", "name"), \
           FIELD("sent", "tx_bytes", FORMAT_BYTES), FIELD("received", "rx_bytes", FORMAT_BYTES),   \
           FIELD("blocks sent", "tx_blocks"), FIELD("messages", "combined_messages"),              \
           FIELD("min rtt", "min_rtt_us", FORMAT_MICROS), FIELD("rate", "rate_bps", FORMAT_RATE))

static const struct section sections[] = {
    RECORD(NULL, COMMON_FIELDS, FIELD("missing files", "missing_files"),
           FIELD("unused files", "unused_files"), FIELD("block", "block_bytes", FORMAT_BYTES),
           FIELD("time", "seconds", FORMAT_SECONDS),
           FIELD("predicted", "predicted_seconds", FORMAT_SECONDS), BOUND_FIELDS, FIELD("rounds"),
           FIELD("delivered blocks", "blocks_delivered"),
           FIELD("delivered bytes", "bytes_delivered", FORMAT_BYTES), FIELD("verified")),
    {.layout = LAYOUT_TABLE, .key = "per_node", .each = "ports", PORT_FIELDS},
};

static const struct section repeated_sections[] = {
    RECORD(NULL, COMMON_FIELDS, FIELD("block", "block_bytes", FORMAT_BYTES),
           FIELD("repetitions", "repeat"), FIELD("median time", "seconds", FORMAT_SECONDS),
           FIELD("predicted", "predicted_seconds", FORMAT_SECONDS),
           FIELD("shortest", "seconds_min", FORMAT_SECONDS),
           FIELD("longest", "seconds_max", FORMAT_SECONDS),
           FIELD("interquartile range", "seconds_spread", FORMAT_SECONDS),
           FIELD("sustained, each", "sustained_seconds", FORMAT_SECONDS), BOUND_FIELDS,
           FIELD("rounds, each", "rounds"), FIELD("delivered blocks, each", "blocks_delivered"),
           FIELD("delivered bytes, each", "bytes_delivered", FORMAT_BYTES), FIELD("verified")),
    {.layout = LAYOUT_TABLE, .key = "per_node", .each = "ports", PORT_FIELDS},
};

struct view exchange_report_view(bool repeated, bool per_node)
{
    return (struct view){repeated ? repeated_sections : sections, per_node ? 2 : 1};
}

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

static int set_ports(json_t *object, const struct torus_node *n)
{
    json_t *ports = json_object();
    int r = 0;

    for (size_t i = 0; i < n->port_count; i++) {
        const struct torus_port *p = n->port[i];
        json_t *o = json_object();
        r |= json_object_set_new(o, "tx_bytes", json_count(p->tx_bytes));
        r |= json_object_set_new(o, "rx_bytes", json_count(p->rx_bytes));
        r |= json_object_set_new(o, "tx_blocks", json_count(p->tx_blocks));
        r |= json_object_set_new(o, "combined_messages", json_count(p->combined_messages));
        r |= json_object_set_new(o, "min_rtt_us", json_known(p->min_rtt_us));
        r |= json_object_set_new(o, "rate_bps", json_known(p->rate_bps));
        r |= json_object_set_new(ports, p->name, o);
    }
    return r | json_object_set_new(object, "ports", ports);
}

/* What was counted in the steps of a schedule, by the names that plan has for it. */
static int set_steps(json_t *object, const struct torus_result *x)
{
    return json_object_set_new(object, "startups", json_integer(x->startups)) |
           json_object_set_new(object, "transmission", json_count(x->transmission));
}

/* Streaming has no steps. Adds what the busiest channel carried: its bytes, and where all blocks have one size, how many
 * blocks that is. */
static int set_channel(json_t *object, const struct torus_result *x)
{
    const bool one_size = x->check == TORUS_CHECK_BYTES && x->block_bytes > 0;
    uint64_t most = 0;
    int r = 0;

    for (size_t i = 0; i < x->node_count; i++)
        for (size_t p = 0; p < x->node[i]->port_count; p++)
            most = x->node[i]->port[p]->tx_bytes > most ? x->node[i]->port[p]->tx_bytes : most;
    r |= json_object_set_new(object, "startups", json_null());
    r |= json_object_set_new(object, "transmission", json_null());
    r |= json_object_set_new(object, "channel_bytes", json_count(most));
    if (one_size)
        r |= json_object_set_new(object, "channel_blocks",
                                 json_real((double)most / (double)x->block_bytes));
    return r;
}

/* Adds the numbers of files that were not sent, unless they are 0. */
static int set_unmoved(json_t *object, uint64_t missing, uint64_t unused)
{
    int r = 0;

    if (missing > 0)
        r |= json_object_set_new(object, "missing_files", json_count(missing));
    if (unused > 0)
        r |= json_object_set_new(object, "unused_files", json_count(unused));
    return r;
}

static int set_nodes(json_t *object, const struct torus_result *x)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < x->node_count; i++) {
        json_t *o = json_object();
        r |= json_object_set_new(o, "rank", json_integer(x->node[i]->rank));
        r |= json_object_set_new(o, "seconds", json_real(seconds(x->node[i]->nanoseconds)));
        r |= json_object_set_new(o, "most_starts", json_integer(x->node[i]->most_starts));
        r |= json_object_set_new(o, "most_ends", json_integer(x->node[i]->most_ends));
        r |= set_unmoved(o, x->node[i]->missing_files, x->node[i]->unused_files);
        r |= set_ports(o, x->node[i]);
        r |= json_array_append_new(list, o);
    }
    return r | json_object_set_new(object, "per_node", list);
}

static int set_missing(json_t *object, const struct torus_result *x)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < x->missing_count; i++)
        r |= json_array_append_new(list, json_integer(x->missing[i]));
    return r | json_object_set_new(object, "missing", list);
}

/* Adds the times of all repetitions. Returns 0 with *median, or another value if memory is short. */
static int set_repetitions(json_t *o, const struct torus_result *x, double *median)
{
    double *sorted = calloc(x->each_count + 1, sizeof *sorted);
    json_t *each = json_array();
    int r = sorted == NULL;

    for (size_t i = 0; r == 0 && i < x->each_count; i++) {
        sorted[i] = seconds(x->each[i]);
        r |= json_array_append_new(each, json_real(sorted[i]));
    }
    if (r == 0) {
        sort_values(sorted, x->each_count);
        *median = quantile(sorted, x->each_count, 0.5);
        r |= json_object_set_new(o, "repeat", json_integer(x->repeat));
        r |= json_object_set_new(o, "seconds", json_real(*median));
        r |= json_object_set(o, "seconds_each", each);
        r |= json_object_set_new(o, "seconds_min", json_real(quantile(sorted, x->each_count, 0)));
        r |= json_object_set_new(o, "seconds_max", json_real(quantile(sorted, x->each_count, 1)));
        r |= json_object_set_new(o, "seconds_spread",
                                 json_real(quantile(sorted, x->each_count, 0.75) -
                                           quantile(sorted, x->each_count, 0.25)));
        r |= json_object_set_new(o, "sustained_seconds",
                                 json_real(seconds(x->all_nanoseconds) / x->repeat));
    }
    json_decref(each);
    free(sorted);
    return r;
}

/* Returns the name of the model that the lower bound is for. */
static json_t *bound_of(const struct torus_result *x)
{
    const struct algorithm *a = algorithm_find(x->algorithm);

    if (x->operation == TORUS_BROADCAST)
        return json_string("one block");
    if ((x->without[0] != '\0' || x->missing_count > 0) && x->operation == TORUS_EXCHANGE)
        return json_string("all-port, what is in order");
    return a != NULL ? json_string(algorithm_bound_name(a)) : json_null();
}

/* Adds the time that the blocks of the bound take on a channel, and its ratio to the measured time. */
static int set_bound(json_t *o, const struct torus_result *x, double time)
{
    json_t *bound = json_null(), *efficiency = json_null();

    if (x->link_mbit > 0) {
        double s = x->bound * (double)x->block_bytes * 8 / (x->link_mbit * 1e6);
        bound = json_real(s);
        if (time > 0)
            efficiency = json_real(s / time);
    }
    return json_object_set_new(o, "bound_seconds", bound) |
           json_object_set_new(o, "bound_of", bound_of(x)) |
           json_object_set_new(o, "efficiency", efficiency);
}

json_t *exchange_report(const struct torus_result *x, double call_seconds, bool repeated,
                        struct error *e)
{
    double time = seconds(x->nanoseconds);
    struct torus torus;
    json_t *o;
    int r = 0;

    if (torus_parse_named(&torus, x->dims, e) != 0) {
        error_wrap(e, "the daemon's dimensions are invalid");
        e->code = ERROR_PROTOCOL;
        return NULL;
    }
    if (torus.nodes != x->nodes) {
        error_set(e, ERROR_PROTOCOL,
                  "the daemon's result contradicts itself: a torus of %s with %u %s", x->dims,
                  x->nodes, text_plural(x->nodes, "node", "nodes"));
        return NULL;
    }
    o = json_object();
    r |= json_object_set_new(o, "id", json_string(x->id));
    r |= json_object_set_new(o, "operation", json_string(torus_operation_name(x->operation)));
    r |= json_set_torus(o, &torus);
    r |= json_object_set_new(o, "algorithm", json_string(x->algorithm));
    r |= json_object_set_new(o, "mode", json_string(torus_mode_name(x->mode)));
    if (x->without[0] != '\0')
        r |= json_object_set_new(o, "without", json_string(x->without));
    if (x->missing_count > 0)
        r |= set_missing(o, x);
    if (x->reroutes > 0)
        r |= json_object_set_new(o, "reroutes", json_integer(x->reroutes));
    if (x->damages > 0)
        r |= json_object_set_new(o, "damages", json_integer(x->damages));
    if (x->kept_bytes > 0)
        r |= json_object_set_new(o, "kept_bytes", json_count(x->kept_bytes));
    r |= set_unmoved(o, x->missing_files, x->unused_files);
    r |= json_object_set_new(o, "node_count", json_integer(x->nodes));
    r |= json_object_set_new(o, "block_bytes", json_count(x->block_bytes));
    if (repeated)
        r |= set_repetitions(o, x, &time);
    else
        r |= json_object_set_new(o, "seconds", json_real(time));
    r |= set_bound(o, x, time);
    r |= x->mode == TORUS_MODE_STREAMING ? set_channel(o, x) : set_steps(o, x);
    r |= json_object_set_new(o, "rounds", json_count(x->rounds));
    r |= json_object_set_new(o, "call_seconds", json_real(call_seconds));
    r |= json_object_set_new(o, "blocks_delivered", json_count(x->blocks_delivered));
    r |= json_object_set_new(o, "bytes_delivered", json_count(x->bytes_delivered));
    r |= json_object_set_new(o, "verified", json_string(torus_check_name(x->check)));
    r |= set_nodes(o, x);
    if (r == 0)
        return o;
    json_decref(o);
    error_set(e, ERROR_MEMORY, "out of memory for the result");
    return NULL;
}

/* Writes "node 0: 5, node 2: 1", cut to what fits. */
static void list_unused(const struct torus_result *x, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < x->node_count && used < size; i++)
        if (x->node[i]->unused_files > 0)
            used +=
                (size_t)snprintf(out + used, size - used, "%snode %" PRIu32 ": %" PRIu64,
                                 used > 0 ? ", " : "", x->node[i]->rank, x->node[i]->unused_files);
    if (used >= size)
        (void)strcpy(out + size - sizeof "...", "...");
}

void exchange_report_warning(const struct torus_result *x, char *out, size_t size)
{
    char nodes[200];

    out[0] = '\0';
    if (x->unused_files == 0)
        return;
    list_unused(x, nodes, sizeof nodes);
    (void)snprintf(out, size,
                   "%" PRIu64
                   " source %s not sent, because a file must be named by the rank of its "
                   "destination, 0 to %" PRIu32 " (%s)",
                   x->unused_files, text_plural(x->unused_files, "file was", "files were"),
                   x->nodes - 1, nodes);
}
