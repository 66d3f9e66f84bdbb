/* torusctl links: shows every port, its neighbour, and the state and traffic of the link. */
#include <stddef.h>

#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"

struct links_arguments {
    bool all;
};

static const struct option options[] = {
    {"--all", NULL, offsetof(struct links_arguments, all), "show the links of all nodes"},
    {0},
};

static const struct section sections[] = {
    TABLE("links", FIELD("port"), FIELD("node", "neighbour"), FIELD("state"),
          FIELD("for", "up_seconds", FORMAT_SECONDS),
          FIELD("held for", "held_seconds", FORMAT_SECONDS),
          FIELD("sent", "tx_bytes", FORMAT_BYTES), FIELD("received", "rx_bytes", FORMAT_BYTES),
          FIELD("rtt", "rtt_us", FORMAT_MICROS), FIELD("rate", "rate_bps", FORMAT_RATE),
          FIELD("connects"), FIELD("security"), FIELD("key"), FIELD("address"), FIELD("interface"),
          FIELD("reason")),
    TABLE("links", FIELD("port"), FIELD("nominal", "nominal_bps", FORMAT_RATE),
          FIELD("negotiated", "negotiated_bps", FORMAT_RATE),
          FIELD("observed", "observed_bps", FORMAT_RATE),
          FIELD("planned", "planned_bps", FORMAT_RATE), FIELD("from", "planned_from")),
    RECORD(NULL, FIELD("heartbeat every", "heartbeat_seconds", FORMAT_SECONDS),
           FIELD("down when silent for", "silence_seconds", FORMAT_SECONDS)),
};

static json_t *value_of(const struct torus_links *links)
{
    json_t *o = json_object(), *list = json_array();
    int r = 0;

    for (size_t i = 0; i < links->count; i++)
        r |= json_array_append_new(list, link_value(links->link[i]));
    r |= json_object_set_new(o, "links", list);
    r |= json_object_set_new(o, "heartbeat_seconds", json_real(links->heartbeat_ms / 1000.0));
    r |= json_object_set_new(o, "silence_seconds", json_real(links->silence_ms / 1000.0));
    return json_checked(o, r);
}

static int run(struct cli *cli, const void *arguments)
{
    const struct links_arguments *args = arguments;
    struct torus_links *links;
    struct torus_error e;
    int code = cli_connect(cli);

    if (code != EXIT_DONE)
        return code;
    if (args->all)
        return links_all(cli);
    if (torus_client_links(cli->client, &links, &e) != 0)
        return cli_fail_client(cli, &e);
    code = cli_print(cli, value_of(links), VIEW(sections));
    torus_links_free(links);
    return code;
}

const struct command command_links = {
    .name = "links",
    .summary = "Show the links of this node or of all nodes: neighbours, state, traffic",
    .usage = "[--all] [--socket PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct links_arguments),
    .needs_daemon = true,
    .run = run,
};
