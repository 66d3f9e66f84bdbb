#include "client/cli/survey/all_nodes_report.h"

#include <string.h>

#include "client/cli/survey/all_nodes.h"
#include "client/cli/terminal/json.h"
#include "proto/text.h"

/* Asks all nodes, and prints what they answer. */
static int print_all(struct cli *cli, json_t *(*value)(const struct all_nodes *c),
                     const struct view *view)
{
    struct all_nodes c;
    int code = all_nodes_ask(cli, &c);

    if (code == EXIT_DONE)
        code = cli_print(cli, value(&c), view);
    all_nodes_free(&c);
    return code;
}

/* --- one link --- */

const char *link_security(const struct torus_link *l)
{
    if (l->state != TORUS_LINK_UP)
        return NULL;
    return l->encrypted ? "encrypted" : l->key[0] != '\0' ? "proved" : "open";
}

/* What the link has counted in the last hour; null: not known. */
static json_t *hour_value(const struct torus_link *l)
{
    json_t *hour;
    int r = 0;

    if (l->hour_ms == 0)
        return json_null();
    hour = json_object();
    r |= json_object_set_new(hour, "seconds", json_real((double)l->hour_ms / 1000));
    r |= json_object_set_new(hour, "tx_bytes", json_count(l->hour_tx_bytes));
    r |= json_object_set_new(hour, "retransmits", json_count(l->hour_retransmits));
    r |= json_object_set_new(hour, "connects", json_integer(l->hour_connects));
    return json_checked(hour, r);
}

json_t *link_value(const struct torus_link *l)
{
    const bool up = l->state == TORUS_LINK_UP;
    json_t *link = json_object();
    int r = 0;

    r |= json_object_set_new(link, "port", json_string(l->name));
    r |= json_object_set_new(link, "neighbour",
                             l->neighbour != TORUS_RANK_NONE ? json_integer(l->neighbour)
                                                             : json_null());
    r |= json_object_set_new(link, "up", json_boolean(up));
    r |= json_object_set_new(link, "state", json_string(torus_link_state_name(l->state)));
    r |= json_object_set_new(link, "reason", json_string(l->reason));
    r |= json_object_set_new(link, "address", json_string(l->address));
    r |= json_object_set_new(link, "interface", json_text(l->interface));
    r |= json_object_set_new(link, "tx_bytes", json_count(l->tx_bytes));
    r |= json_object_set_new(link, "rx_bytes", json_count(l->rx_bytes));
    r |= json_object_set_new(link, "rtt_us", json_known(l->rtt_us));
    r |= json_object_set_new(link, "rate_bps", json_known(l->rate_bps));
    r |= json_object_set_new(link, "up_seconds",
                             up ? json_real((double)l->up_ms / 1000) : json_null());
    r |= json_object_set_new(link, "held_seconds",
                             l->state == TORUS_LINK_HELD ? json_real((double)l->held_ms / 1000)
                                                         : json_null());
    r |= json_object_set_new(link, "connects", json_integer(l->connects));
    r |= json_object_set_new(link, "security", up ? json_string(link_security(l)) : json_null());
    r |= json_object_set_new(link, "key", json_text(l->key));
    r |= json_object_set_new(link, "queue_bytes", json_count(l->queue_bytes));
    r |= json_object_set_new(link, "unacked_bytes", json_count(l->unacked_bytes));
    r |= json_object_set_new(link, "retransmits", json_integer(l->retransmits));
    r |= json_object_set_new(link, "mtu", json_known(l->mtu));
    r |= json_object_set_new(link, "last_hour", hour_value(l));
    r |= json_object_set_new(link, "nominal_bps", json_known(l->nominal_send_bps));
    r |= json_object_set_new(link, "nominal_receive_bps", json_known(l->nominal_receive_bps));
    r |= json_object_set_new(link, "negotiated_bps", json_known(l->negotiated_bps));
    r |= json_object_set_new(link, "observed_bps", json_known(l->observed_bps));
    r |= json_object_set_new(link, "planned_bps", json_known(l->planned_bps));
    r |= json_object_set_new(link, "planned_from", json_text(l->planned_from));
    return json_checked(link, r);
}

