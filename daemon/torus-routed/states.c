#include "daemon/torus-routed/states.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/net/unix_socket.h"
#include "proto/routes.h"
#include "proto/unpack.h"

#define RETRY_MS 100u

static void on_retry(uv_timer_t *timer);

/* `why` "": torus-routed has ended the connection. */
static void complain(struct states *s, const char *why)
{
    if (why[0] != '\0' && (s->connected || !s->complained))
        log_warning("no link states from torusd (%s): %s; the routes stay as they are", s->path,
                    why);
    s->complained = true;
}

static void connect_again(struct states *s)
{
    (void)uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
}

static void on_closed(struct framed *framed)
{
    struct states *s = framed->context;

    if (s->connected)
        s->lost_at = uv_now(s->loop);
    complain(s, framed->why);
    s->opened = s->connected = false;
    if (!s->closing)
        connect_again(s);
}

/* --- messages --- */

static int take_torus(struct states *s, const Control__LinkStates *states, struct error *e)
{
    uint32_t *up, *kbit;
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
    kbit = calloc((size_t)s->torus.nodes * torus_ports(&s->torus), sizeof *kbit);
    if (up == NULL || kbit == NULL || forwards == NULL || confirmed == NULL) {
        free(up);
        free(kbit);
        free(forwards);
        free(confirmed);
        return error_set(e, ERROR_MEMORY, "out of memory for %u nodes", s->torus.nodes);
    }
    states_free(s);
    s->up = up;
    s->kbit = kbit;
    s->forwards = forwards;
    s->confirmed = confirmed;
    s->rank = states->rank;
    return 0;
}

/* What a message says of the links of its node number `i`. An older daemon says nothing: then all links count as
 * alike. */
static void take_rates(struct states *s, const Control__LinkStates *states, size_t i)
{
    const size_t ports = torus_ports(&s->torus);

    for (size_t port = 0; port < ports; port++)
        s->kbit[states->node[i] * ports + port] =
            states->n_rate > 0 ? states->rate[i * ports + port] : 0;
}

static int take(struct states *s, const Control__LinkStates *states, struct error *e)
{
    if (states->all && take_torus(s, states, e) != 0)
        return -1;
    if (s->up == NULL || states->n_node != states->n_up ||
        (states->n_forwards != 0 && states->n_forwards != states->n_node) ||
        states->n_confirmed_node != states->n_confirmed ||
        (states->n_rate != 0 && states->n_rate != states->n_node * torus_ports(&s->torus)))
        return error_set(e, ERROR_PROTOCOL, "its message is not complete");
    for (size_t i = 0; i < states->n_node; i++) {
        if (states->node[i] >= s->torus.nodes)
            return error_set(e, ERROR_PROTOCOL, "there is no node %u", states->node[i]);
        s->up[states->node[i]] = states->up[i];
        take_rates(s, states, i);
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
    unpack_free(reply);
    return rc;
}

static void on_took(struct framed *framed, const uint8_t *head, size_t size)
{
    struct states *s = framed->context;
    struct error e;
    bool all = false;

    if (take_reply(s, head, size, &all, &e) != 0) {
        framed_end(framed, e.text);
        return;
    }
    if (!s->connected)
        log_info("receiving the link states from torusd (%s)", s->path);
    s->connected = true;
    s->complained = false;
    s->heard(s->context, all);
}

/* --- the connection --- */

void states_confirm(struct states *s, uint64_t digest, bool forwards, bool again)
{
    Control__Request message = CONTROL__REQUEST__INIT;
    Control__RoutesConfirmed confirmed = CONTROL__ROUTES_CONFIRMED__INIT;
    Control__RouteCounts counts = CONTROL__ROUTE_COUNTS__INIT;
    uint32_t hosts[ROUTE_STATES] = {0};

    if (!s->connected || !s->confirms ||
        (!again && digest == s->said && forwards == s->said_forwards))
        return;
    message.version = CONTROL_VERSION;
    message.kind_case = CONTROL__REQUEST__KIND_ROUTES_CONFIRMED;
    message.routes_confirmed = &confirmed;
    confirmed.digest = digest;
    confirmed.forwards = forwards;
    confirmed.rates = true;
    s->count(s->context, &counts, hosts);
    counts.hosts = hosts;
    counts.n_hosts = ROUTE_STATES;
    confirmed.counts = &counts;
    s->said = digest;
    s->said_forwards = forwards;
    framed_send(&s->framed, &message.base); /* if it fails, the daemon withdraws what it was told */
}

static void watch(struct states *s)
{
    Control__Request message = CONTROL__REQUEST__INIT;
    Control__WatchLinksRequest watch = CONTROL__WATCH_LINKS_REQUEST__INIT;

    message.version = CONTROL_VERSION;
    message.kind_case = CONTROL__REQUEST__KIND_WATCH_LINKS;
    message.watch_links = &watch;
    framed_send(&s->framed, &message.base);
}

static void on_retry(uv_timer_t *timer)
{
    struct states *s = timer->data;
    const int fd = s->closing ? -1 : local_connect(s->path, SOCK_STREAM);

    if (s->closing)
        return;
    if (fd < 0) {
        complain(s, uv_strerror(fd));
        connect_again(s);
        return;
    }
    s->opened = true;
    s->said = 0;
    s->said_forwards = false;
    s->framed = (struct framed){
        .most = FRAME_MAX_REPLY, .took = on_took, .closed = on_closed, .context = s};
    if (framed_open(&s->framed, s->loop, fd) == 0)
        watch(s);
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
    if (s->opened)
        framed_close(&s->framed);
}

void states_free(struct states *s)
{
    free(s->up);
    free(s->kbit);
    free(s->forwards);
    free(s->confirmed);
}
