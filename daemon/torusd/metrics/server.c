/* Happy path: a connection is accepted -> libmicrohttpd reads its request -> on_request() answers -> the connection is
 * closed. libmicrohttpd has no thread of its own: the loop watches its epoll descriptor and calls MHD_run(). */
#include "daemon/torusd/metrics/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/metrics/exposition.h"
#include "daemon/torusd/metrics/metrics.h"
#include "daemon/torusd/metrics/room.h"
#include "proto/elapsed.h"

#define REQUEST_MEMORY 8192u /* of a connection, for its request and the head of its answer */
#define WINDOW_MS 100u       /* of the rate */

/* A connection; `fd` belongs to libmicrohttpd. */
struct connection {
    bool used, ended; /* ended: it has been shut down */
    int fd;
    uint64_t since; /* uv_now() */
};

struct metrics_server {
    struct metrics_view view;
    uv_loop_t *loop;
    struct endpoint endpoint;
    unsigned interface; /* index; 0: none is named */
    char address[ADDRESS_TEXT_SIZE];
    struct MHD_Daemon *http;
    struct listener listener;
    struct reserve reserve;
    uv_poll_t poll;
    uv_timer_t timer;
    struct connection connection[SERVER_CONNECTIONS];
    uint64_t window; /* when the window began in which `accepted` are counted, as uv_now() */
    unsigned accepted;
    unsigned handles; /* open, and the listener */
};

/* --- requests --- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              char *text, size_t length)
{
    struct MHD_Response *response =
        text != NULL ? MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result = MHD_NO;

    if (response == NULL) {
        free(text);
        return MHD_NO; /* closes the connection */
    }
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES &&
        (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
         MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
        result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text)
{
    return answer(connection, status, "text/plain; charset=utf-8", strdup(text), strlen(text));
}

static enum MHD_Result answer_metrics(struct metrics_server *s, struct MHD_Connection *connection)
{
    const bool openmetrics = accept_openmetrics(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
    struct exposition x;
    size_t length;
    char *text;

    s->view.scrapes++;
    exposition_begin(&x, openmetrics);
    metrics_of_node(&x, &s->view);
    metrics_of_links(&x, &s->view);
    metrics_of_routes(&x, &s->view);
    metrics_of_room(&x, &s->view);
    metrics_of_work(&x, &s->view);
    metrics_of_process(&x, &s->view);
    text = exposition_end(&x, &length);
    return answer(connection, MHD_HTTP_OK,
                  openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8",
                  text, length);
}

static enum MHD_Result answer_health(struct metrics_server *s, struct MHD_Connection *connection)
{
    const struct torus_view *torus = view_torus(&s->view);

    if (torus->links_down == 0)
        return answer_text(connection, MHD_HTTP_OK, "whole\n");
    return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, torus->faults);
}

/* A request is answered when its head is there: what may follow is not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *body, size_t *body_length, void **request)
{
    struct metrics_server *s = context;

    (void)version, (void)body, (void)body_length, (void)request;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (strcmp(path, "/metrics") == 0)
        return answer_metrics(s, connection);
    if (strcmp(path, "/healthz") == 0)
        return answer_health(s, connection);
    return answer_text(connection, MHD_HTTP_NOT_FOUND, "there are /metrics and /healthz\n");
}

/* --- connections --- */

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode code)
{
    struct metrics_server *s = context;
    const int fd = fd_of(connection);

    (void)own;
    for (unsigned i = 0; code == MHD_CONNECTION_NOTIFY_CLOSED && i < SERVER_CONNECTIONS; i++)
        if (s->connection[i].used && s->connection[i].fd == fd)
            s->connection[i].used = false;
}

/* Ends a connection: libmicrohttpd then closes it. */
static void end_connection(struct metrics_server *s, struct connection *c)
{
    c->ended = true;
    s->view.dropped++;
    (void)shutdown(c->fd, SHUT_RDWR);
}

static struct connection *oldest(struct metrics_server *s)
{
    struct connection *found = NULL;

    for (struct connection *c = s->connection; c < s->connection + SERVER_CONNECTIONS; c++)
        if (c->used && !c->ended && (found == NULL || c->since < found->since))
            found = c;
    return found;
}

static struct connection *free_place(struct metrics_server *s)
{
    for (struct connection *c = s->connection; c < s->connection + SERVER_CONNECTIONS; c++)
        if (!c->used)
            return c;
    return NULL;
}

static void on_timer(uv_timer_t *timer);

