#include "client/libtorus/requests/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "proto/text.h"
#include "proto/unpack.h"

/* ---- Results --------------------------------------------------------------------------------- */

/* A result: the public struct, and the memory that its pointers refer to. */
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
#define COST(type, number, field, value, result) to->costs.result = costs->field;
    CONTROL_COSTS(COST)
#undef COST
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

/* ---- Rates of links -------------------------------------------------------------------------- */

int result_link_rates(void *result, const Control__LinkRates *from,
                      const struct torus_link_rates **out, struct torus_error *e)
{
    struct torus_link_rates *to;

    if (from == NULL)
        return 0;
    if (!is_measurement(from->bound) || !is_measurement(from->equal_bound))
        return invalid_reply(e, "a bound is not a valid number");
    *out = to = result_array(result, 1, sizeof *to);
    if (to == NULL)
        return fail_memory(e);
    CONTROL_LINK_RATES(CONTROL_READ)
    return 0;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

void torus_candidates_free(struct torus_candidates *candidates)
{
    result_free(candidates);
}

RESULT_LIST(candidate, Control__Candidates, torus_candidates, torus_candidate, count, candidate,
            CONTROL_CANDIDATE)

static int fill_candidates(struct torus_candidates *to, const Control__Candidates *in,
                           struct torus_error *e)
{
    for (size_t i = 0; i < in->n_candidate; i++) {
        const Control__Candidates__Candidate *from = in->candidate[i];
        if (!is_measurement(from->steps) || !is_measurement(from->messages) ||
            !is_measurement(from->blocks) || !is_measurement(from->seconds))
            return invalid_reply(e, "a prediction is not a valid number");
    }
    to->block_bytes = in->block_bytes;
    to->calibration = add_calibration(to, in->calibration, e);
    if (to->calibration == NULL || result_link_rates(to, in->link_rates, &to->link_rates, e) != 0)
        return -1;
    return fill_candidate(to, in, e);
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

/* Defines a function that converts a list of a status. */
#define STATUS_LIST(field, type, counted, listed, FIELDS)                                          \
    RESULT_LIST(field, Control__Status, torus_status, type, counted, listed, FIELDS)

#define UNCONFIRMED(F)                                                                             \
    CONTROL_STATUS_UNCONFIRMED(F) to->node_count = from->n_node, to->nodes = from->node;
#define LINK_FAULT(F)                                                                              \
    CONTROL_STATUS_LINK_FAULT(F) to->found_node = from->found ? from->found_node : TORUS_RANK_NONE;
#define GRAPH(F) to->number_count = from->n_edge, to->edges = from->edge;

STATUS_LIST(exchange, torus_activity, exchange_count, exchanges, CONTROL_STATUS_EXCHANGE)
STATUS_LIST(group, torus_group_info, group_count, groups, CONTROL_STATUS_GROUP)
STATUS_LIST(copy, torus_copy_activity, copy_count, copies, CONTROL_STATUS_COPY)
STATUS_LIST(unconfirmed, torus_unconfirmed, unconfirmed_count, unconfirmed, UNCONFIRMED)
STATUS_LIST(link_fault, torus_link_fault, link_fault_count, link_faults, LINK_FAULT)
STATUS_LIST(share, torus_share, share_count, shares, CONTROL_STATUS_SHARE)
STATUS_LIST(graph, torus_graph, graph_count, graphs, GRAPH)

static int fill_status(struct torus_status *to, const Control__Status *from, struct torus_error *e)
{
    if (from->dims[0] == '\0')
        return invalid_reply(e, "it has no dimensions");
    if (!is_measurement(from->link_mbit))
        return invalid_reply(e, "its link rate is not a valid number");
    to->calibration = add_calibration(to, from->calibration, e);
    if (to->calibration == NULL || fill_exchange(to, from, e) != 0 ||
        fill_group(to, from, e) != 0 || fill_unconfirmed(to, from, e) != 0 ||
        fill_link_fault(to, from, e) != 0 || fill_share(to, from, e) != 0 ||
        fill_graph(to, from, e) != 0 || fill_copy(to, from, e) != 0)
        return -1;
    CONTROL_STATUS(CONTROL_READ)
    to->coordinate_count = from->n_coordinates;
    to->coordinates = from->coordinates;
    to->fault_count = from->n_fault;
    to->faults = clean_texts(from->fault, from->n_fault);
    to->data_root_count = from->n_data_root;
    to->data_roots = clean_texts(from->data_root, from->n_data_root);
    to->key_count = from->n_key;
    to->keys = clean_texts(from->key, from->n_key);
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

RESULT_LIST(link, Control__Links, torus_links, torus_link, count, link, CONTROL_LINK)

static int fill_links(struct torus_links *to, const Control__Links *in, struct torus_error *e)
{
    for (size_t i = 0; i < in->n_link; i++)
        if (in->link[i]->name[0] == '\0')
            return invalid_reply(e, "a link has no name");
    to->heartbeat_ms = in->heartbeat_ms;
    to->silence_ms = in->silence_ms;
    return fill_link(to, in, e);
}

int links_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_links *links = result_new(sizeof *links, reply, e);

    return links != NULL ? result_end(links, fill_links(links, reply->links, e), result) : -1;
}

/* ---- A node's trace -------------------------------------------------------------------------- */

#define PORTS_MOST 64u
#define INTERVALS_MOST 65536u

/* Whether the node reports the loads of all its links, or of none. */
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
