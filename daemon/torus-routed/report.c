#include "daemon/torus-routed/report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torus-routed/installer.h"
#include "proto/elapsed.h"
#include "proto/routes.h"
#include "proto/text.h"

#define WITHOUT_SIZE 400u
#define WHY_SIZE 500u

static json_t *ip_json(const struct ip *ip)
{
    char text[INET6_ADDRSTRLEN];

    if (ip->family == 0)
        return json_null();
    return json_string(inet_ntop(ip->family, &ip->v6, text, sizeof text));
}

/* Writes which links and nodes are down, for people; "" if none is. */
static void describe_down(const struct route_planner *p, char text[WITHOUT_SIZE])
{
    const struct torus *t = p->torus;
    struct damage damage;
    struct error e;

    text[0] = '\0';
    if (damage_init(&damage, t, &e) != 0)
        return;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        unsigned links = 0;
        for (unsigned port = 0; port < torus_ports(t); port++) {
            links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE && (p->up[rank] & 1u << port) == 0)
                damage_add_link(&damage, rank, port);
        }
        if (links > 0 && p->up[rank] == 0)
            damage_add_node(&damage, rank);
    }
    (void)damage_describe(&damage, text, WITHOUT_SIZE);
    damage_free(&damage);
}

static void write_why(const struct route_planner *p, uint32_t to, uint32_t direct, const char *down,
                      char why[WHY_SIZE])
{
    const struct planner_route *r = &p->route[to];
    uint32_t usual = torus_distance(p->torus, p->self, to);

    if (r->hops == PLANNER_FAR && direct != 0)
        (void)snprintf(why, WHY_SIZE,
                       "no links that are up lead there (torusd may not run there), but the cable "
                       "has a carrier: it is used for this host alone; down: %.300s",
                       down);
    else if (r->hops == PLANNER_FAR && r->linked)
        (void)snprintf(why, WHY_SIZE,
                       "the hosts on the way do not forward: torus-routed does not run there, or "
                       "cannot set what it needs");
    else if (r->hops == PLANNER_FAR)
        (void)snprintf(why, WHY_SIZE, "no links that are up lead there; down: %s", down);
    else if (r->ports != r->nearer)
        (void)snprintf(why, WHY_SIZE, "links have changed: until all hosts know, %s",
                       r->ports == 0 ? "packets wait, since they could go round in a loop"
                                     : "only paths that cannot become loops are used");
    else if (r->hops > usual)
        (void)snprintf(why, WHY_SIZE, "longer by %u than if all links were up; down: %s",
                       r->hops - usual,
                       down[0] != '\0' ? down : "none, but some hosts do not forward");
    else if (p->rated)
        (void)snprintf(why, WHY_SIZE, "what links carry decides: some are slower than others");
    else
        (void)snprintf(why, WHY_SIZE, "shortest");
}

/* Returns what torusd says that a link carries away from this host, in Mbit/s. */
static json_t *rate_json(const struct route_planner *p, unsigned port)
{
    const uint32_t kbit = p->kbit[(size_t)p->self * torus_ports(p->torus) + port];

    return kbit > 0 ? json_real(kbit / 1000.0) : json_null();
}

/* `used`: those of the ports that packets take now. */
static json_t *next_hops_json(const struct report_of *r, uint32_t to, uint32_t ports, uint32_t used)
{
    const struct torus *t = r->planner->torus;
    json_t *list = json_array();
    char name[TORUS_PORT_NAME_SIZE];

    for (unsigned port = 0; port < torus_ports(t); port++)
        if ((ports & 1u << port) != 0)
            (void)json_array_append_new(
                list,
                json_pack(
                    "{s:s, s:s, s:s, s:b, s:i, s:o}", "port",
                    torus_port_name(t, r->planner->self, port, name), "interface",
                    r->installer->cable[port].name, "host",
                    r->hosts->host[torus_neighbour(t, r->planner->self, port)].name, "used",
                    (used & 1u << port) != 0, "weight",
                    (int)((used & 1u << port) != 0 ? installer_weight(r->installer, to, port) : 0),
                    "mbit", rate_json(r->planner, port)));
    return list;
}

static json_t *route_json(const struct report_of *r, struct kernel_query *a, uint32_t to,
                          const char *down)
{
    const struct planner_route *route = &r->planner->route[to];
    const struct host_entry *host = &r->hosts->host[to];
    const uint32_t direct = installer_direct(r->installer, to);
    const uint32_t used = installer_used(r->installer, to) | direct;
    struct kernel_answer answer = {.ours = true};
    const bool diverted = kernel_query_diverted(a, to, &answer);
    char why[WHY_SIZE];

    write_why(r->planner, to, direct, down, why);
    if (diverted)
        (void)snprintf(why, sizeof why, "%.400s", answer.text);
    return json_pack("{s:i, s:s, s:o, s:o, s:s, s:o, s:o, s:s, s:f, s:b, s:o}", "node", (int)to,
                     "host", host->name, "address", ip_json(&host->ip[0]), "address6",
                     ip_json(&host->ip[1]), "state",
                     route_state_name(installer_state(r->installer, to, diverted)), "hops",
                     route->hops == PLANNER_FAR ? json_null() : json_integer(route->hops), "ways",
                     next_hops_json(r, to, route->ports | direct, used), "why", why, "seconds",
                     (double)elapsed(route->since, r->now) / 1000.0, "in_kernel",
                     installer_knows(r->installer, to), "mend",
                     diverted && answer.mend[0] != '\0' ? json_string(answer.mend) : json_null());
}