/* Lets libmicrohttpd work, and sets the time when it must do so again. */
static void work(struct metrics_server *s)
{
    MHD_UNSIGNED_LONG_LONG wait = 0;
    uint64_t next = UINT64_MAX;

    (void)MHD_run(s->http);
    const struct connection *first = oldest(s);
    if (first != NULL) {
        const uint64_t at = first->since + SERVER_TIME_MS, now = uv_now(s->loop);
        next = elapsed(now, at);
    }
    if (MHD_get_timeout(s->http, &wait) == MHD_YES && wait < next)
        next = wait;
    if (next == UINT64_MAX)
        (void)uv_timer_stop(&s->timer);
    else
        (void)uv_timer_start(&s->timer, on_timer, next, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct metrics_server *s = timer->data;
    struct connection *c;

    while ((c = oldest(s)) != NULL && elapsed(c->since, uv_now(s->loop)) >= SERVER_TIME_MS)
        end_connection(s, c);
    work(s);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    work(poll->data);
}

static void limit_rate(struct metrics_server *s)
{
    const uint64_t now = uv_now(s->loop);

    if (elapsed(s->window, now) >= WINDOW_MS) {
        s->window = now;
        s->accepted = 0;
    }
    if (++s->accepted >= SERVER_RATE * WINDOW_MS / 1000)
        listener_pause(&s->listener, elapsed(now, s->window + WINDOW_MS));
}

static void on_accepted(void *context, int fd)
{
    struct metrics_server *s = context;
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    struct connection *c = free_place(s);

    limit_rate(s);
    if (c == NULL && oldest(s) != NULL) {
        end_connection(s, oldest(s));
        (void)MHD_run(s->http);
        c = free_place(s);
    }
    if (c == NULL || getpeername(fd, (struct sockaddr *)&peer, &length) != 0) {
        s->view.dropped++;
        (void)close(fd);
        reserve_fill(&s->reserve, 1);
        return;
    }
    *c = (struct connection){.used = true, .fd = fd, .since = uv_now(s->loop)};
    /* It takes the descriptor over, also if it fails. */
    if (MHD_add_connection(s->http, fd, (struct sockaddr *)&peer, length) != MHD_YES)
        c->used = false;
    reserve_fill(&s->reserve, 1);
    work(s);
}

/* --- beginning and end --- */

/* Sets options of the listening socket. */
static int prepare(void *context, int fd, sa_family_t family)
{
    const struct metrics_server *s = context;
    const int on = 1, off = 0;
    const char *interface = s->endpoint.interface;

    /* The address may come later, with its interface. */
    if (setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on) != 0)
        return -1;
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
        return -1;
    if (!s->endpoint.bound)
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                      (socklen_t)(strlen(interface) + 1));
}

static void release(struct metrics_server *s)
{
    if (--s->handles > 0)
        return;
    MHD_stop_daemon(s->http);
    reserve_close(&s->reserve);
    free(s);
}

static void on_listener_closed(void *context)
{
    release(context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static int listen_here(struct metrics_server *s, struct error *e)
{
    struct sockaddr_storage address = s->endpoint.literal;
    socklen_t length = sizeof address;
    char text[200];

    s->interface = s->endpoint.interface[0] != '\0' ? interface_index(s->endpoint.interface) : 0;
    if (s->endpoint.interface[0] != '\0' && s->interface == 0)
        return error_set(e, ERROR_IO, "there is no interface %s", s->endpoint.interface);
    endpoint_complete(&s->endpoint, s->interface, &address);
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .prepare = prepare,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    if (listener_open(&s->listener, s->loop, (struct sockaddr *)&address,
                      address_length((struct sockaddr *)&address)) != 0)
        return error_set(e, ERROR_IO, "%s",
                         errno == EADDRINUSE
                             ? "another program listens there: choose another port"
                             : socket_failure(errno, s->endpoint.interface, text, sizeof text));
    if (getsockname(s->listener.fd, (struct sockaddr *)&address, &length) == 0)
        address_format((struct sockaddr *)&address, s->address, sizeof s->address);
    return 0;
}

static void on_room_closed(void *context)
{
    release(context);
}

static int start_http(struct metrics_server *s, struct error *e)
{
    const union MHD_DaemonInfo *info;

    s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request,
                               s, MHD_OPTION_CONNECTION_LIMIT, SERVER_CONNECTIONS + 1,
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY,
                               MHD_OPTION_CONNECTION_TIMEOUT, SERVER_TIME_MS / 1000,
                               MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
                               MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    info = s->http != NULL ? MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info == NULL || uv_poll_init(s->loop, &s->poll, info->epoll_fd) != 0) {
        if (s->http != NULL)
            MHD_stop_daemon(s->http);
        return error_set(e, ERROR_IO, "libmicrohttpd cannot start");
    }
    (void)uv_timer_init(s->loop, &s->timer);
    s->poll.data = s->timer.data = s;
    (void)uv_poll_start(&s->poll, UV_READABLE, on_poll);
    s->handles = 2;
    return 0;
}

/* Begins to look at the room on the data roots. */
static int watch_room(struct metrics_server *s, const struct roots *roots, struct error *e)
{
    const struct room_setup setup = {.loop = s->loop,
                                     .ask = fstatvfs,
                                     .every_ms = ROOM_EVERY_MS,
                                     .keep_ms = ROOM_KEEP_MS,
                                     .closed = on_room_closed,
                                     .context = s};

    s->view.room = room_open(&setup);
    if (s->view.room == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    s->handles++;
    room_of(s->view.room, roots);
    return 0;
}

static void close_handles(struct metrics_server *s)
{
    if (s->view.room != NULL)
        room_close(s->view.room);
    (void)uv_poll_stop(&s->poll);
    uv_close((uv_handle_t *)&s->poll, on_handle_closed);
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
}

struct metrics_server *metrics_open(const struct metrics_setup *setup, struct error *e)
{
    struct metrics_server *s = calloc(1, sizeof *s);
    struct timespec now;

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for metrics");
        return NULL;
    }
    s->view = setup->view;
    s->loop = setup->loop;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        s->view.started = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    if (endpoint_parse_own(setup->address, &s->endpoint, e) != 0 || start_http(s, e) != 0) {
        (void)error_wrap(e, "metrics");
        free(s);
        return NULL;
    }
    if (watch_room(s, setup->roots, e) != 0 || listen_here(s, e) != 0) {
        (void)error_wrap(e, "metrics %s", setup->address);
        close_handles(s);
        return NULL;
    }
    s->handles++;
    reserve_fill(&s->reserve, 1);
    log_info("metrics at http://%s/metrics", s->address);
    return s;
}

const char *metrics_address(const struct metrics_server *s)
{
    return s->address;
}

void metrics_roots_changed(struct metrics_server *s, const struct roots *roots)
{
    if (s != NULL)
        room_of(s->view.room, roots);
}

void metrics_close(struct metrics_server *s)
{
    if (s == NULL)
        return;
    close_handles(s);
    listener_close(&s->listener);
}
