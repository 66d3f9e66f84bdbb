/* torusctl ip-routes: writes scripts that make every host of a torus reachable by IP over the cables. */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/ip_routes/route_script.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/cluster/hosts_file.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define DEFAULT_ADDRESS "10.128.0.1"
#define DEFAULT_FOLDER "ip-routes"
#define DEFAULT_STATE "/run"

struct ip_routes_arguments {
    const char *dims;
    const char *hosts;
    const char *to;
    struct link_arguments links;
    const char *address;
    const char *congestion;
    const char *state;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct ip_routes_arguments, dims),
     "dimensions of the torus: 8x8, 6, 3x4x5; 4x8m if the 8 does not wrap"},
    {"--hosts", "FILE", offsetof(struct ip_routes_arguments, hosts),
     "INI file that says which host is which node, and on which interfaces its\n"
     "cables are"},
    {"--to", "DIR", offsetof(struct ip_routes_arguments, to),
     "write the scripts into this folder (default: " DEFAULT_FOLDER ")"},
    {"--without", "LIST", offsetof(struct ip_routes_arguments, links.without),
     "cables that routes avoid: 5:+0,7 are the cable at port +0 of node 5, and\n"
     "all cables of node 7"},
    RATE_OPTIONS(ip_routes_arguments, links),
    {"--address", "ADDRESS", offsetof(struct ip_routes_arguments, address),
     "address of node 0; the other nodes have the addresses that follow\n"
     "(default: " DEFAULT_ADDRESS ")"},
    {"--congestion", "NAME", offsetof(struct ip_routes_arguments, congestion),
     "congestion control of TCP over the routes: cubic, bbr, ...\n(default: that of the host)"},
    {"--state", "DIR", offsetof(struct ip_routes_arguments, state),
     "folder on the hosts in which the previous settings are kept;\nit must be empty after a "
     "reboot (default: " DEFAULT_STATE ")"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count"),
           FIELD("addresses"), FIELD("broken cables", "broken"), FIELD("rates"),
           FIELD("longest route", "longest"), FIELD("routes by one cable", "busiest"),
           FIELD("routes by one cable, over its rate", "busiest_by_rate"),
           FIELD("unreachable pairs", "unreachable"), FIELD("scripts"), FIELD("names")),
    TABLE("parts", FIELD("nodes that only reach each other", "nodes")),
};

/* --- figures of the routes --- */

struct figures {
    uint32_t broken, longest;
    uint64_t unreachable; /* pairs */
    double busiest; /* routes in one direction of a cable or, with rates, those over its rate */
};

/* The routes to a node are followed from all others at once: each node passes on what it has to the next ones. */
struct following {
    const struct ip_routes *r;
    double *load;      /* by channel: parts of routes */
    double *passing;   /* by node */
    uint32_t *hops;    /* by node: of the longest route to the destination */
    uint32_t *waiting; /* by node: nodes before it whose parts have not passed */
    uint32_t *ready;
};

static unsigned weights_of(const struct ip_routes *r, uint32_t rank, uint32_t to)
{
    unsigned sum = 0;

    for (unsigned port = 0; port < torus_ports(&r->torus); port++)
        sum += ip_routes_weight(r, rank, to, port);
    return sum;
}

/* Returns the neighbour at a port to which the route to `to` leads, or TORUS_NO_NODE. */
static uint32_t next_of(const struct ip_routes *r, uint32_t rank, uint32_t to, unsigned port)
{
    return ip_routes_weight(r, rank, to, port) > 0 ? torus_neighbour(&r->torus, rank, port)
                                                   : TORUS_NO_NODE;
}

