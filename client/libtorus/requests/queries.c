/* Operations that the daemon answers at once: status, links, candidates, calibration. */
#include "client/libtorus/common/request.h"
#include "client/libtorus/requests/operation.h"
#include "client/libtorus/requests/results.h"

/* ---- Status ---------------------------------------------------------------------------------- */

int torus_client_start_status(struct torus_client *client, struct torus_status **status,
                              torus_done_fn *done, void *data, struct torus_error *error)
{
    const struct operation operation = {
        .expects = CONTROL__REPLY__KIND_STATUS,
        .convert = status_from,
        .result = status,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms,
    };
    Control__StatusRequest body = CONTROL__STATUS_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    *status = NULL;
    request.kind_case = CONTROL__REQUEST__KIND_STATUS;
    request.status = &body;
    return client_start(client, &operation, &request, error);
}

int torus_client_status(struct torus_client *client, struct torus_status **status,
                        struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (torus_client_start_status(client, status, outcome_set, &outcome, error) != 0)
        return -1;
    return client_wait(client, &outcome);
}

/* ---- Links ----------------------------------------------------------------------------------- */

int torus_client_start_links(struct torus_client *client, struct torus_links **links,
                             torus_done_fn *done, void *data, struct torus_error *error)
{
    const struct operation operation = {
        .expects = CONTROL__REPLY__KIND_LINKS,
        .convert = links_from,
        .result = links,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms,
    };
    Control__LinksRequest body = CONTROL__LINKS_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    *links = NULL;
    request.kind_case = CONTROL__REQUEST__KIND_LINKS;
    request.links = &body;
    return client_start(client, &operation, &request, error);
}

int torus_client_links(struct torus_client *client, struct torus_links **links,
                       struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (torus_client_start_links(client, links, outcome_set, &outcome, error) != 0)
        return -1;
    return client_wait(client, &outcome);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

int torus_client_start_candidates(struct torus_client *client, const struct torus_request *wanted,
                                  struct torus_candidates **candidates, torus_done_fn *done,
                                  void *data, struct torus_error *error)
{
    const struct operation operation = {
        .expects = CONTROL__REPLY__KIND_CANDIDATES,
        .convert = candidates_from,
        .result = candidates,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms,
    };
    Control__CandidatesRequest body = CONTROL__CANDIDATES_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    struct torus_request known;

    *candidates = NULL;
    if (request_read(wanted, &known, error) != 0)
        return -1;
    body.block_bytes = known.block_bytes;
    body.folders = known.from != NULL;
    body.mode = wire_mode(known.mode);
    request.kind_case = CONTROL__REQUEST__KIND_CANDIDATES;
    request.candidates = &body;
    return client_start(client, &operation, &request, error);
}

int torus_client_candidates(struct torus_client *client, const struct torus_request *request,
                            struct torus_candidates **candidates, struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (torus_client_start_candidates(client, request, candidates, outcome_set, &outcome, error) !=
        0)
        return -1;
    return client_wait(client, &outcome);
}

/* ---- Calibration ----------------------------------------------------------------------------- */

int torus_client_start_calibrate(struct torus_client *client, const struct torus_costs *costs,
                                 struct torus_calibration **calibration, torus_done_fn *done,
                                 void *data, struct torus_error *error)
{
    const struct operation operation = {
        .expects = CONTROL__REPLY__KIND_CALIBRATION,
        .convert = calibration_from,
        .result = calibration,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms,
    };
    Control__CalibrationRequest body = CONTROL__CALIBRATION_REQUEST__INIT;
    Control__Costs measured = CONTROL__COSTS__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    struct torus_costs known;

    if (calibration != NULL)
        *calibration = NULL;
    body.reset = costs == NULL;
    if (costs != NULL) {
        if (costs_read(costs, &known, error) != 0)
            return -1;
        measured.step_seconds = known.step_seconds;
        measured.message_seconds = known.message_seconds;
        measured.bytes_per_second = known.bytes_per_second;
        body.measured = &measured;
    }
    request.kind_case = CONTROL__REQUEST__KIND_CALIBRATION;
    request.calibration = &body;
    return client_start(client, &operation, &request, error);
}

int torus_client_calibrate(struct torus_client *client, const struct torus_costs *costs,
                           struct torus_calibration **calibration, struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (torus_client_start_calibrate(client, costs, calibration, outcome_set, &outcome, error) != 0)
        return -1;
    return client_wait(client, &outcome);
}
