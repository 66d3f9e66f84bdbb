#include "client/cli/exchanging/exchange_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "proto/text.h"

/* The summary of one exchange, or of several repetitions: `time` is what the time is called, `behind` goes behind
 * what is counted for each of them. Empty fields are not shown; then the table of ports. */
#define SECTIONS(time, behind)                                                                     \
    {                                                                                              \
        RECORD(NULL, FIELD("exchange", "id"), FIELD("operation"),                                  \
               FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),                 \
               FIELD("algorithm"), FIELD("mode"), FIELD("missing nodes", "missing"),               \
               FIELD("without"), RATES_FIELDS, FIELD("reroutes"), FIELD("new plans", "replans"),   \
               FIELD("damages"), FIELD("kept bytes", "kept_bytes", FORMAT_BYTES),                  \
               FIELD("missing files", "missing_files"), FIELD("unused files", "unused_files"),     \
               FIELD("block", "block_bytes", FORMAT_BYTES), FIELD("repetitions", "repeat"),        \
               FIELD(time, "seconds", FORMAT_SECONDS),                                             \
               FIELD("predicted", "predicted_seconds", FORMAT_SECONDS),                            \
               FIELD("shortest", "seconds_min", FORMAT_SECONDS),                                   \
               FIELD("longest", "seconds_max", FORMAT_SECONDS),                                    \
               FIELD("interquartile range", "seconds_spread", FORMAT_SECONDS),                     \
               FIELD("sustained, each", "sustained_seconds", FORMAT_SECONDS),                      \
               FIELD("lower bound", "bound_seconds", FORMAT_SECONDS), EQUAL_BOUND_FIELD,           \
               FIELD("bound of", "bound_of"), FIELD("efficiency", "efficiency", FORMAT_PERCENT),   \
               FIELD("whole call", "call_seconds", FORMAT_SECONDS), FIELD("startups"),             \
               FIELD("transmission"), FIELD("busiest channel", "channel_bytes", FORMAT_BYTES),     \
               FIELD("rounds" behind, "rounds"),                                                   \
               FIELD("delivered blocks" behind, "blocks_delivered"),                               \
               FIELD("delivered bytes" behind, "bytes_delivered", FORMAT_BYTES),                   \
               FIELD("verified")),                                                                 \
        {                                                                                          \
            .layout = LAYOUT_TABLE, .key = "per_node", .each = "ports", PORT_FIELDS                \
        }                                                                                          \
    }

#define PORT_FIELDS                                                                                \
    FIELDS(FIELD("node", "rank"), FIELD("time", "seconds", FORMAT_SECONDS), FIELD("port", "name"), \
           FIELD("sent", "tx_bytes", FORMAT_BYTES), FIELD("received", "rx_bytes", FORMAT_BYTES),   \
           FIELD("blocks sent", "tx_blocks"), FIELD("messages", "combined_messages"),              \
           FIELD("min rtt", "min_rtt_us", FORMAT_MICROS), FIELD("rate", "rate_bps", FORMAT_RATE))

static const struct section once[] = SECTIONS("time", "");
static const struct section repeated_sections[] = SECTIONS("median time", ", each");

struct view exchange_report_view(bool repeated, bool per_node)
{
    return (struct view){repeated ? repeated_sections : once, per_node ? 2 : 1};
}

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

static JSON_MEMBERS(port_members, MEMBER(torus_port, tx_bytes), MEMBER(torus_port, rx_bytes),
                    MEMBER(torus_port, tx_blocks), MEMBER(torus_port, combined_messages),
                    KNOWN(torus_port, min_rtt_us), KNOWN(torus_port, rate_bps));

static JSON_MEMBERS(node_members, MEMBER(torus_node, rank),
                    FROM_NS("seconds", torus_node, nanoseconds), MEMBER(torus_node, most_starts),
                    MEMBER(torus_node, most_ends), PRESENT(torus_node, missing_files),
                    PRESENT(torus_node, unused_files));

