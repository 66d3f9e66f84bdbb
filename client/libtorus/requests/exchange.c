/* Exchanges, allgathers, broadcasts and barriers. */
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "client/libtorus/requests/client.h"
#include "client/libtorus/requests/results.h"

#define BARRIER_NAME_MOST 63

/* ---- The result ------------------------------------------------------------------------------ */

_Static_assert((int)TORUS_CHECK_NOTHING == (int)CONTROL__CHECK__NOTHING, "checks");
_Static_assert((int)TORUS_CHECK_DIGESTS == (int)CONTROL__CHECK__DIGESTS, "checks");
_Static_assert((int)TORUS_CHECK_BYTES == (int)CONTROL__CHECK__BYTES, "checks");

void torus_result_free(struct torus_result *result)
{
    result_free(result);
}

static int check_result(const Control__ExchangeResult *in, struct torus_error *e)
{
    if (in->id[0] == '\0' || in->dims[0] == '\0')
        return invalid_reply(e, "it has no id or no dimensions");
    if (!is_measurement(in->bound) || !is_measurement(in->link_mbit))
        return invalid_reply(e, "its bound or link rate is not a valid number");
    if (in->n_each_nanoseconds != 0 && in->n_each_nanoseconds != in->repeat)
        return invalid_reply(e, "its number of times differs from its number of repetitions");
    if (in->n_node > in->nodes)
        return invalid_reply(e, "it has results of more nodes than exist");
    for (size_t i = 0; i < in->n_missing; i++)
        if (in->missing[i] >= in->nodes || (i > 0 && in->missing[i] <= in->missing[i - 1]))
            return invalid_reply(e, "its missing nodes do not exist or are not in order");
    for (size_t i = 0; i < in->n_arrival; i++)
        if (in->arrival[i]->rank >= in->nodes ||
            (i > 0 && in->arrival[i]->rank <= in->arrival[i - 1]->rank))
            return invalid_reply(e, "its arrivals are of nodes that do not exist, or not in order");
    for (size_t i = 0; i < in->n_node; i++)
        if (in->node[i]->rank >= in->nodes)
            return invalid_reply(e, "it has results of a rank that does not exist");
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = (*(Control__ExchangeResult__Node *const *)a)->rank;
    uint32_t y = (*(Control__ExchangeResult__Node *const *)b)->rank;
    return (x > y) - (x < y);
}

/* Sorts the nodes by rank. Returns 0 with the number of all their ports, or -1 with *e. */
static int sort_nodes(const Control__ExchangeResult *in, size_t *ports, struct torus_error *e)
{
    *ports = 0;
    if (in->n_node > 0)
        qsort(in->node, in->n_node, sizeof in->node[0], by_rank);
    for (size_t i = 0; i < in->n_node; i++) {
        if (i > 0 && in->node[i]->rank == in->node[i - 1]->rank)
            return invalid_reply(e, "it has results of one rank twice");
        *ports += in->node[i]->n_port;
    }
    return 0;
}

static void fill_port(struct torus_port *to, const Control__ExchangeResult__Port *from)
{
    CONTROL_RESULT_PORT(CONTROL_READ)
}

static void fill_node(struct torus_node *to, const Control__ExchangeResult__Node *from)
{
    CONTROL_RESULT_NODE(CONTROL_READ)
    to->port_count = from->n_port;
}

static int fill_nodes(struct torus_result *to, const Control__ExchangeResult *in,
                      struct torus_error *e)
{
    struct torus_node *node = result_array(to, in->n_node, sizeof *node);
    struct torus_port *port;
    const struct torus_port **list;
    size_t ports, used = 0;

    if (sort_nodes(in, &ports, e) != 0)
        return -1;
    port = result_array(to, ports, sizeof *port);
    list = result_list(to, port, ports, sizeof *port);
    to->node_count = in->n_node;
    to->node = result_list(to, node, in->n_node, sizeof *node);
    if (list == NULL || to->node == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_node; i++, node++) {
        fill_node(node, in->node[i]);
        node->port = list + used;
        for (size_t j = 0; j < node->port_count; j++, used++)
            fill_port(&port[used], in->node[i]->port[j]);
    }
    return 0;
}

RESULT_LIST(arrival, Control__ExchangeResult, torus_result, torus_arrival, arrival_count, arrival,
            CONTROL_RESULT_ARRIVAL)

