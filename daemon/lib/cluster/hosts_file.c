#include "daemon/lib/cluster/hosts_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/ini.h"
#include "proto/number.h"
#include "proto/text.h"

#define LENGTH 32u /* bits of an address */

const char *host_address_problem(struct in_addr address)
{
    uint32_t value = ntohl(address.s_addr);

    if (value >> 24 == 0)
        return "is not specified";
    if (value >> 24 == 127)
        return "is a loopback address";
    if (IN_MULTICAST(value))
        return "is a multicast address";
    if (value == INADDR_BROADCAST)
        return "is the broadcast address";
    if (value >> 28 == 15)
        return "is reserved";
    return NULL;
}

/* Returns why no host can have this address in a network with this prefix, or NULL if a host can. */
static const char *place_in_network(uint32_t value, uint32_t prefix)
{
    uint32_t host = prefix == 0 ? UINT32_MAX : (UINT32_C(1) << (LENGTH - prefix)) - 1;

    if (prefix >= LENGTH - 1) /* such networks have no network or broadcast address */
        return NULL;
    if ((value & host) == 0)
        return "is the address of that network";
    return (value & host) == host ? "is the broadcast address of that network" : NULL;
}

int host_address_parse(const char *text, struct in_addr *address, struct error *e)
{
    char alone[INET_ADDRSTRLEN] = "";
    size_t length = strcspn(text, "/");
    uint32_t prefix = LENGTH;
    const char *problem;

    if (length < sizeof alone)
        memcpy(alone, text, length);
    if (inet_pton(AF_INET, alone, address) != 1)
        return error_set(e, ERROR_USAGE, "\"%.50s\" is not an IPv4 address of a host", text);
    if (text[length] == '/' && number_parse(text + length + 1, LENGTH, &prefix, e) != 0)
        return error_wrap(e, "\"%.50s\": the prefix", text);
    problem = host_address_problem(*address);
    if (problem == NULL)
        problem = place_in_network(ntohl(address->s_addr), prefix);
    if (problem != NULL)
        return error_set(e, ERROR_USAGE, "%.50s %s: no host can have it", text, problem);
    return 0;
}

#define BYTES_MOST (16u << 20)
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
#define DEFAULTS "*" /* the section whose ports apply to all hosts that do not set these ports */

/* A section of the file: a host that is not yet in the order of ranks. */
struct section {
    struct host host;
    uint32_t hash; /* of the name up to the first dot, which is the same for all names of a host */
    uint32_t rank, rank_line;
    bool named; /* it has a port such as 0:3, whose meaning depends on the rank */
};

struct reading {
    const struct torus *torus;
    struct section *sections; /* as many as there are nodes */
    uint32_t count;
    struct section defaults;
    struct section *current; /* NULL: none has begun, or that of the cluster */
    bool in_cluster;         /* in CLUSTER_SECTION */
    bool unfinished;         /* hosts and interfaces may be missing */
};

/* --- sections --- */

bool hosts_file_is_same_host(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);

    a_length -= a_length > 0 && a[a_length - 1] == '.';
    b_length -= b_length > 0 && b[b_length - 1] == '.';
    if (a_length > b_length)
        return hosts_file_is_same_host(b, a);
    if (strncasecmp(a, b, a_length) != 0)
        return false;
    return a_length == b_length || (b[a_length] == '.' && memchr(a, '.', a_length) == NULL);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 0;

    for (; *name != '\0' && *name != '.'; name++)
        hash = 31 * hash + (uint32_t)tolower((unsigned char)*name);
    return hash;
}

int hosts_file_check_name(const char *name, struct error *e)
{
    size_t length = strspn(name, LETTERS);
    struct in_addr address;

    if (length == 0 || name[length] != '\0' || name[0] == '-' || name[0] == '.')
        return error_set(e, ERROR_USAGE, "\"%.50s\" is not the name of a host", name);
    if (length >= HOST_NAME_SIZE)
        return error_set(e, ERROR_USAGE, "the name %.50s... is too long: %zu of at most %d letters",
                         name, length, HOST_NAME_SIZE - 1);
    if (hosts_file_is_same_host(name, "localhost"))
        return error_set(e, ERROR_USAGE, "\"%.50s\" is every host's name for itself", name);
    if (inet_pton(AF_INET, name, &address) == 1)
        return error_set(e, ERROR_USAGE, "\"%.50s\" is an address, not the name of a host", name);
    return 0;
}

