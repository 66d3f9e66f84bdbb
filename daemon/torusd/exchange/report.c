/* What nodes report, and what of it the client of a job hears. */
#include "daemon/torusd/exchange/report.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/choose_routes.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/elapsed.h"
#include "proto/frame.h"
#include "proto/text.h"

static struct exchange_node_report *add_node(struct report *r, uint32_t most)
{
    if (r->nodes == most)
        return NULL;
    if (r->nodes == r->room) { /* an entry is large, and most nodes have few others below them */
        uint32_t room = r->room < most / 2 ? 2 * r->room + 1 : most;
        struct exchange_node_report *node = reallocarray(r->node, room, sizeof *node);
        if (node == NULL)
            return NULL;
        r->node = node;
        r->room = room;
    }
    r->node[r->nodes] = (struct exchange_node_report){0};
    return &r->node[r->nodes++];
}

static int room_for_steps(struct report *r, uint32_t steps)
{
    if (r->step_blocks == NULL)
        r->step_blocks = calloc((size_t)steps + 1, sizeof *r->step_blocks);
    if (r->step_messages == NULL)
        r->step_messages = calloc((size_t)steps + 1, sizeof *r->step_messages);
    r->steps = steps;
    return r->step_blocks != NULL && r->step_messages != NULL ? 0 : -1;
}

static void raise_to(uint32_t *most, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] > most[i])
            most[i] = values[i];
}