/* Stores the nodes that have routes to `to`, each before those to which it sends, in f->ready. Returns their number. */
static uint32_t sort_nodes(struct following *f, uint32_t to)
{
    const struct ip_routes *r = f->r;
    uint32_t count = 0;

    memset(f->waiting, 0, r->torus.nodes * sizeof *f->waiting);
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++)
            if (next_of(r, rank, to, port) != TORUS_NO_NODE)
                f->waiting[next_of(r, rank, to, port)]++;
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        if (f->waiting[rank] == 0 && rank != to && weights_of(r, rank, to) > 0)
            f->ready[count++] = rank;
    for (uint32_t i = 0; i < count; i++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
            const uint32_t next = next_of(r, f->ready[i], to, port);
            if (next != TORUS_NO_NODE && --f->waiting[next] == 0 && next != to)
                f->ready[count++] = next;
        }
    return count;
}

/* Follows all routes to a node. */
static void follow(struct following *f, uint32_t to, struct figures *figures)
{
    const struct ip_routes *r = f->r;
    const uint32_t count = sort_nodes(f, to);

    figures->unreachable += r->torus.nodes - 1 - count;
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        f->passing[rank] = 1;
    memset(f->hops, 0, r->torus.nodes * sizeof *f->hops);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t rank = f->ready[i];
        const unsigned sum = weights_of(r, rank, to);
        for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
            const uint32_t next = next_of(r, rank, to, port);
            if (next == TORUS_NO_NODE)
                continue;
            const double part = f->passing[rank] * ip_routes_weight(r, rank, to, port) / sum;
            f->load[(size_t)rank * torus_ports(&r->torus) + port] += part;
            f->passing[next] += part;
            if (f->hops[next] <= f->hops[rank])
                f->hops[next] = f->hops[rank] + 1;
        }
    }
    figures->longest = f->hops[to] > figures->longest ? f->hops[to] : figures->longest;
}

static void follow_all(struct following *f, struct figures *figures)
{
    const struct torus *t = &f->r->torus;
    uint32_t ends = 0;

    for (uint32_t to = 0; to < t->nodes; to++) {
        watch_tell((double)to / t->nodes);
        follow(f, to, figures);
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        ends += (uint32_t)__builtin_popcount(f->r->damage.dead[rank]);
        for (unsigned port = 0; port < torus_ports(t); port++) {
            const double load = f->load[(size_t)rank * torus_ports(t) + port] * DAMAGE_FULL_RATE /
                                damage_rate(&f->r->damage, rank, port);
            figures->busiest = load > figures->busiest ? load : figures->busiest;
        }
    }
    figures->broken = ends / 2;
    figures->unreachable /= 2;
}

