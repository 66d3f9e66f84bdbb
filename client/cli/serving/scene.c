#include "client/cli/serving/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "client/cli/web/page.h"
#include "proto/text.h"

void scene_free(struct scene *s)
{
    observed_free(&s->seen);
    free(s->name);
    history_free(&s->history);
    *s = (struct scene){0};
}

/* The name of a node for people: "alpha" or "node 7". Valid until the next call, or as long as *s. */
static const char *scene_name(const struct scene *s, uint32_t rank)
{
    static char text[SCENE_NAME_SIZE];

    if (rank < s->seen.now.torus.nodes && s->name[rank][0] != '\0')
        return s->name[rank];
    (void)snprintf(text, sizeof text, "node %u", rank);
    return text;
}

static void note_names(struct scene *s)
{
    const struct all_nodes *now = &s->seen.now;

    for (uint32_t rank = 0; rank < now->torus.nodes; rank++)
        if (now->state->nodes[rank]->host[0] != '\0' && now->name != NULL)
            (void)text_printable(s->name[rank], sizeof s->name[rank], now->name[rank]);
}

/* Adds the rates to the history; they are those of all seconds since the survey before. */
static void remember(struct scene *s, double seconds)
{
    const uint64_t second = (uint64_t)seconds + 1, last = s->history.newest;
    const size_t all = s->history.channels - 1;
    double sum = -1;

    history_move(&s->history, second);
    uint64_t since = last == 0 || second - last > (uint64_t)SCENE_GAP_SECONDS ? 1 : second - last;
    if (since == 0)
        since = 1; /* two surveys in a second: the last one counts */
    for (size_t i = 0; i < all; i++) {
        const double sent = s->seen.ends[i].sent;
        history_set(&s->history, i, since, sent);
        if (sent >= 0)
            sum = (sum < 0 ? 0 : sum) + sent;
    }
    history_set(&s->history, all, since, sum);
}

/* Makes what depends on the size of the torus. Returns 0, or -1 if memory is short. */
static int begin(struct scene *s)
{
    const uint32_t nodes = s->seen.now.torus.nodes;

    s->name = calloc(nodes, sizeof *s->name);
    return history_begin(&s->history, (size_t)nodes * s->seen.ports + 1) == 0 && s->name != NULL
               ? 0
               : -1;
}

int scene_take(struct scene *s, struct all_nodes *survey, double seconds)
{
    const bool is_new = observed_is_new(&s->seen, survey);

    if (is_new)
        scene_free(s);
    s->new_torus = is_new;
    if (observed_take(&s->seen, survey, SCENE_GAP_SECONDS, seconds) != 0 ||
        (is_new && begin(s) != 0)) {
        scene_free(s);
        return -1;
    }
    note_names(s);
    remember(s, seconds);
    return 0;
}

/* ---- Faults, as sentences with the names of the machines ------------------------------------- */

#define FAULTS_MOST 64u

/* Writes a sentence, and why it is so, as far as a node has told that. */
static void describe(const struct scene *s, const struct fault *f, char *text, char *why,
                     size_t size)
{
    const struct torus *t = &s->seen.now.torus;
    char name[TORUS_PORT_NAME_SIZE], here[SCENE_NAME_SIZE];

    why[0] = '\0';
    (void)snprintf(here, sizeof here, "%s", scene_name(s, f->node));
    if (f->kind == FAULT_NODE) {
        (void)snprintf(text, size, "%s %s", here, all_nodes_missing(&s->seen.now, f->node));
    } else if (f->kind == FAULT_CABLE) {
        (void)snprintf(text, size, "%s: %.480s", here, f->text);
    } else {
        const struct observed_link l = observed_link(&s->seen, f->node, f->port);
        (void)snprintf(text, size, "the link from port %s of %s to %s is down",
                       torus_port_name(t, f->node, f->port, name), here,
                       scene_name(s, l.neighbour));
        (void)snprintf(why, size, "%.300s", observed_reason(&l));
    }
    text_clean(text);
    text_clean(why);
}

static json_t *fault_value(const struct scene *s, const struct fault *f)
{
    char text[640], why[sizeof text];

    describe(s, f, text, why, sizeof text);
    return json_pack("{s:I, s:o, s:s, s:s}", "node", (json_int_t)f->node, "port",
                     f->kind != FAULT_NODE ? json_integer(f->port) : json_null(), "text", text,
                     "why", why);
}

