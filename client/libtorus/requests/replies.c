#include "client/libtorus/requests/replies.h"

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/names.h"
#include "client/libtorus/requests/client_watch.h"
#include "client/libtorus/requests/copy_result.h"
#include "client/libtorus/requests/operation_end.h"

bool client_shows_progress(const struct torus_client *c)
{
    return c->operation.progress != NULL || c->operation.copy_progress != NULL;
}

void client_report(struct torus_client *c)
{
    int stop;

    c->tick_ms = client_clock_after(CLIENT_TICK);
    c->progress.exchange = c->id;
    c->progress.missing = c->missing;
    if (c->operation.is_copy)
        stop = c->operation.copy_progress(c->operation.progress_data, &c->copy);
    else
        stop = c->operation.progress(c->operation.progress_data, &c->progress);
    if (stop != 0)
        client_end_early(c);
}

static void store_copy_progress(struct torus_client *c, const Control__CopyProgress *progress)
{
    copy_text(c->waits_for, sizeof c->waits_for, progress->waits_for);
    c->copy = (struct torus_copy_progress){
        .phase = copy_phase_of(progress->phase),
        .files = progress->files,
        .bytes = progress->bytes,
        .bytes_of = progress->bytes_of,
        .waits_for = c->waits_for,
    };
}

static void store_progress(struct torus_client *c, const Control__Progress *progress)
{
    copy_text(c->missing, sizeof c->missing, progress->missing);
    copy_text(c->waits_for, sizeof c->waits_for, progress->waits_for);
    c->progress = (struct torus_progress){
        .state = state_named(progress->state),
        .round = progress->round,
        .rounds = progress->rounds,
        .done_bytes = progress->done_bytes,
        .total_bytes = progress->total_bytes,
        .repetition = progress->repetition,
        .repeat = progress->repeat,
        .missing_count = progress->missing_count,
        .waits_for = c->waits_for,
    };
}

/* Converts an Error of the daemon to *e. */
static void error_from_daemon(const Control__Error *error, struct torus_error *e)
{
    const char *text = error->text[0] != '\0'
                           ? error->text
                           : "the request has failed, and the daemon gave no reason";

    if (error->code > TORUS_ERROR_NONE && error->code <= TORUS_ERROR_BUSY)
        fail(e, (enum torus_error_code)error->code, "%s", text);
    else
        fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", text, error->code);
    fail_exchange(e, error->exchange);
}

static void end_with_error(struct torus_client *c, Control__Reply *reply)
{
    struct torus_error e;

    error_from_daemon(reply->error, &e);
    if (reply->error->stopping)
        e.code = TORUS_ERROR_LOST;
    if (reply->error->stopping && client_await_daemon(c, true)) {
        control__reply__free_unpacked(reply, NULL);
        return;
    }
    control__reply__free_unpacked(reply, NULL);
    client_finish(c, NULL, &e);
}

/* The first Accepted or progress shows that the daemon is running. From then on the limit of the operation applies. */
static void note_acceptance(struct torus_client *c)
{
    if (!c->accepted && c->phase == PHASE_RUNNING)
        client_limit(c, c->operation.limit_ms);
    if (c->deadline_ms > c->until_ms) /* the limit has been running since the first daemon */
        c->deadline_ms = c->until_ms;
    c->accepted = true;
}

/* Stores a reply that is not the last one. Returns whether such a reply belongs to the operation. */
static bool store_interim(struct torus_client *c, const Control__Reply *reply)
{
    const struct operation *o = &c->operation;

    if (reply->kind_case == CONTROL__REPLY__KIND_ACCEPTED && (o->is_exchange || o->is_copy)) {
        note_acceptance(c);
        copy_text(c->id, sizeof c->id, reply->accepted->id); /* every attempt has a new id */
    } else if (reply->kind_case == CONTROL__REPLY__KIND_PROGRESS && o->is_exchange) {
        store_progress(c, reply->progress);
    } else if (reply->kind_case == CONTROL__REPLY__KIND_COPY_PROGRESS && o->is_copy) {
        note_acceptance(c);
        store_copy_progress(c, reply->copy_progress);
    } else {
        return false;
    }
    return true;
}

void client_handle(struct torus_client *c, Control__Reply *reply)
{
    struct torus_error e;

    if (reply->kind_case == CONTROL__REPLY__KIND_ERROR) {
        end_with_error(c, reply);
    } else if (reply->kind_case == c->operation.expects) {
        client_finish(c, reply, NULL);
    } else if (store_interim(c, reply)) {
        control__reply__free_unpacked(reply, NULL);
        if (client_shows_progress(c))
            client_report(c);
    } else {
        control__reply__free_unpacked(reply, NULL);
        fail(&e, TORUS_ERROR_PROTOCOL,
             "unexpected reply from the daemon at %s: it may have another version than this "
             "program (%s)",
             c->connection.path, TORUSD_VERSION);
        client_break_off(c, &e);
    }
}
