#include "client/libtorus/requests/results.h"

#include <stdlib.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/names.h"
#include "client/libtorus/requests/copy_result.h"
#include "proto/text.h"

static const char *const *clean_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_clean(texts[i]);
    return (const char *const *)texts;
}

/* ---- Calibration ----------------------------------------------------------------------------- */

struct calibration_holder {
    struct torus_calibration
        calibration; /* must be first: torus_calibration_free() frees this address */
    struct torus_costs costs;
};

static int fill_calibration(struct calibration_holder *h, const Control__Calibration *in,
                            struct torus_error *e)
{
    const Control__Costs *costs = in != NULL ? in->costs : NULL;

    if (costs == NULL || !is_measurement(costs->step_seconds) ||
        !is_measurement(costs->message_seconds) || !is_measurement(costs->bytes_per_second))
        return invalid_reply(e, "its costs are not valid numbers");
    torus_costs_init(&h->costs);
    h->costs.step_seconds = costs->step_seconds;
    h->costs.message_seconds = costs->message_seconds;
    h->costs.bytes_per_second = costs->bytes_per_second;
    h->calibration.costs = &h->costs;
    h->calibration.measured_at = in->measured_at;
    return 0;
}

void torus_calibration_free(struct torus_calibration *calibration)
{
    free(calibration);
}

int calibration_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct calibration_holder *h = calloc(1, sizeof *h);
    struct torus_calibration **out = result;
    int r = h != NULL ? fill_calibration(h, reply->calibration, e) : fail_memory(e);

    control__reply__free_unpacked(reply, NULL);
    if (r == 0 && out != NULL)
        *out = &h->calibration;
    else
        free(h);
    return r;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

struct candidates_holder {
    struct torus_candidates candidates;
    Control__Reply *reply;
    struct calibration_holder calibration;
    struct torus_candidate *candidate;
    const struct torus_candidate **list;
};

void torus_candidates_free(struct torus_candidates *candidates)
{
    struct candidates_holder *h = (struct candidates_holder *)candidates;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->candidate);
    free(h->list);
    free(h);
}

static int fill_candidates(struct candidates_holder *h, struct torus_error *e)
{
    const Control__Candidates *in = h->reply->candidates;

    if (fill_calibration(&h->calibration, in->calibration, e) != 0)
        return -1;
    h->candidate = array_new(in->n_candidate, sizeof *h->candidate);
    h->list = array_new(in->n_candidate, sizeof *h->list);
    if (h->candidate == NULL || h->list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_candidate; i++) {
        const Control__Candidates__Candidate *from = in->candidate[i];
        if (!is_measurement(from->steps) || !is_measurement(from->messages) ||
            !is_measurement(from->blocks) || !is_measurement(from->seconds))
            return invalid_reply(e, "a prediction is not a valid number");
        h->candidate[i] = (struct torus_candidate){
            .algorithm = clean_text(from->algorithm),
            .mode = mode_named(from->mode),
            .segments = from->segments,
            .piece_bytes = from->piece_bytes,
            .steps = from->steps,
            .messages = from->messages,
            .blocks = from->blocks,
            .seconds = from->seconds,
        };
        h->list[i] = &h->candidate[i];
    }
    h->candidates = (struct torus_candidates){
        .block_bytes = in->block_bytes,
        .calibration = &h->calibration.calibration,
        .count = in->n_candidate,
        .candidate = h->list,
    };
    return 0;
}

int candidates_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct candidates_holder *h = calloc(1, sizeof *h);
    struct torus_candidates **out = result;

    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        return fail_memory(e);
    }
    h->reply = reply;
    if (fill_candidates(h, e) != 0) {
        torus_candidates_free(&h->candidates);
        return -1;
    }
    *out = &h->candidates;
    return 0;
}

/* ---- Status ---------------------------------------------------------------------------------- */

struct status_holder {
    struct torus_status status;
    Control__Reply *reply;
    struct calibration_holder calibration;
    struct torus_activity *exchange;
    const struct torus_activity **list;
    struct torus_group_info *group;
    const struct torus_group_info **groups;
    struct torus_unconfirmed *unconfirmed;
    const struct torus_unconfirmed **unconfirmed_list;
    struct torus_link_fault *fault;
    const struct torus_link_fault **faults;
    struct torus_share *share;
    const struct torus_share **shares;
    struct torus_graph *graph;
    const struct torus_graph **graphs;
    struct torus_copy_activity *copy;
    const struct torus_copy_activity **copies;
};

void torus_status_free(struct torus_status *status)
{
    struct status_holder *h = (struct status_holder *)status;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->exchange);
    free(h->list);
    free(h->group);
    free(h->groups);
    free(h->unconfirmed);
    free(h->unconfirmed_list);
    free(h->fault);
    free(h->faults);
    free(h->share);
    free(h->shares);
    free(h->graph);
    free(h->graphs);
    free(h->copy);
    free(h->copies);
    free(h);
}