static int measure(const struct ip_routes *r, struct figures *figures, struct error *e)
{
    const size_t nodes = r->torus.nodes;
    struct following f = {.r = r,
                          .load = calloc(nodes * torus_ports(&r->torus) + 1, sizeof *f.load),
                          .passing = calloc(nodes, sizeof *f.passing),
                          .hops = calloc(nodes, sizeof *f.hops),
                          .waiting = calloc(nodes, sizeof *f.waiting),
                          .ready = calloc(nodes, sizeof *f.ready)};
    int rc = 0;

    *figures = (struct figures){0};
    if (f.load == NULL || f.passing == NULL || f.hops == NULL || f.waiting == NULL ||
        f.ready == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory for the routes");
    else
        follow_all(&f, figures);
    free(f.load);
    free(f.passing);
    free(f.hops);
    free(f.waiting);
    free(f.ready);
    return rc;
}

static int find_routes(struct ip_routes *r, struct figures *figures, struct error *e)
{
    long_work_next("the routes of %u %s", r->torus.nodes,
                   text_plural(r->torus.nodes, "node", "nodes"));
    return ip_routes_find(r, e) == 0 ? measure(r, figures, e) : -1;
}

/* Returns the nodes that reach this node. */
static json_t *part_of(const struct ip_routes *r, uint32_t rank)
{
    json_t *nodes = json_array();

    for (uint32_t other = 0; other < r->torus.nodes; other++)
        if (other == rank || ip_routes_port(r, other, rank) != IP_ROUTES_NO_PORT)
            (void)json_array_append_new(nodes, json_integer(other));
    return json_pack("{s:o}", "nodes", nodes);
}

/* Returns the parts into which broken cables divide the torus, in the order of their lowest ranks. */
static json_t *parts(const struct ip_routes *r)
{
    json_t *list = json_array();

    for (uint32_t rank = 0; rank < r->torus.nodes; rank++) {
        uint32_t lower = 0;
        while (lower < rank && ip_routes_port(r, lower, rank) == IP_ROUTES_NO_PORT)
            lower++;
        if (lower == rank)
            (void)json_array_append_new(list, part_of(r, rank));
    }
    return list;
}

static int set_load(json_t *o, const struct ip_routes *routes, const struct figures *f)
{
    const double load = (double)(uint64_t)(f->busiest * 1000 + 0.5) / 1000;
    char rates[1024];

    if (routes->weight == NULL)
        return json_object_set_new(o, "busiest", json_count((uint64_t)(f->busiest + 0.5)));
    return json_object_set_new(o, "busiest_by_rate", json_real(load)) |
           json_object_set_new(
               o, "rates", json_string(damage_format_rates(&routes->damage, rates, sizeof rates)));
}

static json_t *value_of(const struct route_script *s, const char *folder, const struct figures *f)
{
    const struct torus *t = &s->routes->torus;
    char first[INET_ADDRSTRLEN], last[INET_ADDRSTRLEN];
    json_t *o = json_object();
    int r = json_set_torus(o, t);

    (void)inet_ntop(AF_INET, &s->hosts[0].address, first, sizeof first);
    (void)inet_ntop(AF_INET, &s->hosts[t->nodes - 1].address, last, sizeof last);
    r |= json_object_set_new(o, "node_count", json_integer(t->nodes));
    r |= json_object_set_new(o, "addresses", json_sprintf("%s to %s", first, last));
    r |= json_object_set_new(o, "broken", json_integer(f->broken));
    r |= json_object_set_new(o, "longest", json_integer(f->longest));
    r |= set_load(o, s->routes, f);
    r |= json_object_set_new(o, "unreachable", json_count(f->unreachable));
    if (f->unreachable > 0)
        r |= json_object_set_new(o, "parts", parts(s->routes));
    r |= json_object_set_new(o, "scripts", json_path(folder, "/HOST.sh"));
    r |= json_object_set_new(o, "names", json_path(folder, "/hosts"));
    return json_checked(o, r);
}

/* --- the files --- */

static int write_script(const struct route_script *s, const char *folder, uint32_t rank,
                        struct error *e)
{
    struct output_file file;
    char *path;
    int rc;

    if (asprintf(&path, "%s/%s.sh", folder, s->hosts[rank].name) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    rc = output_file_open(&file, path, e);
    if (rc == 0) {
        route_script_print(file.stream, s, rank);
        rc = output_file_finish(&file, e);
    }
    free(path);
    return rc;
}

/* Writes the addresses and names, in the format of /etc/hosts. */
static int write_names(const struct route_script *s, const char *folder, struct error *e)
{
    char address[INET_ADDRSTRLEN], *path;
    struct output_file file;
    int rc;

    if (asprintf(&path, "%s/hosts", folder) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    rc = output_file_open(&file, path, e);
    if (rc == 0) {
        for (uint32_t rank = 0; rank < s->routes->torus.nodes; rank++)
            (void)fprintf(file.stream, "%s %s\n",
                          inet_ntop(AF_INET, &s->hosts[rank].address, address, sizeof address),
                          s->hosts[rank].name);
        rc = output_file_finish(&file, e);
    }
    free(path);
    return rc;
}

static int write_all(const struct route_script *s, const char *folder, struct error *e)
{
    long_work_next("the scripts of %u %s", s->routes->torus.nodes,
                   text_plural(s->routes->torus.nodes, "node", "nodes"));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_set(e, ERROR_IO, "cannot create %s: %s", folder, strerror(errno));
    for (uint32_t rank = 0; rank < s->routes->torus.nodes; rank++) {
        watch_tell((double)rank / s->routes->torus.nodes);
        if (write_script(s, folder, rank, e) != 0)
            return -1;
    }
    return write_names(s, folder, e);
}

/* --- the command --- */

static int check_texts(const struct cli *cli, const struct ip_routes_arguments *a,
                       const struct torus *t, struct in_addr *first)
{
    const char *address = a->address != NULL ? a->address : DEFAULT_ADDRESS;
    const char *plain = "abcdefghijklmnopqrstuvwxyz0123456789_-";

    if (inet_pton(AF_INET, address, first) != 1)
        return cli_fail_usage(cli, "--address: \"%.50s\" is not an IPv4 address", address);
    /* It is enough to check both ends: a range of addresses that no host can have is larger than a torus. */
    struct in_addr last = {htonl(ntohl(first->s_addr) + t->nodes - 1)};
    if (host_address_problem(*first) != NULL || host_address_problem(last) != NULL ||
        ntohl(last.s_addr) < ntohl(first->s_addr))
        return cli_fail_usage(
            cli, "--address: %s and the addresses that follow are not addresses of hosts", address);
    if (a->congestion != NULL &&
        (a->congestion[0] == '\0' || a->congestion[strspn(a->congestion, plain)] != '\0'))
        return cli_fail_usage(
            cli, "--congestion: \"%.40s\" is not the name of a congestion control", a->congestion);
    if (a->state != NULL && (a->state[0] != '/' || strpbrk(a->state, "'\n") != NULL))
        return cli_fail_usage(cli, "--state: \"%.80s\" is not an absolute path without quotes",
                              a->state);
    return EXIT_DONE;
}

/* Finds the routes, and writes and prints everything. */
static int write_routes(const struct cli *cli, const struct ip_routes_arguments *a,
                        struct ip_routes *r, struct in_addr first)
{
    const char *folder = a->to != NULL ? a->to : DEFAULT_FOLDER;
    struct host *hosts = calloc(r->torus.nodes, sizeof hosts[0]);
    struct route_script s = {.routes = r,
                             .hosts = hosts,
                             .state = a->state != NULL ? a->state : DEFAULT_STATE,
                             .congestion = a->congestion};
    struct figures figures;
    struct error e;
    int code;

    if (hosts == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the hosts");
        return cli_fail(cli, &e);
    }
    if (hosts_file_read(hosts, r, a->hosts, first, &e) != 0 || find_routes(r, &figures, &e) != 0 ||
        write_all(&s, folder, &e) != 0)
        code = cli_fail(cli, &e);
    else
        code = cli_print(cli, value_of(&s, folder, &figures), VIEW(sections));
    free(hosts);
    return code;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct ip_routes_arguments *a = arguments;
    struct ip_routes r;
    struct in_addr first;
    struct torus t;
    struct error e;
    int code;

    if (a->dims == NULL)
        return cli_fail_usage(cli, "--dims is missing: give the torus, such as --dims 4x4");
    if (torus_parse(&t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    if (a->hosts == NULL)
        return cli_fail_usage(cli, "--hosts is missing: give the file that lists the hosts and "
                                   "their interfaces ('torusctl help ip-routes')");
    code = check_texts(cli, a, &t, &first);
    if (code != EXIT_DONE)
        return code;
    if (ip_routes_init(&r, &t, NULL, &e) != 0)
        return cli_fail(cli, &e);
    damage_free(&r.damage);
    code = link_arguments_read(cli, &a->links, &t, &r.damage);
    if (code == EXIT_DONE)
        code = write_routes(cli, a, &r, first);
    ip_routes_free(&r);
    return code;
}

const struct command command_ip_routes = {
    .name = "ip-routes",
    .summary = "Write scripts that make all hosts reachable by IP over the cables",
    .usage =
        "--dims DIMS --hosts FILE [--to DIR] [--without LIST] [--rate LIST]\n"
        "           [--link-rate LIST] [--rates FILE] [--address ADDRESS] [--congestion NAME]\n"
        "           [--state DIR] [--json]",
    .options = options,
    .arguments_size = sizeof(struct ip_routes_arguments),
    .run = run,
};