static int fill_result(struct torus_result *to, const Control__ExchangeResult *from,
                       struct torus_error *e)
{
    if (operation_named(from->operation, &to->operation) != 0)
        return invalid_reply(e, "its operation is unknown");
    if (check_result(from, e) != 0 || fill_nodes(to, from, e) != 0 ||
        fill_arrival(to, from, e) != 0 ||
        result_link_rates(to, from->link_rates, &to->link_rates, e) != 0)
        return -1;
    CONTROL_RESULT(CONTROL_READ)
    to->check = (enum torus_check)from->check;
    if (to->repeat == 0)
        to->repeat = 1;
    to->each_count = from->n_each_nanoseconds;
    to->each = from->each_nanoseconds;
    to->missing_count = from->n_missing;
    to->missing = from->missing;
    return 0;
}

/* A convert_fn: stores a struct torus_result * at `result`, a struct torus_result **, unless `result` is NULL. */
static int result_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_result *to = result_new(sizeof *to, reply, e);

    return to != NULL ? result_end(to, fill_result(to, reply->exchange, e), result) : -1;
}

/* ---- The request ----------------------------------------------------------------------------- */

/* Returns how long the client waits for the end of an exchange; 0: without limit. */
static int64_t limit_of(uint64_t timeout_ms)
{
    return timeout_ms > 0 && timeout_ms < INT64_MAX / 2 ? (int64_t)timeout_ms + CLIENT_GRACE : 0;
}

static bool has_schedule(const struct torus_request *r)
{
    return r->schedule != NULL && r->schedule[0] != '\0';
}

/* Checks everything that does not depend on the torus. */
static int check(const struct torus_request *r, struct torus_error *e)
{
    if (r->operation != TORUS_EXCHANGE && r->operation != TORUS_ALLGATHER &&
        r->operation != TORUS_BROADCAST)
        return fail(e, TORUS_ERROR_USAGE, "operation %u is not an exchange, allgather or broadcast",
                    (unsigned)r->operation);
    if (mode_check(r->mode, e) != 0)
        return -1;
    if ((r->from == NULL) != (r->to == NULL))
        return fail(e, TORUS_ERROR_USAGE, "an exchange of files needs both paths: from and to");
    if (r->from != NULL && (r->from[0] != '/' || r->to[0] != '/'))
        return fail(e, TORUS_ERROR_USAGE, "paths must be absolute: %s",
                    r->from[0] != '/' ? r->from : r->to);
    if (r->from != NULL && r->block_bytes != 0)
        return fail(e, TORUS_ERROR_USAGE,
                    "a block size and files exclude each other: files have their own sizes");
    if (r->repeat > TORUS_REPEAT_MAX)
        return fail(e, TORUS_ERROR_USAGE, "%u repetitions are too many: at most %u are possible",
                    r->repeat, (unsigned)TORUS_REPEAT_MAX);
    if (r->repeat > 1 && r->from != NULL)
        return fail(e, TORUS_ERROR_USAGE,
                    "an exchange of files cannot be repeated: only a generated pattern can");
    if (has_schedule(r) && r->algorithm != NULL && r->algorithm[0] != '\0' &&
        strcmp(r->algorithm, TORUS_AUTO) != 0)
        return fail(e, TORUS_ERROR_USAGE,
                    "an algorithm and a schedule exclude each other: give one of them");
    if (has_schedule(r) && r->operation == TORUS_BROADCAST)
        return fail(e, TORUS_ERROR_USAGE, "a broadcast cannot use a schedule");
    if (r->shrink && (r->operation != TORUS_EXCHANGE || has_schedule(r)))
        return fail(
            e, TORUS_ERROR_USAGE,
            "shrink needs an exchange with algorithm auto: no other request can leave out nodes");
    if (r->shrink && r->wait)
        return fail(
            e, TORUS_ERROR_USAGE,
            "shrink and wait exclude each other: nodes that are down are left out or waited for");
    if (r->from == NULL && r->missing_ok)
        return fail(e, TORUS_ERROR_USAGE, "missing_ok is for exchanges of files only");
    if (r->to == NULL && r->replace)
        return fail(e, TORUS_ERROR_USAGE, "replace is for exchanges of files only");
    return 0;
}

