/* A client: its operation under way, from the request to its end, and the events that it waits for. */
#include "client/libtorus/requests/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/libtorus/common.h"
#include "client/libtorus/requests/results.h"
#include "proto/unpack.h"

/* ---- Events ---------------------------------------------------------------------------------- */

/* The events that a client's epoll descriptor watches: the connection, deadlines, cancellation. */

/* Returns the time on clock_ms() in `ms` milliseconds (not negative), or NEVER if that is too far in the future. */
static int64_t client_clock_after(int64_t ms)
{
    int64_t now = clock_ms();
    return ms < NEVER - now ? now + ms : NEVER;
}

/* Watches a descriptor for the lifetime of the client. Returns 0, or -1 with errno. */
static int client_watch_always(struct torus_client *c, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Watches the connection only while an operation is under way. Otherwise a daemon that closes the connection would
 * keep the descriptor readable. */
static void watch_connection(struct torus_client *c)
{
    struct epoll_event event = {.events = 0};
    int fd = c->connection.fd;

    if (fd >= 0 && c->phase != PHASE_IDLE)
        event.events = EPOLLIN | (connection_is_sending(&c->connection) ? EPOLLOUT : 0u);
    if (event.events == c->watched)
        return;
    (void)epoll_ctl(c->epoll_fd,
                    c->watched == 0     ? EPOLL_CTL_ADD
                    : event.events == 0 ? EPOLL_CTL_DEL
                                        : EPOLL_CTL_MOD,
                    fd, &event);
    c->watched = event.events;
}

/* Sets the deadline of the operation to `ms` milliseconds from now; 0: no deadline. */
static void client_limit(struct torus_client *c, int64_t ms)
{
    c->limit_ms = ms;
    c->deadline_ms = ms > 0 ? client_clock_after(ms) : NEVER;
}

/* Closes the connection, and stops watching it. */
/* Removes the descriptor from epoll first: closing it does not remove it if a forked child has a copy. */
static void client_disconnect(struct torus_client *c)
{
    if (c->watched != 0)
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->connection.fd, NULL);
    c->watched = 0;
    connection_close(&c->connection);
}

static void watch_clock(struct torus_client *c)
{
    int64_t next = c->deadline_ms < c->tick_ms ? c->deadline_ms : c->tick_ms;
    next = c->retry_ms < next ? c->retry_ms : next;
    struct itimerspec at = {0};

    if (c->phase != PHASE_IDLE && next != NEVER) {
        at.it_value.tv_sec = (time_t)(next / 1000);
        at.it_value.tv_nsec = (long)(next % 1000) * 1000000;
    }
    (void)timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Updates which events are watched. Call it whenever the state of the client may have changed. */
static void client_watch(struct torus_client *c)
{
    watch_connection(c);
    watch_clock(c);
}

/* Sets the counter of an eventfd or timerfd to 0. Returns whether it was not 0 before. */
static bool client_drain(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}

/* ---- The end of an operation ----------------------------------------------------------------- */

/* The ways in which an operation ends, and its repetition after a restart of the daemon. */

#define CLIENT_RETRY 100   /* ms between attempts to reach a daemon that is being restarted */
#define CANCEL_LIMIT 10000 /* ms in which a daemon must say how a cancelled exchange has ended */

/* Ends the operation with the success in `reply` (takes ownership) or the failure in *e; the other one is NULL. Calls
 * `done` as its last action, because `done` may start the next operation. */
static void client_finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e)
{
    const struct pending_request pending = c->pending;
    struct torus_error invalid;

    c->phase = PHASE_IDLE;
    c->retry_ms = NEVER;
    if (reply != NULL && pending.convert(reply, pending.result, &invalid) != 0) {
        client_disconnect(c); /* later replies would be as invalid */
        e = &invalid;
    }
    if (e != NULL && e->exchange[0] == '\0')
        fail_exchange(e, c->id);
    pending.done(pending.data, e);
}

/* The daemon has closed the connection: waits for its restart, to send the request again, if the operation allows it.
 * `undecided`: the daemon has reported that nothing was decided. Otherwise an exchange of files may have been
 * committed, and sending the request again could run it twice. Returns whether the operation now waits. */