static JSON_MEMBERS(result_members, MEMBER(torus_result, id),
                    NAMED(torus_result, operation, torus_operation_name),
                    MEMBER(torus_result, algorithm), NAMED(torus_result, mode, torus_mode_name),
                    PRESENT(torus_result, without), PRESENT(torus_result, reroutes),
                    PRESENT(torus_result, replans), PRESENT(torus_result, damages),
                    PRESENT(torus_result, kept_bytes), PRESENT(torus_result, missing_files),
                    PRESENT(torus_result, unused_files),
                    MEMBER_AS("node_count", torus_result, nodes), MEMBER(torus_result, block_bytes),
                    MEMBER(torus_result, rounds), MEMBER(torus_result, blocks_delivered),
                    MEMBER(torus_result, bytes_delivered),
                    MEMBER_AS("verified", torus_result, check, .name = torus_check_name));

static JSON_MEMBERS(step_members, MEMBER(torus_result, startups),
                    MEMBER(torus_result, transmission));

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

static json_t *node_value(const struct torus_node *n)
{
    json_t *o = json_of(n, node_members), *ports = json_object();
    int r = 0;

    for (size_t i = 0; i < n->port_count; i++)
        r |= json_object_set_new(ports, n->port[i]->name, json_of(n->port[i], port_members));
    return json_checked(o, r | json_object_set_new(o, "ports", ports));
}

static json_t *nodes_value(const struct torus_result *x)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < x->node_count; i++)
        r |= json_array_append_new(list, node_value(x->node[i]));
    return json_checked(list, r);
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
        return json_string(x->link_rates != NULL ? "one block, at these rates" : "one block");
    if ((x->without[0] != '\0' || x->missing_count > 0) && x->operation == TORUS_EXCHANGE)
        return json_string("all-port, what is in order");
    if (x->link_rates != NULL)
        return json_string(x->operation == TORUS_EXCHANGE
                               ? "all-port, at these rates"
                               : "all-to-all broadcast, all-port, at these rates");
    return a != NULL ? json_string(algorithm_bound_name(a)) : json_null();
}

/* Adds the time that the blocks of the bound take on a channel, and its ratio to the measured time. */
static int set_bound(json_t *o, const struct torus_result *x, double time)
{
    json_t *efficiency = json_null();
    int r = link_rates_set_bounds(o, x->link_rates, (double)x->block_bytes);

    if (x->link_rates == NULL)
        r |= json_object_set_new(o, "bound_seconds",
                                 x->link_mbit > 0 ? json_real(x->bound * (double)x->block_bytes *
                                                              8 / (x->link_mbit * 1e6))
                                                  : json_null());
    const json_t *bound = json_object_get(o, "bound_seconds");
    if (time > 0 && json_is_number(bound))
        efficiency = json_real(json_number_value(bound) / time);
    return r | json_object_set_new(o, "bound_of", bound_of(x)) |
           json_object_set_new(o, "efficiency", efficiency);
}

int result_torus(const struct torus_result *x, struct torus *t, struct error *e)
{
    if (torus_parse_named(t, x->dims, e) != 0) {
        e->code = ERROR_PROTOCOL;
        return error_wrap(e, "the daemon's dimensions are invalid");
    }
    if (t->nodes == x->nodes)
        return 0;
    return error_set(e, ERROR_PROTOCOL,
                     "the daemon's result contradicts itself: a torus of %s with %u %s", x->dims,
                     x->nodes, text_plural(x->nodes, "node", "nodes"));
}

json_t *exchange_report(const struct torus_result *x, double call_seconds, bool repeated,
                        struct error *e)
{
    double time = seconds(x->nanoseconds);
    struct torus torus;
    json_t *o;
    int r = 0;

    if (result_torus(x, &torus, e) != 0)
        return NULL;
    o = json_of(x, result_members);
    r |= json_set_torus(o, &torus);
    if (x->missing_count > 0)
        r |= json_object_set_new(o, "missing", json_numbers(x->missing, x->missing_count));
    if (repeated)
        r |= set_repetitions(o, x, &time);
    else
        r |= json_object_set_new(o, "seconds", json_real(time));
    r |= set_bound(o, x, time);
    r |= x->mode == TORUS_MODE_STREAMING ? set_channel(o, x) : json_set_members(o, x, step_members);
    r |= json_object_set_new(o, "call_seconds", json_real(call_seconds));
    r |= json_object_set_new(o, "per_node", nodes_value(x));
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
