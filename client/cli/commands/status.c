/* torusctl status: shows the daemon, its place in the torus, and its groups and exchanges. */
#include <stddef.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/exchanging/candidates.h"
#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"

struct status_arguments {
    bool all;
};

static const struct option options[] = {
    {"--all", NULL, offsetof(struct status_arguments, all), "show all nodes"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("node", "rank"), FIELD("coordinates"),
           FIELD("whole"), FIELD("faults", "faults", FORMAT_LINES),
           FIELD("links", "link_mbit", FORMAT_MBIT),
           FIELD("data roots", "data_roots", FORMAT_LINES), FIELD("torusd", "version"),
           FIELD("protocols"), FIELD("process", "pid"),
           FIELD("up for", "uptime_seconds", FORMAT_SECONDS), FIELD("metrics")),
    RECORD("memory", FIELD("memory for blocks", "budget_bytes", FORMAT_BYTES),
           FIELD("reserved", "reserved_bytes", FORMAT_BYTES),
           FIELD("in use", "used_bytes", FORMAT_BYTES)),
    {.layout = LAYOUT_RECORD, .key = "calibration", .fields = calibration_fields},
    TABLE("cables", FIELD("fault", "code"), FIELD("cable", "text")),
    TABLE("groups", FIELD("group", "name"), FIELD("state"), FIELD("waits for", "missing"),
          FIELD("without", "avoids"), FIELD("process", "pid"), FIELD("calls"),
          FIELD("done", "calls_done"), FIELD("sent", "bytes_sent", FORMAT_BYTES),
          FIELD("received", "bytes_received", FORMAT_BYTES),
          FIELD("early", "early_bytes", FORMAT_BYTES),
          FIELD("reserved", "reserved_bytes", FORMAT_BYTES)),
    TABLE("unconfirmed", FIELD("committed", "id"), FIELD("not confirmed by", "nodes"),
          FIELD("reason")),
    TABLE("shares", FIELD("shared", "resource"), FIELD("user"), FIELD("has", "held"),
          FIELD("may have", "most"), FIELD("of", "capacity")),
    TABLE("copies", FIELD("copy", "id"), FIELD("asked", "asker"), FIELD("phase"), FIELD("files"),
          FIELD("moved", "bytes", FORMAT_BYTES), FIELD("of", "bytes_of", FORMAT_BYTES),
          FIELD("target"), FIELD("waits for", "waits_for")),
    TABLE("exchanges", FIELD("exchange", "id"), FIELD("algorithm"), FIELD("state"),
          FIELD("age", "age_seconds", FORMAT_SECONDS), FIELD("coordinator"), FIELD("reason")),
};

static JSON_MEMBERS(exchange_members, MEMBER(torus_activity, id), MEMBER(torus_activity, algorithm),
                    NAMED(torus_activity, state, torus_state_name), MEMBER(torus_activity, reason),
                    MEMBER(torus_activity, coordinator),
                    FROM_MS("age_seconds", torus_activity, age_ms));

static JSON_MEMBERS(unconfirmed_members, MEMBER(torus_unconfirmed, id),
                    MEMBER(torus_unconfirmed, count), MEMBER(torus_unconfirmed, reason));

static json_t *unconfirmed(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->unconfirmed_count; i++) {
        const struct torus_unconfirmed *x = s->unconfirmed[i];
        json_t *o = json_of(x, unconfirmed_members);
        (void)json_object_set_new(o, "nodes", json_numbers(x->nodes, x->node_count));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static JSON_MEMBERS(link_fault_members, MEMBER(torus_link_fault, node),
                    MEMBER(torus_link_fault, code), MEMBER(torus_link_fault, text));

static json_t *link_faults(const struct torus_status *s, const struct torus *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->link_fault_count; i++) {
        const struct torus_link_fault *x = s->link_faults[i];
        const bool found = x->found_node != TORUS_RANK_NONE;
        char port[TORUS_PORT_NAME_SIZE] = "?", other[TORUS_PORT_NAME_SIZE] = "?";
        json_t *o = json_of(x, link_fault_members);
        if (x->node < t->nodes && x->port < torus_ports(t))
            (void)torus_port_name(t, x->node, x->port, port);
        if (x->found_node < t->nodes && x->found_port < torus_ports(t))
            (void)torus_port_name(t, x->found_node, x->found_port, other);
        (void)json_object_set_new(o, "port", json_string(port));
        (void)json_object_set_new(o, "found_node",
                                  found ? json_integer(x->found_node) : json_null());
        (void)json_object_set_new(o, "found_port", found ? json_string(other) : json_null());
        (void)json_array_append_new(list, o);
    }
    return list;
}

static JSON_MEMBERS(share_members, MEMBER(torus_share, resource), MEMBER(torus_share, user),
                    MEMBER(torus_share, held), MEMBER(torus_share, most),
                    MEMBER(torus_share, capacity));