static bool client_await_daemon(struct torus_client *c, bool undecided)
{
    if (!c->pending.waits || c->phase != PHASE_RUNNING || (c->pending.commits && !undecided) ||
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

static const char *pending_noun(const struct torus_client *c)
{
    return c->pending.is_copy ? "copy" : "exchange";
}

/* The connection cannot be used any more, for the reason in *e. Fails the operation, with TORUS_ERROR_IN_DOUBT if
 * files may have been committed, unless client_await_daemon() lets it wait. */
static void client_break_off(struct torus_client *c, struct torus_error *e)
{
    const bool accepted = c->accepted;
    char why[sizeof e->text];

    if (e->code == TORUS_ERROR_LOST && client_await_daemon(c, false))
        return;
    client_disconnect(c);
    if (accepted && c->pending.commits) {
        copy_text(why, sizeof why, e->text);
        fail(e, TORUS_ERROR_IN_DOUBT,
             "%.280s; it is not known here whether the exchange was committed: look at the output "
             "folders, or ask another node for its status",
             why);
    } else if (accepted && e->code == TORUS_ERROR_LOST) {
        fail(e, TORUS_ERROR_LOST, "the daemon at %s has gone away during the %s",
             c->connection.path, pending_noun(c));
    }
    client_finish(c, NULL, e);
}

/* Fails the operation because its deadline has passed. */
static void client_expire(struct torus_client *c)
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
             c->connection.path, pending_noun(c));
    else
        fail(&e, TORUS_ERROR_TIMEOUT, "no reply from the daemon at %s within %.10g s",
             c->connection.path, (double)c->limit_ms / 1000);
    client_break_off(c, &e);
}

/* Asks the daemon to cancel the operation, unless it has been asked already. */
static void client_end_early(struct torus_client *c)
{
    Control__CancelRequest body = CONTROL__CANCEL_REQUEST__INIT;
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
    if (connection_queue(&c->connection, CONTROL_REQUEST(CANCEL, cancel, &body), &e) != 0 ||
        connection_flush(&c->connection, &e) != 0)
        client_break_off(c, &e);
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* Handles the daemon's replies to the operation under way. */

#define CLIENT_TICK 200 /* ms after which the progress function is called again without a reply */

/* Returns whether the operation has a progress function. */
static bool client_shows_progress(const struct torus_client *c)
{
    return c->pending.progress != NULL || c->pending.copy_progress != NULL;
}

/* Calls the progress function of the operation, which must exist and may cancel the operation. Sets the time of the
 * next call. */
static void client_report(struct torus_client *c)
{
    int stop;

    c->tick_ms = client_clock_after(CLIENT_TICK);
    c->progress.exchange = c->id;
    c->progress.missing = c->missing;
    if (c->pending.is_copy)
        stop = c->pending.copy_progress(c->pending.progress_data, &c->copy);
    else
        stop = c->pending.progress(c->pending.progress_data, &c->progress);
    if (stop != 0)
        client_end_early(c);
}

/* Texts are copied, because the reply is freed before the progress is reported again. */
static void store_copy_progress(struct torus_client *c, const Control__CopyProgress *from)
{
    struct torus_copy_progress *to = &c->copy;

    CONTROL_COPY_PROGRESS(CONTROL_READ)
    copy_text(c->waits_for, sizeof c->waits_for, from->waits_for);
    to->waits_for = c->waits_for;
}

static void store_progress(struct torus_client *c, const Control__Progress *from)
{
    struct torus_progress *to = &c->progress;

    CONTROL_PROGRESS(CONTROL_READ)
    copy_text(c->missing, sizeof c->missing, from->missing);
    copy_text(c->waits_for, sizeof c->waits_for, from->waits_for);
    to->missing = c->missing;
    to->waits_for = c->waits_for;
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
        unpack_free(reply);
        return;
    }
    unpack_free(reply);
    client_finish(c, NULL, &e);
}

/* The first Accepted or progress shows that the daemon is running. From then on the limit of the operation applies. */
static void note_acceptance(struct torus_client *c)
{
    if (!c->accepted && c->phase == PHASE_RUNNING)
        client_limit(c, c->pending.limit_ms);
    if (c->deadline_ms > c->until_ms) /* the limit has been running since the first daemon */
        c->deadline_ms = c->until_ms;
    c->accepted = true;
}

