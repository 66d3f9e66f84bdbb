/* Happy path of a client: accepted -> requests read one after the other -> replies written -> end
 * of file -> closed. Failure modes: what it sends is not a request (it is told so, then closed); it
 * does not read its replies (no more of its requests are read, nor answered); too many clients (it
 * is told so, then closed); it goes away (its exchange is cancelled). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/control/internal.h"

#define MAX_REQUEST 65536u
#define REPLIES_MOST (256u * 1024u) /* bytes that wait for a client to read them */
#define REFUSAL_MS 1000
#define CLIENTS_MOST 256u
#define CLIENTS_SHARE 4u /* of the descriptors that this process may have: one in so many */

struct reply_write {
    uv_write_t request;
    uint8_t *frame;
};

static void server_release(struct control_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    free(s);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct control_client *client = handle->data;
    struct control_server *s = client->server;

    if (--client->handles > 0)
        return;
    for (struct control_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    control_candidates_forget(client);
    s->client_count--;
    frame_stream_free(&client->in);
    free(client);
    reserve_fill(&s->reserve, s->closing ? 0 : 1);
    server_release(s);
}

static void close_client(struct control_client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    control_exchange_abandon(client);
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
    uv_close((uv_handle_t *)&client->progress, on_client_closed);
}

/* Replies wait that the client does not read. */
static bool is_behind(const struct control_client *client)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&client->pipe) > REPLIES_MOST;
}

static void answer_requests(struct control_client *client);

static void on_reply_written(uv_write_t *request, int status)
{
    struct reply_write *w = request->data;
    struct control_client *client = request->handle->data;

    free(w->frame);
    free(w);
    if (status != 0 || (client->leaving && client->exchange == NULL))
        close_client(client);
    else if (client->held && !is_behind(client))
        answer_requests(client);
}

void control_reply(struct control_client *client, const Control__Reply *reply)
{
    struct reply_write *w;
    size_t length = 0;

    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    if (reply->kind_case == CONTROL__REPLY__KIND_PROGRESS && is_behind(client))
        return; /* the next one says more */
    w = calloc(1, sizeof *w);
    if (w != NULL)
        w->frame = frame_pack(&reply->base, &length);
    if (w != NULL && w->frame != NULL) {
        uv_buf_t buffer = uv_buf_init((char *)w->frame, (unsigned)length);
        w->request.data = w;
        if (uv_write(&w->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_reply_written) == 0)
            return;
        free(w->frame);
    }
    free(w);
    close_client(client); /* better no answer than half of one */
}

void control_reply_error(struct control_client *client, const struct error *e, const char *id)
{
    Control__Error error = CONTROL__ERROR__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    error.code = (uint32_t)e->code;
    error.text = (char *)(uintptr_t)e->text;
    error.exchange = (char *)(uintptr_t)(id != NULL ? id : "");
    reply.kind_case = CONTROL__REPLY__KIND_ERROR;
    reply.error = &error;
    control_reply(client, &reply);
}

static void refuse_client(struct control_client *client, const struct error *e)
{
    log_warning("a control client was rejected: %s", e->text);
    control_reply_error(client, e, NULL);
    close_client(client);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct control_client *client = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&client->in, 1024, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct control_client *client = stream->data;

    (void)buffer;
    if (length == UV_EOF && client->exchange != NULL) {
        /* It may still want to know how its exchange ends; if not, the answer cannot be written. */
        client->leaving = true;
        (void)uv_read_stop(stream);
        exchange_cancel(client->exchange);
        return;
    }
    if (length < 0) {
        close_client(client);
        return;
    }
    if (client->refused)
        return;
    frame_stream_added(&client->in, (size_t)length);
    answer_requests(client);
}

/* One request after the other, as long as the replies are read. */
static void answer_requests(struct control_client *client)
{
    const uint8_t *head;
    size_t size;
    struct error e;
    int more = 0;

    while (!is_behind(client) &&
           (more = frame_stream_next(&client->in, MAX_REQUEST, &head, &size, &e)) > 0) {
        Control__Request *request = control__request__unpack(NULL, size, head);
        if (request == NULL || request->kind_case == CONTROL__REQUEST__KIND__NOT_SET) {
            if (request != NULL)
                control__request__free_unpacked(request, NULL);
            (void)error_set(&e, ERROR_PROTOCOL,
                            "not a request that this daemon knows; is it of another version?");
            refuse_client(client, &e);
            return;
        }
        control_request(client, request);
        control__request__free_unpacked(request, NULL);
        if (uv_is_closing((uv_handle_t *)&client->pipe))
            return;
    }
    if (more < 0) {
        refuse_client(client, &e);
    } else if (is_behind(client)) {
        client->held = true;
        (void)uv_read_stop((uv_stream_t *)&client->pipe);
    } else if (client->held) {
        client->held = false;
        if (uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0)
            close_client(client);
    }
}

