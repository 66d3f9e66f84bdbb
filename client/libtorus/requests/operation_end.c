#include "client/libtorus/requests/operation_end.h"

#include <stdio.h>

#include "client/libtorus/common/clock.h"
#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/client_watch.h"

#define CANCEL_LIMIT 10000 /* ms in which a daemon must say how a cancelled exchange has ended */

void client_finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e)
{
    const struct operation operation = c->operation;
    struct torus_error invalid;

    c->phase = PHASE_IDLE;
    c->retry_ms = NEVER;
    if (reply != NULL && operation.convert(reply, operation.result, &invalid) != 0) {
        client_disconnect(c); /* later replies would be as invalid */
        e = &invalid;
    }
    if (e != NULL && e->exchange[0] == '\0')
        fail_exchange(e, c->id);
    operation.done(operation.data, e);
}

bool client_await_daemon(struct torus_client *c, bool undecided)
{
    if (!c->operation.waits || c->phase != PHASE_RUNNING || (c->operation.commits && !undecided) ||
        clock_ms() >= c->until_ms)
        return false;
    client_disconnect(c);
    c->phase = PHASE_AWAY;
    c->id[0] = '\0';
    c->accepted = false;
    c->retry_ms = client_clock_after(CLIENT_RETRY);
    c->deadline_ms = c->until_ms;
    (void)snprintf(c->waits_for, sizeof c->waits_for, "the daemon at %s", c->connection.path);
    c->progress = (struct torus_progress){.waits_for = c->waits_for};
    c->copy = (struct torus_copy_progress){.waits_for = c->waits_for};
    return true;
}

static const char *operation_noun(const struct torus_client *c)
{
    return c->operation.is_copy ? "copy" : "exchange";
}

void client_break_off(struct torus_client *c, struct torus_error *e)
{
    const bool accepted = c->accepted;
    char why[sizeof e->text];

    if (e->code == TORUS_ERROR_LOST && client_await_daemon(c, false))
        return;
    client_disconnect(c);
    if (accepted && c->operation.commits) {
        copy_text(why, sizeof why, e->text);
        fail(e, TORUS_ERROR_IN_DOUBT,
             "%.280s; it is not known here whether the exchange was committed: look at the output "
             "folders, or ask another node for its status",
             why);
    } else if (accepted && e->code == TORUS_ERROR_LOST) {
        fail(e, TORUS_ERROR_LOST, "the daemon at %s has gone away during the %s",
             c->connection.path, operation_noun(c));
    }
    client_finish(c, NULL, e);
}

void client_expire(struct torus_client *c)
{
    struct torus_error e;

    if (c->phase == PHASE_CANCELLING)
        fail(&e, TORUS_ERROR_CANCELLED,
             "cancelled, but the daemon at %s did not report in time how the operation ended",
             c->connection.path);
    else if (c->phase == PHASE_AWAY)
        fail(&e, TORUS_ERROR_LOST,
             "the daemon at %s has gone away during the %s, and did not come back within the "
             "timeout",
             c->connection.path, operation_noun(c));
    else
        fail(&e, TORUS_ERROR_TIMEOUT, "no reply from the daemon at %s within %.10g s",
             c->connection.path, (double)c->limit_ms / 1000);
    client_break_off(c, &e);
}

void client_end_early(struct torus_client *c)
{
    Control__CancelRequest body = CONTROL__CANCEL_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    int64_t latest = client_clock_after(CANCEL_LIMIT);
    struct torus_error e;

    if (c->phase == PHASE_AWAY) {
        fail(&e, TORUS_ERROR_CANCELLED, "cancelled while the daemon at %s was away",
             c->connection.path);
        client_finish(c, NULL, &e);
        return;
    }
    if (c->phase != PHASE_RUNNING)
        return;
    c->phase = PHASE_CANCELLING;
    if (latest < c->deadline_ms)
        c->deadline_ms = latest;
    request.kind_case = CONTROL__REQUEST__KIND_CANCEL;
    request.cancel = &body;
    if (connection_queue(&c->connection, &request, &e) != 0 ||
        connection_flush(&c->connection, &e) != 0)
        client_break_off(c, &e);
}
