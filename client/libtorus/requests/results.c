#include "client/libtorus/requests/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "proto/text.h"
#include "proto/unpack.h"

/* ---- Results --------------------------------------------------------------------------------- */

/* What is allocated for a public struct: the struct itself, and what it points into. */
struct holder {
    Control__Reply *reply;
    void **kept;
    size_t count;
    _Alignas(max_align_t) uint8_t result[];
};

static struct holder *holder_of(void *result)
{
    return (struct holder *)(void *)((uint8_t *)result - offsetof(struct holder, result));
}

void *result_new(size_t size, Control__Reply *reply, struct torus_error *e)
{
    struct holder *h = calloc(1, sizeof *h + size);

    if (h == NULL) {
        if (reply != NULL)
            unpack_free(reply);
        (void)fail_memory(e);
        return NULL;
    }
    h->reply = reply;
    return h->result;
}

void result_free(void *result)
{
    struct holder *h = result != NULL ? holder_of(result) : NULL;

    if (h == NULL)
        return;
    if (h->reply != NULL)
        unpack_free(h->reply);
    for (size_t i = 0; i < h->count; i++)
        free(h->kept[i]);
    free((void *)h->kept);
    free(h);
}

void *result_keep(void *result, void *memory)
{
    struct holder *h = holder_of(result);

    if (memory != NULL && (h->count & (h->count - 1)) == 0) { /* the room is used up: double it */
        void **kept = reallocarray((void *)h->kept, h->count > 0 ? 2 * h->count : 1, sizeof *kept);
        if (kept == NULL) {
            free(memory);
            return NULL;
        }
        h->kept = kept;
    }
    if (memory != NULL)
        h->kept[h->count++] = memory;
    return memory;
}

void *result_array(void *result, size_t count, size_t size)
{
    return result_keep(result, calloc(count > 0 ? count : 1, size));
}

void *result_list(void *result, const void *elements, size_t count, size_t size)
{
    const void **list = elements != NULL ? result_array(result, count, sizeof *list) : NULL;

    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = (const uint8_t *)elements + i * size;
    return (void *)list;
}

int result_end(void *result, int filled, void *to)
{
    if (filled == 0 && to != NULL)
        memcpy(to, &result, sizeof result);
    else
        result_free(result);
    return filled;
}

/* ---- What all conversions need --------------------------------------------------------------- */

const char *clean_text(char *text)
{
    text_clean(text);
    return text;
}

int invalid_reply(struct torus_error *e, const char *what)
{
    return fail(e, TORUS_ERROR_PROTOCOL, "the daemon's reply is invalid: %s", what);
}

bool is_measurement(double value)
{
    return isfinite(value) && value >= 0;
}

static const char *const *clean_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_clean(texts[i]);
    return (const char *const *)texts;
}

/* ---- Calibration ----------------------------------------------------------------------------- */

struct known_calibration {
    struct torus_calibration calibration;
    struct torus_costs costs;
};

static int fill_calibration(struct known_calibration *to, const Control__Calibration *in,
                            struct torus_error *e)
{
    const Control__Costs *costs = in != NULL ? in->costs : NULL;

    if (costs == NULL || !is_measurement(costs->step_seconds) ||
        !is_measurement(costs->message_seconds) || !is_measurement(costs->bytes_per_second))
        return invalid_reply(e, "its costs are not valid numbers");
    torus_costs_init(&to->costs);
    to->costs.step_seconds = costs->step_seconds;
    to->costs.message_seconds = costs->message_seconds;
    to->costs.bytes_per_second = costs->bytes_per_second;
    to->calibration.costs = &to->costs;
    to->calibration.measured_at = in->measured_at;
    return 0;
}

/* Adds the calibration to a result. Returns NULL with *e if it is invalid or memory is short. */
static const struct torus_calibration *add_calibration(void *result, const Control__Calibration *in,
                                                       struct torus_error *e)
{
    struct known_calibration *known = result_array(result, 1, sizeof *known);