/* --- the links of all nodes --- */

static const struct section link_sections[] = {
    TABLE("lines", FIELD("host", "host_name"), FIELD("port"), FIELD("to", "neighbour_name"),
          FIELD("state"), FIELD("for", "up_seconds", FORMAT_SECONDS),
          FIELD("sent", "tx_bytes", FORMAT_BYTES), FIELD("received", "rx_bytes", FORMAT_BYTES),
          FIELD("waiting", "queue_bytes", FORMAT_BYTES), FIELD("sent again", "retransmits"),
          FIELD("rtt", "rtt_us", FORMAT_MICROS), FIELD("rate", "rate_bps", FORMAT_RATE),
          FIELD("planned", "planned_bps", FORMAT_RATE), FIELD("from", "planned_from"),
          FIELD("interface"), FIELD("reason")),
};

static json_t *named_link(const struct all_nodes *c, uint32_t rank, const struct torus_link *l)
{
    json_t *link = link_value(l);

    (void)json_object_set_new(link, "host_name", json_string(all_nodes_name(c, rank)));
    (void)json_object_set_new(
        link, "neighbour_name",
        json_string(l->neighbour != TORUS_RANK_NONE ? all_nodes_name(c, l->neighbour) : ""));
    return link;
}

/* For people: one line for each link, and for each node that has not answered. */
static json_t *lines_of(const struct all_nodes *c)
{
    json_t *lines = json_array();

    for (uint32_t rank = 0; rank < c->torus.nodes; rank++) {
        if (all_nodes_answered(c, rank)) {
            const struct torus_links *links = c->state->nodes[rank]->links;
            for (size_t i = 0; i < links->count; i++)
                (void)json_array_append_new(lines, named_link(c, rank, links->link[i]));
            continue;
        }
        json_t *line = json_object();
        (void)json_object_set_new(line, "host_name", json_string(all_nodes_name(c, rank)));
        (void)json_object_set_new(line, "reason", json_string(all_nodes_missing(c, rank)));
        (void)json_array_append_new(lines, line);
    }
    return json_pack("{s:o}", "lines", lines);
}

json_t *links_all_value(const struct all_nodes *c)
{
    json_t *o = json_object(), *nodes = json_array();
    int r = 0;

    for (uint32_t rank = 0; rank < c->torus.nodes; rank++) {
        json_t *node = json_object(), *list = json_array();
        r |= all_nodes_set_node(node, c, rank);
        for (size_t i = 0; all_nodes_answered(c, rank) && i < c->state->nodes[rank]->links->count;
             i++)
            r |= json_array_append_new(list, link_value(c->state->nodes[rank]->links->link[i]));
        r |= json_object_set_new(node, "links", list);
        r |= json_array_append_new(nodes, node);
    }
    r |= json_object_set_new(o, "nodes", nodes);
    r |= json_object_set_new(o, "took_seconds", json_real((double)c->state->took_us / 1e6));
    return json_checked(o, r);
}

int links_all(struct cli *cli)
{
    return print_all(cli, cli->json ? links_all_value : lines_of, VIEW(link_sections));
}

/* --- the state of all nodes --- */