static int fill_exchanges(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->exchange = array_new(in->n_exchange, sizeof *h->exchange);
    h->list = array_new(in->n_exchange, sizeof *h->list);
    if (h->exchange == NULL || h->list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_exchange; i++) {
        const Control__Status__Exchange *from = in->exchange[i];
        h->exchange[i] = (struct torus_activity){
            .id = clean_text(from->id),
            .algorithm = clean_text(from->algorithm),
            .state = state_named(from->state),
            .reason = clean_text(from->reason),
            .coordinator = from->root,
            .age_ms = from->age_ms,
            .round = from->round,
            .rounds = from->rounds,
            .done_bytes = from->done_bytes,
            .total_bytes = from->total_bytes,
        };
        h->list[i] = &h->exchange[i];
    }
    return 0;
}

static int fill_groups(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->group = array_new(in->n_group, sizeof *h->group);
    h->groups = array_new(in->n_group, sizeof *h->groups);
    if (h->group == NULL || h->groups == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_group; i++) {
        const Control__Status__Group *from = in->group[i];
        h->group[i] = (struct torus_group_info){
            .name = clean_text(from->name),
            .id = clean_text(from->id),
            .open = from->open != 0,
            .missing = clean_text(from->missing),
            .calls = from->calls,
            .calls_done = from->calls_done,
            .bytes_sent = from->bytes_sent,
            .bytes_received = from->bytes_received,
            .early_bytes = from->early,
            .reserved_bytes = from->reserved,
            .pid = from->process,
            .avoids = clean_text(from->avoids),
        };
        h->groups[i] = &h->group[i];
    }
    return 0;
}

static int fill_unconfirmed(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->unconfirmed = array_new(in->n_unconfirmed, sizeof *h->unconfirmed);
    h->unconfirmed_list = array_new(in->n_unconfirmed, sizeof *h->unconfirmed_list);
    if (h->unconfirmed == NULL || h->unconfirmed_list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_unconfirmed; i++) {
        const Control__Status__Unconfirmed *from = in->unconfirmed[i];
        h->unconfirmed[i] = (struct torus_unconfirmed){
            .id = clean_text(from->id),
            .count = from->count,
            .node_count = from->n_node,
            .nodes = from->node,
            .reason = clean_text(from->reason),
        };
        h->unconfirmed_list[i] = &h->unconfirmed[i];
    }
    return 0;
}

static int fill_link_faults(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->fault = array_new(in->n_link_fault, sizeof *h->fault);
    h->faults = array_new(in->n_link_fault, sizeof *h->faults);
    if (h->fault == NULL || h->faults == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_link_fault; i++) {
        const Control__Status__LinkFault *from = in->link_fault[i];
        h->fault[i] = (struct torus_link_fault){
            .node = from->node,
            .port = from->port,
            .code = clean_text(from->code),
            .text = clean_text(from->text),
            .found_node = from->found ? from->found_node : TORUS_RANK_NONE,
            .found_port = from->found_port,
        };
        h->faults[i] = &h->fault[i];
    }
    return 0;
}

static int fill_shares(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->share = array_new(in->n_share, sizeof *h->share);
    h->shares = array_new(in->n_share, sizeof *h->shares);
    if (h->share == NULL || h->shares == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_share; i++) {
        const Control__Status__Share *from = in->share[i];
        h->share[i] = (struct torus_share){
            .resource = clean_text(from->resource),
            .user = from->user,
            .held = from->held,
            .most = from->most,
            .capacity = from->capacity,
        };
        h->shares[i] = &h->share[i];
    }
    return 0;
}

static int fill_graphs(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    h->graph = array_new(in->n_graph, sizeof *h->graph);
    h->graphs = array_new(in->n_graph, sizeof *h->graphs);
    if (h->graph == NULL || h->graphs == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_graph; i++) {
        h->graph[i] = (struct torus_graph){in->graph[i]->n_edge, in->graph[i]->edge};
        h->graphs[i] = &h->graph[i];
    }
    return 0;
}