    if (known == NULL) {
        (void)fail_memory(e);
        return NULL;
    }
    return fill_calibration(known, in, e) == 0 ? &known->calibration : NULL;
}

void torus_calibration_free(struct torus_calibration *calibration)
{
    result_free(calibration);
}

int calibration_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct known_calibration *known = result_new(sizeof *known, reply, e);

    return known != NULL ? result_end(known, fill_calibration(known, reply->calibration, e), result)
                         : -1;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

void torus_candidates_free(struct torus_candidates *candidates)
{
    result_free(candidates);
}

static int fill_candidates(struct torus_candidates *to, const Control__Candidates *in,
                           struct torus_error *e)
{
    struct torus_candidate *each = result_array(to, in->n_candidate, sizeof *each);

    to->calibration = add_calibration(to, in->calibration, e);
    if (to->calibration == NULL)
        return -1;
    to->block_bytes = in->block_bytes;
    to->count = in->n_candidate;
    to->candidate = result_list(to, each, to->count, sizeof *each);
    if (to->candidate == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_candidate; i++) {
        const Control__Candidates__Candidate *from = in->candidate[i];
        if (!is_measurement(from->steps) || !is_measurement(from->messages) ||
            !is_measurement(from->blocks) || !is_measurement(from->seconds))
            return invalid_reply(e, "a prediction is not a valid number");
        each[i] = (struct torus_candidate){
            .algorithm = clean_text(from->algorithm),
            .mode = mode_named(from->mode),
            .segments = from->segments,
            .piece_bytes = from->piece_bytes,
            .steps = from->steps,
            .messages = from->messages,
            .blocks = from->blocks,
            .seconds = from->seconds,
        };
    }
    return 0;
}

int candidates_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_candidates *candidates = result_new(sizeof *candidates, reply, e);

    return candidates != NULL
               ? result_end(candidates, fill_candidates(candidates, reply->candidates, e), result)
               : -1;
}

/* ---- Status ---------------------------------------------------------------------------------- */

void torus_status_free(struct torus_status *status)
{
    result_free(status);
}

