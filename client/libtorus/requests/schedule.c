/* Sends the daemon a schedule part by part. The daemon replies to each part with the number of bytes that it has. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/operation.h"
#include "client/libtorus/requests/results.h"
#include "proto/frame.h"
#include "proto/sha256.h"

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
    control__reply__free_unpacked(reply, NULL);
    if (u->have > u->length || (u->asked && u->have <= before))
        return invalid_reply(e, "it reports an impossible length of the schedule");
    u->asked = true;
    return 0;
}

static void on_part(void *data, const struct torus_error *error);

/* Sends the next `length` bytes. The first request has length 0, and asks how much the daemon has. */
static int send_part(struct upload *u, size_t length, struct torus_error *e)
{
    const struct operation operation = {
        .expects = CONTROL__REPLY__KIND_SCHEDULE,
        .convert = have_from,
        .result = u,
        .done = on_part,
        .data = u,
        .limit_ms = u->client->timeout_ms,
    };
    Control__ScheduleRequest body = CONTROL__SCHEDULE_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    body.digest = u->digest;
    body.total = (uint32_t)u->length;
    body.offset = u->have;
    body.part.data = (uint8_t *)(uintptr_t)(u->text + u->have);
    body.part.len = length;
    request.kind_case = CONTROL__REQUEST__KIND_SCHEDULE;
    request.schedule = &body;
    return client_start(u->client, &operation, &request, e);
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
    struct outcome outcome = {.error = error};

    if (torus_client_start_schedule(client, text, length, digest, outcome_set, &outcome, error) !=
        0)
        return -1;
    return client_wait(client, &outcome);
}