static int fill_status(struct status_holder *h, struct torus_error *e)
{
    const Control__Status *in = h->reply->status;

    if (in->dims[0] == '\0')
        return invalid_reply(e, "it has no dimensions");
    if (!is_measurement(in->link_mbit))
        return invalid_reply(e, "its link rate is not a valid number");
    if (fill_calibration(&h->calibration, in->calibration, e) != 0 || fill_exchanges(h, e) != 0 ||
        fill_groups(h, e) != 0 || fill_unconfirmed(h, e) != 0 || fill_link_faults(h, e) != 0 ||
        fill_shares(h, e) != 0 || fill_graphs(h, e) != 0 ||
        copies_from(in, &h->copy, &h->copies, e) != 0)
        return -1;
    h->status = (struct torus_status){
        .version = clean_text(in->version),
        .pid = in->pid,
        .dims = clean_text(in->dims),
        .rank = in->rank,
        .coordinate_count = in->n_coordinates,
        .coordinates = in->coordinates,
        .uptime_ms = in->uptime_ms,
        .whole = in->whole != 0,
        .fault_count = in->n_fault,
        .faults = clean_texts(in->fault, in->n_fault),
        .exchange_count = in->n_exchange,
        .exchanges = h->list,
        .data_root_count = in->n_data_root,
        .data_roots = clean_texts(in->data_root, in->n_data_root),
        .link_mbit = in->link_mbit,
        .memory_budget = in->memory_budget,
        .memory_reserved = in->memory_reserved,
        .memory_used = in->memory_used,
        .calibration = &h->calibration.calibration,
        .group_count = in->n_group,
        .groups = h->groups,
        .unconfirmed_count = in->n_unconfirmed,
        .unconfirmed = h->unconfirmed_list,
        .peer_protocol = in->peer_protocol,
        .peer_minor = in->peer_minor,
        .least_peer_minor = in->least_peer_minor,
        .control_protocol = in->control_protocol,
        .program_protocol = in->program_protocol,
        .link_fault_count = in->n_link_fault,
        .link_faults = h->faults,
        .share_count = in->n_share,
        .shares = h->shares,
        .graph_count = in->n_graph,
        .graphs = h->graphs,
        .host = clean_text(in->host),
        .key_count = in->n_key,
        .keys = clean_texts(in->key, in->n_key),
        .copy_count = in->n_copy,
        .copies = h->copies,
        .metrics = clean_text(in->metrics),
    };
    return 0;
}

int status_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct status_holder *h = calloc(1, sizeof *h);
    struct torus_status **out = result;

    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        return fail_memory(e);
    }
    h->reply = reply;
    if (fill_status(h, e) != 0) {
        torus_status_free(&h->status);
        return -1;
    }
    *out = &h->status;
    return 0;
}

/* ---- Links ----------------------------------------------------------------------------------- */

struct links_holder {
    struct torus_links links;
    Control__Reply *reply;
    struct torus_link *link;
    const struct torus_link **list;
};

void torus_links_free(struct torus_links *links)
{
    struct links_holder *h = (struct links_holder *)links;
    if (h == NULL)
        return;
    control__reply__free_unpacked(h->reply, NULL);
    free(h->link);
    free(h->list);
    free(h);
}

static int fill_links(struct links_holder *h, struct torus_error *e)
{
    const Control__Links *in = h->reply->links;

    h->link = array_new(in->n_link, sizeof *h->link);
    h->list = array_new(in->n_link, sizeof *h->list);
    if (h->link == NULL || h->list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_link; i++) {
        const Control__Links__Link *from = in->link[i];
        if (from->name[0] == '\0')
            return invalid_reply(e, "a link has no name");
        h->link[i] = (struct torus_link){
            .port = from->port,
            .name = clean_text(from->name),
            .neighbour = from->neighbour,
            .address = clean_text(from->address),
            .state = link_state_named(from->state),
            .reason = clean_text(from->reason),
            .tx_bytes = from->tx_bytes,
            .rx_bytes = from->rx_bytes,
            .rtt_us = from->rtt_us,
            .rate_bps = from->rate_bps,
            .up_ms = from->up_ms,
            .connects = from->connects,
            .key = clean_text(from->key),
            .encrypted = from->encrypted != 0,
            .held_ms = from->held_ms,
            .interface = clean_text(from->interface),
            .queue_bytes = from->queue_bytes,
            .unacked_bytes = from->unacked_bytes,
            .retransmits = from->retransmits,
            .mtu = from->mtu,
            .hour_ms = from->hour_ms,
            .hour_tx_bytes = from->hour_tx_bytes,
            .hour_retransmits = from->hour_retransmits,
            .hour_connects = from->hour_connects,
        };
        h->list[i] = &h->link[i];
    }
    h->links = (struct torus_links){.count = in->n_link,
                                    .link = h->list,
                                    .heartbeat_ms = in->heartbeat_ms,
                                    .silence_ms = in->silence_ms};
    return 0;
}

int links_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct links_holder *h = calloc(1, sizeof *h);
    struct torus_links **out = result;

    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        return fail_memory(e);
    }
    h->reply = reply;
    if (fill_links(h, e) != 0) {
        torus_links_free(&h->links);
        return -1;
    }
    *out = &h->links;
    return 0;
}