/* Returns a list of {"node", "port" (null: the node itself), "text", "why" (which may change often)}, the first
 * FAULTS_MOST of them. NULL if memory is short. */
static json_t *faults_value(const struct scene *s)
{
    json_t *list = json_array();
    int r = list != NULL ? 0 : -1;

    for (size_t i = 0; i < s->seen.fault_count && i < FAULTS_MOST; i++)
        r |= json_array_append_new(list, fault_value(s, &s->seen.faults[i]));
    return json_checked(list, r);
}

/* ---- For the page ---------------------------------------------------------------------------- */

static json_t *text_value(const char *text)
{
    char clean[256];

    return json_string(text_printable(clean, sizeof clean, text));
}

static json_t *rate_value(double rate)
{
    return rate < 0 ? json_null() : json_integer((json_int_t)(rate < 1e18 ? rate : 1e18));
}

/* The number of each channel in the order of torus_json(), by rank and port. NULL if memory is short. */
static uint32_t *number_channels(const struct scene *s)
{
    const size_t ends = (size_t)s->seen.now.torus.nodes * s->seen.ports;
    uint32_t *number = calloc(ends + 1, sizeof *number), next = 0;

    for (size_t i = 0; number != NULL && i < ends; i++)
        if (torus_neighbour(&s->seen.now.torus, (uint32_t)(i / s->seen.ports),
                            (unsigned)(i % s->seen.ports)) != TORUS_NO_NODE)
            number[i] = next++;
    return number;
}

static json_t *opposites_value(const struct scene *s)
{
    const struct torus *t = &s->seen.now.torus;
    uint32_t *number = number_channels(s);
    json_t *a = number != NULL ? json_array() : NULL;
    int r = 0;

    for (uint32_t rank = 0; a != NULL && rank < t->nodes; rank++)
        for (unsigned port = 0; port < s->seen.ports; port++) {
            const uint32_t next = torus_neighbour(t, rank, port);
            if (next != TORUS_NO_NODE)
                r |= json_array_append_new(
                    a, json_integer(
                           number[(size_t)next * s->seen.ports + torus_port_opposite(t, port)]));
        }
    free(number);
    return json_checked(a, r);
}

json_t *scene_torus_value(const struct scene *s, struct error *e)
{
    json_t *o = torus_json(&s->seen.now.torus, e);

    if (o != NULL && (json_object_set_new(o, "asker", json_integer(s->seen.now.initiator)) |
                      json_object_set_new(o, "opposite", opposites_value(s))) != 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *node_value(const struct scene *s, uint32_t rank)
{
    const struct torus_status *status = s->seen.now.state->nodes[rank]->status;
    json_t *name = text_value(scene_name(s, rank));
    json_t *missing = text_value(all_nodes_missing(&s->seen.now, rank));

    if (status == NULL)
        return json_pack("[o, o]", name, missing);
    return json_pack("[o, o, o, o, o, I]", name, missing, text_value(status->version),
                     json_count(status->memory_used), json_count(status->memory_budget),
                     (json_int_t)(status->uptime_ms / 1000));
}

static json_t *end_value(const struct scene *s, uint32_t rank, unsigned port)
{
    const struct link_end *e = observed_end(&s->seen, rank, port);
    const struct torus_link *l = e->link;

    if (l == NULL)
        return json_null();
    const bool up = observed_link(&s->seen, rank, port).state != LINK_DOWN;
    json_t *a = json_pack("[b, o, o, o, o, I, o, o, o]", (int)up, rate_value(e->sent),
                          rate_value(e->received), json_count(l->queue_bytes),
                          json_count(l->unacked_bytes), (json_int_t)l->retransmits,
                          rate_value(e->resent), json_known(l->rtt_us), json_known(l->mtu));
    int r = 0;
    if (!up) {
        r |= json_array_append_new(a, json_string(torus_link_state_name(l->state)));
        r |= json_array_append_new(a, text_value(l->reason));
        r |= json_array_append_new(a, text_value(l->interface));
    }
    return json_checked(a, r);
}

static json_t *run_value(const struct scene *s, const struct run *run)
{
    char state[256], reason[256];

    return json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "kind", run_kind_name(run->kind), "id", text_value(run->id), "what", text_value(run->what),
        "state", run_state(run, state, sizeof state), "reason",
        run_reason(run, reason, sizeof reason), "failed",
        (int)(run_has_failed(run) && !run_was_cancelled(run)), "ended", (int)run->ended,
        "node_count", (json_int_t)run->nodes, "root",
        run->root != TORUS_RANK_NONE ? text_value(scene_name(s, run->root)) : json_null(), "age",
        json_number((double)run->age_ms / 1000), "done", json_count(run->done), "total",
        json_count(run->total), "round", json_count(run->round), "rounds", json_count(run->rounds),
        "calls", json_count(run->calls), "calls_done", json_count(run->calls_done), "part",
        run->part < 0 ? json_null() : json_real(run->part), "rate", rate_value(run->rate), "left",
        run->left < 0 ? json_null() : json_number(run->left));
}

json_t *scene_state_value(const struct scene *s, uint64_t at_ms)
{
    const struct observed *seen = &s->seen;
    const struct torus *t = &seen->now.torus;
    json_t *nodes = json_array(), *ends = json_array(), *runs = json_array();
    const size_t faults = seen->fault_count;
    int r = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        r |= json_array_append_new(nodes, node_value(s, rank));
        for (unsigned port = 0; port < seen->ports; port++) /* in the order of torus_json() */
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE)
                r |= json_array_append_new(ends, end_value(s, rank, port));
    }
    for (size_t i = 0; i < seen->runs.count; i++)
        r |= json_array_append_new(runs, run_value(s, &seen->runs.run[i]));
    json_t *o = json_pack(
        "{s:o, s:o, s:f, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "end", ends, "at",
        json_count(at_ms), "took", (double)seen->now.state->took_us / 1e6, "capacity",
        seen->capacity.value > 0 ? json_number(seen->capacity.value) : json_null(), "nominal",
        (int)seen->capacity.nominal, "node", nodes, "links", json_count(seen->links), "links_up",
        json_count(seen->links_up), "faults", faults_value(s), "more",
        json_count(faults > FAULTS_MOST ? faults - FAULTS_MOST : 0), "runs", runs, "left_out",
        json_count(seen->runs.left_out));
    return json_checked(o, r);
}

