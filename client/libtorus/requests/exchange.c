/* Exchanges, allgathers, broadcasts and barriers. */
#include <string.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/request.h"
#include "client/libtorus/requests/exchange_result.h"
#include "client/libtorus/requests/operation.h"

#define BARRIER_NAME_MOST 63

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
    if (r->mode != TORUS_MODE_ANY && r->mode != TORUS_MODE_STEPPED &&
        r->mode != TORUS_MODE_STREAMING)
        return fail(e, TORUS_ERROR_USAGE, "there is no mode %u", (unsigned)r->mode);
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
static int start(struct torus_client *client, Torus__Spec *spec, const struct operation *what,
                 struct torus_error *error)
{
    struct operation operation = *what;
    Control__ExchangeRequest body = CONTROL__EXCHANGE_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    operation.expects = CONTROL__REPLY__KIND_EXCHANGE;
    operation.convert = result_from;
    operation.is_exchange = true;
    request.kind_case = CONTROL__REQUEST__KIND_EXCHANGE;
    request.exchange = &body;
    body.spec = spec;
    return client_start(client, &operation, &request, error);
}

static int start_exchange(struct torus_client *client, const struct torus_request *request,
                          struct operation operation, struct torus_error *error)
{
    Torus__Spec spec = TORUS__SPEC__INIT;
    struct torus_request r;

    if (request_read(request, &r, error) != 0 || check(&r, error) != 0)
        return -1;
    operation.limit_ms = limit_of(r.timeout_ms);
    operation.commits = r.to != NULL;
    /* A restarted daemon does not have the schedule any more. */
    operation.waits = r.wait && !has_schedule(&r);

    /* The casts are safe: packing only reads these texts, but protobuf-c has no const. */
    spec.algorithm = (char *)(uintptr_t)TORUS_AUTO;
    if (r.algorithm != NULL && r.algorithm[0] != '\0')
        spec.algorithm = (char *)(uintptr_t)r.algorithm;
    if (has_schedule(&r)) {
        spec.algorithm = (char *)(uintptr_t) "";
        spec.schedule = (char *)(uintptr_t)r.schedule;
    }
    spec.block_bytes = r.block_bytes;
    if (r.from != NULL) {
        spec.from = (char *)(uintptr_t)r.from;
        spec.to = (char *)(uintptr_t)r.to;
    }
    spec.missing_ok = r.missing_ok;
    spec.replace = r.replace;
    spec.trace = r.trace;
    spec.shrink = r.shrink;
    spec.wait = r.wait;
    spec.repeat = r.repeat;
    spec.mode = wire_mode(r.mode);
    spec.timeout_ms = r.timeout_ms;
    spec.operation = r.operation;
    spec.sender = r.sender;
    return start(client, &spec, &operation, error);
}

static int start_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                         struct operation operation, struct torus_error *error)
{
    Torus__Spec spec = TORUS__SPEC__INIT;

    if (name != NULL && strlen(name) > BARRIER_NAME_MOST)
        return fail(
            error, TORUS_ERROR_USAGE,
            "the name of the barrier is too long: it has %zu bytes, and at most %d are possible",
            strlen(name), BARRIER_NAME_MOST);
    operation.limit_ms = limit_of(timeout_ms);
    spec.algorithm = (char *)(uintptr_t)TORUS_AUTO;
    spec.operation = TORUS_BARRIER;
    spec.timeout_ms = timeout_ms;
    if (name != NULL)
        spec.barrier = (char *)(uintptr_t)name;
    return start(client, &spec, &operation, error);
}

/* ---- The public functions -------------------------------------------------------------------- */

static struct operation operation_of(torus_progress_fn *progress, void *progress_data,
                                     struct torus_result **result, torus_done_fn *done, void *data)
{
    if (result != NULL)
        *result = NULL;
    return (struct operation){
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
    return start_exchange(client, request, operation_of(progress, data, result, done, data), error);
}

int torus_client_exchange(struct torus_client *client, const struct torus_request *request,
                          torus_progress_fn *progress, void *data, struct torus_result **result,
                          struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (start_exchange(client, request, operation_of(progress, data, result, outcome_set, &outcome),
                       error) != 0)
        return -1;
    return client_wait(client, &outcome);
}

int torus_client_start_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                               torus_progress_fn *progress, struct torus_result **result,
                               torus_done_fn *done, void *data, struct torus_error *error)
{
    return start_barrier(client, name, timeout_ms, operation_of(progress, data, result, done, data),
                         error);
}

int torus_client_barrier(struct torus_client *client, const char *name, uint64_t timeout_ms,
                         torus_progress_fn *progress, void *data, struct torus_result **result,
                         struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (start_barrier(client, name, timeout_ms,
                      operation_of(progress, data, result, outcome_set, &outcome), error) != 0)
        return -1;
    return client_wait(client, &outcome);
}
