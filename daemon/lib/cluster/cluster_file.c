#include "daemon/lib/cluster/cluster_file.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cluster/hosts_file.h"
#include "proto/ini.h"
#include "proto/number.h"

bool cluster_has_cable(const struct cluster *c, uint32_t rank, unsigned port)
{
    return torus_neighbour(&c->routes.torus, rank, port) != TORUS_NO_NODE;
}

const char *cluster_port_address(const struct cluster *c, uint32_t rank, unsigned port,
                                 bool as_given, char text[CLUSTER_PORT_TEXT_SIZE])
{
    const struct torus *t = &c->routes.torus;
    const struct cable_end *own = &c->hosts[rank].port[port], *listening = own;
    char address[INET_ADDRSTRLEN];

    if (torus_port_dials(t, rank, port))
        listening = &c->hosts[torus_neighbour(t, rank, port)].port[torus_port_opposite(t, port)];
    if (as_given && listening->address.s_addr != 0)
        (void)snprintf(text, CLUSTER_PORT_TEXT_SIZE, "%s:%u on %s",
                       inet_ntop(AF_INET, &listening->address, address, sizeof address), c->port,
                       own->interface);
    else
        (void)snprintf(text, CLUSTER_PORT_TEXT_SIZE, "[" CLUSTER_LISTENING_ADDRESS "%%%s]:%u",
                       own->interface, c->port);
    return text;
}

struct nominal_rate cluster_port_rate(const struct cluster *c, uint32_t rank, unsigned port)
{
    const struct torus *t = &c->routes.torus;
    const struct cable_end *own = &c->hosts[rank].port[port];

    if (own->rate_line != 0 || !cluster_has_cable(c, rank, port))
        return own->rate;
    return nominal_rate_reversed(
        c->hosts[torus_neighbour(t, rank, port)].port[torus_port_opposite(t, port)].rate);
}

#define DEFAULT_FIRST_ADDRESS "10.128.0.1"
#define DEFAULT_PORT 7411u
#define DEFAULTS "*"

static const struct text_kind cluster_kind = {.name = "a cluster file", .most = CLUSTER_FILE_MOST};

/* The settings of torusd.ini that [cluster] may have. Those that init sets itself are not among them. */
static const char *const shared_settings[] = {
    "data_roots",  "output_mode",
    "read_group",  "exchange_group",
    "admin_group", "encrypt",
    "link_mbit",   "link_burst",
    "memory",      "heartbeat_ms",
    "silence_ms",  "congestion",
    "log_level",   "daemons_per_processor",
    "metrics",     "io_threads",
};

/* The settings of init in [cluster]. */
enum own_setting { DIMS, ADDRESS, ADDRESS6, PORT, IP_ROUTES, OWN_SETTINGS };
static const char *const own_settings[OWN_SETTINGS] = {"dims", "address", "address6", "port",
                                                       "ip_routes"};

struct reading {
    struct cluster *cluster;
    struct torus torus;
    struct in_addr first;
    uint32_t own_line[OWN_SETTINGS];
    uint32_t shared_line[sizeof shared_settings / sizeof shared_settings[0]];
    bool in_cluster, unfinished;
};

/* --- the section [cluster] --- */

static int set_yes_or_no(const struct ini_line *line, bool *value, struct error *e)
{
    *value = strcmp(line->value, "yes") == 0;
    if (*value || strcmp(line->value, "no") == 0)
        return 0;
    return error_set(e, ERROR_USAGE, "%s \"%.40s\" is neither yes nor no", line->name, line->value);
}

/* "no", or an address that leaves room for the other hosts in its last two bytes. */
static int set_address6(struct cluster *c, const char *value, struct error *e)
{
    c->address6_kind = ADDRESS6_NONE;
    if (strcmp(value, "no") == 0)
        return 0;
    c->address6_kind = ADDRESS6_GIVEN;
    if (inet_pton(AF_INET6, value, &c->address6) == 1 && !IN6_IS_ADDR_MULTICAST(&c->address6) &&
        !IN6_IS_ADDR_LINKLOCAL(&c->address6) && !IN6_IS_ADDR_UNSPECIFIED(&c->address6) &&
        !IN6_IS_ADDR_LOOPBACK(&c->address6) && !IN6_IS_ADDR_V4MAPPED(&c->address6) &&
        c->address6.s6_addr[14] < 0xf0)
        return 0;
    return error_set(
        e, ERROR_USAGE,
        "address6 \"%.60s\" is neither \"no\" nor an IPv6 address for the first host, as "
        "fd12:3456:789a::1",
        value);
}