/* Starts the exchange or barrier that the spec describes. */
static int start(struct torus_client *client, Torus__Spec *spec, const struct pending_request *what,
                 struct torus_error *error)
{
    struct pending_request pending = *what;
    Control__ExchangeRequest body = CONTROL__EXCHANGE_REQUEST__INIT;

    pending.expects = CONTROL__REPLY__KIND_EXCHANGE;
    pending.convert = result_from;
    pending.is_exchange = true;
    body.spec = spec;
    return client_start(client, &pending, CONTROL_REQUEST(EXCHANGE, exchange, &body), error);
}

static int start_exchange(struct torus_client *client, const struct torus_request *request,
                          struct pending_request pending, struct torus_error *error)
{
    Torus__Spec spec = TORUS__SPEC__INIT;
    struct torus_request r;

    if (request_read(request, &r, error) != 0 || check(&r, error) != 0)
        return -1;
    pending.limit_ms = limit_of(r.timeout_ms);
    pending.commits = r.to != NULL;
    /* A restarted daemon does not have the schedule any more. */
    pending.waits = r.wait && !has_schedule(&r);

    /* The casts are safe: packing only reads these texts, but protobuf-c has no const. */
    spec.algorithm = (char *)(uintptr_t)TORUS_AUTO;
    if (r.algorithm != NULL && r.algorithm[0] != '\0')
        spec.algorithm = (char *)(uintptr_t)r.algorithm;
    if (has_schedule(&r)) {
        spec.algorithm = (char *)(uintptr_t) "";
        spec.schedule = (char *)(uintptr_t)r.schedule;
    }
#define WRITE(type, number, field) spec.field = r.field;
    SPEC_NUMBERS(WRITE)
#undef WRITE
    if (r.from != NULL) {
        spec.from = (char *)(uintptr_t)r.from;
        spec.to = (char *)(uintptr_t)r.to;
    }
    spec.mode = wire_mode(r.mode);
    spec.timeout_ms = r.timeout_ms;
    return start(client, &spec, &pending, error);
}

static int start_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                         struct pending_request pending, struct torus_error *error)
{
    Torus__Spec spec = TORUS__SPEC__INIT;

    if (name != NULL && strlen(name) > BARRIER_NAME_MOST)
        return fail(
            error, TORUS_ERROR_USAGE,
            "the name of the barrier is too long: it has %zu bytes, and at most %d are possible",
            strlen(name), BARRIER_NAME_MOST);
    pending.limit_ms = limit_of(timeout_ms);
    spec.algorithm = (char *)(uintptr_t)TORUS_AUTO;
    spec.operation = TORUS_BARRIER;
    spec.timeout_ms = timeout_ms;
    if (name != NULL)
        spec.barrier = (char *)(uintptr_t)name;
    return start(client, &spec, &pending, error);
}

/* ---- The public functions -------------------------------------------------------------------- */

static struct pending_request pending_request_of(torus_progress_fn *progress, void *progress_data,
                                                 struct torus_result **result, torus_done_fn *done,
                                                 void *data)
{
    if (result != NULL)
        *result = NULL;
    return (struct pending_request){
        .result = result,
        .done = done,
        .data = data,
        .progress = progress,
        .progress_data = progress_data,
    };
}

int torus_client_start_exchange(struct torus_client *client, const struct torus_request *request,
                                torus_progress_fn *progress, struct torus_result **result,
                                torus_done_fn *done, void *data, struct torus_error *error)
{
    return start_exchange(client, request, pending_request_of(progress, data, result, done, data),
                          error);
}

int torus_client_exchange(struct torus_client *client, const struct torus_request *request,
                          torus_progress_fn *progress, void *data, struct torus_result **result,
                          struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        start_exchange(client, request,
                       pending_request_of(progress, data, result, outcome_set, &outcome), error));
}

int torus_client_start_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                               torus_progress_fn *progress, struct torus_result **result,
                               torus_done_fn *done, void *data, struct torus_error *error)
{
    return start_barrier(client, name, timeout_ms,
                         pending_request_of(progress, data, result, done, data), error);
}

int torus_client_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                         torus_progress_fn *progress, void *data, struct torus_result **result,
                         struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        start_barrier(client, name, timeout_ms,
                      pending_request_of(progress, data, result, outcome_set, &outcome), error));
}
