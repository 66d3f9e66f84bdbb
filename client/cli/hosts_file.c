#include "client/cli/hosts_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ini.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/arguments.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
#define DEFAULTS "*" /* the section whose ports are those of all hosts that have no others */
#define LINES_MOST (1u << 18)

/* A section: a host before its rank is looked at. */
struct section {
    struct host host;
    bool has_rank;
    uint32_t rank;
};

struct reading {
    const struct torus *torus;
    struct section *sections; /* as many as there are nodes */
    uint32_t count;
    void *by_name; /* tree of the sections (tsearch()) */
    struct section defaults;
    FILE *file;
    int line;      /* of the file, the latest */
    int failed_at; /* the first line that has been refused here; 0: none */
    struct error *e;
};

static int by_name(const void *a, const void *b)
{
    const struct section *x = a, *y = b;

    return strcmp(x->host.name, y->host.name);
}

static struct section *section_named(const struct reading *r, const char *name)
{
    struct section key;

    if (strlen(name) >= sizeof key.host.name)
        return NULL;
    (void)strcpy(key.host.name, name);
    struct section **found = tfind(&key, &r->by_name, by_name);
    return found != NULL ? *found : NULL;
}

static struct section *add_section(struct reading *r, const char *name)
{
    struct section *s = &r->sections[r->count];

    *s = (struct section){0};
    (void)strcpy(s->host.name, name);
    if (tsearch(s, &r->by_name, by_name) == NULL) {
        (void)error_set(r->e, ERROR_MEMORY, "out of memory for the hosts");
        return NULL;
    }
    r->count++;
    return s;
}

static void leave_section(void *section)
{
    (void)section; /* the array's */
}

/* The section of this name, begun if there is none yet; NULL with *e set if that is not possible. */
static struct section *enter_section(struct reading *r, const char *name)
{
    struct section *s;

    if (strcmp(name, DEFAULTS) == 0)
        return &r->defaults;
    s = section_named(r, name);
    if (s != NULL)
        return s;
    size_t length = strspn(name, LETTERS);
    if (length == 0 || name[length] != '\0' || name[0] == '-' || name[0] == '.') {
        (void)error_set(r->e, ERROR_USAGE,
                        name[0] == '\0' ? "a setting before the first [HOST]%s"
                                        : "\"%.50s\" is not the name of a host",
                        name);
        return NULL;
    }
    if (length >= HOST_NAME_SIZE - 1) {
        (void)error_set(r->e, ERROR_USAGE, "the name %.50s is too long: up to %d characters", name,
                        HOST_NAME_SIZE - 2);
        return NULL;
    }
    if (r->count == r->torus->nodes) {
        (void)error_set(r->e, ERROR_USAGE, "[%s] is one host too many: the torus has %u nodes",
                        name, r->torus->nodes);
        return NULL;
    }
    return add_section(r, name);
}

static int parse_address(const char *text, struct in_addr *address, struct error *e)
{
    if (inet_pton(AF_INET, text, address) != 1 || address->s_addr == 0 ||
        IN_MULTICAST(ntohl(address->s_addr)))
        return error_set(e, ERROR_USAGE, "\"%.50s\" is not an IPv4 address of a host", text);
    return 0;
}

/* "enp1s0" or "enp1s0 10.0.0.1" */
static int parse_cable_end(const char *text, struct cable_end *end, struct error *e)
{
    size_t length = strcspn(text, " \t"), letters = strspn(text, LETTERS ":@");

    if (length == 0 || letters < length || length >= sizeof end->interface || text[0] == '-' ||
        text[0] == '.')
        return error_set(e, ERROR_USAGE, "\"%.*s\" is not the name of an interface",
                         length < 50 ? (int)length : 50, text);
    memcpy(end->interface, text, length);
    end->interface[length] = '\0';
    text += length + strspn(text + length, " \t");
    return *text == '\0' ? 0 : parse_address(text, &end->address, e);
}

