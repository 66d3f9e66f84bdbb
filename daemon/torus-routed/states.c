#include "daemon/torus-routed/states.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "proto/routes.h"
#include "proto/unpack.h"

#define RETRY_MS 100u

static void connect_again(struct states *s);

static void on_closed(uv_handle_t *handle)
{
    struct states *s = handle->data;

    s->opened = false;
    frame_stream_free(&s->in);
    if (!s->closing)
        connect_again(s);
}

/* Ends the connection; another one follows. `why` NULL: the daemon does not run (yet). */
static void end(struct states *s, const char *why)
{
    if (!s->opened || uv_is_closing((uv_handle_t *)&s->pipe))
        return;
    if (s->connected)
        s->lost_at = uv_now(s->loop);
    if (why != NULL && (s->connected || !s->complained))
        log_warning("no link states from torusd (%s): %s; the routes stay as they are", s->path,
                    why);
    s->complained = true;
    s->connected = false;
    uv_close((uv_handle_t *)&s->pipe, on_closed);
}

/* --- messages --- */

static int take_torus(struct states *s, const Control__LinkStates *states, struct error *e)
{
    uint32_t *up;
    bool *forwards;
    uint64_t *confirmed;

    for (size_t i = 0; i < states->n_graph; i++)
        if (graph_of_edges(states->graph[i]->edge, states->graph[i]->n_edge / 2, e) == NULL)
            return -1;
    if (torus_parse_named(&s->torus, states->dims, e) != 0)
        return -1;
    if (states->rank >= s->torus.nodes)
        return error_set(e, ERROR_PROTOCOL, "there is no node %u in %s", states->rank,
                         states->dims);
    up = calloc(s->torus.nodes, sizeof *up);
    forwards = calloc(s->torus.nodes, sizeof *forwards);
    confirmed = calloc(s->torus.nodes, sizeof *confirmed);
    if (up == NULL || forwards == NULL || confirmed == NULL) {
        free(up);
        free(forwards);
        free(confirmed);
        return error_set(e, ERROR_MEMORY, "out of memory for %u nodes", s->torus.nodes);
    }
    free(s->up);
    free(s->forwards);
    free(s->confirmed);
    s->up = up;
    s->forwards = forwards;
    s->confirmed = confirmed;
    s->rank = states->rank;
    return 0;
}

static int take(struct states *s, const Control__LinkStates *states, struct error *e)
{
    if (states->all && take_torus(s, states, e) != 0)
        return -1;
    if (s->up == NULL || states->n_node != states->n_up ||
        (states->n_forwards != 0 && states->n_forwards != states->n_node) ||
        states->n_confirmed_node != states->n_confirmed)
        return error_set(e, ERROR_PROTOCOL, "its message is not complete");
    for (size_t i = 0; i < states->n_node; i++) {
        if (states->node[i] >= s->torus.nodes)
            return error_set(e, ERROR_PROTOCOL, "there is no node %u", states->node[i]);
        s->up[states->node[i]] = states->up[i];
        s->forwards[states->node[i]] = states->n_forwards == 0 || states->forwards[i] != 0;
    }
    for (size_t i = 0; i < states->n_confirmed_node; i++) {
        if (states->confirmed_node[i] >= s->torus.nodes || states->confirmed_node[i] == s->rank)
            return error_set(e, ERROR_PROTOCOL, "node %u cannot have confirmed link states",
                             states->confirmed_node[i]);
        s->confirmed[states->confirmed_node[i]] = states->confirmed[i];
    }
    s->confirms = states->confirms;
    s->renamed = false;
    for (size_t port = 0; port < states->n_interface && port < TORUS_MAX_PORTS; port++) {
        const char *name = states->interface[port];
        if (strlen(name) >= sizeof s->interface[port] || strcmp(name, s->interface[port]) == 0)
            continue;
        (void)strcpy(s->interface[port], name);
        s->renamed = true;
    }
    return 0;
}

/* Takes a reply. Returns 0, or -1 with *e. */
static int take_reply(struct states *s, const uint8_t *head, size_t length, bool *all,
                      struct error *e)
{
    Control__Reply *reply = unpack_bounded(&control__reply__descriptor, head, length, UNPACK_MOST);
    int rc;

    if (reply == NULL)
        return error_set(e, ERROR_PROTOCOL, "its bytes are not a reply");
    *all = false;
    if (reply->kind_case == CONTROL__REPLY__KIND_LINK_STATES) {
        *all = reply->link_states->all;
        rc = take(s, reply->link_states, e);
    } else if (reply->kind_case == CONTROL__REPLY__KIND_ERROR) {
        rc = error_set(e, ERROR_REFUSED, "%.300s", reply->error->text);
    } else {
        rc = error_set(e, ERROR_PROTOCOL, "it gives another answer");
    }
    control__reply__free_unpacked(reply, NULL);
    return rc;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct states *s = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&s->in, 4096, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct states *s = stream->data;
    const uint8_t *head;
    struct error e;
    size_t size;
    bool all = false;
    int more;

