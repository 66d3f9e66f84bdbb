/* torusctl discover: finds all hosts and cables, and the network that the cables make. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/discovering/discovered_json.h"
#include "client/cli/discovering/gather.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"

#define WAIT_MS 60000u

struct discover_arguments {
    const char *interfaces;
    const char *socket;
    const char *key_file;
    const char *from;
    const char *wait;
};

static const struct option options[] = {
    {"--interfaces", "LIST", offsetof(struct discover_arguments, interfaces),
     "if no discovery process runs on this machine: run one for the while, on\n"
     "these interfaces, such as eth1,eth2, or all"},
    {"--key-file", "FILE", offsetof(struct discover_arguments, key_file),
     "cluster key for that process: the result then says which hosts have it"},
    {"--discover-socket", "PATH", offsetof(struct discover_arguments, socket),
     "socket of the discovery process (default: /run/torusd/discover.sock)"},
    {"--from", "FILE", offsetof(struct discover_arguments, from),
     "read the hosts from the output of 'torusctl discover --json'"},
    {"--wait", "SECONDS", offsetof(struct discover_arguments, wait),
     "how long to wait until nothing changes any more (default: 60)"},
    {0},
};

static const struct field host_fields[] = {
    {"host", "name", FORMAT_PLAIN},       {"cables", "cables", FORMAT_PLAIN},
    {"key", "trust", FORMAT_PLAIN},       {"key id", "key", FORMAT_PLAIN},
    {"dims", "dims", FORMAT_PLAIN},       {"rank", "rank", FORMAT_PLAIN},
    {"version", "version", FORMAT_PLAIN}, {0},
};
static const struct field cable_fields[] = {
    {"host", "host", FORMAT_PLAIN},       {"interface", "interface", FORMAT_PLAIN},
    {"to host", "to_host", FORMAT_PLAIN}, {"interface", "to_interface", FORMAT_PLAIN},
    {"speed", "speed", FORMAT_MBIT},      {"MTU", "mtu", FORMAT_PLAIN},
    {"problem", "problem", FORMAT_PLAIN}, {0},
};
static const struct field free_fields[] = {
    {"host", "host", FORMAT_PLAIN},
    {"interface", "interface", FORMAT_PLAIN},
    {"state", "state", FORMAT_PLAIN},
    {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_TABLE, .key = "hosts", .fields = host_fields},
    {.layout = LAYOUT_TABLE, .key = "cables", .fields = cable_fields},
    {.layout = LAYOUT_TABLE,
     .key = "free",
     .title = "interfaces without a neighbour:",
     .fields = free_fields},
};

/* --- the value --- */

static const char *problem_of(const struct discovered_cable *c, const struct reported_interface *a,
                              const struct reported_interface *b)
{
    if (!c->mutual)
        return "works in this direction only";
    if (c->host_a == c->host_b)
        return "both ends are at one host";
    if (a->mtu != b->mtu)
        return "the ends have different MTUs";
    return "";
}

static json_t *cables_json(const struct discovered *d)
{
    struct discovered_cable *cable;
    size_t cables = discovered_cables(d, &cable);
    json_t *list = json_array();

    for (size_t i = 0; i < cables; i++) {
        const struct report *a = d->host[cable[i].host_a].report,
                            *b = d->host[cable[i].host_b].report;
        const struct reported_interface *at = &a->interface[cable[i].interface_a],
                                        *to = &b->interface[cable[i].interface_b];
        uint32_t speed = at->speed_mbit < to->speed_mbit ? at->speed_mbit : to->speed_mbit;
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:b, s:s}", "host", a->name,
                            "interface", at->name, "to_host", b->name, "to_interface", to->name,
                            "speed", speed > 0 ? json_integer(speed) : json_null(), "mtu",
                            (json_int_t)(at->mtu < to->mtu ? at->mtu : to->mtu), "mutual",
                            cable[i].mutual, "problem", problem_of(&cable[i], at, to)));
    }
    free(cable);
    return list;
}