static JSON_MEMBERS(group_members, MEMBER(torus_group_info, name), MEMBER(torus_group_info, id),
                    MEMBER(torus_group_info, missing), MEMBER(torus_group_info, avoids),
                    PRESENT(torus_group_info, rates), KNOWN(torus_group_info, pid),
                    MEMBER(torus_group_info, calls), MEMBER(torus_group_info, calls_done),
                    MEMBER(torus_group_info, bytes_sent), MEMBER(torus_group_info, bytes_received),
                    MEMBER(torus_group_info, early_bytes),
                    MEMBER(torus_group_info, reserved_bytes));

static json_t *groups(const struct torus_status *s)
{
    json_t *list = json_list_of(s->groups, s->group_count, group_members);

    for (size_t i = 0; i < s->group_count; i++)
        (void)json_object_set_new(json_array_get(list, i), "state",
                                  json_string(s->groups[i]->open ? "open" : "opening"));
    return list;
}

static JSON_MEMBERS(memory_members, MEMBER_AS("budget_bytes", torus_status, memory_budget),
                    MEMBER_AS("reserved_bytes", torus_status, memory_reserved),
                    MEMBER_AS("used_bytes", torus_status, memory_used));

static JSON_MEMBERS(members, MEMBER(torus_status, version), KNOWN(torus_status, peer_protocol),
                    MEMBER(torus_status, peer_minor), MEMBER(torus_status, least_peer_minor),
                    KNOWN(torus_status, control_protocol), KNOWN(torus_status, program_protocol),
                    MEMBER(torus_status, pid), MEMBER(torus_status, rank),
                    FROM_MS("uptime_seconds", torus_status, uptime_ms),
                    KNOWN(torus_status, metrics), MEMBER(torus_status, whole),
                    KNOWN(torus_status, link_mbit));

static json_t *value_of(const struct torus_status *s, const struct torus *t)
{
    json_t *o = json_of(s, members);
    int r = json_set_torus(o, t);

    r |= json_object_set_new(o, "coordinates", json_numbers(s->coordinates, s->coordinate_count));
    r |= json_object_set_new(o, "faults", json_texts(s->faults, s->fault_count));
    r |= json_object_set_new(o, "data_roots", json_texts(s->data_roots, s->data_root_count));
    r |= json_object_set_new(o, "memory", json_of(s, memory_members));
    r |= json_object_set_new(o, "calibration", calibration_value(s->calibration));
    r |= json_object_set_new(o, "cables", link_faults(s, t));
    r |= json_object_set_new(o, "groups", groups(s));
    r |= json_object_set_new(o, "unconfirmed", unconfirmed(s));
    r |= json_object_set_new(o, "shares", json_list_of(s->shares, s->share_count, share_members));
    r |= json_object_set_new(o, "copies",
                             json_list_of(s->copies, s->copy_count, copy_activity_members));
    r |= json_object_set_new(o, "exchanges",
                             json_list_of(s->exchanges, s->exchange_count, exchange_members));
    return json_checked(o, r);
}

/* Adds the versions of the protocols as one text, for people. */
static void set_protocols(json_t *o, const struct torus_status *s)
{
    char oldest[48] = "";

    if (s->least_peer_minor < s->peer_minor)
        (void)snprintf(oldest, sizeof oldest, " (the oldest node: %u.%u)", s->peer_protocol,
                       s->least_peer_minor);
    (void)json_object_set_new(o, "protocols",
                              s->peer_protocol == 0
                                  ? json_null()
                                  : json_sprintf("peer %u.%u%s, control %u, program %u",
                                                 s->peer_protocol, s->peer_minor, oldest,
                                                 s->control_protocol, s->program_protocol));
}

static int run(struct cli *cli, const void *arguments)
{
    const struct status_arguments *args = arguments;
    struct torus_status *status;
    struct torus_error e;
    struct torus torus;
    struct error wrong;
    int code = cli_connect(cli);

    if (code != EXIT_DONE)
        return code;
    if (args->all)
        return status_all(cli);
    if (torus_client_status(cli->client, &status, &e) != 0)
        return cli_fail_client(cli, &e);
    if (daemon_torus_of_status(status, &torus, &wrong) != 0) {
        code = cli_fail(cli, &wrong);
    } else {
        json_t *value = value_of(status, &torus);
        if (!cli->json)
            set_protocols(value, status);
        code = cli_print(cli, value, VIEW(sections));
    }
    torus_status_free(status);
    return code;
}

const struct command command_status = {
    .name = "status",
    .summary = "Show the daemon, the torus, its groups and exchanges",
    .usage = "[--all] [--socket PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct status_arguments),
    .needs_daemon = true,
    .run = run,
};
