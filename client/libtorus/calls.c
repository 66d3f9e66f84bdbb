/* The calls of the public header: one request, the answers to it, and what each failure means. */
#include <string.h>
#include <sys/socket.h>

#include "client/libtorus/connection.h"
#include "client/libtorus/fail.h"
#include "client/libtorus/results.h"
#include "daemon/base/text.h"

#define LAST_WORD 3000 /* ms that a cancelled daemon has to answer */
#define GRACE 10000    /* ms after an exchange's deadline until the daemon itself is given up */

/* Turns an Error that the daemon has answered with into *e. Returns -1. */
static int refused(const Control__Error *error, struct torus_client_error *e)
{
    const char *text = error->text[0] != '\0' ? error->text : "failed without a reason";

    if (error->code > TORUS_ERROR_NONE && error->code <= TORUS_ERROR_IN_DOUBT)
        fail(e, (enum torus_client_error_code)error->code, "%s", text);
    else
        fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", text, error->code);
    fail_exchange(e, error->exchange);
    return -1;
}

static int unexpected(struct torus_client_error *e)
{
    return fail(e, TORUS_ERROR_PROTOCOL,
                "the daemon has answered something else than was asked; are it and this program "
                "(%s) of the same version?",
                TORUSD_VERSION);
}

/* ---- Status and links ------------------------------------------------------------------------ */

/* Asks for what the daemon answers at once. Returns a reply of kind `kind`, or NULL with *e set. */
static Control__Reply *ask(struct torus_client *c, const Control__Request *request,
                           Control__Reply__KindCase kind, struct torus_client_error *e)
{
    struct wait w = {.deadline_ms = -1};
    Control__Reply *reply;

    if (c->timeout_ms > 0)
        w.deadline_ms = clock_ms() + c->timeout_ms;
    if (connection_send(c, request, &w, e) != 0 || connection_receive(c, &w, &reply, e) != 0) {
        connection_drop(c);
        return NULL;
    }
    if (reply->kind_case == kind)
        return reply;
    if (reply->kind_case == CONTROL__REPLY__KIND_ERROR) {
        refused(reply->error, e);
    } else {
        unexpected(e);
        connection_drop(c);
    }
    control__reply__free_unpacked(reply, NULL);
    return NULL;
}

int torus_client_status(struct torus_client *client, struct torus_client_status **status,
                        struct torus_client_error *error)
{
    Control__StatusRequest body = CONTROL__STATUS_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    Control__Reply *reply;

    request.kind_case = CONTROL__REQUEST__KIND_STATUS;
    request.status = &body;
    reply = ask(client, &request, CONTROL__REPLY__KIND_STATUS, error);
    *status = reply != NULL ? status_from(reply, error) : NULL;
    if (reply != NULL && *status == NULL)
        connection_drop(client);
    return *status != NULL ? 0 : -1;
}

int torus_client_links(struct torus_client *client, struct torus_client_links **links,
                       struct torus_client_error *error)
{
    Control__LinksRequest body = CONTROL__LINKS_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    Control__Reply *reply;

    request.kind_case = CONTROL__REQUEST__KIND_LINKS;
    request.links = &body;
    reply = ask(client, &request, CONTROL__REPLY__KIND_LINKS, error);
    *links = reply != NULL ? links_from(reply, error) : NULL;
    if (reply != NULL && *links == NULL)
        connection_drop(client);
    return *links != NULL ? 0 : -1;
}

/* ---- Predictions ----------------------------------------------------------------------------- */

int torus_client_candidates(struct torus_client *client,
                            const struct torus_exchange_request *wanted,
                            struct torus_candidates **candidates, struct torus_client_error *error)
{
    Control__CandidatesRequest body = CONTROL__CANDIDATES_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    Control__Reply *reply;

    body.block_bytes = wanted->block_bytes;
    body.folders = wanted->from != NULL;
    if (wanted->mode != NULL)
        body.mode = (char *)(uintptr_t)wanted->mode;
    request.kind_case = CONTROL__REQUEST__KIND_CANDIDATES;
    request.candidates = &body;
    reply = ask(client, &request, CONTROL__REPLY__KIND_CANDIDATES, error);
    *candidates = reply != NULL ? candidates_from(reply, error) : NULL;
    if (reply != NULL && *candidates == NULL)
        connection_drop(client);
    return *candidates != NULL ? 0 : -1;
}