static const struct section sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
           FIELD("answered"), FIELD("links up", "links_up_text"),
           FIELD("asked in", "took_seconds", FORMAT_SECONDS)),
    TABLE("nodes", FIELD("host", "name"), FIELD("node", "rank"), FIELD("coordinates"),
          FIELD("state", "outcome"), FIELD("torusd", "version"),
          FIELD("up for", "uptime_seconds", FORMAT_SECONDS), FIELD("links", "links_text"),
          FIELD("memory in use", "memory_used_bytes", FORMAT_BYTES),
          FIELD("exchanges", "exchange_count"), FIELD("groups", "group_count")),
    TABLE("cables", FIELD("found by", "name"), FIELD("fault", "code"), FIELD("cable", "text")),
    TABLE("groups", FIELD("group"), FIELD("on nodes", "node_count"), FIELD("open on", "open"),
          FIELD("calls done by all", "calls_done"), FIELD("calls made", "calls"),
          FIELD("sent", "bytes_sent", FORMAT_BYTES)),
    TABLE("copies", FIELD("copy", "id"), FIELD("asked", "name"), FIELD("on nodes", "node_count"),
          FIELD("phase"), FIELD("moved", "bytes", FORMAT_BYTES),
          FIELD("of", "bytes_of", FORMAT_BYTES), FIELD("target"), FIELD("waits for", "waits_for")),
    TABLE("exchanges", FIELD("exchange", "id"), FIELD("algorithm"), FIELD("coordinator", "name"),
          FIELD("states"), FIELD("age", "age_seconds", FORMAT_SECONDS),
          FIELD("delivered", "done_bytes", FORMAT_BYTES), FIELD("of", "total_bytes", FORMAT_BYTES),
          FIELD("reason")),
};

static size_t links_up(const struct torus_links *links)
{
    size_t up = 0;

    for (size_t i = 0; i < links->count; i++)
        up += links->link[i]->state == TORUS_LINK_UP;
    return up;
}

static size_t running(const struct torus_status *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->exchange_count; i++)
        count += s->exchanges[i]->state < TORUS_STATE_FINISHED;
    return count;
}

static json_t *node_value(const struct all_nodes *c, uint32_t rank)
{
    const struct torus_node_answer *n = c->state->nodes[rank];
    const struct torus_status *s = n->status;
    json_t *o = json_object(), *keys = json_array();
    int r = all_nodes_set_node(o, c, rank);

    r |= json_object_set_new(o, "name", json_string(all_nodes_name(c, rank)));
    for (size_t i = 0; s != NULL && i < s->key_count; i++)
        r |= json_array_append_new(keys, json_string(s->keys[i]));
    r |= json_object_set_new(o, "keys", keys);
    if (s == NULL)
        return o;
    const size_t up = links_up(n->links);
    r |= json_object_set_new(o, "version", json_string(s->version));
    r |= json_object_set_new(o, "peer_protocol", json_known(s->peer_protocol));
    r |= json_object_set_new(o, "pid", json_count(s->pid));
    r |= json_object_set_new(o, "uptime_seconds", json_real((double)s->uptime_ms / 1000));
    r |= json_object_set_new(o, "links_up", json_count(up));
    r |= json_object_set_new(o, "links", json_count(n->links->count));
    r |= json_object_set_new(o, "links_text", json_sprintf("%zu of %zu", up, n->links->count));
    r |= json_object_set_new(o, "memory_used_bytes", json_count(s->memory_used));
    r |= json_object_set_new(o, "memory_budget_bytes", json_count(s->memory_budget));
    r |= json_object_set_new(o, "exchange_count", json_count(running(s)));
    r |= json_object_set_new(o, "group_count", json_count(s->group_count));
    return json_checked(o, r);
}

/* The entry of a list whose `key` is this text, appended if there is none; borrowed. */
static json_t *entry_of(json_t *list, const char *key, const char *text)
{
    json_t *o;
    size_t i;

    json_array_foreach(list, i, o)
    {
        const char *other = json_string_value(json_object_get(o, key));
        if (other != NULL && strcmp(other, text) == 0)
            return o;
    }
    o = json_object();
    (void)json_object_set_new(o, key, json_string(text));
    (void)json_array_append_new(list, o);
    return o;
}

static void add(json_t *o, const char *key, uint64_t more)
{
    (void)json_object_set_new(
        o, key, json_count((uint64_t)json_integer_value(json_object_get(o, key)) + more));
}