static int set_own(struct reading *r, enum own_setting which, const struct ini_line *line,
                   struct error *e)
{
    uint32_t port = 0;

    switch (which) {
    case DIMS:
        if (strstr(line->value, "graph:") != NULL)
            return error_set(e, ERROR_USAGE,
                             "dims: a graph from a file is not possible here: write torusd.ini of "
                             "each host by hand (torusd.ini(5))");
        r->cluster->has_dims = true;
        return torus_parse(&r->torus, line->value, e);
    case ADDRESS:
        return host_address_parse(line->value, &r->first, e);
    case ADDRESS6:
        return set_address6(r->cluster, line->value, e);
    case PORT:
        if (number_parse(line->value, UINT16_MAX, &port, e) != 0 || port == 0)
            return error_set(e, ERROR_USAGE, "port \"%.40s\" is not a TCP port from 1 to %u",
                             line->value, UINT16_MAX);
        r->cluster->port = port;
        return 0;
    case IP_ROUTES:
    case OWN_SETTINGS:
    default:
        return set_yes_or_no(line, &r->cluster->ip_routes, e);
    }
}

static int check_once(uint32_t *first, const struct ini_line *line, struct error *e)
{
    if (*first != 0)
        return error_set(e, ERROR_USAGE, "%s is given twice; the first is in line %u", line->name,
                         *first);
    *first = line->number;
    return 0;
}

static int add_shared(struct cluster *c, const struct ini_line *line, struct error *e)
{
    size_t used = strlen(c->settings), left = sizeof c->settings - used;

    if ((size_t)snprintf(c->settings + used, left, "%s = %s\n", line->name, line->value) >= left)
        return error_set(e, ERROR_USAGE,
                         "the settings are too long: at most %zu bytes are possible",
                         sizeof c->settings - 1);
    if (strcmp(line->name, "data_roots") != 0)
        return 0;
    for (const char *root = line->value; root != NULL; root = strchr(root, ':')) {
        root += *root == ':';
        if (*root != '/' || strpbrk(root, "\"\\%") != NULL)
            return error_set(e, ERROR_USAGE,
                             "data_roots \"%.80s\": each folder needs an absolute path without "
                             "quotes, \\ and %%",
                             line->value);
    }
    if (strlen(line->value) >= sizeof c->data_roots)
        return error_set(e, ERROR_USAGE, "data_roots is too long: at most %zu bytes are possible",
                         sizeof c->data_roots - 1);
    (void)strcpy(c->data_roots, line->value);
    return 0;
}

static int set_cluster(struct reading *r, const struct ini_line *line, struct error *e)
{
    for (unsigned i = 0; i < OWN_SETTINGS; i++)
        if (strcmp(line->name, own_settings[i]) == 0)
            return check_once(&r->own_line[i], line, e) == 0
                       ? set_own(r, (enum own_setting)i, line, e)
                       : -1;
    for (size_t i = 0; i < sizeof shared_settings / sizeof shared_settings[0]; i++)
        if (strcmp(line->name, shared_settings[i]) == 0)
            return check_once(&r->shared_line[i], line, e) == 0 ? add_shared(r->cluster, line, e)
                                                                : -1;
    return error_set(
        e, ERROR_USAGE,
        "unknown setting \"%.40s\" of [" CLUSTER_SECTION
        "]: there are dims, address, address6, port, ip_routes, and the settings of torusd.ini "
        "that all hosts share, such as link_mbit",
        line->name);
}

/* --- the hosts --- */

static int add_host(struct cluster *c, const struct ini_line *line, struct error *e)
{
    struct host *more;

    if (hosts_file_check_name(line->section, e) != 0)
        return -1;
    if (c->count == IP_ROUTES_MOST_NODES)
        return error_set(e, ERROR_USAGE, "too many hosts: at most %d are possible",
                         IP_ROUTES_MOST_NODES);
    if ((c->count & (c->count - 1)) == 0) {
        more = realloc(c->hosts, 2 * (c->count + 1) * sizeof *more);
        if (more == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
        c->hosts = more;
    }
    c->hosts[c->count] = (struct host){.line = line->number};
    (void)strcpy(c->hosts[c->count++].name, line->section);
    return 0;
}

/* The first pass: the section [cluster], and the names of the hosts. Everything else is left to hosts_file.c. */
static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    struct reading *r = context;

    if (line->name == NULL) {
        r->in_cluster = strcmp(line->section, CLUSTER_SECTION) == 0;
        return r->in_cluster || strcmp(line->section, DEFAULTS) == 0
                   ? 0
                   : add_host(r->cluster, line, e);
    }
    if (r->in_cluster)
        return set_cluster(r, line, e);
    r->cluster->has_ports |= strchr("+-0123456789", line->name[0]) != NULL;
    return 0;
}

