#include "client/libtorus/results.h"

#include <math.h>
#include <stdlib.h>

#include "client/libtorus/fail.h"
#include "daemon/base/text.h"

struct status_holder {
    struct torus_client_status status; /* first: what the caller sees */
    Control__Reply *reply;
    struct torus_client_activity *exchanges;
};

struct links_holder {
    struct torus_client_links links;
    Control__Reply *reply;
    struct torus_client_link *link;
};

struct candidates_holder {
    struct torus_candidates candidates;
    Control__Reply *reply;
    struct torus_candidate *candidate;
};

struct exchange_holder {
    struct torus_exchange_result result;
    Control__Reply *reply;
    struct torus_exchange_node *node;
    struct torus_exchange_port *port; /* of all nodes, one after the other */
};

/* Memory for `count` things, never NULL because there are none. */
static void *several(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

static const char *clean(char *text)
{
    text_clean(text);
    return text;
}

static const char *const *clean_all(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_clean(texts[i]);
    return (const char *const *)texts;
}

static int no_memory(struct torus_client_error *e)
{
    return fail(e, TORUS_ERROR_MEMORY, "out of memory for the daemon's answer");
}

static int senseless(struct torus_client_error *e, const char *what)
{
    return fail(e, TORUS_ERROR_PROTOCOL, "the daemon's answer makes no sense: %s", what);
}

static bool measurable(double value)
{
    return isfinite(value) && value >= 0;
}

/* ---- Predictions ----------------------------------------------------------------------------- */

int calibration_from(const Control__Calibration *in, struct torus_calibration *out,
                     struct torus_client_error *e)
{
    const Control__Costs *costs = in != NULL ? in->costs : NULL;

    if (costs == NULL || !measurable(costs->step_seconds) || !measurable(costs->message_seconds) ||
        !measurable(costs->bytes_per_second))
        return senseless(e, "costs that are no numbers");
    *out = (struct torus_calibration){
        .costs = {.step_seconds = costs->step_seconds,
                  .message_seconds = costs->message_seconds,
                  .bytes_per_second = costs->bytes_per_second},
        .measured_at = in->measured_at,
    };
    return 0;
}

void torus_client_candidates_free(struct torus_candidates *candidates)
{
    struct candidates_holder *h = (struct candidates_holder *)candidates;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->candidate);
    free(h);
}

static int fill_candidates(struct candidates_holder *h, struct torus_client_error *e)
{
    const Control__Candidates *in = h->reply->candidates;

    if (calibration_from(in->calibration, &h->candidates.calibration, e) != 0)
        return -1;
    h->candidate = several(in->n_candidate, sizeof *h->candidate);
    if (h->candidate == NULL)
        return no_memory(e);
    for (size_t i = 0; i < in->n_candidate; i++) {
        const Control__Candidates__Candidate *from = in->candidate[i];
        if (!measurable(from->steps) || !measurable(from->messages) || !measurable(from->blocks) ||
            !measurable(from->seconds))
            return senseless(e, "a prediction that is no number");
        h->candidate[i] = (struct torus_candidate){
            .algorithm = clean(from->algorithm),
            .mode = clean(from->mode),
            .segments = from->segments,
            .piece_bytes = from->piece_bytes,
            .steps = from->steps,
            .messages = from->messages,
            .blocks = from->blocks,
            .seconds = from->seconds,
        };
    }
    h->candidates.block_bytes = in->block_bytes;
    h->candidates.count = in->n_candidate;
    h->candidates.candidate = h->candidate;
    return 0;
}

struct torus_candidates *candidates_from(Control__Reply *reply, struct torus_client_error *e)
{
    struct candidates_holder *h = calloc(1, sizeof *h);
    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        no_memory(e);
        return NULL;
    }
    h->reply = reply;
    if (fill_candidates(h, e) != 0) {
        torus_client_candidates_free(&h->candidates);
        return NULL;
    }
    return &h->candidates;
}

/* ---- Status ---------------------------------------------------------------------------------- */

void torus_client_status_free(struct torus_client_status *status)
{
    struct status_holder *h = (struct status_holder *)status;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->exchanges);
    free(h);
}

