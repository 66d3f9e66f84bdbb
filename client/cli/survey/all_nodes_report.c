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
    return l->hour_ms > 0
               ? json_of(l, MEMBERS(FROM_MS("seconds", torus_link, hour_ms),
                                    MEMBER_AS("tx_bytes", torus_link, hour_tx_bytes),
                                    MEMBER_AS("retransmits", torus_link, hour_retransmits),
                                    MEMBER_AS("connects", torus_link, hour_connects)))
               : json_null();
}

static JSON_MEMBERS(link_members, MEMBER_AS("port", torus_link, name),
                    NAMED(torus_link, state, torus_link_state_name), MEMBER(torus_link, reason),
                    MEMBER(torus_link, address), KNOWN(torus_link, interface),
                    MEMBER(torus_link, tx_bytes), MEMBER(torus_link, rx_bytes),
                    KNOWN(torus_link, rtt_us), KNOWN(torus_link, rate_bps),
                    MEMBER(torus_link, connects), KNOWN(torus_link, key),
                    MEMBER(torus_link, queue_bytes), MEMBER(torus_link, unacked_bytes),
                    MEMBER(torus_link, retransmits), KNOWN(torus_link, mtu),
                    MEMBER_AS("nominal_bps", torus_link, nominal_send_bps, .rule = JSON_KNOWN),
                    KNOWN(torus_link, nominal_receive_bps), KNOWN(torus_link, negotiated_bps),
                    KNOWN(torus_link, observed_bps), KNOWN(torus_link, planned_bps),
                    KNOWN(torus_link, planned_from));

/* Adds the seconds of a state; null in other states. */
static int set_state_seconds(json_t *link, const char *key, bool in_state, uint64_t milliseconds)
{
    return json_object_set_new(link, key,
                               in_state ? json_real((double)milliseconds / 1000) : json_null());
}

json_t *link_value(const struct torus_link *l)
{
    const bool up = l->state == TORUS_LINK_UP;
    json_t *link = json_of(l, link_members);
    int r = json_object_set_new(link, "neighbour",
                                l->neighbour != TORUS_RANK_NONE ? json_integer(l->neighbour)
                                                                : json_null());

    r |= json_object_set_new(link, "up", json_boolean(up));
    r |= set_state_seconds(link, "up_seconds", up, l->up_ms);
    r |= set_state_seconds(link, "held_seconds", l->state == TORUS_LINK_HELD, l->held_ms);
    r |= json_object_set_new(link, "security", up ? json_string(link_security(l)) : json_null());
    r |= json_object_set_new(link, "last_hour", hour_value(l));
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

static JSON_MEMBERS(node_members, MEMBER(torus_status, version), KNOWN(torus_status, peer_protocol),
                    MEMBER(torus_status, pid), FROM_MS("uptime_seconds", torus_status, uptime_ms),
                    MEMBER_AS("memory_used_bytes", torus_status, memory_used),
                    MEMBER_AS("memory_budget_bytes", torus_status, memory_budget));

static json_t *node_value(const struct all_nodes *c, uint32_t rank)
{
    const struct torus_node_answer *n = c->state->nodes[rank];
    const struct torus_status *s = n->status;
    json_t *o = json_object();
    int r = all_nodes_set_node(o, c, rank);

    r |= json_object_set_new(o, "name", json_string(all_nodes_name(c, rank)));
    r |= json_object_set_new(o, "keys",
                             s != NULL ? json_texts(s->keys, s->key_count) : json_array());
    if (s == NULL)
        return json_checked(o, r);
    const size_t up = links_up(n->links);
    r |= json_set_members(o, s, node_members);
    r |= json_object_set_new(o, "links_up", json_count(up));
    r |= json_object_set_new(o, "links", json_count(n->links->count));
    r |= json_object_set_new(o, "links_text", json_sprintf("%zu of %zu", up, n->links->count));
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

JSON_MEMBERS(copy_activity_members, MEMBER(torus_copy_activity, id),
             MEMBER(torus_copy_activity, asker),
             NAMED(torus_copy_activity, phase, torus_copy_phase_name),
             MEMBER(torus_copy_activity, files), MEMBER(torus_copy_activity, bytes),
             KNOWN(torus_copy_activity, bytes_of), MEMBER(torus_copy_activity, target),
             MEMBER(torus_copy_activity, waits_for));

/* Adds a copy at one node to its line, which shows what the asked node knows, if it has answered. */
static void add_copy(json_t *list, const struct all_nodes *c, uint32_t rank,
                     const struct torus_copy_activity *x)
{
    json_t *o = entry_of(list, "id", x->id);

    add(o, "node_count", 1);
    if (json_object_get(o, "phase") != NULL && x->asker != rank)
        return;
    (void)json_object_set_new(o, "name", json_string(all_nodes_name(c, x->asker)));
    (void)json_set_members(o, x, copy_activity_members);
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
