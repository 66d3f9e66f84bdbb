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

static json_t *texts(const char *const *text, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, json_string(text[i]));
    return list;
}

static json_t *exchanges(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->exchange_count; i++) {
        const struct torus_activity *x = s->exchanges[i];
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(x->id));
        (void)json_object_set_new(o, "algorithm", json_string(x->algorithm));
        (void)json_object_set_new(o, "state", json_string(torus_state_name(x->state)));
        (void)json_object_set_new(o, "reason", json_string(x->reason));
        (void)json_object_set_new(o, "coordinator", json_integer(x->coordinator));
        (void)json_object_set_new(o, "age_seconds", json_real((double)x->age_ms / 1000));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *unconfirmed(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->unconfirmed_count; i++) {
        const struct torus_unconfirmed *x = s->unconfirmed[i];
        json_t *o = json_object(), *nodes = json_array();
        for (size_t j = 0; j < x->node_count; j++)
            (void)json_array_append_new(nodes, json_integer(x->nodes[j]));
        (void)json_object_set_new(o, "id", json_string(x->id));
        (void)json_object_set_new(o, "nodes", nodes);
        (void)json_object_set_new(o, "count", json_integer(x->count));
        (void)json_object_set_new(o, "reason", json_string(x->reason));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *link_faults(const struct torus_status *s, const struct torus *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->link_fault_count; i++) {
        const struct torus_link_fault *x = s->link_faults[i];
        const bool found = x->found_node != TORUS_RANK_NONE;
        char port[TORUS_PORT_NAME_SIZE] = "?", other[TORUS_PORT_NAME_SIZE] = "?";
        json_t *o = json_object();
        if (x->node < t->nodes && x->port < torus_ports(t))
            (void)torus_port_name(t, x->node, x->port, port);
        if (x->found_node < t->nodes && x->found_port < torus_ports(t))
            (void)torus_port_name(t, x->found_node, x->found_port, other);
        (void)json_object_set_new(o, "node", json_integer(x->node));
        (void)json_object_set_new(o, "port", json_string(port));
        (void)json_object_set_new(o, "code", json_string(x->code));
        (void)json_object_set_new(o, "found_node",
                                  found ? json_integer(x->found_node) : json_null());
        (void)json_object_set_new(o, "found_port", found ? json_string(other) : json_null());
        (void)json_object_set_new(o, "text", json_string(x->text));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *shares(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->share_count; i++) {
        const struct torus_share *x = s->shares[i];
        json_t *o = json_object();
        (void)json_object_set_new(o, "resource", json_string(x->resource));
        (void)json_object_set_new(o, "user", json_integer(x->user));
        (void)json_object_set_new(o, "held", json_count(x->held));
        (void)json_object_set_new(o, "most", json_count(x->most));
        (void)json_object_set_new(o, "capacity", json_count(x->capacity));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *groups(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->group_count; i++) {
        const struct torus_group_info *x = s->groups[i];
        json_t *o = json_object();
        (void)json_object_set_new(o, "name", json_string(x->name));
        (void)json_object_set_new(o, "id", json_string(x->id));
        (void)json_object_set_new(o, "state", json_string(x->open ? "open" : "opening"));
        (void)json_object_set_new(o, "missing", json_string(x->missing));
        (void)json_object_set_new(o, "avoids", json_string(x->avoids));
        (void)json_object_set_new(o, "pid", json_known(x->pid));
        (void)json_object_set_new(o, "calls", json_count(x->calls));
        (void)json_object_set_new(o, "calls_done", json_count(x->calls_done));
        (void)json_object_set_new(o, "bytes_sent", json_count(x->bytes_sent));
        (void)json_object_set_new(o, "bytes_received", json_count(x->bytes_received));
        (void)json_object_set_new(o, "early_bytes", json_count(x->early_bytes));
        (void)json_object_set_new(o, "reserved_bytes", json_count(x->reserved_bytes));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *copies(const struct torus_status *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->copy_count; i++) {
        const struct torus_copy_activity *x = s->copies[i];
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(x->id));
        (void)json_object_set_new(o, "asker", json_integer(x->asker));
        (void)json_object_set_new(o, "phase", json_string(torus_copy_phase_name(x->phase)));
        (void)json_object_set_new(o, "files", json_count(x->files));
        (void)json_object_set_new(o, "bytes", json_count(x->bytes));
        (void)json_object_set_new(o, "bytes_of", json_known(x->bytes_of));
        (void)json_object_set_new(o, "target", json_string(x->target));
        (void)json_object_set_new(o, "waits_for", json_string(x->waits_for));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *value_of(const struct torus_status *s, const struct torus *t)
{
    json_t *o = json_object(), *coordinates = json_array(), *memory = json_object();
    int r = 0;

    for (size_t i = 0; i < s->coordinate_count; i++)
        r |= json_array_append_new(coordinates, json_integer(s->coordinates[i]));
    r |= json_object_set_new(memory, "budget_bytes", json_count(s->memory_budget));
    r |= json_object_set_new(memory, "reserved_bytes", json_count(s->memory_reserved));
    r |= json_object_set_new(memory, "used_bytes", json_count(s->memory_used));

    r |= json_object_set_new(o, "version", json_string(s->version));
    r |= json_object_set_new(o, "peer_protocol", json_known(s->peer_protocol));
    r |= json_object_set_new(o, "peer_minor", json_integer(s->peer_minor));
    r |= json_object_set_new(o, "least_peer_minor", json_integer(s->least_peer_minor));
    r |= json_object_set_new(o, "control_protocol", json_known(s->control_protocol));
    r |= json_object_set_new(o, "program_protocol", json_known(s->program_protocol));
    r |= json_object_set_new(o, "pid", json_count(s->pid));
    r |= json_set_torus(o, t);
    r |= json_object_set_new(o, "rank", json_integer(s->rank));
    r |= json_object_set_new(o, "coordinates", coordinates);
    r |= json_object_set_new(o, "uptime_seconds", json_real((double)s->uptime_ms / 1000));
    r |= json_object_set_new(o, "metrics", json_text(s->metrics));
    r |= json_object_set_new(o, "whole", json_boolean(s->whole));
    r |= json_object_set_new(o, "faults", texts(s->faults, s->fault_count));
    r |= json_object_set_new(o, "link_mbit", json_positive(s->link_mbit));
    r |= json_object_set_new(o, "data_roots", texts(s->data_roots, s->data_root_count));
    r |= json_object_set_new(o, "memory", memory);
    r |= json_object_set_new(o, "calibration", calibration_value(s->calibration));
    r |= json_object_set_new(o, "cables", link_faults(s, t));
    r |= json_object_set_new(o, "groups", groups(s));
    r |= json_object_set_new(o, "unconfirmed", unconfirmed(s));
    r |= json_object_set_new(o, "shares", shares(s));
    r |= json_object_set_new(o, "copies", copies(s));
    r |= json_object_set_new(o, "exchanges", exchanges(s));
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