int torus_client_calibrate(struct torus_client *client, const struct torus_costs *costs,
                           struct torus_calibration *calibration, struct torus_client_error *error)
{
    Control__CalibrationRequest body = CONTROL__CALIBRATION_REQUEST__INIT;
    Control__Costs measured = CONTROL__COSTS__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    struct torus_calibration now;
    Control__Reply *reply;
    int r;

    body.reset = costs == NULL;
    if (costs != NULL) {
        measured.step_seconds = costs->step_seconds;
        measured.message_seconds = costs->message_seconds;
        measured.bytes_per_second = costs->bytes_per_second;
        body.measured = &measured;
    }
    request.kind_case = CONTROL__REQUEST__KIND_CALIBRATION;
    request.calibration = &body;
    reply = ask(client, &request, CONTROL__REPLY__KIND_CALIBRATION, error);
    if (reply == NULL)
        return -1;
    r = calibration_from(reply->calibration, calibration != NULL ? calibration : &now, error);
    control__reply__free_unpacked(reply, NULL);
    if (r != 0)
        connection_drop(client);
    return r;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

struct run {
    torus_exchange_progress_fn *progress;
    void *data;
    struct torus_exchange_progress now;
    char id[64];
    char state[32];
    bool commits; /* a failure may leave it in doubt */
};

static int tick(void *data)
{
    struct run *run = data;
    return run->progress(run->data, &run->now);
}

static int check_request(const struct torus_exchange_request *r, struct torus_client_error *e)
{
    if ((r->from == NULL) != (r->to == NULL))
        return fail(e, TORUS_ERROR_USAGE, "an exchange of files needs both folders, from and to");
    if (r->from != NULL && (r->from[0] != '/' || r->to[0] != '/'))
        return fail(e, TORUS_ERROR_USAGE, "paths must be absolute: %s",
                    r->from[0] != '/' ? r->from : r->to);
    if (r->from != NULL && r->block_bytes != 0)
        return fail(e, TORUS_ERROR_USAGE,
                    "a block size and folders: give one or the other, files have their own sizes");
    if (r->repeat > TORUS_REPEAT_MOST)
        return fail(e, TORUS_ERROR_USAGE, "%u exchanges back to back: at most %u are possible",
                    r->repeat, (unsigned)TORUS_REPEAT_MOST);
    if (r->repeat > 1 &&
        (r->from != NULL || (r->operation != TORUS_EXCHANGE && r->operation != TORUS_ALLGATHER)))
        return fail(e, TORUS_ERROR_USAGE,
                    "only an exchange or allgather of a generated pattern can be repeated");
    if (r->from == NULL && r->missing_ok)
        return fail(e, TORUS_ERROR_USAGE, "files cannot be missing where there are none");
    return 0;
}

static int send_exchange(struct torus_client *c, const struct torus_exchange_request *r,
                         const struct wait *w, struct torus_client_error *e)
{
    Torus__Spec body = TORUS__SPEC__INIT;
    Control__ExchangeRequest exchange = CONTROL__EXCHANGE_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    /* Packing only reads these texts; protobuf-c has no const for them. */
    body.algorithm = (char *)(uintptr_t)TORUS_AUTO;
    if (r->algorithm != NULL && r->algorithm[0] != '\0')
        body.algorithm = (char *)(uintptr_t)r->algorithm;
    body.block_bytes = r->block_bytes;
    if (r->from != NULL) {
        body.from = (char *)(uintptr_t)r->from;
        body.to = (char *)(uintptr_t)r->to;
    }
    body.missing_ok = r->missing_ok;
    body.repeat = r->repeat;
    if (r->mode != NULL)
        body.mode = (char *)(uintptr_t)r->mode;
    body.timeout_ms = r->timeout_ms;
    body.operation = r->operation;
    body.sender = r->root;
    if (r->barrier != NULL)
        body.barrier = (char *)(uintptr_t)r->barrier;
    request.kind_case = CONTROL__REQUEST__KIND_EXCHANGE;
    exchange.spec = &body;
    request.exchange = &exchange;
    return connection_send(c, &request, w, e);
}

static void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
    text_clean(out);
}

/* Takes in a reply that is not the last one. */
static void note(struct run *run, const Control__Reply *reply)
{
    if (reply->kind_case == CONTROL__REPLY__KIND_ACCEPTED) {
        copy_text(run->id, sizeof run->id, reply->accepted->id);
        return;
    }
    copy_text(run->state, sizeof run->state, reply->progress->state);
    run->now.repetition = reply->progress->repetition;
    run->now.repeat = reply->progress->repeat;
    run->now.round = reply->progress->round;
    run->now.rounds = reply->progress->rounds;
    run->now.done_bytes = reply->progress->done_bytes;
    run->now.total_bytes = reply->progress->total_bytes;
}