static json_t *points_value(const double *points)
{
    json_t *a = json_array();

    for (size_t i = 0; i < HISTORY_POINTS; i++)
        if (json_array_append_new(a, rate_value(points[i])) != 0) {
            json_decref(a);
            return NULL;
        }
    return a;
}

static int add_series(json_t *list, const struct scene *s, const size_t *channels, size_t count)
{
    static struct history_points points;
    json_t *o = json_object();

    history_reduce(&s->history, channels, count, &points);
    int r = json_object_set_new(o, "mean", points_value(points.mean));
    r |= json_object_set_new(o, "peak", points_value(points.peak));
    return r | json_array_append_new(list, o);
}

/* Adds what the ports from..to - 1 of a node send, and what they receive. */
static int add_ports(json_t *list, const struct scene *s, uint32_t rank, unsigned from, unsigned to)
{
    const struct torus *t = &s->seen.now.torus;
    size_t sent[TORUS_MAX_PORTS], received[TORUS_MAX_PORTS], count = 0;

    for (unsigned port = from; port < to; port++) {
        const uint32_t next = torus_neighbour(t, rank, port);
        if (next == TORUS_NO_NODE)
            continue;
        sent[count] = (size_t)rank * s->seen.ports + port;
        received[count++] = (size_t)next * s->seen.ports + torus_port_opposite(t, port);
    }
    return add_series(list, s, sent, count) | add_series(list, s, received, count);
}

json_t *scene_history_value(const struct scene *s, uint32_t rank, uint32_t port)
{
    json_t *o = json_object(), *list = json_array();
    const size_t all = s->history.channels - 1;
    int r;

    if (s->seen.now.state == NULL || (rank != TORUS_RANK_NONE && rank >= s->seen.now.torus.nodes) ||
        (port != TORUS_RANK_NONE && port >= s->seen.ports))
        r = -1;
    else if (rank == TORUS_RANK_NONE)
        r = add_series(list, s, &all, 1);
    else if (port == TORUS_RANK_NONE)
        r = add_ports(list, s, rank, 0, s->seen.ports);
    else
        r = add_ports(list, s, rank, port, port + 1);
    r |= json_object_set_new(o, "step", json_integer(HISTORY_STEP));
    r |= json_object_set_new(o, "series", list);
    return json_checked(o, r);
}