static int begin_defaults(struct reading *r, uint32_t line, struct error *e)
{
    if (r->defaults.host.line != 0)
        return error_set(e, ERROR_USAGE, "[" DEFAULTS "] occurs twice; the first is in line %u",
                         r->defaults.host.line);
    r->defaults.host.line = line;
    r->current = &r->defaults;
    return 0;
}

static int begin_section(struct reading *r, const char *name, uint32_t line, struct error *e)
{
    struct section *s = &r->sections[r->count];

    r->in_cluster = strcmp(name, CLUSTER_SECTION) == 0;
    r->current = NULL;
    if (r->in_cluster)
        return 0;
    if (strcmp(name, DEFAULTS) == 0)
        return begin_defaults(r, line, e);
    if (hosts_file_check_name(name, e) != 0)
        return -1;
    uint32_t hash = hash_of(name);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->sections[i].hash == hash && hosts_file_is_same_host(r->sections[i].host.name, name))
            return error_set(e, ERROR_USAGE, "[%.80s] is the same host as [%.80s] in line %u", name,
                             r->sections[i].host.name, r->sections[i].host.line);
    if (r->count == r->torus->nodes)
        return error_set(e, ERROR_USAGE, "[%.80s] is one host too many: the torus has %u %s", name,
                         r->torus->nodes, text_plural(r->torus->nodes, "node", "nodes"));
    *s = (struct section){.host.line = line, .hash = hash};
    (void)strcpy(s->host.name, name);
    r->current = s;
    r->count++;
    return 0;
}

/* --- settings --- */

/* Rejects interfaces that no cable can have. Labels ("eth0:1") and suffixes of veth ("eth0@if5") are ignored. */
static int check_interface(const char *name, struct error *e)
{
    size_t length = strcspn(name, ":@");

    if (length == 2 && memcmp(name, "lo", length) == 0)
        return error_set(e, ERROR_USAGE, "%s is the loopback interface, which cannot have a cable",
                         name);
    if (length == strlen(OWN_INTERFACE) && memcmp(name, OWN_INTERFACE, length) == 0)
        return error_set(e, ERROR_USAGE,
                         "%s is the interface that the scripts create for the address of the node",
                         name);
    return 0;
}

/* Reads "enp1s0" or "enp1s0 10.0.0.1". */
static int parse_cable_end(const char *text, struct cable_end *end, struct error *e)
{
    size_t length = strcspn(text, " \t"), letters = strspn(text, LETTERS ":@");

    if (length == 0 || letters < length || text[0] == '-' || text[0] == '.')
        return error_set(e, ERROR_USAGE, "\"%.*s\" is not the name of an interface",
                         length < 50 ? (int)length : 50, text);
    if (length >= sizeof end->interface)
        return error_set(
            e, ERROR_USAGE,
            "\"%.*s\" is not the name of an interface: it has %zu letters, at most %zu "
            "are possible",
            length < 50 ? (int)length : 50, text, length, sizeof end->interface - 1);
    memcpy(end->interface, text, length);
    end->interface[length] = '\0';
    if (check_interface(end->interface, e) != 0)
        return -1;
    text += length + strspn(text + length, " \t");
    return *text == '\0' ? 0 : host_address_parse(text, &end->address, e);
}

/* Returns the end of a cable that a line with this name of a port is about; NULL with *e: there is no such port. */
static struct cable_end *find_end(struct reading *r, const char *name, struct error *e)
{
    bool is_default = r->current == &r->defaults;
    uint32_t index = (uint32_t)(r->current - r->sections);
    uint32_t rank = is_default ? 0 : r->current->rank_line != 0 ? r->current->rank : index;
    int port = torus_port_parse(r->torus, rank, name);

    if (is_default && strchr(name, ':') != NULL)
        (void)error_set(e, ERROR_USAGE,
                        "[" DEFAULTS
                        "] cannot have port %.20s: which neighbour it leads to depends "
                        "on the host",
                        name);
    else if (port < 0 && strchr(name, ':') != NULL)
        (void)error_set(e, ERROR_USAGE, "node %u has no port \"%.20s\"", rank, name);
    else if (port < 0)
        (void)error_set(e, ERROR_USAGE, "the torus has no port \"%.20s\"", name);
    if (port < 0 || (is_default && strchr(name, ':') != NULL))
        return NULL;
    r->current->named |= strchr(name, ':') != NULL;
    return &r->current->host.port[port];
}

