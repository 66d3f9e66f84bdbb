#include "client/cli/survey/links_all.h"

#include "client/cli/survey/all_nodes.h"
#include "client/cli/survey/link_value.h"
#include "client/cli/terminal/json.h"

static const struct field fields[] = {
    {"host", "host_name", FORMAT_PLAIN},         {"port", "port", FORMAT_PLAIN},
    {"to", "neighbour_name", FORMAT_PLAIN},      {"state", "state", FORMAT_PLAIN},
    {"for", "up_seconds", FORMAT_SECONDS},       {"sent", "tx_bytes", FORMAT_BYTES},
    {"received", "rx_bytes", FORMAT_BYTES},      {"waiting", "queue_bytes", FORMAT_BYTES},
    {"sent again", "retransmits", FORMAT_PLAIN}, {"rtt", "rtt_us", FORMAT_MICROS},
    {"rate", "rate_bps", FORMAT_RATE},           {"interface", "interface", FORMAT_PLAIN},
    {"reason", "reason", FORMAT_PLAIN},          {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_TABLE, .key = "lines", .fields = fields},
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
    json_t *o = json_object(), *lines = json_array();

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
    if (json_object_set_new(o, "lines", lines) == 0)
        return o;
    json_decref(o);
    return NULL;
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
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

int links_all(struct cli *cli)
{
    struct all_nodes c;
    int code = all_nodes_ask(cli, &c);

    if (code == EXIT_DONE)
        code = cli_print(cli, cli->json ? links_all_value(&c) : lines_of(&c),
                         &(struct view){sections, sizeof sections / sizeof sections[0]});
    all_nodes_free(&c);
    return code;
}
