/* Operations that the daemon answers at once: status, links, candidates, calibration, and parts of schedules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "client/libtorus/requests/client.h"
#include "client/libtorus/requests/results.h"
#include "proto/frame.h"
#include "proto/sha256.h"
#include "proto/unpack.h"

static int ask(struct torus_client *client, const Control__Request *request,
               Control__Reply__KindCase expects, convert_fn *convert, void *result,
               torus_done_fn *done, void *data, struct torus_error *error)
{
    const struct pending_request pending = {
        .expects = expects,
        .convert = convert,
        .result = result,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms,
    };

    return client_start(client, &pending, request, error);
}

/* ---- Status ---------------------------------------------------------------------------------- */

int torus_client_start_status(struct torus_client *client, struct torus_status **status,
                              torus_done_fn *done, void *data, struct torus_error *error)
{
    Control__StatusRequest body = CONTROL__STATUS_REQUEST__INIT;

    *status = NULL;
    return ask(client, CONTROL_REQUEST(STATUS, status, &body), CONTROL__REPLY__KIND_STATUS,
               status_from, status, done, data, error);
}

int torus_client_status(struct torus_client *client, struct torus_status **status,
                        struct torus_error *error)
{
    return CLIENT_WAIT(client, error,
                       torus_client_start_status(client, status, outcome_set, &outcome, error));
}

/* ---- Links ----------------------------------------------------------------------------------- */

int torus_client_start_links(struct torus_client *client, struct torus_links **links,
                             torus_done_fn *done, void *data, struct torus_error *error)
{
    Control__LinksRequest body = CONTROL__LINKS_REQUEST__INIT;

    *links = NULL;
    return ask(client, CONTROL_REQUEST(LINKS, links, &body), CONTROL__REPLY__KIND_LINKS, links_from,
               links, done, data, error);
}

int torus_client_links(struct torus_client *client, struct torus_links **links,
                       struct torus_error *error)
{
    return CLIENT_WAIT(client, error,
                       torus_client_start_links(client, links, outcome_set, &outcome, error));
}

/* ---- Candidates ------------------------------------------------------------------------------ */

int torus_client_start_candidates(struct torus_client *client, const struct torus_request *wanted,
                                  struct torus_candidates **candidates, torus_done_fn *done,
                                  void *data, struct torus_error *error)
{
    Control__CandidatesRequest body = CONTROL__CANDIDATES_REQUEST__INIT;
    struct torus_request known;

    *candidates = NULL;
    if (request_read(wanted, &known, error) != 0)
        return -1;
    body.block_bytes = known.block_bytes;
    body.folders = known.from != NULL;
    body.mode = wire_mode(known.mode);
    return ask(client, CONTROL_REQUEST(CANDIDATES, candidates, &body),
               CONTROL__REPLY__KIND_CANDIDATES, candidates_from, candidates, done, data, error);
}

int torus_client_candidates(struct torus_client *client, const struct torus_request *request,
                            struct torus_candidates **candidates, struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        torus_client_start_candidates(client, request, candidates, outcome_set, &outcome, error));
}

/* ---- Calibration ----------------------------------------------------------------------------- */

int torus_client_start_calibrate(struct torus_client *client, const struct torus_costs *costs,
                                 struct torus_calibration **calibration, torus_done_fn *done,
                                 void *data, struct torus_error *error)
{
    Control__CalibrationRequest body = CONTROL__CALIBRATION_REQUEST__INIT;
    Control__Costs measured = CONTROL__COSTS__INIT;
    struct torus_costs known;

    if (calibration != NULL)
        *calibration = NULL;
    body.reset = costs == NULL;
    if (costs != NULL) {
        if (costs_read(costs, &known, error) != 0)
            return -1;
#define COST(type, number, field, value, result) measured.field = known.result;
        CONTROL_COSTS(COST)
#undef COST
        body.measured = &measured;
    }
    return ask(client, CONTROL_REQUEST(CALIBRATION, calibration, &body),
               CONTROL__REPLY__KIND_CALIBRATION, calibration_from, calibration, done, data, error);
}

int torus_client_calibrate(struct torus_client *client, const struct torus_costs *costs,
                           struct torus_calibration **calibration, struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        torus_client_start_calibrate(client, costs, calibration, outcome_set, &outcome, error));
}

/* ---- Schedules -------------------------------------------------------------------------------
 *
 * The daemon gets a schedule part by part, and replies to each part with the number of bytes that it has. */

_Static_assert(TORUS_DIGEST_SIZE == SHA256_TEXT_SIZE, "");

struct upload {
    struct torus_client *client;
    const char *text;
    size_t length;
    char digest[TORUS_DIGEST_SIZE];
    uint32_t have; /* bytes that the daemon has, according to its last reply */
    bool asked;    /* the first reply has come; every later one must report more bytes */
    torus_done_fn *done;
    void *data;
};

static int have_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct upload *u = result;
    uint32_t before = u->have;

    u->have = reply->schedule->offset;
    unpack_free(reply);
    if (u->have > u->length || (u->asked && u->have <= before))
        return invalid_reply(e, "it reports an impossible length of the schedule");
    u->asked = true;
    return 0;
}

static void on_part(void *data, const struct torus_error *error);

/* Sends the next `length` bytes. The first request has length 0, and asks how much the daemon has. */
static int send_part(struct upload *u, size_t length, struct torus_error *e)
{
    Control__ScheduleRequest body = CONTROL__SCHEDULE_REQUEST__INIT;

    body.digest = u->digest;
    body.total = (uint32_t)u->length;
    body.offset = u->have;
    body.part.data = (uint8_t *)(uintptr_t)(u->text + u->have);
    body.part.len = length;
    return ask(u->client, CONTROL_REQUEST(SCHEDULE, schedule, &body), CONTROL__REPLY__KIND_SCHEDULE,
               have_from, u, on_part, u, e);
}

static void on_part(void *data, const struct torus_error *error)
{
    struct upload *u = data;
    size_t left = u->length - u->have;
    struct torus_error e;

    if (error == NULL && left > 0) {
        if (send_part(u, left < FRAME_SCHEDULE_PART ? left : FRAME_SCHEDULE_PART, &e) == 0)
            return;
        error = &e;
    }
    u->done(u->data, error);
    free(u);
}

int torus_client_start_schedule(struct torus_client *client, const char *text, size_t length,
                                char digest[TORUS_DIGEST_SIZE], torus_done_fn *done, void *data,
                                struct torus_error *error)
{
    struct upload *u;

    if (length == 0 || length > UINT32_MAX)
        return fail(error, TORUS_ERROR_USAGE,
                    "a schedule of %zu bytes is not possible: it must have 1 to %" PRIu32 " bytes",
                    length, UINT32_MAX);
    u = calloc(1, sizeof *u);
    if (u == NULL)
        return fail_memory(error);
    *u = (struct upload){
        .client = client, .text = text, .length = length, .done = done, .data = data};
    sha256_text(text, length, u->digest);
    memcpy(digest, u->digest, TORUS_DIGEST_SIZE);
    if (send_part(u, 0, error) == 0)
        return 0;
    free(u);
    return -1;
}

int torus_client_schedule(struct torus_client *client, const char *text, size_t length,
                          char digest[TORUS_DIGEST_SIZE], struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        torus_client_start_schedule(client, text, length, digest, outcome_set, &outcome, error));
}