    (void)buffer;
    if (length < 0) {
        end(s, length == UV_EOF ? "it has closed the connection" : uv_strerror((int)length));
        return;
    }
    frame_stream_added(&s->in, (size_t)length);
    while ((more = frame_stream_next(&s->in, FRAME_MAX_REPLY, &head, &size, &e)) > 0) {
        if (take_reply(s, head, size, &all, &e) != 0) {
            more = -1;
            break;
        }
        if (!s->connected)
            log_info("hears the link states from torusd (%s)", s->path);
        s->connected = true;
        s->complained = false;
        s->heard(s->context, all);
        if (uv_is_closing((uv_handle_t *)&s->pipe))
            return;
    }
    if (more < 0)
        end(s, e.text);
}

/* --- the connection --- */

static void on_written(uv_write_t *request, int status)
{
    struct states *s = request->data;

    free(s->request);
    s->request = NULL;
    if (status != 0)
        end(s, uv_strerror(status));
}

static void on_connected(uv_connect_t *request, int status)
{
    struct states *s = request->data;
    Control__Request message = CONTROL__REQUEST__INIT;
    Control__WatchLinksRequest watch = CONTROL__WATCH_LINKS_REQUEST__INIT;
    size_t length = 0;
    uv_buf_t buffer;

    if (status != 0) {
        end(s, status == UV_ECANCELED ? NULL : uv_strerror(status));
        return;
    }
    message.version = CONTROL_VERSION;
    message.kind_case = CONTROL__REQUEST__KIND_WATCH_LINKS;
    message.watch_links = &watch;
    s->request = frame_pack(&message.base, &length);
    buffer = uv_buf_init((char *)s->request, (unsigned)length);
    s->writing.data = s;
    if (s->request == NULL ||
        uv_write(&s->writing, (uv_stream_t *)&s->pipe, &buffer, 1, on_written) != 0 ||
        uv_read_start((uv_stream_t *)&s->pipe, on_room, on_read) != 0)
        end(s, "out of memory");
}

struct confirmation {
    uv_write_t write;
    struct states *states;
    uint8_t *frame;
};

static void on_confirmed(uv_write_t *write, int status)
{
    struct confirmation *c = write->data;

    if (status != 0 && status != UV_ECANCELED)
        end(c->states, uv_strerror(status));
    free(c->frame);
    free(c);
}

void states_confirm(struct states *s, uint64_t digest, bool forwards, bool again)
{
    Control__Request message = CONTROL__REQUEST__INIT;
    Control__RoutesConfirmed confirmed = CONTROL__ROUTES_CONFIRMED__INIT;
    Control__RouteCounts counts = CONTROL__ROUTE_COUNTS__INIT;
    uint32_t hosts[ROUTE_STATES] = {0};
    struct confirmation *c;
    size_t length = 0;
    uv_buf_t buffer;

    if (!s->connected || !s->confirms ||
        (!again && digest == s->said && forwards == s->said_forwards))
        return;
    message.version = CONTROL_VERSION;
    message.kind_case = CONTROL__REQUEST__KIND_ROUTES_CONFIRMED;
    message.routes_confirmed = &confirmed;
    confirmed.digest = digest;
    confirmed.forwards = forwards;
    s->count(s->context, &counts, hosts);
    counts.hosts = hosts;
    counts.n_hosts = ROUTE_STATES;
    confirmed.counts = &counts;
    c = calloc(1, sizeof *c);
    if (c == NULL || (c->frame = frame_pack(&message.base, &length)) == NULL) {
        free(c);
        end(s, "out of memory"); /* then the daemon withdraws what it was told before */
        return;
    }
    s->said = digest;
    s->said_forwards = forwards;
    c->states = s;
    c->write.data = c;
    buffer = uv_buf_init((char *)c->frame, (unsigned)length);
    if (uv_write(&c->write, (uv_stream_t *)&s->pipe, &buffer, 1, on_confirmed) == 0)
        return;
    free(c->frame);
    free(c);
    end(s, "out of memory");
}

static void on_retry(uv_timer_t *timer)
{
    struct states *s = timer->data;

    if (s->opened || s->closing || uv_pipe_init(s->loop, &s->pipe, 0) != 0)
        return;
    s->opened = true;
    s->said = 0;
    s->said_forwards = false;
    s->pipe.data = s->connecting.data = s;
    uv_pipe_connect(&s->connecting, &s->pipe, s->path, on_connected);
}

static void connect_again(struct states *s)
{
    (void)uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
}

void states_start(struct states *s)
{
    (void)uv_timer_init(s->loop, &s->retry);
    s->retry.data = s;
    s->lost_at = uv_now(s->loop);
    on_retry(&s->retry);
}

void states_stop(struct states *s)
{
    s->closing = true;
    uv_close((uv_handle_t *)&s->retry, NULL);
    end(s, NULL);
}

void states_free(struct states *s)
{
    frame_stream_free(&s->in);
    free(s->request);
    free(s->up);
    free(s->forwards);
    free(s->confirmed);
}