static int check_status(const Control__Status *in, struct torus_client_error *e)
{
    if (in->dims[0] == '\0')
        return senseless(e, "a status without dimensions");
    if (!measurable(in->link_mbit))
        return senseless(e, "a link rate that is no number");
    return 0;
}

static int fill_status(struct status_holder *h, struct torus_client_error *e)
{
    const Control__Status *in = h->reply->status;
    struct torus_client_status *out = &h->status;

    if (check_status(in, e) != 0)
        return -1;
    h->exchanges = several(in->n_exchange, sizeof *h->exchanges);
    if (h->exchanges == NULL)
        return no_memory(e);
    for (size_t i = 0; i < in->n_exchange; i++) {
        const Control__Status__Exchange *from = in->exchange[i];
        h->exchanges[i] = (struct torus_client_activity){
            .id = clean(from->id),
            .algorithm = clean(from->algorithm),
            .state = clean(from->state),
            .reason = clean(from->reason),
            .root = from->root,
            .age_ms = from->age_ms,
        };
    }
    *out = (struct torus_client_status){
        .version = clean(in->version),
        .pid = in->pid,
        .dims = clean(in->dims),
        .rank = in->rank,
        .coordinate_count = in->n_coordinates,
        .coordinates = in->coordinates,
        .uptime_ms = in->uptime_ms,
        .whole = in->whole != 0,
        .fault_count = in->n_fault,
        .faults = clean_all(in->fault, in->n_fault),
        .exchange_count = in->n_exchange,
        .exchanges = h->exchanges,
        .data_root_count = in->n_data_root,
        .data_roots = clean_all(in->data_root, in->n_data_root),
        .link_mbit = in->link_mbit,
        .memory_budget = in->memory_budget,
        .memory_reserved = in->memory_reserved,
        .memory_used = in->memory_used,
    };
    return in->calibration != NULL ? calibration_from(in->calibration, &out->calibration, e) : 0;
}

struct torus_client_status *status_from(Control__Reply *reply, struct torus_client_error *e)
{
    struct status_holder *h = calloc(1, sizeof *h);
    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        no_memory(e);
        return NULL;
    }
    h->reply = reply;
    if (fill_status(h, e) != 0) {
        torus_client_status_free(&h->status);
        return NULL;
    }
    return &h->status;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void torus_client_links_free(struct torus_client_links *links)
{
    struct links_holder *h = (struct links_holder *)links;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->link);
    free(h);
}

static int fill_links(struct links_holder *h, struct torus_client_error *e)
{
    const Control__Links *in = h->reply->links;

    h->link = several(in->n_link, sizeof *h->link);
    if (h->link == NULL)
        return no_memory(e);
    for (size_t i = 0; i < in->n_link; i++) {
        const Control__Links__Link *from = in->link[i];
        if (from->name[0] == '\0')
            return senseless(e, "a link without a name");
        h->link[i] = (struct torus_client_link){
            .port = from->port,
            .name = clean(from->name),
            .neighbour = from->neighbour,
            .address = clean(from->address),
            .up = from->up != 0,
            .state = clean(from->state),
            .reason = clean(from->reason),
            .tx_bytes = from->tx_bytes,
            .rx_bytes = from->rx_bytes,
            .rtt_us = from->rtt_us,
            .rate_bps = from->rate_bps,
            .up_ms = from->up_ms,
            .connects = from->connects,
        };
    }
    h->links.count = in->n_link;
    h->links.link = h->link;
    return 0;
}

struct torus_client_links *links_from(Control__Reply *reply, struct torus_client_error *e)
{
    struct links_holder *h = calloc(1, sizeof *h);
    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        no_memory(e);
        return NULL;
    }
    h->reply = reply;
    if (fill_links(h, e) != 0) {
        torus_client_links_free(&h->links);
        return NULL;
    }
    return &h->links;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

void torus_exchange_result_free(struct torus_exchange_result *result)
{
    struct exchange_holder *h = (struct exchange_holder *)result;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->node);
    free(h->port);
    free(h);
}

