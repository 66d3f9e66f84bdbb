#include "client/libtorus/requests/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/common/clock.h"
#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/names.h"

#define DEFAULT_TIMEOUT 10000 /* ms, for what a daemon answers at once */
#define CANCEL_LIMIT 10000    /* ms that a daemon has to say how a cancelled exchange has ended */
#define TICK 200              /* ms between two calls of a progress function, at most */
#define READS 64              /* at a time: other users of the event loop get their turn */
#define NEVER INT64_MAX
#define RETRY 100            /* ms between two attempts to reach a daemon that is restarted, */
#define LONGEST_AWAY 3600000 /* and for how long without a timeout, as the daemon waits for nodes */

/*      client_start()           last reply, deadline, connection closed
 *  IDLE --------------> RUNNING ----------------------------------------> IDLE
 *                         ^|| cancel                                       ^
 *        asked once more  |||                                              |
 *                       AWAY|  daemon restarted                            |
 *                           +-----------------> CANCELLING ----------------+
 */
enum phase { PHASE_IDLE, PHASE_RUNNING, PHASE_AWAY, PHASE_CANCELLING };

struct torus_client {
    struct connection connection;
    int epoll_fd;     /* of the three below */
    int cancel_fd;    /* eventfd: readable once torus_client_cancel() has been called */
    int timer_fd;     /* readable when a deadline or a tick has come */
    uint32_t watched; /* what epoll watches the connection for; 0 = it does not */
    unsigned timeout_ms;

    enum phase phase;
    struct operation operation;     /* under way, unless idle */
    struct torus_progress progress; /* of it */
    char id[64];
    char missing[128];            /* progress.missing */
    int64_t limit_ms;             /* that the next reply, or the last one, may take */
    int64_t deadline_ms, tick_ms; /* on clock_ms(); NEVER */

    /* operation.waits: the request, for a daemon that has been restarted; */
    uint8_t *request;
    size_t request_length;
    int64_t until_ms, retry_ms; /* for how long, and when it is tried next; NEVER */
    char waits_for[sizeof((struct torus_error *)0)->text];
};

static int64_t clock_after(int64_t ms)
{
    int64_t now = clock_ms();
    return ms < NEVER - now ? now + ms : NEVER;
}

const char *torus_version(void)
{
    return TORUSD_VERSION;
}

/* ---- What epoll watches ---------------------------------------------------------------------- */