static int set_value(struct reading *r, struct section *s, const char *name, const char *value)
{
    bool is_default = s == &r->defaults;
    struct cable_end *end;
    int port;

    if (name[0] == '+' || name[0] == '-') {
        port = torus_port_parse(r->torus, name);
        if (port < 0)
            return error_set(r->e, ERROR_USAGE, "the torus has no port \"%.20s\"", name);
        end = &s->host.port[port];
        if (end->interface[0] != '\0')
            return error_set(r->e, ERROR_USAGE, "port %s of [%s] is given twice", name,
                             is_default ? DEFAULTS : s->host.name);
        if (parse_cable_end(value, end, r->e) != 0)
            return -1;
        if (is_default && end->address.s_addr != 0)
            return error_set(r->e, ERROR_USAGE, "[" DEFAULTS "] cannot have addresses");
        return 0;
    }
    if (is_default)
        return error_set(r->e, ERROR_USAGE, "[" DEFAULTS "] has ports such as +0 only");
    if (strcmp(name, "address") == 0)
        return parse_address(value, &s->host.address, r->e);
    if (strcmp(name, "rank") == 0) {
        s->has_rank = true;
        return parse_number(value, r->torus->nodes - 1, &s->rank, r->e);
    }
    return error_set(r->e, ERROR_USAGE,
                     "unknown setting \"%.40s\": there are rank, address, and ports such as +0",
                     name);
}

static int on_value(void *context, const char *section, const char *name, const char *value)
{
    struct reading *r = context;
    struct section *s;

    if (r->failed_at != 0)
        return 1; /* only the first mistake is told */
    s = enter_section(r, section);
    if (s != NULL && set_value(r, s, name, value) == 0)
        return 1;
    r->failed_at = r->line;
    return 0;
}

/* Whether the line that was read is whole: inih would take the rest of it for another line. */
static bool is_whole(const struct reading *r, const char *text)
{
    size_t length = strlen(text);

    return (length > 0 && text[length - 1] == '\n') || feof(r->file);
}

/* Ends the file where it is refused: it may have no end. */
static char *next_line(char *text, int size, void *context)
{
    struct reading *r = context;

    if (r->failed_at != 0)
        return NULL;
    r->line++;
    if (fgets(text, size, r->file) == NULL)
        return NULL;
    if (is_whole(r, text) && r->line <= (int)LINES_MOST)
        return text;
    r->failed_at = r->line;
    if (r->line > (int)LINES_MOST)
        (void)error_set(r->e, ERROR_USAGE, "the file has more than %u lines", LINES_MOST);
    else
        (void)error_set(r->e, ERROR_USAGE,
                        "the line has more than %d characters, or one that is not text", size - 2);
    return NULL;
}

static int read_sections(struct reading *r, const char *path)
{
    int line;

    r->file = fopen(path, "re");
    if (r->file == NULL)
        return error_set(r->e, ERROR_USAGE, "%s: %s", path, strerror(errno));
    line = ini_parse_stream(next_line, r, on_value, r);
    if (ferror(r->file)) /* a folder, for example */
        line = -1;
    (void)fclose(r->file);
    if (line < 0)
        return error_set(r->e, ERROR_IO, "%s: cannot be read", path);
    if (line == 0)
        line = r->failed_at;
    if (line > 0 && line != r->failed_at)
        (void)error_set(r->e, ERROR_USAGE, "neither \"name = value\" nor \"[HOST]\"");
    return line > 0 ? error_wrap(r->e, "%s:%d", path, line) : 0;
}

/* Puts the sections into the order of their ranks. */
static int sort_hosts(const struct reading *r, struct host *hosts, const char *path)
{
    uint32_t ranked = 0;

    if (r->count < r->torus->nodes)
        return error_set(r->e, ERROR_USAGE,
                         "%s: %u of %u hosts: each node needs a section [HOST] with a line in it",
                         path, r->count, r->torus->nodes);
    for (uint32_t i = 0; i < r->count; i++)
        ranked += r->sections[i].has_rank;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct section *s = &r->sections[i];
        uint32_t rank = ranked != 0 ? s->rank : i;
        if (ranked != 0 && !s->has_rank)
            return error_set(r->e, ERROR_USAGE,
                             "%s: [%s] has no rank: either all hosts have one, or none has, and "
                             "they are in the order of their ranks",
                             path, s->host.name);
        if (hosts[rank].name[0] != '\0')
            return error_set(r->e, ERROR_USAGE, "%s: [%s] and [%s] both have rank %u", path,
                             hosts[rank].name, s->host.name, rank);
        hosts[rank] = s->host;
    }
    return 0;
}