/* The second pass: reads the hosts in the order of their ranks, with the interfaces of their ports. */
static int read_hosts(struct reading *r, const char *name, struct error *e)
{
    struct cluster *c = r->cluster;
    char *copy = strdup(c->text);
    struct host *hosts;
    int rc;

    if (ip_routes_init(&c->routes, &r->torus, NULL, e) != 0) {
        free(copy);
        return -1;
    }
    hosts = calloc(r->torus.nodes, sizeof *hosts);
    free(c->hosts);
    c->hosts = hosts;
    c->count = r->torus.nodes;
    if (hosts == NULL || copy == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    else
        rc = hosts_file_read_text(hosts, &c->routes, name, copy, c->length, r->first, r->unfinished,
                                  e);
    free(copy);
    if (rc == 0 && c->ip_routes && !r->unfinished)
        rc = ip_routes_find(&c->routes, e);
    if (rc != 0)
        ip_routes_free(&c->routes);
    return rc;
}

static int check_hosts(const struct cluster *c, const char *name, bool unfinished, struct error *e)
{
    if (c->count == 0 && !unfinished)
        return error_set(e, ERROR_USAGE, "%.200s has no hosts: each needs a section [HOST]", name);
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t other = 0; other < i; other++)
            if (hosts_file_is_same_host(c->hosts[i].name, c->hosts[other].name))
                return error_set(e, ERROR_USAGE,
                                 "%.200s:%u: [%.80s] is the same host as in line %u", name,
                                 c->hosts[i].line, c->hosts[i].name, c->hosts[other].line);
    return 0;
}

static int read_passes(struct reading *r, const char *name, struct error *e)
{
    struct cluster *c = r->cluster;
    char *copy = strdup(c->text);
    int rc;

    if (copy == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the cluster file");
    rc = ini_read_text(name, &cluster_kind, copy, c->length, on_line, r, e);
    free(copy);
    if (rc == 0)
        rc = check_hosts(c, name, r->unfinished, e);
    if (rc == 0 && c->has_ports && !c->has_dims)
        rc =
            error_set(e, ERROR_USAGE,
                      "%.200s: [" CLUSTER_SECTION
                      "] has no dims, as in \"dims = 3x3\"; without dims, leave out all ports, and "
                      "discovery finds both",
                      name);
    if (rc == 0 && r->unfinished)
        c->has_ports = c->has_dims;
    if (rc == 0 && c->has_ports)
        rc = read_hosts(r, name, e);
    return rc;
}

static int read_text(struct cluster *c, const char *name, const char *text, size_t length,
                     bool unfinished, struct error *e)
{
    struct reading r = {.cluster = c, .unfinished = unfinished};

    *c = (struct cluster){.ip_routes = true, .port = DEFAULT_PORT};
    (void)inet_pton(AF_INET, DEFAULT_FIRST_ADDRESS, &r.first);
    if (length > CLUSTER_FILE_MOST)
        return error_set(e, ERROR_REFUSED, "%.200s is larger than %u KiB", name,
                         CLUSTER_FILE_MOST >> 10);
    if (text_check(&text, &length, &cluster_kind, e) != 0)
        return error_wrap(e, "%.200s", name);
    c->text = strndup(text, length);
    c->length = length;
    if (c->text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the cluster file");
    if (read_passes(&r, name, e) == 0)
        return 0;
    free(c->hosts);
    free(c->text);
    return -1;
}

int cluster_read_text(struct cluster *c, const char *name, const char *text, size_t length,
                      struct error *e)
{
    return read_text(c, name, text, length, false, e);
}

int cluster_read_unfinished(struct cluster *c, const char *name, const char *text, size_t length,
                            struct error *e)
{
    return read_text(c, name, text, length, true, e);
}

int cluster_read(struct cluster *c, const char *path, struct error *e)
{
    char *text;
    size_t length;
    int rc;

    if (text_file_read(path, &cluster_kind, &text, &length, e) != 0)
        return -1;
    rc = cluster_read_text(c, path, text, length, e);
    free(text);
    return rc;
}

void cluster_free(struct cluster *c)
{
    if (c->has_ports)
        ip_routes_free(&c->routes);
    free(c->hosts);
    free(c->text);
}

int64_t cluster_find(const struct cluster *c, const char *name)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (hosts_file_is_same_host(c->hosts[i].name, name))
            return (int64_t)i;
    return -1;
}
