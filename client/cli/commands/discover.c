/* torusctl discover: finds all hosts and cables, and the network that the cables make. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/discovering/discovered.h"
#include "client/cli/discovering/discovery_socket.h"
#include "client/cli/discovering/gather.h"
#include "client/cli/drawing/cabling_picture.h"
#include "client/cli/recognising/merging.h"
#include "client/cli/recognising/recognised.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"
#include "daemon/lib/cluster/cluster_file.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

#define WAIT_MS 60000u
#define PICTURE_NODES 64u /* that cabling_picture_draw() draws as a grid */

struct discover_arguments {
    const char *interfaces;
    const char *socket;
    const char *key_file;
    const char *from;
    const char *wait;
    const char *dims;
    const char *cluster;
    const char *exclude;
    const char *output;
    const char *svg;
};

static const struct option options[] = {
    {"--interfaces", "LIST", offsetof(struct discover_arguments, interfaces),
     "if no discovery process runs on this machine: run one for the while, on\n"
     "these interfaces, such as eth1,eth2, or all"},
    {"--key-file", "FILE", offsetof(struct discover_arguments, key_file),
     "cluster key for that process: the result then says which hosts have it"},
    {"--discover-socket", "PATH", offsetof(struct discover_arguments, socket),
     "socket of the discovery process (default: " DISCOVERY_DEFAULT_SOCKET ")"},
    {"--dims", "DIMS", offsetof(struct discover_arguments, dims),
     "the torus that the cables should make, such as 4x4 (default: find it)"},
    {"--cluster", "FILE", offsetof(struct discover_arguments, cluster),
     "compare the cables with this cluster file"},
    {"--exclude", "LIST", offsetof(struct discover_arguments, exclude),
     "interfaces that do not belong to the torus, such as eth0, on all hosts"},
    {"--output", "FILE", offsetof(struct discover_arguments, output),
     "write a cluster file (see torusctl-init(1)); - is standard output. If the\n"
     "file exists, add what is new, and leave everything else as it is"},
    {"--svg", "FILE", offsetof(struct discover_arguments, svg),
     "draw the hosts and cables; - is standard output"},
    {"--from", "FILE", offsetof(struct discover_arguments, from),
     "read the hosts from the output of 'torusctl discover --json'"},
    {"--wait", "SECONDS", offsetof(struct discover_arguments, wait),
     "how long to wait until nothing changes any more (default: 60)"},
    {0},
};

static const struct section sections[] = {
    TABLE("hosts", FIELD("host", "name"), FIELD("cables"), FIELD("key", "trust"),
          FIELD("key id", "key"), FIELD("dims"), FIELD("rank"), FIELD("version")),
    TABLE("cables", FIELD("host"), FIELD("interface"), FIELD("to host", "to_host"),
          FIELD("interface", "to_interface"), FIELD("speed", "speed", FORMAT_MBIT),
          FIELD("MTU", "mtu"), FIELD("problem")),
    {.layout = LAYOUT_TABLE,
     .key = "free",
     .title = "interfaces without a neighbour:",
     FIELDS(FIELD("host"), FIELD("interface"), FIELD("state"))},
    {.layout = LAYOUT_TABLE,
     .key = "left_out",
     FIELDS(FIELD("host"), FIELD("interface"), FIELD("why", "reason")),
     .title = "interfaces that are left out:"},
    TABLE("nodes", FIELD("rank"), FIELD("host"), FIELD("ports", "ports_text")),
};

/* --- the value --- */

/* Why both ends hear each other without a cable of the network; "": it is one. */
static const char *left_out(const struct recognised *r, const struct discovered_cable *c)
{
    const char *why = recognised_left_out(r, c->host_a, c->interface_a);

    return why[0] != '\0' ? why : recognised_left_out(r, c->host_b, c->interface_b);
}

static bool is_end(const struct recognised *r, const struct cabling_end *end, uint32_t host,
                   uint32_t interface)
{
    return r->host_of[end->host] == host && end->interface == interface;
}

/* Whether a move moves or removes the cable. */
static bool is_wrong(const struct recognised *r, const struct discovered_cable *c)
{
    for (uint32_t i = 0; i < r->result.cables; i++) {
        const struct cabling_end *end = r->result.cable[i].end;
        if (r->result.cable[i].state != CABLING_CABLE_WRONG)
            continue;
        if ((is_end(r, &end[0], c->host_a, c->interface_a) &&
             is_end(r, &end[1], c->host_b, c->interface_b)) ||
            (is_end(r, &end[1], c->host_a, c->interface_a) &&
             is_end(r, &end[0], c->host_b, c->interface_b)))
            return true;
    }
    return false;
}