int report_add_own(struct attempt *x, uint64_t nanoseconds, struct error *e)
{
    const struct engine_counts *counts = &x->local.engine->counts;
    struct report *r = &x->report;
    struct exchange_node_report *mine = add_node(r, torus_of(x)->nodes);

    if (mine == NULL || room_for_steps(r, counts->steps) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a report");
    mine->rank = rank_of(x);
    mine->nanoseconds = nanoseconds;
    mine->blocks_delivered = counts->blocks_delivered;
    mine->bytes_delivered =
        counts->bytes_delivered + (x->local.resumed != NULL ? x->local.resumed->bytes : 0);
    mine->most_starts = counts->most_starts;
    mine->most_ends = counts->most_ends;
    mine->repaired = x->local.repairs != NULL ? x->local.repairs->repaired : 0;
    mine->unmoved = x->local.source->unmoved;
    memcpy(mine->port, counts->port, sizeof mine->port);
    for (unsigned p = 0; p < torus_ports(torus_of(x)); p++) {
        struct port_traffic traffic;
        router_port_traffic(router_of(x), p, &traffic);
        mine->link[p] = traffic.stat;
    }
    raise_to(r->step_blocks, counts->step_blocks, counts->steps);
    raise_to(r->step_messages, counts->step_messages, counts->steps);
    r->delivered_digest += x->local.engine->delivered_digest;
    r->sent_digest += x->local.engine->sent_digest;
    r->check = x->local.sink->check;
    return 0;
}

/* Whether this port may report about the node. Each node is reported once, by the neighbour above it, so nobody
 * else is blamed for its report. */
static bool may_report(struct attempt *x, unsigned port, uint32_t rank)
{
    struct report *r = &x->report;
    uint8_t bit = (uint8_t)(1u << rank % 8);

    if (avoided_branch(x, rank) != (int)port || (r->reported[rank / 8] & bit) != 0)
        return false;
    r->reported[rank / 8] |= bit;
    return true;
}

int report_add_child(struct attempt *x, unsigned port, const struct peer_done *done,
                     struct error *e)
{
    const struct torus *t = torus_of(x);
    struct report *r = &x->report;
    uint32_t steps = x->local.engine->counts.steps;

    if (r->reported == NULL)
        r->reported = calloc((t->nodes + 7) / 8, 1);
    if (r->reported == NULL || room_for_steps(r, steps) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a report");
    if (done->n_step_blocks != steps || done->n_step_messages != steps)
        return error_set(e, ERROR_PROTOCOL, "report of %zu %s, but the schedule has %u",
                         done->n_step_blocks, text_plural(done->n_step_blocks, "step", "steps"),
                         steps);
    for (size_t i = 0; i < done->n_node; i++) {
        const struct peer_node_report *in = &done->node[i];
        struct exchange_node_report *out;
        if (in->rank >= t->nodes || in->n_port != torus_ports(t))
            return error_set(e, ERROR_PROTOCOL,
                             "report of node %u, which does not exist or does not have %zu %s",
                             in->rank, in->n_port, text_plural(in->n_port, "port", "ports"));
        if (!may_report(x, port, in->rank))
            return error_set(e, ERROR_PROTOCOL,
                             "report of node %u for a second time, or from the wrong neighbour",
                             in->rank);
        out = add_node(r, t->nodes);
        if (out == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a report");
        out->rank = in->rank;
        out->nanoseconds = in->nanoseconds;
        out->blocks_delivered = in->blocks_delivered;
        out->bytes_delivered = in->bytes_delivered;
        out->most_starts = in->most_starts;
        out->most_ends = in->most_ends;
        out->repaired = in->repaired;
        out->unmoved = (struct unmoved){.missing = in->missing_files, .unused = in->unused_files};
        for (size_t p = 0; p < in->n_port; p++) {
            out->port[p] = (struct engine_port_counts){
                .tx_bytes = in->port[p].tx_bytes,
                .rx_bytes = in->port[p].rx_bytes,
                .tx_blocks = in->port[p].tx_blocks,
                .combined_messages = in->port[p].combined_messages,
            };
            out->link[p].min_rtt_us = in->port[p].min_rtt_us;
            out->link[p].rate_bps = in->port[p].rate_bps;
        }
    }
    raise_to(r->step_blocks, done->step_blocks, steps);
    raise_to(r->step_messages, done->step_messages, steps);
    r->sent_digest += done->sent_digest;
    r->delivered_digest += done->delivered_digest;
    return 0;
}

/* Packs a node's report into one entry of the message; its ports are written to `port`. */
static struct peer_node_report pack_node(const struct exchange_node_report *from,
                                         struct peer_port_report *port, unsigned ports)
{
    for (unsigned p = 0; p < ports; p++)
        port[p] = (struct peer_port_report){.tx_bytes = from->port[p].tx_bytes,
                                            .rx_bytes = from->port[p].rx_bytes,
                                            .tx_blocks = from->port[p].tx_blocks,
                                            .combined_messages = from->port[p].combined_messages,
                                            .min_rtt_us = from->link[p].min_rtt_us,
                                            .rate_bps = from->link[p].rate_bps};
    return (struct peer_node_report){.rank = from->rank,
                                     .nanoseconds = from->nanoseconds,
                                     .blocks_delivered = from->blocks_delivered,
                                     .bytes_delivered = from->bytes_delivered,
                                     .n_port = ports,
                                     .port = port,
                                     .most_starts = from->most_starts,
                                     .most_ends = from->most_ends,
                                     .repaired = from->repaired,
                                     .missing_files = from->unmoved.missing,
                                     .unused_files = from->unmoved.unused};
}

int report_send(struct attempt *x)
{
    const struct report *r = &x->report;
    unsigned ports = torus_ports(torus_of(x));
    struct peer_node_report *node = calloc(r->nodes, sizeof *node);
    struct peer_port_report *port = calloc((size_t)r->nodes * ports, sizeof *port);
    const struct peer_message message = {.kind = PEER_DONE,
                                         .done = {.exchange = x->handle,
                                                  .n_node = r->nodes,
                                                  .node = node,
                                                  .n_step_blocks = r->steps,
                                                  .n_step_messages = r->steps,
                                                  .step_blocks = r->step_blocks,
                                                  .step_messages = r->step_messages,
                                                  .sent_digest = r->sent_digest,
                                                  .delivered_digest = r->delivered_digest}};
    int result = -1;

    if (node != NULL && port != NULL) {
        for (uint32_t i = 0; i < r->nodes; i++)
            node[i] = pack_node(&r->node[i], &port[i * ports], ports);
        tree_messages_to_parent(x, &message);
        result = 0;
    }
    free(node);
    free(port);
    return result;
}

static int by_rank(const void *a, const void *b)
{
    const struct exchange_node_report *l = a, *r = b;
    return (l->rank > r->rank) - (l->rank < r->rank);
}

/* Sets *e for a missing report; names also the node that should have passed it on. */
static int report_missing(const struct attempt *x, uint32_t rank, struct error *e)
{
    int port = avoided_branch(x, rank);

    if (port < 0)
        return error_set(e, ERROR_PROTOCOL, "no report of node %u", rank);
    return error_set(e, ERROR_PROTOCOL, "no report of node %u, which node %u should have passed on",
                     rank, torus_neighbour(torus_of(x), rank_of(x), (unsigned)port));
}

/* Sets *e for a report that is wrong or was altered; names also the node that passed it on. */
static int report_wrong(const struct attempt *x, uint32_t rank, const char *what, uint64_t got,
                        uint64_t wanted, struct error *e)
{
    int port = avoided_branch(x, rank);
    uint32_t by = port < 0 ? rank : torus_neighbour(torus_of(x), rank_of(x), (unsigned)port);

    (void)error_set(e, ERROR_DAMAGED, "node %u received %llu %s of %llu", rank,
                    (unsigned long long)got, what, (unsigned long long)wanted);
    return by == rank ? -1 : error_wrap(e, "report passed on by node %u", by);
}

int report_check(struct attempt *x, struct error *e)
{
    struct report *r = &x->report;
    uint32_t nodes = torus_of(x)->nodes, i = 0;

    qsort(r->node, r->nodes, sizeof *r->node, by_rank);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (avoided_is_left_out(x, rank))
            continue;
        if (i >= r->nodes || r->node[i].rank != rank)
            return report_missing(x, rank, e);
        if (r->node[i].blocks_delivered != exchange_receives(x, rank))
            return report_wrong(x, rank, "blocks", r->node[i].blocks_delivered,
                                exchange_receives(x, rank), e);
        if (!spec_has_folders(&x->spec) &&
            r->node[i].bytes_delivered != exchange_receives(x, rank) * x->spec.block_bytes)
            return report_wrong(x, rank, "bytes", r->node[i].bytes_delivered,
                                exchange_receives(x, rank) * x->spec.block_bytes, e);
        i++;
    }
    if (i < r->nodes)
        return error_set(e, ERROR_PROTOCOL, "report of node %u, which takes no part",
                         r->node[i].rank);
    if (r->sent_digest != r->delivered_digest)
        return error_set(
            e, ERROR_DAMAGED,
            "the data delivered differs from the data sent: the digests over all nodes differ");
    return 0;
}

/* Returns how many blocks the busiest channel must carry. */
static double blocks_bound(const struct attempt *x, const struct torus *t)
{
    if (!kind_of(x)->has_blocks)
        return 0;
    if (x->spec.operation == OPERATION_BROADCAST && x->algorithm->detour != NULL)
        return 1.0 /
               x->algorithm->segments; /* as many disjoint trees as the least cut has channels */
    if (x->spec.operation == OPERATION_BROADCAST && t->nodes > 1)
        return x->algorithm->segments > 1 ? 1.0 / torus_fewest_links(t) : 1;
    return algorithm_bound(x->algorithm, t);
}

/* Says for which rates the routes were found, and what these and equal links allow. */
static void tell_rates(const struct attempt *x, struct exchange_result *result)
{
    const struct damage *d =
        kind_of(x)->has_blocks && x->avoided != NULL ? &x->avoided->damage : NULL;

    link_rates_of(&result->links, d);
    if (x->spec.operation == OPERATION_EXCHANGE)
        link_rates_bound_exchange(&result->links, x->algorithm->detour);
    else if (x->spec.operation == OPERATION_BROADCAST)
        link_rates_bound_broadcast(&result->links, d, x->spec.sender);
    else
        link_rates_bound_gather(&result->links, d);
    if (result->links.bound > 0)
        result->bound = result->links.bound;
}

/* Sets *result for the client; valid as long as the attempt. */
static void report_result(const struct attempt *x, struct exchange_result *result)
{
    const struct report *r = &x->report;
    const struct torus *t = torus_of(x);

    *result = (struct exchange_result){
        .id = x->id.text,
        .algorithm = x->algorithm->name,
        .operation = x->spec.operation,
        .mode = x->mode,
        .block_bytes = exchange_id_is_none(&x->resumes) ? x->local.largest_block
                       : spec_has_folders(&x->spec)     ? x->local.whole_block
                                                        : x->spec.block_bytes,
        .rounds = x->rounds.count,
        .node = attempt_is_root(x) ? r->node : NULL,
        .nodes = attempt_is_root(x) ? r->nodes : 0,
        .repeat = x->job->repetitions.kept + x->spec.repeat,
        .each = x->job->repetitions.each,
        .all_ns = x->rounds.all_ns,
        .bound = blocks_bound(x, t),
        .reroutes = x->job->reroutes,
        .replans = x->job->replans,
        .damages = x->job->damages,
        .kept_bytes = x->local.kept_bytes,
        .check = kind_of(x)->has_blocks ? r->check : CHECK_NOTHING,
        .waited_ns = x->barrier_times.waited_ns,
        .arrival = x->barrier_times.all,
        .arrivals = (uint32_t)(x->barrier_times.n_told / 2),
    };
    tell_rates(x, result);
    if (x->avoided != NULL) {
        (void)damage_describe_links(&x->avoided->damage, result->without, sizeof result->without);
        result->gone = x->avoided->damage.gone;
    }
    for (uint32_t i = 0; i < r->nodes; i++) {
        if (r->node[i].nanoseconds > result->nanoseconds)
            result->nanoseconds = r->node[i].nanoseconds;
        result->blocks_delivered += r->node[i].blocks_delivered;
        result->bytes_delivered += r->node[i].bytes_delivered;
        result->damages += r->node[i].repaired;
        result->unmoved.missing += r->node[i].unmoved.missing;
        result->unmoved.unused += r->node[i].unmoved.unused;
    }
    for (uint32_t step = 0; step < r->steps; step++) {
        result->startups += r->step_messages[step] > 0;
        result->transmission += r->step_blocks[step];
    }
    /* transmission is counted in segments here; round up to blocks. */
    result->transmission += x->algorithm->segments - 1;
    result->transmission /= x->algorithm->segments;
}

void client_tell(struct job *j, const struct error *e)
{
    struct exchange_result result;

    j->exchanges->tellable -= job_is_tellable(j);
    j->client_state = CLIENT_TOLD;
    if (e != NULL) {
        j->client.ended(j->client.context, NULL, e);
        return;
    }
    choose_learn(j->attempt);
    report_result(j->attempt, &result);
    j->client.ended(j->client.context, &result, NULL);
}

void report_free(struct report *r)
{
    free(r->node);
    free(r->step_blocks);
    free(r->step_messages);
    free(r->reported);
    *r = (struct report){0};
}

/* --- barriers --- */

#define ARRIVAL_UNKNOWN UINT64_MAX
#define MICROSECONDS 1000u /* nanoseconds in one */
/* What `go` says at most, because a false time may be any number. */
#define LATEST (SPEC_LONGEST_TIMEOUT / MICROSECONDS)
/* A list of more nodes may be longer than a head: a rank takes at most 3 bytes, and a time at most 8. */
#define NODES_MOST (FRAME_MAX_HEAD / 16u)

/* Allocates the times of all nodes. Returns false if there is no memory: the times then stay unknown. */
static bool have_room(struct attempt *x)
{
    struct barrier_times *a = &x->barrier_times;
    const size_t bytes = torus_of(x)->nodes * sizeof *a->at;

    if (a->at == NULL && (a->at = malloc(bytes)) != NULL)
        (void)memset(a->at, 0xff, bytes);
    return a->at != NULL;
}

/* Notes when the client of this node entered. Returns false if that is not known, or is not to be told. */
static bool note_own(struct attempt *x)
{
    if (!kind_of(x)->tells_arrivals || x->job == NULL || torus_of(x)->nodes > NODES_MOST ||
        router_least_minor(router_of(x)) < ARRIVALS_MINOR || !have_room(x))
        return false;
    x->barrier_times.at[rank_of(x)] = x->job->began;
    return true;
}

uint64_t *barrier_times_below(struct attempt *x, size_t *count)
{
    const uint64_t now = router_now(router_of(x));
    const uint32_t nodes = torus_of(x)->nodes;
    uint64_t *list;
    uint32_t known = 0;

    *count = 0;
    if (!note_own(x))
        return NULL;
    for (uint32_t rank = 0; rank < nodes; rank++)
        known += x->barrier_times.at[rank] != ARRIVAL_UNKNOWN;
    list = calloc(known, 2 * sizeof *list);
    for (uint32_t rank = 0; list != NULL && rank < nodes; rank++) {
        if (x->barrier_times.at[rank] == ARRIVAL_UNKNOWN)
            continue;
        list[(*count)++] = rank;
        list[(*count)++] = elapsed(x->barrier_times.at[rank], now) / MICROSECONDS;
    }
    return list;
}

int barrier_times_add_child(struct attempt *x, unsigned port, const uint64_t *list, size_t count,
                            struct error *e)
{
    const uint64_t now = router_now(router_of(x));

    if (count == 0 || !kind_of(x)->tells_arrivals || !have_room(x))
        return 0;
    if (count % 2 != 0)
        return error_set(e, ERROR_PROTOCOL, "exchange %s: arrivals of %zu numbers", x->id.text,
                         count);
    for (size_t i = 0; i < count; i += 2) {
        const uint64_t rank = list[i], ago = list[i + 1];
        if (rank >= torus_of(x)->nodes || avoided_branch(x, (uint32_t)rank) != (int)port ||
            x->barrier_times.at[rank] != ARRIVAL_UNKNOWN)
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: arrival of node %llu, for a second time or from the "
                             "wrong neighbour",
                             x->id.text, (unsigned long long)rank);
        x->barrier_times.at[rank] = ago < now / MICROSECONDS ? now - ago * MICROSECONDS : 0;
    }
    return 0;
}

/* Allocates the lists that `go` fills, with an entry for each of `nodes`. Returns false if there is no memory. */
static bool allocate(struct barrier_times *a, size_t nodes)
{
    a->told = calloc(nodes + 1, 2 * sizeof *a->told);
    a->all = calloc(nodes + 1, sizeof *a->all);
    if (a->told != NULL && a->all != NULL)
        return true;
    barrier_times_free(a);
    return false;
}

static void keep(struct barrier_times *a, uint32_t rank, uint64_t after_us)
{
    a->all[a->n_told / 2] =
        (struct exchange_arrival){.rank = rank, .after_ns = after_us * MICROSECONDS};
    a->told[a->n_told++] = rank;
    a->told[a->n_told++] = after_us;
}

void barrier_times_compare(struct attempt *x)
{
    struct barrier_times *a = &x->barrier_times;
    const uint32_t nodes = torus_of(x)->nodes;
    uint64_t first = ARRIVAL_UNKNOWN;

    if (!note_own(x) || !allocate(a, nodes))
        return;
    for (uint32_t rank = 0; rank < nodes; rank++)
        first = a->at[rank] < first ? a->at[rank] : first;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const uint64_t after_us = (a->at[rank] - first) / MICROSECONDS;
        if (a->at[rank] != ARRIVAL_UNKNOWN)
            keep(a, rank, after_us < LATEST ? after_us : LATEST);
    }
}

int barrier_times_set(struct attempt *x, const uint64_t *list, size_t count, struct error *e)
{
    struct barrier_times *a = &x->barrier_times;

    if (count == 0 || !kind_of(x)->tells_arrivals)
        return 0;
    for (size_t i = 0; i < count; i += 2)
        if (count % 2 != 0 || list[i] >= torus_of(x)->nodes || (i > 0 && list[i] <= list[i - 2]) ||
            list[i + 1] > LATEST)
            return error_set(e, ERROR_PROTOCOL, "exchange %s: invalid arrivals in \"go\"",
                             x->id.text);
    if (!allocate(a, count / 2))
        return 0;
    for (size_t i = 0; i < count; i += 2)
        keep(a, (uint32_t)list[i], list[i + 1]);
    return 0;
}

void barrier_times_go(struct attempt *x)
{
    if (kind_of(x)->tells_arrivals && x->job != NULL)
        x->barrier_times.waited_ns = elapsed(x->job->began, router_now(router_of(x)));
}

void barrier_times_free(struct barrier_times *a)
{
    free(a->at);
    free(a->told);
    free(a->all);
    *a = (struct barrier_times){0};
}