static int set_interface(struct reading *r, const struct ini_line *line, struct error *e)
{
    const bool is_default = r->current == &r->defaults;
    struct cable_end *end = find_end(r, line->name, e);

    if (end == NULL)
        return -1;
    if (end->line != 0)
        return error_set(e, ERROR_USAGE, "port %s of [%.80s] is given twice", line->name,
                         line->section);
    end->line = line->number;
    if (parse_cable_end(line->value, end, e) != 0)
        return -1;
    if (is_default && end->address.s_addr != 0)
        return error_set(e, ERROR_USAGE, "[" DEFAULTS "] cannot have addresses");
    return 0;
}

/* Reads "+0.link_mbit = 1000". */
static int set_rate(struct reading *r, const struct ini_line *line, size_t length, struct error *e)
{
    char name[32] = "";
    struct cable_end *end;

    (void)snprintf(name, sizeof name, "%.*s", (int)length, line->name);
    end = find_end(r, name, e);
    if (end == NULL)
        return -1;
    if (end->rate_line != 0)
        return error_set(e, ERROR_USAGE, "%s of [%.80s] is given twice; the first is in line %u",
                         line->name, line->section, end->rate_line);
    end->rate_line = line->number;
    if (nominal_rate_parse(line->value, &end->rate))
        return 0;
    return error_set(e, ERROR_USAGE,
                     "%s \"%.40s\" is not a rate in Mbit/s such as 1000, or 2/20 for a link that "
                     "sends at 2 and receives at 20",
                     line->name, line->value);
}

static int set_port(struct reading *r, const struct ini_line *line, struct error *e)
{
    const size_t length = strlen(line->name), suffix = sizeof CABLE_RATE_SUFFIX - 1;

    if (length > suffix && strcmp(line->name + length - suffix, CABLE_RATE_SUFFIX) == 0)
        return set_rate(r, line, length - suffix, e);
    return set_interface(r, line, e);
}

/* Checks that a setting occurs once in its section. *first is the line of its first occurrence, or 0. */
static int check_once(uint32_t *first, const struct ini_line *line, struct error *e)
{
    if (*first != 0)
        return error_set(e, ERROR_USAGE, "%s of [%.80s] is given twice; the first is in line %u",
                         line->name, line->section, *first);
    *first = line->number;
    return 0;
}

/* Sets where ssh reaches a host. A leading "-" would be an option of ssh. */
static int set_ssh(struct host *h, const struct ini_line *line, struct error *e)
{
    const char *text = line->value;

    if (text[0] == '\0' || text[0] == '-' || text[strspn(text, LETTERS "@:%")] != '\0')
        return error_set(e, ERROR_USAGE, "ssh: \"%.50s\" is not a host as in root@10.0.0.3", text);
    if (strlen(text) >= sizeof h->ssh)
        return error_set(e, ERROR_USAGE, "ssh: \"%.50s...\" is too long", text);
    if (h->ssh[0] != '\0')
        return error_set(e, ERROR_USAGE, "ssh of [%.80s] is given twice", line->section);
    (void)strcpy(h->ssh, text);
    return 0;
}

static int set_id(struct reading *r, const struct ini_line *line, struct error *e)
{
    struct host *h = &r->current->host;

    if (strlen(line->value) != sizeof h->id - 1 ||
        strspn(line->value, "0123456789abcdef") != sizeof h->id - 1)
        return error_set(e, ERROR_USAGE,
                         "id \"%.50s\" is not what 'torusd-discover --id' prints: 32 digits from 0 "
                         "to f",
                         line->value);
    if (h->id[0] != '\0')
        return error_set(e, ERROR_USAGE, "id of [%.80s] is given twice", line->section);
    for (uint32_t i = 0; i < r->count; i++)
        if (strcmp(r->sections[i].host.id, line->value) == 0)
            return error_set(e, ERROR_USAGE, "[%.80s] and [%.80s] have the same id", line->section,
                             r->sections[i].host.name);
    (void)strcpy(h->id, line->value);
    return 0;
}

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    struct reading *r = context;
    struct section *s;

    if (line->name == NULL)
        return begin_section(r, line->section, line->number, e);
    s = r->current;
    if (r->in_cluster)
        return 0;
    if (s == NULL)
        return error_set(e, ERROR_USAGE, "a setting before the first [HOST]");
    if (line->name[0] == '+' || line->name[0] == '-' || isdigit((unsigned char)line->name[0]))
        return set_port(r, line, e);
    if (s == &r->defaults)
        return error_set(e, ERROR_USAGE,
                         "[" DEFAULTS "] has ports such as +0, and their link_mbit, only");
    if (strcmp(line->name, "address") == 0)
        return check_once(&s->host.address_line, line, e) == 0
                   ? host_address_parse(line->value, &s->host.address, e)
                   : -1;
    if (strcmp(line->name, "rank") == 0 && s->named)
        return error_set(e, ERROR_USAGE, "the rank of [%.80s] must stand above its ports",
                         line->section);
    if (strcmp(line->name, "rank") == 0)
        return check_once(&s->rank_line, line, e) == 0
                   ? number_parse(line->value, r->torus->nodes - 1, &s->rank, e)
                   : -1;
    if (strcmp(line->name, "ssh") == 0)
        return set_ssh(&s->host, line, e);
    if (strcmp(line->name, "id") == 0)
        return set_id(r, line, e);
    return error_set(
        e, ERROR_USAGE,
        "unknown setting \"%.40s\": there are rank, address, ssh, id, ports such as +0, and "
        "+0.link_mbit",
        line->name);
}