static int watch_always(struct torus_client *c, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* The connection is watched while there is an operation only: a daemon that closes it meanwhile
 * would keep the descriptor readable. */
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

static void limit(struct torus_client *c, int64_t ms)
{
    c->limit_ms = ms;
    c->deadline_ms = ms > 0 ? clock_after(ms) : NEVER;
}

/* Unwatches it first: closing does not, where a fork has a copy of the descriptor. */
static void drop(struct torus_client *c)
{
    if (c->watched != 0)
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->connection.fd, NULL);
    c->watched = 0;
    connection_drop(&c->connection);
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

static void watch(struct torus_client *c)
{
    watch_connection(c);
    watch_clock(c);
}

/* Whether the counter of an eventfd or timerfd was not 0; it is afterwards. */
static bool drain(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static int open_client(struct torus_client *c, const char *path, struct torus_error *e)
{
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->epoll_fd < 0 || c->cancel_fd < 0 || c->timer_fd < 0 ||
        watch_always(c, c->cancel_fd) != 0 || watch_always(c, c->timer_fd) != 0)
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

int64_t client_limit_ms(const struct torus_client *c)
{
    return c->timeout_ms;
}

/* ---- The end of an operation ----------------------------------------------------------------- */

static void finish(struct torus_client *c, Control__Reply *reply, struct torus_error *e)
{
    const struct operation operation = c->operation;
    struct torus_error own;

    c->phase = PHASE_IDLE;
    c->retry_ms = NEVER;
    if (reply != NULL && operation.convert(reply, operation.result, &own) != 0) {
        drop(c); /* a daemon that cannot be understood */
        e = &own;
    }
    if (e != NULL && e->exchange[0] == '\0')
        fail_exchange(e, c->id);
    operation.done(operation.data, e);
}

/* The daemon has gone. `undecided`: it has said that nothing was decided. To ask again for what may have been
 * committed would do it twice. Returns whether it will be asked again. */
static bool await_daemon(struct torus_client *c, bool undecided)
{
    if (!c->operation.waits || c->phase != PHASE_RUNNING || (c->operation.commits && !undecided) ||
        clock_ms() >= c->until_ms)
        return false;
    drop(c);
    c->phase = PHASE_AWAY;
    c->id[0] = '\0';
    c->retry_ms = clock_after(RETRY);
    c->deadline_ms = c->until_ms;
    (void)snprintf(c->waits_for, sizeof c->waits_for, "the daemon at %s", c->connection.path);
    c->progress = (struct torus_progress){.waits_for = c->waits_for};
    return true;
}

/* The connection is of no more use, for the reason in *e. */
static void break_off(struct torus_client *c, struct torus_error *e)
{
    bool accepted = c->id[0] != '\0';
    char why[sizeof e->text];

    if (e->code == TORUS_ERROR_LOST && await_daemon(c, false))
        return;
    drop(c);
    if (accepted && c->operation.commits) {
        copy_text(why, sizeof why, e->text);
        fail(e, TORUS_ERROR_IN_DOUBT,
             "%.280s; whether the exchange was committed is not known here: look at the output "
             "folders, or ask another node for its status",
             why);
    } else if (accepted && e->code == TORUS_ERROR_LOST) {
        fail(e, TORUS_ERROR_LOST, "the daemon at %s has gone away during the exchange",
             c->connection.path);
    }
    finish(c, NULL, e);
}

static void expire(struct torus_client *c)
{
    struct torus_error e;

    if (c->phase == PHASE_CANCELLING)
        fail(&e, TORUS_ERROR_CANCELLED,
             "cancelled, but the daemon at %s has not said in time how it has ended",
             c->connection.path);
    else if (c->phase == PHASE_AWAY)
        fail(&e, TORUS_ERROR_LOST,
             "the daemon at %s has gone away during the exchange, and is not back within the "
             "timeout",
             c->connection.path);
    else
        fail(&e, TORUS_ERROR_TIMEOUT, "no reply from the daemon at %s within %.10g s",
             c->connection.path, (double)c->limit_ms / 1000);
    break_off(c, &e);
}

static void cancel(struct torus_client *c)
{
    Control__CancelRequest body = CONTROL__CANCEL_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    int64_t latest = clock_after(CANCEL_LIMIT);
    struct torus_error e;

    if (c->phase == PHASE_AWAY) {
        fail(&e, TORUS_ERROR_CANCELLED, "cancelled while the daemon at %s was away",
             c->connection.path);
        finish(c, NULL, &e);
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
        break_off(c, &e);
}

void torus_client_cancel(struct torus_client *client)
{
    int saved = errno;
    uint64_t one = 1;
    /* It can fail only if the counter is full, and then it is readable all the same. */
    ssize_t n = write(client->cancel_fd, &one, sizeof one);
    (void)n;
    errno = saved;
}

/* ---- Replies --------------------------------------------------------------------------------- */

static void report(struct torus_client *c)
{
    c->tick_ms = clock_after(TICK);
    c->progress.exchange = c->id;
    c->progress.missing = c->missing;
    if (c->operation.progress(c->operation.progress_data, &c->progress) != 0)
        cancel(c);
}

static void note_progress(struct torus_client *c, const Control__Progress *progress)
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

/* Turns an Error that the daemon has answered with into *e. */
static void refuse(const Control__Error *error, struct torus_error *e)
{
    const char *text = error->text[0] != '\0' ? error->text : "failed without a reason";

    if (error->code > TORUS_ERROR_NONE && error->code <= TORUS_ERROR_BUSY)
        fail(e, (enum torus_error_code)error->code, "%s", text);
    else
        fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", text, error->code);
    fail_exchange(e, error->exchange);
}

static void end_with_error(struct torus_client *c, Control__Reply *reply)
{
    struct torus_error e;

    refuse(reply->error, &e);
    if (reply->error->stopping)
        e.code = TORUS_ERROR_LOST;
    if (reply->error->stopping && await_daemon(c, true)) {
        control__reply__free_unpacked(reply, NULL);
        return;
    }
    control__reply__free_unpacked(reply, NULL);
    finish(c, NULL, &e);
}

/* Whether the daemon runs at all has shown: now it may take its time. */
static void note_accepted(struct torus_client *c, const Control__Accepted *accepted)
{
    if (c->id[0] == '\0' && c->phase == PHASE_RUNNING)
        limit(c, c->operation.limit_ms);
    if (c->deadline_ms > c->until_ms) /* it is not the first daemon that it asks */
        c->deadline_ms = c->until_ms;
    copy_text(c->id, sizeof c->id, accepted->id); /* the newest counts */
}

/* Takes over a reply while an operation is under way. */
static void handle(struct torus_client *c, Control__Reply *reply)
{
    const bool is_last = reply->kind_case != CONTROL__REPLY__KIND_ACCEPTED &&
                         reply->kind_case != CONTROL__REPLY__KIND_PROGRESS;
    struct torus_error e;

    if (reply->kind_case == CONTROL__REPLY__KIND_ERROR) {
        end_with_error(c, reply);
    } else if (reply->kind_case == c->operation.expects) {
        finish(c, reply, NULL);
    } else if (is_last || !c->operation.is_exchange) {
        control__reply__free_unpacked(reply, NULL);
        fail(&e, TORUS_ERROR_PROTOCOL,
             "unexpected reply from the daemon at %s; are it and this program (%s) of the same "
             "version?",
             c->connection.path, TORUSD_VERSION);
        break_off(c, &e);
    } else {
        if (reply->kind_case == CONTROL__REPLY__KIND_ACCEPTED)
            note_accepted(c, reply->accepted);
        else
            note_progress(c, reply->progress);
        control__reply__free_unpacked(reply, NULL);
        if (c->operation.progress != NULL)
            report(c);
    }
}

/* ---- An operation ---------------------------------------------------------------------------- */

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

/* With what is left of its timeout. */
static int queue_again(struct torus_client *c, struct torus_error *e)
{
    Control__Request *request = control__request__unpack(NULL, c->request_length, c->request);
    int64_t left = c->until_ms - clock_ms() - CLIENT_GRACE;
    int r;

    if (request == NULL)
        return fail_memory(e);
    Torus__Spec *spec = request->exchange->spec;
    if (spec->timeout_ms > 0 && (left < 1 || (uint64_t)left < spec->timeout_ms))
        spec->timeout_ms = left < 1 ? 1 : (uint64_t)left;
    r = connection_queue(&c->connection, request, e);
    control__request__free_unpacked(request, NULL);
    return r;
}

/* The daemon is not there: perhaps it is now. */
static void ask_again(struct torus_client *c)
{
    struct torus_error e;

    c->retry_ms = NEVER;
    if (connection_reopen(&c->connection, &e) != 0) {
        c->retry_ms = clock_after(RETRY);
        return;
    }
    c->phase = PHASE_RUNNING;
    limit(c, client_limit_ms(c));
    if (queue_again(c, &e) != 0)
        break_off(c, &e);
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
        drop(c);
        return fail(e, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent an unsolicited reply",
                    c->connection.path);
    }
    Control__Request versioned = *request;
    versioned.version = CONTROL_VERSION;
    if (connection_queue(&c->connection, &versioned, e) != 0 ||
        (operation->waits && keep_request(c, &versioned, e) != 0)) {
        drop(c);
        return -1;
    }
    (void)drain(c->cancel_fd); /* meant for what has ended before */
    c->operation = *operation;
    c->phase = PHASE_RUNNING;
    c->progress = (struct torus_progress){.waits_for = ""};
    c->until_ms = NEVER;
    if (operation->waits)
        c->until_ms = clock_after(operation->limit_ms > 0 ? operation->limit_ms : LONGEST_AWAY);
    c->id[0] = c->missing[0] = '\0';
    limit(c, operation->is_exchange ? client_limit_ms(c) : operation->limit_ms);
    c->tick_ms = operation->progress != NULL ? clock_after(TICK) : NEVER;
    watch(c);
    return 0;
}

static bool is_connected(const struct torus_client *c)
{
    return c->phase == PHASE_RUNNING || c->phase == PHASE_CANCELLING;
}

/* Reads and handles what has come. */
static void receive(struct torus_client *c)
{
    struct torus_error e;
    int r = 0;

    for (unsigned i = 0; i < READS && r >= 0; i++) {
        Control__Reply *reply;
        while (is_connected(c) && (r = connection_next(&c->connection, &reply, &e)) > 0)
            handle(c, reply);
        if (!is_connected(c))
            return;
        if (r == 0)
            r = connection_read(&c->connection, &e);
        if (r == 0)
            return;
    }
    if (r < 0)
        break_off(c, &e);
}

bool torus_client_dispatch(struct torus_client *client)
{
    struct torus_error e;

    (void)drain(client->timer_fd);
    if (drain(client->cancel_fd))
        cancel(client);
    if (client->phase == PHASE_AWAY && clock_ms() >= client->retry_ms)
        ask_again(client);
    if (is_connected(client) && connection_flush(&client->connection, &e) != 0)
        break_off(client, &e);
    if (is_connected(client))
        receive(client);
    if (client->phase != PHASE_IDLE && clock_ms() >= client->deadline_ms)
        expire(client);
    if (client->phase != PHASE_IDLE && clock_ms() >= client->tick_ms)
        report(client);
    watch(client);
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