/* Stores a reply that is not the last one. Returns whether such a reply belongs to the operation. */
static bool store_interim(struct torus_client *c, const Control__Reply *reply)
{
    const struct pending_request *o = &c->pending;

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

/* Handles a reply to the operation under way, which may end the operation. Takes ownership of `reply`. */
static void client_handle(struct torus_client *c, Control__Reply *reply)
{
    struct torus_error e;

    if (reply->kind_case == CONTROL__REPLY__KIND_ERROR) {
        end_with_error(c, reply);
    } else if (reply->kind_case == c->pending.expects) {
        client_finish(c, reply, NULL);
    } else if (store_interim(c, reply)) {
        unpack_free(reply);
        if (client_shows_progress(c))
            client_report(c);
    } else {
        unpack_free(reply);
        fail(&e, TORUS_ERROR_PROTOCOL,
             "unexpected reply from the daemon at %s: it may have another version than this "
             "program (%s)",
             c->connection.path, TORUSD_VERSION);
        client_break_off(c, &e);
    }
}

/* ---- Operations ------------------------------------------------------------------------------ */

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
    Control__Request *request =
        unpack_bounded(&control__request__descriptor, c->request, c->request_length, UNPACK_MOST);
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
    unpack_free(request);
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

int client_start(struct torus_client *c, const struct pending_request *pending,
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
        (pending->waits && keep_request(c, &versioned, e) != 0)) {
        client_disconnect(c);
        return -1;
    }
    (void)client_drain(c->cancel_fd); /* discard a cancellation of an earlier operation */
    c->pending = *pending;
    c->phase = PHASE_RUNNING;
    c->progress = (struct torus_progress){.waits_for = ""};
    c->copy = (struct torus_copy_progress){.waits_for = ""};
    c->accepted = false;
    c->until_ms = NEVER;
    if (pending->waits)
        c->until_ms = client_clock_after(pending->limit_ms > 0 ? pending->limit_ms : LONGEST_AWAY);
    c->id[0] = c->missing[0] = '\0';
    client_limit(c, pending->is_exchange || pending->is_copy ? c->timeout_ms : pending->limit_ms);
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

int client_wait(struct torus_client *c, int started, struct outcome *outcome)
{
    if (started != 0)
        return -1;
    while (!outcome->ended) {
        struct pollfd ready = {.fd = c->epoll_fd, .events = POLLIN};
        (void)poll(&ready, 1, -1);
        (void)torus_client_dispatch(c);
    }
    return outcome->failed ? -1 : 0;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

#define DEFAULT_TIMEOUT 10000 /* ms: see torus_client_set_timeout() */

const char *torus_version(void)
{
    return TORUSD_VERSION;
}

static int open_client(struct torus_client *c, const char *path, struct torus_error *e)
{
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->epoll_fd < 0 || c->cancel_fd < 0 || c->timer_fd < 0 ||
        client_watch_always(c, c->cancel_fd) != 0 || client_watch_always(c, c->timer_fd) != 0)
        return fail(e, TORUS_ERROR_IO, "cannot create descriptors for a client: %s",
                    strerror(errno));
    return connection_open(&c->connection, path, e);
}

struct torus_client *torus_client_open(const char *path, struct torus_error *error)
{
    struct torus_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fail_memory(error);
        return NULL;
    }
    c->connection.fd = -1;
    c->retry_ms = NEVER;
    c->timeout_ms = DEFAULT_TIMEOUT;
    if (open_client(c, path != NULL ? path : torus_default_socket(), error) != 0) {
        torus_client_close(c);
        return NULL;
    }
    return c;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void torus_client_close(struct torus_client *client)
{
    if (client == NULL)
        return;
    connection_free(&client->connection);
    free(client->request);
    close_descriptor(client->cancel_fd);
    close_descriptor(client->timer_fd);
    close_descriptor(client->epoll_fd);
    free(client);
}

bool torus_client_is_open(const struct torus_client *client)
{
    return client->connection.fd >= 0;
}

int torus_client_fd(const struct torus_client *client)
{
    return client->epoll_fd;
}

void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds)
{
    client->timeout_ms = milliseconds;
}

void torus_client_cancel(struct torus_client *client)
{
    int saved = errno;
    uint64_t one = 1;
    /* The write fails only if the counter is full, and then the descriptor is readable anyway. */
    ssize_t n = write(client->cancel_fd, &one, sizeof one);
    (void)n;
    errno = saved;
}