static void fill_in(struct host *hosts, const struct reading *r, struct in_addr first)
{
    for (uint32_t rank = 0; rank < r->torus->nodes; rank++) {
        struct host *h = &hosts[rank];
        if (h->address.s_addr == 0)
            h->address.s_addr = htonl(ntohl(first.s_addr) + rank);
        for (unsigned port = 0; port < torus_ports(r->torus); port++)
            if (h->port[port].interface[0] == '\0' &&
                torus_neighbour(r->torus, rank, port) != TORUS_NO_NODE)
                h->port[port] = r->defaults.host.port[port];
    }
}

/* Each cable that works needs an interface at both ends, and no other port can have one. */
static int check_ports(const struct host *hosts, const struct ip_routes *r, struct error *e)
{
    char name[TORUS_PORT_NAME_SIZE], dims[TORUS_TEXT_SIZE];

    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
            const struct host *h = &hosts[rank];
            const char *interface = h->port[port].interface;
            (void)torus_port_name(port, name);
            if (torus_neighbour(&r->torus, rank, port) == TORUS_NO_NODE && interface[0] != '\0')
                return error_set(e, ERROR_USAGE, "[%s]: node %u of %s has no cable at port %s",
                                 h->name, rank, torus_format(&r->torus, dims), name);
            if (damage_has_link(&r->damage, rank, port) && interface[0] == '\0')
                return error_set(e, ERROR_USAGE,
                                 "[%s] needs the interface of port %s, as in \"%s = eth1\" (or is "
                                 "that cable broken? --without %u:%s)",
                                 h->name, name, name, rank, name);
            for (unsigned other = 0; interface[0] != '\0' && other < port; other++)
                if (strcmp(h->port[other].interface, interface) == 0)
                    return error_set(e, ERROR_USAGE,
                                     "[%s] has %s at two ports: each cable has an interface of its "
                                     "own",
                                     h->name, interface);
        }
    return 0;
}

struct used_address {
    uint32_t value;
    uint32_t rank;
};

static int by_value(const void *a, const void *b)
{
    const struct used_address *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Every address stands once in the file: those of nodes and those of cables. */
static int check_addresses(const struct host *hosts, const struct torus *t, struct error *e)
{
    size_t count = 0, most = (size_t)t->nodes * (1 + torus_ports(t));
    struct used_address *used = malloc(most * sizeof used[0]);
    char text[INET_ADDRSTRLEN];
    int rc = 0;

    if (used == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses");
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        used[count++] = (struct used_address){hosts[rank].address.s_addr, rank};
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (hosts[rank].port[port].address.s_addr != 0)
                used[count++] = (struct used_address){hosts[rank].port[port].address.s_addr, rank};
    }
    qsort(used, count, sizeof used[0], by_value);
    for (size_t i = 1; rc == 0 && i < count; i++)
        if (used[i].value == used[i - 1].value) {
            struct in_addr twice = {used[i].value};
            rc = error_set(e, ERROR_USAGE, "the address %s is used twice, by [%s] and by [%s]",
                           inet_ntop(AF_INET, &twice, text, sizeof text),
                           hosts[used[i - 1].rank].name, hosts[used[i].rank].name);
        }
    free(used);
    return rc;
}

int hosts_file_read(struct host *hosts, const struct ip_routes *r, const char *path,
                    struct in_addr first, struct error *e)
{
    struct reading reading = {.torus = &r->torus, .e = e};
    int rc;

    memset(hosts, 0, r->torus.nodes * sizeof hosts[0]);
    reading.sections = calloc(r->torus.nodes, sizeof reading.sections[0]);
    if (reading.sections == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    rc = read_sections(&reading, path);
    tdestroy(reading.by_name, leave_section);
    if (rc == 0)
        rc = sort_hosts(&reading, hosts, path);
    if (rc == 0) {
        fill_in(hosts, &reading, first);
        rc = check_ports(hosts, r, e);
        if (rc == 0)
            rc = check_addresses(hosts, &r->torus, e);
        if (rc != 0)
            (void)error_wrap(e, "%s", path);
    }
    free(reading.sections);
    return rc;
}