static void keep(json_t *o, const char *key, uint64_t number, bool least)
{
    const json_t *old = json_object_get(o, key);

    if (old == NULL || ((uint64_t)json_integer_value(old) > number) == least)
        (void)json_object_set_new(o, key, json_count(number));
}

/* Adds an exchange at one node to its line. */
static void add_exchange(json_t *list, const struct all_nodes *c, const struct torus_activity *x)
{
    json_t *o = entry_of(list, "id", x->id), *states = json_object_get(o, "state_counts");

    if (states == NULL) {
        states = json_object();
        (void)json_object_set_new(o, "state_counts", states);
        (void)json_object_set_new(o, "algorithm", json_string(x->algorithm));
        (void)json_object_set_new(o, "coordinator", json_integer(x->coordinator));
        (void)json_object_set_new(o, "name", json_string(all_nodes_name(c, x->coordinator)));
        (void)json_object_set_new(o, "reason", json_string(x->reason));
    }
    add(states, torus_state_name(x->state), 1);
    add(o, "done_bytes", x->done_bytes);
    add(o, "total_bytes", x->total_bytes);
    const double age = json_real_value(json_object_get(o, "age_seconds"));
    if ((double)x->age_ms / 1000 > age || age <= 0)
        (void)json_object_set_new(o, "age_seconds", json_real((double)x->age_ms / 1000));
    if (x->reason[0] != '\0')
        (void)json_object_set_new(o, "reason", json_string(x->reason));
}

/* A successful exchange ends as committed where nodes have confirmed their outputs, and as finished elsewhere: people
 * read both as done. */
static const char *state_word(const char *state)
{
    if (strcmp(state, torus_state_name(TORUS_STATE_FINISHED)) == 0 ||
        strcmp(state, torus_state_name(TORUS_STATE_COMMITTED)) == 0)
        return "done";
    if (strcmp(state, torus_state_name(TORUS_STATE_DONE)) == 0)
        return "waiting for the decision";
    return state;
}

/* Returns the number of nodes in all states with the word of the state at `from`; 0 if a state before has the word. */
static json_int_t nodes_with_word(json_t *states, const char *from)
{
    const char *state, *word = state_word(from);
    json_int_t nodes = 0;
    json_t *count;

    json_object_foreach(states, state, count)
    {
        if (strcmp(state_word(state), word) != 0)
            continue;
        if (nodes == 0 && strcmp(state, from) != 0)
            return 0;
        nodes += json_integer_value(count);
    }
    return nodes;
}

/* "done at 16 nodes", or "running at 3 nodes, ready at 13 nodes". */
static void set_states_text(json_t *list)
{
    json_t *o, *count;
    const char *state;
    size_t i;

    json_array_foreach(list, i, o)
    {
        json_t *states = json_object_get(o, "state_counts");
        char text[200] = "";
        size_t used = 0;
        json_object_foreach(states, state, count)
        {
            const json_int_t nodes = nodes_with_word(states, state);
            if (nodes > 0 && used < sizeof text)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s at %lld %s",
                                         used > 0 ? ", " : "", state_word(state), (long long)nodes,
                                         text_plural((uint64_t)nodes, "node", "nodes"));
        }
        (void)json_object_set_new(o, "states", json_string(text));
    }
}

static void add_group(json_t *list, const struct torus_group_info *g)
{
    json_t *o = entry_of(list, "group", g->name);

    add(o, "node_count", 1);
    add(o, "open", g->open ? 1 : 0);
    keep(o, "calls", g->calls, false);
    keep(o, "calls_done", g->calls_done, true);
    add(o, "bytes_sent", g->bytes_sent);
}