/* What keeps routes from being set, or from being used. */
static json_t *problem_json(const struct report_of *r, const struct kernel_query *a)
{
    if (r->problem[0] != '\0')
        return json_string(r->problem);
    if (a->diverted == 0)
        return json_null();
    return json_sprintf("the kernel does not use the routes to %u %s: %s%s%s", a->diverted,
                        text_plural(a->diverted, "host", "hosts"), a->first.text,
                        a->first.mend[0] != '\0' ? "; to mend it: " : "", a->first.mend);
}

json_t *report_make(const struct report_of *r)
{
    json_t *value = json_pack("{s:b}", "daemon", r->states->connected), *routes = json_array();
    char down[WITHOUT_SIZE] = "", dims[TORUS_TEXT_SIZE];
    struct kernel_query query = {.works = false};

    (void)json_object_set_new(
        value, "daemon_lost_seconds",
        r->states->connected ? json_null()
                             : json_real((double)elapsed(r->states->lost_at, r->now) / 1000.0));
    if (r->planner != NULL) {
        const struct host_entry *self = &r->hosts->host[r->planner->self];
        describe_down(r->planner, down);
        kernel_query_begin(&query, r->installer);
        for (uint32_t to = 0; to < r->hosts->count; to++)
            if (to != r->planner->self)
                (void)json_array_append_new(routes, route_json(r, &query, to, down));
        kernel_query_end(&query);
        (void)json_object_set_new(value, "torus",
                                  json_string(torus_format(r->planner->torus, dims)));
        (void)json_object_set_new(value, "host", json_string(self->name));
        (void)json_object_set_new(value, "address", ip_json(&self->ip[0]));
        (void)json_object_set_new(value, "address6", ip_json(&self->ip[1]));
        (void)json_object_set_new(value, "settled", json_boolean(r->planner->converged));
        (void)json_object_set_new(
            value, "waited_seconds",
            r->planner->converged ? json_real((double)r->planner->waited / 1000.0) : json_null());
        (void)json_object_set_new(value, "settle_seconds",
                                  json_real((double)r->planner->convergence_time / 1000.0));
    }
    (void)json_object_set_new(value, "problem", problem_json(r, &query));
    (void)json_object_set_new(value, "firewall", json_string(r->firewall));
    (void)json_object_set_new(value, "down", json_string(down));
    (void)json_object_set_new(value, "routes", routes);
    return value;
}

/* --- the socket --- */

#define CLIENTS_MOST 32u

struct report_client {
    struct report_client *next;
    uv_pipe_t pipe;
    uv_write_t write;
    struct report_server *server;
    char *text;
};

static void on_client_closed(uv_handle_t *handle)
{
    struct report_client *c = handle->data;

    LL_DELETE(c->server->first, c);
    c->server->clients--;
    free(c->text);
    free(c);
}

static void on_written(uv_write_t *write, int status)
{
    struct report_client *c = write->data;

    (void)status;
    if (!uv_is_closing((uv_handle_t *)&c->pipe))
        uv_close((uv_handle_t *)&c->pipe, on_client_closed);
}

/* Makes room: clients that do not read may not keep others out. */
static void close_oldest(struct report_server *s)
{
    struct report_client *oldest = NULL;

    for (struct report_client *c = s->first; c != NULL; c = c->next)
        if (!uv_is_closing((uv_handle_t *)&c->pipe))
            oldest = c;
    if (oldest != NULL)
        uv_close((uv_handle_t *)&oldest->pipe, on_client_closed);
}

static void on_client(uv_stream_t *listener, int status)
{
    struct report_server *s = listener->data;
    struct report_client *c = status == 0 ? calloc(1, sizeof *c) : NULL;
    json_t *value;
    uv_buf_t buffer;

    if (c == NULL || uv_pipe_init(s->loop, &c->pipe, 0) != 0) {
        free(c);
        return;
    }
    c->server = s;
    c->pipe.data = c->write.data = c;
    LL_PREPEND(s->first, c);
    if (++s->clients > CLIENTS_MOST)
        close_oldest(s);
    if (uv_accept(listener, (uv_stream_t *)&c->pipe) == 0) {
        value = s->make(s->context);
        c->text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
        json_decref(value);
        buffer = uv_buf_init(c->text, c->text != NULL ? (unsigned)strlen(c->text) : 0);
        if (c->text != NULL &&
            uv_write(&c->write, (uv_stream_t *)&c->pipe, &buffer, 1, on_written) == 0)
            return;
    }
    uv_close((uv_handle_t *)&c->pipe, on_client_closed);
}

int report_serve(struct report_server *s, struct error *e)
{
    int rc = uv_pipe_init(s->loop, &s->pipe, 0);

    s->pipe.data = s;
    s->open = rc == 0;
    (void)unlink(s->path);
    if (rc == 0)
        rc = uv_pipe_bind(&s->pipe, s->path);
    if (rc == 0)
        rc = uv_pipe_chmod(&s->pipe, UV_WRITABLE | UV_READABLE);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&s->pipe, 16, on_client);
    return rc == 0 ? 0
                   : error_set(e, ERROR_IO, "cannot serve %.200s: %s", s->path, uv_strerror(rc));
}

void report_stop(struct report_server *s)
{
    if (!s->open)
        return;
    for (struct report_client *c = s->first; c != NULL; c = c->next)
        if (!uv_is_closing((uv_handle_t *)&c->pipe))
            uv_close((uv_handle_t *)&c->pipe, on_client_closed);
    (void)unlink(s->path);
    uv_close((uv_handle_t *)&s->pipe, NULL);
}