static const char *problem_of(const struct recognised *r, const struct discovered_cable *c,
                              const struct reported_interface *a,
                              const struct reported_interface *b)
{
    if (is_wrong(r, c))
        return "is wrong here";
    if (left_out(r, c)[0] != '\0')
        return left_out(r, c);
    if (!c->mutual)
        return "works in this direction only";
    if (c->host_a == c->host_b)
        return "both ends are at one host";
    if (a->mtu != b->mtu)
        return "the ends have different MTUs";
    return "";
}

/* `for_people`: without the interfaces that are left out, because a switch has many. */
static json_t *cables_json(const struct recognised *r, bool for_people)
{
    const struct discovered *d = r->discovered;
    struct discovered_cable *cable;
    size_t cables = discovered_cables(d, &cable);
    json_t *list = json_array();

    for (size_t i = 0; i < cables; i++) {
        if (for_people && left_out(r, &cable[i])[0] != '\0')
            continue;
        const struct report *a = d->host[cable[i].host_a].report,
                            *b = d->host[cable[i].host_b].report;
        const struct reported_interface *at = &a->interface[cable[i].interface_a],
                                        *to = &b->interface[cable[i].interface_b];
        uint32_t speed = at->speed_mbit < to->speed_mbit ? at->speed_mbit : to->speed_mbit;
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:s}", "host", a->name, "interface",
                      at->name, "to_host", b->name, "to_interface", to->name, "speed",
                      json_known(speed), "mtu", json_known(at->mtu < to->mtu ? at->mtu : to->mtu),
                      "mutual", cable[i].mutual, "problem", problem_of(r, &cable[i], at, to)));
    }
    free(cable);
    return list;
}

static const char *simple_state_of(const struct reported_interface *at)
{
    return !at->up        ? "is down: set it up (ip link set ... up)"
           : !at->carrier ? "no carrier"
           : !at->ipv6    ? "no link-local IPv6 address"
           : at->unanswered
               ? "hellos arrive, but their senders do not answer: does a firewall there drop UDP "
                 "port 7412, or is another release installed?"
               : "nothing is heard";
}

static json_t *state_of(const struct reported_interface *at)
{
    if (at->member_of[0] != '\0')
        return json_sprintf("is a port of %s, which gets its packets (ip link set %s nomaster)",
                            at->member_of, at->name);
    return json_string(simple_state_of(at));
}

static json_t *free_json(const struct discovered *d)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < d->hosts; i++)
        for (unsigned n = 0; n < d->host[i].report->interfaces; n++) {
            const struct reported_interface *at = &d->host[i].report->interface[n];
            if (at->heards == 0)
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "host",
                                                            d->host[i].report->name, "interface",
                                                            at->name, "state", state_of(at)));
        }
    return list;
}

/* Counts the cables of each host for the table. */
static void count_cables(const struct recognised *r, json_t *hosts)
{
    const struct discovered *d = r->discovered;

    for (uint32_t i = 0; i < d->hosts; i++) {
        json_int_t count = 0;
        for (unsigned n = 0; n < d->host[i].report->interfaces; n++)
            if (recognised_left_out(r, i, n)[0] == '\0')
                count += d->host[i].report->interface[n].heards > 0;
        (void)json_object_set_new(json_array_get(hosts, i), "cables", json_integer(count));
    }
}

/* The interfaces that are left out, for the table. */
static json_t *left_out_json(const json_t *value)
{
    const json_t *shared = json_object_get(value, "shared"),
                 *twins = json_object_get(value, "twins");
    json_t *list = json_array(), *item;
    size_t i;

    json_array_foreach(shared, i, item)
    {
        (void)json_object_set_new(item, "reason",
                                  json_string("hears several hosts: a switch or a LAN, no cable"));
        (void)json_array_append(list, item);
    }
    json_array_foreach(twins, i, item)
    {
        (void)json_object_set_new(
            item, "reason",
            json_sprintf("is another function of the port of %s, which is taken",
                         json_string_value(json_object_get(item, "taken"))));
        (void)json_array_append(list, item);
    }
    return list;
}