static void on_refusal_over(uv_timer_t *timer)
{
    close_client(timer->data);
}

/* Told why, and closed when it has read that: at once it might not, as it is still sending. */
static void turn_away(struct control_client *client, const struct error *e)
{
    const struct control_server *s = client->server;

    if (s->reserve.held == 0 || s->client_count > 2 * s->most_clients ||
        uv_timer_start(&client->progress, on_refusal_over, REFUSAL_MS, 0) != 0) {
        refuse_client(client, e);
        return;
    }
    log_warning("a control client was rejected: %s", e->text);
    client->refused = true;
    control_reply_error(client, e, NULL);
    if (!uv_is_closing((uv_handle_t *)&client->pipe) &&
        uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0)
        close_client(client);
}

/* At most a share of the descriptors: links and files need theirs. */
static unsigned most_clients(void)
{
    struct rlimit limit;
    rlim_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CLIENTS_MOST;
    share = limit.rlim_cur / CLIENTS_SHARE;
    return share < CLIENTS_MOST ? (unsigned)share : CLIENTS_MOST;
}

static void on_accepted(void *context, int fd)
{
    struct control_server *s = context;
    struct control_client *client = s->closing ? NULL : calloc(1, sizeof *client);
    struct error e;

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->server = s;
    client->handles = 2;
    (void)uv_pipe_init(s->set.loop, &client->pipe, 0);
    (void)uv_timer_init(s->set.loop, &client->progress);
    client->pipe.data = client->progress.data = client;
    client->next = s->clients;
    s->clients = client;
    s->client_count++;
    if (uv_pipe_open(&client->pipe, fd) != 0) {
        (void)close(fd);
        close_client(client);
    } else if (s->client_count > s->most_clients || s->reserve.held == 0) {
        if (s->client_count > s->most_clients)
            (void)error_set(&e, ERROR_REFUSED,
                            "%u clients are connected to this daemon, which is the most it takes; "
                            "try again when some have gone",
                            s->most_clients);
        else
            (void)error_set(&e, ERROR_REFUSED,
                            "this daemon has no file descriptors left; try again, or raise its "
                            "limit (LimitNOFILE, ulimit -n)");
        turn_away(client, &e);
    } else if (uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0) {
        close_client(client);
    }
}

/* Does anybody answer at this socket? */
static bool is_served(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served;

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    served = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return served;
}

static void on_listener_closed(void *context)
{
    struct control_server *s = context;

    s->listener_closed = true;
    server_release(s);
}

/* Is the path free? What a crash has left there is removed. */
static int make_room(const char *path, struct error *e)
{
    struct stat st;

    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return error_set(e, ERROR_USAGE, "control socket %s: a path of at most %zu bytes", path,
                         sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(e, ERROR_REFUSED, "%s exists and is not a socket", path);
    if (is_served(path))
        return error_set(e, ERROR_REFUSED,
                         "another daemon serves the control socket %s; give this one a different "
                         "--control",
                         path);
    (void)unlink(path);
    return 0;
}

struct control_server *control_open(const struct control_setup *setup, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct control_server *s;

    if (make_room(setup->path, e) != 0)
        return NULL;
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    s->set = *setup;
    s->started = uv_hrtime();
    s->most_clients = most_clients();
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    strncpy(address.sun_path, setup->path, sizeof address.sun_path - 1);
    mode_t before = umask(0117); /* the owner and its group */
    int result =
        listener_open(&s->listener, setup->loop, (struct sockaddr *)&address, sizeof address);
    (void)umask(before);
    if (result != 0) {
        (void)error_set(e, ERROR_IO, "control socket %s: %s", setup->path, strerror(errno));
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

void control_planned(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_candidates_again(c);
}

void control_close(struct control_server *s)
{
    s->closing = true;
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        close_client(c);
    (void)unlink(s->set.path);
    listener_close(&s->listener);
}