/* Adds a copy at one node to its line, which shows what the asked node knows, if it has answered. */
static void add_copy(json_t *list, const struct all_nodes *c, uint32_t rank,
                     const struct torus_copy_activity *x)
{
    json_t *o = entry_of(list, "id", x->id);

    add(o, "node_count", 1);
    if (json_object_get(o, "phase") != NULL && x->asker != rank)
        return;
    (void)json_object_set_new(o, "asker", json_integer(x->asker));
    (void)json_object_set_new(o, "name", json_string(all_nodes_name(c, x->asker)));
    (void)json_object_set_new(o, "phase", json_string(torus_copy_phase_name(x->phase)));
    (void)json_object_set_new(o, "bytes", json_count(x->bytes));
    (void)json_object_set_new(o, "bytes_of", json_known(x->bytes_of));
    (void)json_object_set_new(o, "target", json_string(x->target));
    (void)json_object_set_new(o, "waits_for", json_string(x->waits_for));
}

static void add_cable(json_t *list, const struct all_nodes *c, const struct torus_link_fault *f)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "node", json_integer(f->node));
    (void)json_object_set_new(o, "name", json_string(all_nodes_name(c, f->node)));
    (void)json_object_set_new(o, "code", json_string(f->code));
    (void)json_object_set_new(o, "text", json_string(f->text));
    (void)json_array_append_new(list, o);
}

/* Adds up what all nodes say: "exchanges", "copies", "groups", "cables". Returns 0, or another value without memory. */
static int set_activities(json_t *o, const struct all_nodes *c)
{
    json_t *exchanges = json_array(), *groups = json_array(), *cables = json_array();
    json_t *copies = json_array();
    int r = 0;

    for (uint32_t rank = 0; rank < c->torus.nodes; rank++) {
        const struct torus_status *s = c->state->nodes[rank]->status;
        for (size_t i = 0; s != NULL && i < s->exchange_count; i++)
            add_exchange(exchanges, c, s->exchanges[i]);
        for (size_t i = 0; s != NULL && i < s->copy_count; i++)
            add_copy(copies, c, rank, s->copies[i]);
        for (size_t i = 0; s != NULL && i < s->group_count; i++)
            add_group(groups, s->groups[i]);
        for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
            add_cable(cables, c, s->link_faults[i]);
    }
    set_states_text(exchanges);
    r |= json_object_set_new(o, "exchanges", exchanges);
    r |= json_object_set_new(o, "copies", copies);
    r |= json_object_set_new(o, "groups", groups);
    r |= json_object_set_new(o, "cables", cables);
    return r;
}

json_t *status_all_value(const struct all_nodes *c)
{
    json_t *o = json_object(), *nodes = json_array();
    size_t answered = 0, up = 0, ends = 0;
    int r = json_set_torus(o, &c->torus);

    for (uint32_t rank = 0; rank < c->torus.nodes; rank++) {
        const struct torus_links *links = c->state->nodes[rank]->links;
        r |= json_array_append_new(nodes, node_value(c, rank));
        for (unsigned port = 0; port < torus_ports(&c->torus); port++)
            ends += torus_neighbour(&c->torus, rank, port) != TORUS_NO_NODE;
        if (!all_nodes_answered(c, rank))
            continue;
        answered++;
        up += links_up(links);
    }
    r |= json_object_set_new(o, "node_count", json_integer(c->torus.nodes));
    r |= json_object_set_new(o, "answered", json_count(answered));
    r |= json_object_set_new(o, "link_ends_up", json_count(up));
    r |= json_object_set_new(o, "link_ends", json_count(ends));
    r |= json_object_set_new(o, "links_up_text", json_sprintf("%zu of %zu", up / 2, ends / 2));
    r |= json_object_set_new(o, "took_seconds", json_real((double)c->state->took_us / 1e6));
    r |= json_object_set_new(o, "nodes", nodes);
    r |= set_activities(o, c);
    return json_checked(o, r);
}

int status_all(struct cli *cli)
{
    return print_all(cli, status_all_value, VIEW(sections));
}