/* Writes the ports of each node as a text for the table: "+0 eth1, -0 eth2". */
static void add_port_texts(json_t *nodes)
{
    size_t i;
    json_t *node, *interface;
    const char *port;

    json_array_foreach(nodes, i, node)
    {
        char text[FORMAT_SIZE] = "";
        json_object_foreach(json_object_get(node, "ports"), port, interface)
        {
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%s %s", used > 0 ? ", " : "", port,
                           json_is_string(interface) ? json_string_value(interface) : "(none)");
        }
        (void)json_object_set_new(node, "ports_text", json_string(text));
    }
}

/* Whether the picture for people has a table of ports, because it has no grid. */
static bool picture_has_table(const struct cabling_result *r)
{
    return r->finding != CABLING_UNCLEAR &&
           (!torus_is_plain(&r->torus) || r->torus.dims > 2 || r->torus.nodes > PICTURE_NODES);
}

/* The result of discovery, and what the command did with it. */
struct outcome {
    bool settled;
    const char *output;           /* the cluster file that is written; NULL: none */
    const json_t *differences;    /* from the file of --cluster; NULL: there is none */
    const struct merging *merged; /* a cluster file that existed; NULL: none */
};

static json_t *value_of(const struct recognised *r, const struct outcome *x, bool for_people)
{
    const struct discovered *d = r->discovered;
    json_t *hosts = discovered_to_json(d), *cables = cables_json(r, for_people), *value;

    if (hosts != NULL)
        count_cables(r, hosts);
    value = json_pack("{s:o, s:o, s:o, s:b, s:o}", "hosts", hosts, "cables", cables, "free",
                      free_json(d), "settled", x->settled, "key", json_text(d->key));
    if (value == NULL || recognised_to_json(r, value) != 0) {
        json_decref(value);
        return NULL;
    }
    if (x->differences != NULL)
        (void)json_object_set(value, "differences", (json_t *)(uintptr_t)x->differences);
    if (x->merged != NULL) {
        (void)json_object_set(value, "changes", x->merged->changes);
        (void)json_object_set(value, "kept", x->merged->kept);
    }
    if (for_people)
        (void)json_object_set_new(value, "left_out", left_out_json(value));
    if (for_people && picture_has_table(&r->result))
        (void)json_object_del(value, "nodes");
    else if (for_people)
        add_port_texts(json_object_get(value, "nodes"));
    if (x->output != NULL)
        (void)json_object_set_new(value, "output", json_path(x->output, ""));
    return value;
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

static int write_svg(const struct recognised *r, const char *path, struct error *e)
{
    struct output_file file;

    if (output_file_open(&file, path, e) != 0)
        return -1;
    cabling_svg_draw(file.stream, &r->result, &r->input);
    return output_file_finish(&file, e);
}

/* Writes the files that are wanted. Returns 0, or -1 with *e. */
static int write_files(const struct discover_arguments *a, const struct recognised *r,
                       struct merging *m, struct error *e)
{
    if (a->svg != NULL && write_svg(r, a->svg, e) != 0)
        return -1;
    if (a->output == NULL)
        return 0;
    if (m->before != NULL)
        return merging_finish(m, r, e);
    if (r->result.finding == CABLING_FITS)
        return recognised_write_cluster(r, a->output, e);
    cli_warn("the cluster file is not written, because the cables make no network yet");
    return 0;
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Prints an empty line, and a sentence with the name of a file in it. */
static void show_file(const char *before, const char *path, const char *after)
{
    char name[PATH_MAX], text[2 * PATH_MAX];

    (void)snprintf(text, sizeof text, "%s%s%s", before, text_printable(name, sizeof name, path),
                   after);
    (void)fputc('\n', stdout);
    wrap_labelled(stdout, "", 0, text, wrap_columns(stdout));
}

/* Prints sentences about a file, if there are any. */
static void show_sentences(const char *path, const char *title, const json_t *list)
{
    const json_t *text;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    show_file("", path, title);
    json_array_foreach(list, i, text)
        wrap_labelled(stdout, "", 2, json_string_value(text), wrap_columns(stdout));
}

/* Prints what follows the tables. */
static void show_picture(const struct discover_arguments *a, const struct recognised *r,
                         const struct outcome *x)
{
    (void)fputc('\n', stdout);
    cabling_picture_draw(stdout, &r->result, &r->input);
    if (x->merged == NULL && x->output != NULL)
        show_file("The cluster file is ", x->output, ".");
    show_sentences(a->cluster, " differs from what the cables make:", x->differences);
    if (x->merged == NULL)
        return;
    show_sentences(x->merged->path, " is changed:", x->merged->changes);
    show_sentences(x->merged->path, " is left as it is here, because you decide:", x->merged->kept);
    if (json_array_size(x->merged->changes) + json_array_size(x->merged->kept) == 0)
        show_file("", x->merged->path, " is up to date.");
}

/* Writes and prints what is recognised. */
static int show_recognised(const struct cli *cli, const struct discover_arguments *a,
                           const struct recognised *r, bool settled,
                           const struct recognise_options *o, struct merging *m)
{
    const bool fits = r->result.finding == CABLING_FITS;
    struct outcome x = {.settled = settled,
                        .merged = m->before != NULL ? m : NULL,
                        .output = fits ? a->output : NULL};
    struct error e;
    json_t *differences = NULL;
    int code = EXIT_DONE;

    if (o->cluster != NULL)
        differences = recognised_differences(r, o->cluster);
    x.differences = differences;
    if (write_files(a, r, m, &e) != 0) {
        code = cli_fail(cli, &e);
    } else if (!is_stdout(a->svg) && !(is_stdout(a->output) && fits)) {
        code = cli_print(cli, value_of(r, &x, !cli->json), VIEW(sections));
        if (!cli->json)
            show_picture(a, r, &x);
    }
    if (code == EXIT_DONE &&
        (!fits || json_array_size(differences) > 0 || json_array_size(m->kept) > 0))
        code = EXIT_FAILED;
    json_decref(differences);
    return code;
}

/* Recognises the network, and prints and writes everything. */
static int show(const struct cli *cli, const struct discover_arguments *a,
                const struct discovered *d, bool settled, const struct recognise_options *o,
                struct merging *m)
{
    struct recognised r;
    struct error e;
    int code;

    if (merging_recognise(m, &r, d, o, &e) != 0)
        return cli_fail(cli, &e);
    code = show_recognised(cli, a, &r, settled, o, m);
    recognised_free(&r);
    return code;
}

/* Reads what the cables should make. Returns EXIT_DONE, or another exit code after printing the reason. */
static int read_wanted(const struct cli *cli, const struct discover_arguments *a,
                       struct torus *torus, struct cluster *cluster, struct recognise_options *o)
{
    struct error e;

    *o = (struct recognise_options){.exclude = a->exclude};
    if (a->dims != NULL && a->cluster != NULL)
        return cli_fail_usage(cli, "--dims and --cluster exclude each other: the cluster file has "
                                   "the dimensions");
    if (a->dims != NULL && torus_parse(torus, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    o->wanted = a->dims != NULL ? torus : NULL;
    if (a->cluster != NULL && cluster_read(cluster, a->cluster, &e) != 0)
        return cli_fail(cli, &e);
    o->cluster = a->cluster != NULL ? cluster : NULL;
    return EXIT_DONE;
}

/* Reads the cluster file that will be changed, if it exists. Returns EXIT_DONE, or another exit code after printing the
 * reason. */
static int read_output(const struct cli *cli, const struct discover_arguments *a, struct merging *m)
{
    struct error e;

    if (a->output == NULL)
        return EXIT_DONE;
    if (merging_begin(m, a->output, &e) != 0)
        return cli_fail(cli, &e);
    if (m->before != NULL && a->cluster != NULL)
        return cli_fail_usage(cli, "--cluster and --output exclude each other where the file of "
                                   "--output exists: it is compared as well");
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct discover_arguments *a = arguments;
    struct recognise_options o;
    struct merging m = {0};
    struct discovered d;
    struct cluster cluster;
    struct torus torus;
    bool settled;
    int code = read_wanted(cli, a, &torus, &cluster, &o);

    if (code != EXIT_DONE)
        return code;
    code = read_output(cli, a, &m);
    if (code == EXIT_DONE)
        code = find_hosts(cli, a, &d, &settled);
    if (code == EXIT_DONE) {
        if (!settled)
            cli_warn("hosts or cables still change: this is what was found so far");
        code = show(cli, a, &d, settled, &o, &m);
        discovered_free(&d);
    }
    merging_free(&m);
    if (o.cluster != NULL)
        cluster_free(&cluster);
    return code;
}

const struct command command_discover = {
    .name = "discover",
    .summary = "Find all hosts and cables, and the network that the cables make",
    .usage = "[--interfaces LIST [--key-file FILE]] [--discover-socket PATH]\n"
             "           [--dims DIMS | --cluster FILE] [--exclude LIST] [--output FILE]\n"
             "           [--svg FILE] [--from FILE] [--wait SECONDS] [--json]",
    .options = options,
    .arguments_size = sizeof(struct discover_arguments),
    .run = run,
};