/* Receives until the last reply. Returns 0 with it in *last, or -1 with *e set. */
static int follow(struct torus_client *c, struct run *run, const struct wait *w,
                  Control__Reply **last, struct torus_client_error *e)
{
    for (;;) {
        Control__Reply *reply;
        if (connection_receive(c, w, &reply, e) != 0)
            return -1;
        if (reply->kind_case != CONTROL__REPLY__KIND_ACCEPTED &&
            reply->kind_case != CONTROL__REPLY__KIND_PROGRESS) {
            *last = reply;
            return 0;
        }
        note(run, reply);
        control__reply__free_unpacked(reply, NULL);
        if (w->tick != NULL && w->tick(w->data) != 0)
            return fail(e, TORUS_ERROR_CANCELLED, "cancelled");
    }
}

/* Says that this side is going, and listens for what the daemon makes of it. */
static int cancel(struct torus_client *c, struct run *run, Control__Reply **last,
                  struct torus_client_error *e)
{
    struct wait w = {.deadline_ms = clock_ms() + LAST_WORD, .deaf = true};
    struct torus_client_error ignored;

    (void)shutdown(c->fd, SHUT_WR);
    if (follow(c, run, &w, last, &ignored) == 0)
        return 0;
    return fail(e, TORUS_ERROR_CANCELLED, "cancelled");
}

/* What it means that the connection ended before the exchange did. */
static void give_up(const struct torus_client *c, const struct run *run,
                    struct torus_client_error *e)
{
    bool silent = e != NULL && e->code == TORUS_ERROR_TIMEOUT;
    bool gone = e != NULL && e->code == TORUS_ERROR_LOST;

    if (run->id[0] != '\0' && run->commits && (silent || gone))
        fail(e, TORUS_ERROR_IN_DOUBT,
             "the daemon at %s %s: whether the exchange was committed is not known here; look at "
             "the output folders, or ask another node for its status",
             c->path, silent ? "no longer answers" : "has gone away during the exchange");
    else if (run->id[0] != '\0' && gone)
        fail(e, TORUS_ERROR_LOST, "the daemon at %s has gone away during the exchange", c->path);
    fail_exchange(e, run->id);
}

static int run_exchange(struct torus_client *c, const struct torus_exchange_request *request,
                        struct run *run, Control__Reply **last, struct torus_client_error *e)
{
    struct torus_client_error own;
    struct wait w = {.deadline_ms = -1, .data = run};

    if (e == NULL)
        e = &own; /* decisions are taken by its code */
    if (run->progress != NULL)
        w.tick = tick;
    if (request->timeout_ms > 0 && request->timeout_ms < INT64_MAX / 2)
        w.deadline_ms = clock_ms() + (int64_t)request->timeout_ms + GRACE;

    if (send_exchange(c, request, &w, e) == 0 && follow(c, run, &w, last, e) == 0)
        return 0;
    if (c->fd >= 0 && e->code == TORUS_ERROR_CANCELLED && cancel(c, run, last, e) == 0) {
        connection_drop(c);
        return 0;
    }
    connection_drop(c);
    give_up(c, run, e);
    return -1;
}

int torus_exchange_run(struct torus_client *client, const struct torus_exchange_request *request,
                       torus_exchange_progress_fn *progress, void *data,
                       struct torus_exchange_result **result, struct torus_client_error *error)
{
    struct run run = {.progress = progress, .data = data, .commits = request->to != NULL};
    Control__Reply *last;

    run.now.exchange = run.id;
    run.now.state = run.state;
    *result = NULL;
    if (check_request(request, error) != 0 ||
        run_exchange(client, request, &run, &last, error) != 0)
        return -1;
    if (last->kind_case == CONTROL__REPLY__KIND_EXCHANGE) {
        *result = exchange_from(last, error);
        if (*result != NULL)
            return 0;
        fail_exchange(error, run.id);
        connection_drop(client);
        return -1;
    }
    if (last->kind_case == CONTROL__REPLY__KIND_ERROR) {
        refused(last->error, error);
        if (last->error->exchange[0] == '\0')
            fail_exchange(error, run.id);
    } else {
        unexpected(error);
        fail_exchange(error, run.id);
        connection_drop(client);
    }
    control__reply__free_unpacked(last, NULL);
    return -1;
}