static int check_exchange(const Control__ExchangeResult *in, struct torus_client_error *e)
{
    if (in->id[0] == '\0' || in->dims[0] == '\0')
        return senseless(e, "a result without an id or dimensions");
    if (!measurable(in->bound) || !measurable(in->link_mbit))
        return senseless(e, "a bound or a link rate that is no number");
    if (in->n_each_nanoseconds != 0 && in->n_each_nanoseconds != in->repeat)
        return senseless(e, "more or fewer times than repetitions");
    if (in->n_node > in->nodes)
        return senseless(e, "figures of more nodes than there are");
    for (size_t i = 0; i < in->n_node; i++)
        if (in->node[i]->rank >= in->nodes)
            return senseless(e, "figures of a rank that does not exist");
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = (*(Control__ExchangeResult__Node *const *)a)->rank;
    uint32_t y = (*(Control__ExchangeResult__Node *const *)b)->rank;
    return (x > y) - (x < y);
}

static int fill_nodes(struct exchange_holder *h, struct torus_client_error *e)
{
    const Control__ExchangeResult *in = h->reply->exchange;
    struct torus_exchange_port *port;
    size_t ports = 0;

    if (in->n_node > 0)
        qsort(in->node, in->n_node, sizeof in->node[0], by_rank);
    for (size_t i = 0; i < in->n_node; i++) {
        if (i > 0 && in->node[i]->rank == in->node[i - 1]->rank)
            return senseless(e, "figures of one rank twice");
        ports += in->node[i]->n_port;
    }
    h->node = several(in->n_node, sizeof *h->node);
    h->port = port = several(ports, sizeof *h->port);
    if (h->node == NULL || h->port == NULL)
        return no_memory(e);
    for (size_t i = 0; i < in->n_node; i++) {
        const Control__ExchangeResult__Node *from = in->node[i];
        h->node[i] = (struct torus_exchange_node){
            .rank = from->rank,
            .nanoseconds = from->nanoseconds,
            .most_starts = from->most_starts,
            .most_ends = from->most_ends,
            .port_count = from->n_port,
            .port = port,
        };
        for (size_t j = 0; j < from->n_port; j++, port++)
            *port = (struct torus_exchange_port){
                .name = clean(from->port[j]->name),
                .tx_bytes = from->port[j]->tx_bytes,
                .rx_bytes = from->port[j]->rx_bytes,
                .tx_blocks = from->port[j]->tx_blocks,
                .combined_messages = from->port[j]->combined_messages,
                .min_rtt_us = from->port[j]->min_rtt_us,
                .rate_bps = from->port[j]->rate_bps,
            };
    }
    return 0;
}

static int fill_exchange(struct exchange_holder *h, struct torus_client_error *e)
{
    const Control__ExchangeResult *in = h->reply->exchange;

    if (check_exchange(in, e) != 0 || fill_nodes(h, e) != 0)
        return -1;
    h->result = (struct torus_exchange_result){
        .id = clean(in->id),
        .dims = clean(in->dims),
        .operation = clean(in->operation),
        .algorithm = clean(in->algorithm),
        .mode = clean(in->mode),
        .nodes = in->nodes,
        .block_bytes = in->block_bytes,
        .nanoseconds = in->nanoseconds,
        .bound = in->bound,
        .link_mbit = in->link_mbit,
        .startups = in->startups,
        .transmission = in->transmission,
        .rounds = in->rounds,
        .blocks_delivered = in->blocks_delivered,
        .bytes_delivered = in->bytes_delivered,
        .verified = in->verified != 0,
        .node_count = in->n_node,
        .node = h->node,
        .repeat = in->repeat > 0 ? in->repeat : 1,
        .each_count = in->n_each_nanoseconds,
        .each = in->each_nanoseconds,
        .all_nanoseconds = in->all_nanoseconds,
    };
    return 0;
}

struct torus_exchange_result *exchange_from(Control__Reply *reply, struct torus_client_error *e)
{
    struct exchange_holder *h = calloc(1, sizeof *h);
    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        no_memory(e);
        return NULL;
    }
    h->reply = reply;
    if (fill_exchange(h, e) != 0) {
        torus_exchange_result_free(&h->result);
        return NULL;
    }
    return &h->result;
}