/* --- the whole file --- */

/* Adds the path and line to an error that was found after the whole file had been read. Returns -1. */
static int bad_line(const char *path, uint32_t line, struct error *e)
{
    return error_wrap(e, "%.200s:%u", path, line);
}

/* Puts the sections into the order of their ranks. */
static int sort_hosts(const struct reading *r, struct host *hosts, const char *path,
                      struct error *e)
{
    uint32_t ranked = 0;

    if (r->count < r->torus->nodes && !r->unfinished)
        return error_set(e, ERROR_USAGE, "%.200s has %u of %u %s: each node needs a section [HOST]",
                         path, r->count, r->torus->nodes,
                         text_plural(r->torus->nodes, "host", "hosts"));
    for (uint32_t i = 0; i < r->count; i++)
        ranked += r->sections[i].rank_line != 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct section *s = &r->sections[i];
        uint32_t rank = ranked != 0 ? s->rank : i;
        if (ranked != 0 && s->rank_line == 0) {
            (void)error_set(e, ERROR_USAGE,
                            "[%.80s] has no rank: give a rank to all hosts or, if they are in the "
                            "order of ranks, to none",
                            s->host.name);
            return bad_line(path, s->host.line, e);
        }
        if (hosts[rank].name[0] != '\0') {
            (void)error_set(e, ERROR_USAGE, "[%.80s] and [%.80s] both have rank %u",
                            hosts[rank].name, s->host.name, rank);
            return bad_line(path, s->rank_line, e);
        }
        hosts[rank] = s->host;
    }
    return 0;
}

static void fill_in_end(struct cable_end *end, const struct cable_end *by_default)
{
    const struct cable_end own = *end;

    if (own.line == 0)
        *end = *by_default;
    end->rate = own.rate_line != 0 ? own.rate : by_default->rate;
    end->rate_line = own.rate_line != 0 ? own.rate_line : by_default->rate_line;
}

/* Completes the hosts with the default addresses and ports. */
static void fill_in(struct host *hosts, const struct reading *r, struct in_addr first)
{
    for (uint32_t rank = 0; rank < r->torus->nodes; rank++) {
        struct host *h = &hosts[rank];
        if (h->address_line == 0)
            h->address.s_addr = htonl(ntohl(first.s_addr) + rank);
        for (unsigned port = 0; port < torus_ports(r->torus); port++)
            if (torus_neighbour(r->torus, rank, port) != TORUS_NO_NODE)
                fill_in_end(&h->port[port], &r->defaults.host.port[port]);
    }
}

/* Checks a port: a cable that is not broken needs an interface, no other port may have this interface, and a port
 * without a cable must not have one. Sets *line to the line of the error. */
