#include "client/libtorus/requests/operation.h"

#include <poll.h>
#include <stdlib.h>

#include "client/libtorus/common/clock.h"
#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/client_watch.h"
#include "client/libtorus/requests/operation_end.h"
#include "client/libtorus/requests/replies.h"

#define READS 64             /* reads per dispatch, so that other users of the event loop can run */
#define LONGEST_AWAY 3600000 /* ms to wait for a restarted daemon if the request has no timeout */

static int keep_request(struct torus_client *c, const Control__Request *request,
                        struct torus_error *e)
{
    free(c->request);
    c->request_length = control__request__get_packed_size(request);
    c->request = malloc(c->request_length);
    if (c->request == NULL)
        return fail_memory(e);
    (void)control__request__pack(request, c->request);
    return 0;
}

/* Queues the request again, with the rest of its timeout. */
static int queue_again(struct torus_client *c, struct torus_error *e)
{
    Control__Request *request = control__request__unpack(NULL, c->request_length, c->request);
    int64_t left = c->until_ms - clock_ms() - CLIENT_GRACE;
    int r;

    if (request == NULL)
        return fail_memory(e);
    uint64_t *timeout = request->kind_case == CONTROL__REQUEST__KIND_COPY
                            ? &request->copy->timeout_ms
                            : &request->exchange->spec->timeout_ms;
    if (*timeout > 0 && (left < 1 || (uint64_t)left < *timeout))
        *timeout = left < 1 ? 1 : (uint64_t)left;
    r = connection_queue(&c->connection, request, e);
    control__request__free_unpacked(request, NULL);
    return r;
}

/* Tries to reach the restarted daemon, and sends the request again. */
static void ask_again(struct torus_client *c)
{
    struct torus_error e;

    c->retry_ms = NEVER;
    if (connection_reopen(&c->connection, &e) != 0) {
        c->retry_ms = client_clock_after(CLIENT_RETRY);
        return;
    }
    c->phase = PHASE_RUNNING;
    client_limit(c, c->timeout_ms);
    if (queue_again(c, &e) != 0)
        client_break_off(c, &e);
}

int client_start(struct torus_client *c, const struct operation *operation,
                 const Control__Request *request, struct torus_error *e)
{
    if (c->phase != PHASE_IDLE)
        return fail(e, TORUS_ERROR_USAGE, "another operation is under way on this client");
    if (c->connection.fd < 0)
        return fail(e, TORUS_ERROR_LOST,
                    "the connection to the daemon was closed after an earlier failure; open a new "
                    "client");
    if (c->connection.in.taken < c->connection.in.length) {
        client_disconnect(c);
        return fail(e, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent an unsolicited reply",
                    c->connection.path);
    }
    Control__Request versioned = *request;
    versioned.version = CONTROL_VERSION;
    if (connection_queue(&c->connection, &versioned, e) != 0 ||
        (operation->waits && keep_request(c, &versioned, e) != 0)) {
        client_disconnect(c);
        return -1;
    }
    (void)client_drain(c->cancel_fd); /* discard a cancellation of an earlier operation */
    c->operation = *operation;
    c->phase = PHASE_RUNNING;
    c->progress = (struct torus_progress){.waits_for = ""};
    c->copy = (struct torus_copy_progress){.waits_for = ""};
    c->accepted = false;
    c->until_ms = NEVER;
    if (operation->waits)
        c->until_ms =
            client_clock_after(operation->limit_ms > 0 ? operation->limit_ms : LONGEST_AWAY);
    c->id[0] = c->missing[0] = '\0';
    client_limit(c, operation->is_exchange || operation->is_copy ? c->timeout_ms
                                                                 : operation->limit_ms);
    c->tick_ms = client_shows_progress(c) ? client_clock_after(CLIENT_TICK) : NEVER;
    client_watch(c);
    return 0;
}

static bool is_connected(const struct torus_client *c)
{
    return c->phase == PHASE_RUNNING || c->phase == PHASE_CANCELLING;
}

/* Reads and handles replies, at most READS times. */
static void receive(struct torus_client *c)
{
    struct torus_error e;
    int r = 0;

    for (unsigned i = 0; i < READS && r >= 0; i++) {
        Control__Reply *reply;
        while (is_connected(c) && (r = connection_next(&c->connection, &reply, &e)) > 0)
            client_handle(c, reply);
        if (!is_connected(c))
            return;
        if (r == 0)
            r = connection_read(&c->connection, &e);
        if (r == 0)
            return;
    }
    if (r < 0)
        client_break_off(c, &e);
}

bool torus_client_dispatch(struct torus_client *client)
{
    struct torus_error e;

    (void)client_drain(client->timer_fd);
    if (client_drain(client->cancel_fd))
        client_end_early(client);
    if (client->phase == PHASE_AWAY && clock_ms() >= client->retry_ms)
        ask_again(client);
    if (is_connected(client) && connection_flush(&client->connection, &e) != 0)
        client_break_off(client, &e);
    if (is_connected(client))
        receive(client);
    if (client->phase != PHASE_IDLE && clock_ms() >= client->deadline_ms)
        client_expire(client);
    if (client->phase != PHASE_IDLE && clock_ms() >= client->tick_ms)
        client_report(client);
    client_watch(client);
    return client->phase != PHASE_IDLE;
}

/* ---- Blocking calls -------------------------------------------------------------------------- */

void outcome_set(void *outcome, const struct torus_error *error)
{
    struct outcome *o = outcome;

    o->ended = true;
    o->failed = error != NULL;
    if (error != NULL && o->error != NULL)
        *o->error = *error;
}

int client_wait(struct torus_client *c, struct outcome *outcome)
{
    while (!outcome->ended) {
        struct pollfd ready = {.fd = c->epoll_fd, .events = POLLIN};
        (void)poll(&ready, 1, -1);
        (void)torus_client_dispatch(c);
    }
    return outcome->failed ? -1 : 0;
}