static const char *state_of(const struct reported_interface *at)
{
    return !at->up        ? "is down: set it up (ip link set ... up, or torusd --set-up-links)"
           : !at->carrier ? "no carrier"
           : !at->ipv6    ? "no link-local IPv6 address"
                          : "nothing is heard";
}

static json_t *free_json(const struct discovered *d)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < d->hosts; i++)
        for (unsigned n = 0; n < d->host[i].report->interfaces; n++) {
            const struct reported_interface *at = &d->host[i].report->interface[n];
            if (at->heards == 0)
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "host",
                                                            d->host[i].report->name, "interface",
                                                            at->name, "state", state_of(at)));
        }
    return list;
}

/* Counts the cables of each host for the table. */
static void count_cables(const struct discovered *d, json_t *hosts)
{
    for (uint32_t i = 0; i < d->hosts; i++) {
        json_int_t count = 0;
        for (unsigned n = 0; n < d->host[i].report->interfaces; n++)
            count += d->host[i].report->interface[n].heards;
        (void)json_object_set_new(json_array_get(hosts, i), "cables", json_integer(count));
    }
}

static json_t *value_of(const struct discovered *d, bool settled)
{
    json_t *hosts = discovered_to_json(d);

    if (hosts != NULL)
        count_cables(d, hosts);
    return json_pack("{s:o, s:o, s:o, s:b, s:o}", "hosts", hosts, "cables", cables_json(d), "free",
                     free_json(d), "settled", settled, "key",
                     d->key[0] != '\0' ? json_string(d->key) : json_null());
}

/* --- the command --- */

static int no_process(const struct cli *cli, const struct discover_arguments *a,
                      const struct error *e)
{
    char text[512];

    if (a->socket != NULL)
        return cli_fail_no_process(cli, e->text);
    (void)snprintf(text, sizeof text,
                   "%s; or name the interfaces that have cables, such as --interfaces eth1,eth2 "
                   "(see 'ip link'), and discovery runs while this command waits",
                   e->text);
    return cli_fail_no_process(cli, text);
}

/* Reads the hosts from a file, or asks for them. Returns EXIT_DONE with *d, or another exit code after
 * printing the reason. */
static int find_hosts(const struct cli *cli, const struct discover_arguments *a,
                      struct discovered *d, bool *settled)
{
    struct gather_options o = {a->socket, a->interfaces, a->key_file, WAIT_MS};
    struct error e;

    *settled = true;
    if (a->wait != NULL && parse_seconds(a->wait, &o.wait_ms, &e) != 0)
        return cli_fail_usage(cli, "--wait: %s", e.text);
    if (a->from != NULL)
        return discovered_read(d, a->from, &e) == 0 ? EXIT_DONE : cli_fail(cli, &e);
    if (gather_hosts(d, &o, settled, &e) == 0)
        return EXIT_DONE;
    return errno == ENOENT || errno == ECONNREFUSED ? no_process(cli, a, &e) : cli_fail(cli, &e);
}

static int run(struct cli *cli, const void *arguments)
{
    const struct discover_arguments *a = arguments;
    struct discovered d;
    bool settled;
    int code = find_hosts(cli, a, &d, &settled);

    if (code != EXIT_DONE)
        return code;
    if (!settled)
        cli_warn("hosts or cables still change: this is what was found so far");
    code = cli_print(cli, value_of(&d, settled),
                     &(struct view){sections, sizeof sections / sizeof sections[0]});
    discovered_free(&d);
    return code;
}

extern const struct command command_discover;
const struct command command_discover = {
    .name = "discover",
    .summary = "Find all hosts and cables, and the network that the cables make",
    .usage = "[--interfaces LIST [--key-file FILE]] [--discover-socket PATH] [--from FILE]\n"
             "           [--wait SECONDS] [--json]",
    .details =
        "Discovery needs no configuration: hosts send multicast packets over each cable, and\n"
        "tell each other what they hear.\n",
    .options = options,
    .arguments_size = sizeof(struct discover_arguments),
    .run = run,
};