static int check_port(const struct host *h, const struct ip_routes *r, uint32_t rank, unsigned port,
                      bool unfinished, uint32_t *line, struct error *e)
{
    const struct cable_end *end = &h->port[port];
    char name[TORUS_PORT_NAME_SIZE], dims[TORUS_TEXT_SIZE];

    (void)torus_port_name(&r->torus, rank, port, name);
    *line = end->line != 0 ? end->line : end->rate_line != 0 ? end->rate_line : h->line;
    if (torus_neighbour(&r->torus, rank, port) == TORUS_NO_NODE &&
        (end->line != 0 || end->rate_line != 0))
        return error_set(e, ERROR_USAGE, "[%.80s]: node %u of %s has no cable at port %s", h->name,
                         rank, torus_format(&r->torus, dims), name);
    if (!unfinished && damage_has_link(&r->damage, rank, port) && end->line == 0)
        return error_set(e, ERROR_USAGE,
                         "[%.80s] needs the interface of port %s, as in \"%s = eth1\" (if this "
                         "cable is broken: --without %u:%s)",
                         h->name, name, name, rank, name);
    for (unsigned other = 0; end->line != 0 && other < port; other++)
        if (strcmp(h->port[other].interface, end->interface) == 0) {
            *line = h->port[other].line > end->line ? h->port[other].line : end->line;
            return error_set(e, ERROR_USAGE,
                             "[%.80s] has %s at two ports: give each port another interface",
                             h->name, end->interface);
        }
    return 0;
}

static int check_ports(const struct host *hosts, const struct ip_routes *r, const char *path,
                       bool unfinished, struct error *e)
{
    uint32_t line;

    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++)
            if (check_port(&hosts[rank], r, rank, port, unfinished, &line, e) != 0)
                return bad_line(path, line, e);
    return 0;
}

struct used_address {
    uint32_t value;
    uint32_t rank;
    uint32_t line; /* 0: from --address */
};

static int compare(const void *a, const void *b)
{
    const struct used_address *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Sets *e for an address that is used twice; `use` is the second use, and use[-1] the first. Returns -1. */
static int used_twice(const struct host *hosts, const struct used_address *use, const char *path,
                      struct error *e)
{
    struct in_addr address = {use->value};
    char text[INET_ADDRSTRLEN], where[32] = "--address";

    if (use[-1].line != 0)
        (void)snprintf(where, sizeof where, "line %u", use[-1].line);
    (void)error_set(e, ERROR_USAGE, "the address %s is used twice, by [%.60s] (%s) and by [%.60s]",
                    inet_ntop(AF_INET, &address, text, sizeof text), hosts[use[-1].rank].name,
                    where, hosts[use->rank].name);
    return bad_line(path, use->line, e);
}

/* Checks that no address is used twice, by nodes or cables. */
static int check_addresses(const struct host *hosts, const struct torus *t, const char *path,
                           struct error *e)
{
    size_t count = 0, most = (size_t)t->nodes * (1 + torus_ports(t));
    struct used_address *used = malloc(most * sizeof used[0]);
    int rc = 0;

    if (used == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses");
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        const struct host *h = &hosts[rank];
        used[count++] = (struct used_address){h->address.s_addr, rank, h->address_line};
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (h->port[port].address.s_addr != 0)
                used[count++] =
                    (struct used_address){h->port[port].address.s_addr, rank, h->port[port].line};
    }
    qsort(used, count, sizeof used[0], compare);
    for (size_t i = 1; rc == 0 && i < count; i++)
        if (used[i].value == used[i - 1].value)
            rc = used_twice(hosts, &used[i], path, e);
    free(used);
    return rc;
}

const struct text_kind hosts_file_kind = {.name = "a file of hosts", .most = BYTES_MOST};

int hosts_file_read_text(struct host *hosts, const struct ip_routes *r, const char *name,
                         char *text, size_t length, struct in_addr first, bool unfinished,
                         struct error *e)
{
    struct reading reading = {.torus = &r->torus, .unfinished = unfinished};
    int rc;

    memset(hosts, 0, r->torus.nodes * sizeof hosts[0]);
    reading.sections = calloc((size_t)r->torus.nodes + 1, sizeof reading.sections[0]);
    if (reading.sections == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    rc = ini_read_text(name, &hosts_file_kind, text, length, on_line, &reading, e);
    if (rc == 0)
        rc = sort_hosts(&reading, hosts, name, e);
    if (rc == 0) {
        fill_in(hosts, &reading, first);
        rc = check_ports(hosts, r, name, unfinished, e);
    }
    if (rc == 0)
        rc = check_addresses(hosts, &r->torus, name, e);
    free(reading.sections);
    return rc;
}

int hosts_file_read(struct host *hosts, const struct ip_routes *r, const char *path,
                    struct in_addr first, struct error *e)
{
    char *text;
    size_t length;
    int rc;

    if (text_file_read(path, &hosts_file_kind, &text, &length, e) != 0)
        return -1;
    rc = hosts_file_read_text(hosts, r, path, text, length, first, false, e);
    free(text);
    return rc;
}
