/* Metrics of exchanges, groups and copies at this node. */
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/metrics/metrics.h"

static const struct metric exchanges_now = {"torus_exchanges", "", METRIC_GAUGE,
                                            "Exchanges and barriers at this node, by their state"};
static const struct metric exchanges_ended = {
    "torus_exchange_attempts", "", METRIC_COUNTER,
    "Attempts that have ended at this node, by operation and outcome"};
static const struct metric delivered = {
    "torus_exchange_delivered_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks that exchanges have delivered at this node"};
static const struct metric duration = {
    "torus_exchange_duration_seconds", "seconds", METRIC_HISTOGRAM,
    "Time from the request, or from the first message about it, until an exchange has succeeded"};
static const struct metric groups_now = {"torus_groups", "", METRIC_GAUGE,
                                         "Groups of programs at this node, by their state"};
static const struct metric calls = {"torus_group_calls", "", METRIC_COUNTER,
                                    "Calls that programs of this node have made in groups"};
static const struct metric calls_done = {"torus_group_calls_done", "", METRIC_COUNTER,
                                         "Calls in groups that are done at this node"};
static const struct metric group_sent = {
    "torus_group_sent_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks for other members, in calls that are done"};
static const struct metric group_received = {
    "torus_group_received_bytes", "bytes", METRIC_COUNTER,
    "Bytes of blocks from other members, in calls that are done"};
static const struct metric copies_now = {"torus_copies", "", METRIC_GAUGE,
                                         "Copies of trees that this node takes part in"};
static const struct metric copies_ended = {
    "torus_copy_attempts", "", METRIC_COUNTER,
    "Attempts of copies that have ended at this node, by outcome"};
static const struct metric copy_bytes = {
    "torus_copy_moved_bytes", "bytes", METRIC_COUNTER,
    "Bytes of files that have moved in copies in which this node has taken part"};

static void write_labelled(struct exposition *x, const char *name, const char *value, double number)
{
    const struct label label = {name, value};

    exposition_value(x, &label, 1, number);
}

static void write_ended(struct exposition *x, const struct exchange_totals *totals)
{
    static const struct {
        enum exchange_state state;
        const char *outcome;
    } outcomes[] = {{EXCHANGE_FINISHED, "finished"},
                    {EXCHANGE_COMMITTED, "committed"},
                    {EXCHANGE_WITHDRAWN, "withdrawn"},
                    {EXCHANGE_FAILED, "failed"},
                    {EXCHANGE_IN_DOUBT, "in_doubt"}};

    exposition_metric(x, &exchanges_ended);
    for (enum operation operation = 0; operation < OPERATIONS; operation++)
        for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
            const struct label labels[] = {{"operation", operation_name(operation)},
                                           {"outcome", outcomes[i].outcome}};
            exposition_value(x, labels, 2, (double)totals->ended[operation][outcomes[i].state]);
        }
}

static void write_exchanges(struct exposition *x, const struct exchanges *exchanges)
{
    struct exchange_counts counts;

    exchanges_count(exchanges, &counts);
    exposition_metric(x, &exchanges_now);
    write_labelled(x, "state", "waiting", counts.waiting);
    write_labelled(x, "state", "under_way", counts.under_way);
    write_labelled(x, "state", "in_doubt", counts.in_doubt);
    write_labelled(x, "state", "unconfirmed", counts.unconfirmed);
    write_ended(x, &counts.totals);
    exposition_single(x, &delivered, (double)counts.totals.delivered_bytes);
    exposition_metric(x, &duration);
    exposition_histogram(x, &counts.totals.duration);
}

static void write_groups(struct exposition *x, const struct groups *groups)
{
    struct groups_counts counts;

    groups_count(groups, &counts);
    exposition_metric(x, &groups_now);
    write_labelled(x, "state", "open", counts.open);
    write_labelled(x, "state", "opening", counts.opening);
    exposition_single(x, &calls, (double)counts.calls);
    exposition_single(x, &calls_done, (double)counts.calls_done);
    exposition_single(x, &group_sent, (double)counts.bytes_sent);
    exposition_single(x, &group_received, (double)counts.bytes_received);
}

static void write_copies(struct exposition *x, const struct copies *copies)
{
    struct copies_counts counts;

    copies_count(copies, &counts);
    exposition_single(x, &copies_now, counts.under_way);
    exposition_metric(x, &copies_ended);
    write_labelled(x, "outcome", "ended", (double)counts.ended);
    write_labelled(x, "outcome", "failed", (double)counts.failed);
    exposition_single(x, &copy_bytes, (double)counts.bytes);
}

void metrics_of_work(struct exposition *x, struct metrics_view *v)
{
    write_exchanges(x, v->exchanges);
    write_groups(x, v->groups);
    write_copies(x, v->copies);
}