static int fill_exchanges(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    struct torus_activity *each = result_array(to, in->n_exchange, sizeof *each);

    to->exchange_count = in->n_exchange;
    to->exchanges = result_list(to, each, in->n_exchange, sizeof *each);
    if (to->exchanges == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_exchange; i++) {
        const Control__Status__Exchange *from = in->exchange[i];
        each[i] = (struct torus_activity){
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
    }
    return 0;
}

static int fill_groups(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    struct torus_group_info *each = result_array(to, in->n_group, sizeof *each);

    to->group_count = in->n_group;
    to->groups = result_list(to, each, in->n_group, sizeof *each);
    if (to->groups == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_group; i++) {
        const Control__Status__Group *from = in->group[i];
        each[i] = (struct torus_group_info){
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
    }
    return 0;
}

static int fill_unconfirmed(struct torus_status *to, const Control__Status *in,
                            struct torus_error *e)
{
    struct torus_unconfirmed *each = result_array(to, in->n_unconfirmed, sizeof *each);

    to->unconfirmed_count = in->n_unconfirmed;
    to->unconfirmed = result_list(to, each, in->n_unconfirmed, sizeof *each);
    if (to->unconfirmed == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_unconfirmed; i++) {
        const Control__Status__Unconfirmed *from = in->unconfirmed[i];
        each[i] = (struct torus_unconfirmed){
            .id = clean_text(from->id),
            .count = from->count,
            .node_count = from->n_node,
            .nodes = from->node,
            .reason = clean_text(from->reason),
        };
    }
    return 0;
}

static int fill_link_faults(struct torus_status *to, const Control__Status *in,
                            struct torus_error *e)
{
    struct torus_link_fault *each = result_array(to, in->n_link_fault, sizeof *each);

    to->link_fault_count = in->n_link_fault;
    to->link_faults = result_list(to, each, in->n_link_fault, sizeof *each);
    if (to->link_faults == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_link_fault; i++) {
        const Control__Status__LinkFault *from = in->link_fault[i];
        each[i] = (struct torus_link_fault){
            .node = from->node,
            .port = from->port,
            .code = clean_text(from->code),
            .text = clean_text(from->text),
            .found_node = from->found ? from->found_node : TORUS_RANK_NONE,
            .found_port = from->found_port,
        };
    }
    return 0;
}

static int fill_shares(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    struct torus_share *each = result_array(to, in->n_share, sizeof *each);

    to->share_count = in->n_share;
    to->shares = result_list(to, each, in->n_share, sizeof *each);
    if (to->shares == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_share; i++) {
        const Control__Status__Share *from = in->share[i];
        each[i] = (struct torus_share){
            .resource = clean_text(from->resource),
            .user = from->user,
            .held = from->held,
            .most = from->most,
            .capacity = from->capacity,
        };
    }
    return 0;
}

static int fill_graphs(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    struct torus_graph *each = result_array(to, in->n_graph, sizeof *each);

    to->graph_count = in->n_graph;
    to->graphs = result_list(to, each, in->n_graph, sizeof *each);
    if (to->graphs == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_graph; i++) {
        each[i] = (struct torus_graph){in->graph[i]->n_edge, in->graph[i]->edge};
    }
    return 0;
}

static int fill_copies(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    struct torus_copy_activity *each = result_array(to, in->n_copy, sizeof *each);

    to->copy_count = in->n_copy;
    to->copies = result_list(to, each, in->n_copy, sizeof *each);
    if (to->copies == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_copy; i++) {
        const Control__Status__Copy *from = in->copy[i];
        each[i] = (struct torus_copy_activity){
            .id = clean_text(from->id),
            .asker = from->asker,
            .target = clean_text(from->target),
            .phase = copy_phase_of(from->phase),
            .files = from->files,
            .bytes = from->bytes,
            .bytes_of = from->bytes_of,
            .waits_for = clean_text(from->waits_for),
        };
    }
    return 0;
}

static int fill_status(struct torus_status *to, const Control__Status *in, struct torus_error *e)
{
    if (in->dims[0] == '\0')
        return invalid_reply(e, "it has no dimensions");
    if (!is_measurement(in->link_mbit))
        return invalid_reply(e, "its link rate is not a valid number");
    to->calibration = add_calibration(to, in->calibration, e);
    if (to->calibration == NULL || fill_exchanges(to, in, e) != 0 || fill_groups(to, in, e) != 0 ||
        fill_unconfirmed(to, in, e) != 0 || fill_link_faults(to, in, e) != 0 ||
        fill_shares(to, in, e) != 0 || fill_graphs(to, in, e) != 0 || fill_copies(to, in, e) != 0)
        return -1;
    to->version = clean_text(in->version);
    to->pid = in->pid;
    to->dims = clean_text(in->dims);
    to->rank = in->rank;
    to->coordinate_count = in->n_coordinates;
    to->coordinates = in->coordinates;
    to->uptime_ms = in->uptime_ms;
    to->whole = in->whole != 0;
    to->fault_count = in->n_fault;
    to->faults = clean_texts(in->fault, in->n_fault);
    to->data_root_count = in->n_data_root;
    to->data_roots = clean_texts(in->data_root, in->n_data_root);
    to->link_mbit = in->link_mbit;
    to->memory_budget = in->memory_budget;
    to->memory_reserved = in->memory_reserved;
    to->memory_used = in->memory_used;
    to->peer_protocol = in->peer_protocol;
    to->peer_minor = in->peer_minor;
    to->least_peer_minor = in->least_peer_minor;
    to->control_protocol = in->control_protocol;
    to->program_protocol = in->program_protocol;
    to->host = clean_text(in->host);
    to->key_count = in->n_key;
    to->keys = clean_texts(in->key, in->n_key);
    to->metrics = clean_text(in->metrics);
    return 0;
}

int status_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_status *status = result_new(sizeof *status, reply, e);

    return status != NULL ? result_end(status, fill_status(status, reply->status, e), result) : -1;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void torus_links_free(struct torus_links *links)
{
    result_free(links);
}

static int fill_links(struct torus_links *to, const Control__Links *in, struct torus_error *e)
{
    struct torus_link *each = result_array(to, in->n_link, sizeof *each);

    to->count = in->n_link;
    to->link = result_list(to, each, in->n_link, sizeof *each);
    to->heartbeat_ms = in->heartbeat_ms;
    to->silence_ms = in->silence_ms;
    if (to->link == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_link; i++) {
        const Control__Links__Link *from = in->link[i];
        if (from->name[0] == '\0')
            return invalid_reply(e, "a link has no name");
        each[i] = (struct torus_link){
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
    }
    return 0;
}

int links_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_links *links = result_new(sizeof *links, reply, e);

    return links != NULL ? result_end(links, fill_links(links, reply->links, e), result) : -1;
}

/* ---- A node's trace -------------------------------------------------------------------------- */

#define PORTS_MOST 64u
#define INTERVALS_MOST 65536u

/* Whether the node tells the loads of its links completely, or not at all. */
static bool are_loads(const Control__Trace *t, size_t places)
{
    const size_t count = t->n_carried;

    return t->loaded.len == count && t->drained.len == count && t->no_room.len == count &&
           (count == 0 || count == places);
}

int trace_from(Control__Trace *t, struct torus_trace *out, struct torus_error *e)
{
    size_t intervals = t->n_used, places = intervals * t->ports;

    if (t->ports > PORTS_MOST || intervals > INTERVALS_MOST || t->interval_ns == 0 ||
        t->n_sent != places || t->n_received != places || t->n_queue != places ||
        t->n_unacked != places || t->n_resent != places ||
        t->state.len != places * TORUS_TRACE_STATES || t->n_delayed != intervals ||
        t->n_writing != intervals || t->n_event_kind != t->n_event_at ||
        t->n_event_a != t->n_event_at || t->n_event_b != t->n_event_at || !are_loads(t, places) ||
        t->n_neighbour != t->ports || t->n_clock_ahead_ns != t->ports ||
        t->n_clock_error_ns != t->ports)
        return invalid_reply(e, "the parts of its trace do not fit together");
    *out = (struct torus_trace){.id = clean_text(t->id),
                                .began_ns = t->began_ns,
                                .ended_ns = t->ended_ns,
                                .interval_ns = t->interval_ns,
                                .under_way = t->under_way,
                                .ports = t->ports,
                                .intervals = (uint32_t)intervals,
                                .sent = t->sent,
                                .received = t->received,
                                .queue = t->queue,
                                .unacked = t->unacked,
                                .resent = t->resent,
                                .state = t->state.data,
                                .used = t->used,
                                .delayed = t->delayed,
                                .writing = t->writing,
                                .events = t->n_event_at,
                                .event_at = t->event_at,
                                .event_kind = t->event_kind,
                                .event_a = t->event_a,
                                .event_b = t->event_b,
                                .all_events = t->events,
                                .neighbour = t->neighbour,
                                .clock_ahead_ns = t->clock_ahead_ns,
                                .clock_error_ns = t->clock_error_ns,
                                .phase = (const char *const *)t->phase,
                                .phases = t->n_phase,
                                .call = (const char *const *)t->call,
                                .calls = t->n_call};
    if (t->n_carried > 0) {
        out->loaded = t->loaded.data;
        out->drained = t->drained.data;
        out->no_room = t->no_room.data;
        out->carried = t->carried;
    }
    for (size_t i = 0; i < t->n_phase; i++)
        text_clean(t->phase[i]);
    for (size_t i = 0; i < t->n_call; i++)
        text_clean(t->call[i]);
    return 0;
}
