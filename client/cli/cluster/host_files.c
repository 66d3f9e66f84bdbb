#include "client/cli/cluster/host_files.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/ip_routes/route_script.h"
#include "daemon/lib/cluster/cluster_file.h"

#define UNIT_DAEMON "torusd.service"
#define UNIT_LINKS "torus-links.service"
#define UNIT_ROUTED "torus-routed.service"

const struct host_file_kind host_file_kinds[HOST_FILES] = {
    [HOST_FILE_CLUSTER] = {CLUSTER_FOLDER "/cluster.ini", 0644, false, false, NULL},
    [HOST_FILE_KEY] = {CLUSTER_FOLDER "/cluster.key", 0600, true, false, UNIT_DAEMON},
    [HOST_FILE_SECOND_KEY] = {CLUSTER_FOLDER "/second.key", 0600, true, false, UNIT_DAEMON},
    [HOST_FILE_CONFIG] = {CLUSTER_FOLDER "/torusd.ini", 0644, false, false, UNIT_DAEMON},
    [HOST_FILE_DROP_IN] = {"/etc/systemd/system/torusd.service.d/torusctl-init.conf", 0644, false,
                           false, UNIT_DAEMON},
    [HOST_FILE_LINKS] = {CLUSTER_FOLDER "/links", 0644, false, false, UNIT_LINKS},
    [HOST_FILE_ROUTES] = {CLUSTER_FOLDER "/routes.sh", 0644, false, false, UNIT_LINKS},
    [HOST_FILE_ADDRESSES] = {CLUSTER_FOLDER "/addresses", 0644, false, false, UNIT_ROUTED},
    [HOST_FILE_NAMES] = {"/etc/hosts", 0644, false, true, NULL},
};

static void print_config(FILE *out, const struct cluster *c, uint32_t rank)
{
    const struct torus *t = &c->routes.torus;
    char dims[TORUS_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE], address[CLUSTER_PORT_TEXT_SIZE];
    char rate[NOMINAL_RATE_TEXT_SIZE];

    (void)fprintf(out,
                  "; Written by 'torusctl init' for %s from " CLUSTER_FOLDER "/cluster.ini.\n"
                  "; Change that file, and run 'torusctl init' again.\n"
                  "[node]\n"
                  "dims = %s\n"
                  "rank = %u\n"
                  "key_file = %s\n"
                  "second_key_file = %s\n",
                  c->hosts[rank].name, torus_format(t, dims), rank,
                  host_file_kinds[HOST_FILE_KEY].path, host_file_kinds[HOST_FILE_SECOND_KEY].path);
    if (c->data_roots[0] == '\0')
        (void)fputs("data_roots = " CLUSTER_DATA_ROOT "\n", out);
    (void)fprintf(out, "%s\n[ports]\n", c->settings);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!cluster_has_cable(c, rank, port))
            continue;
        const struct nominal_rate mbit = cluster_port_rate(c, rank, port);
        (void)fprintf(out, "%s = %s\n", torus_port_name(t, rank, port, name),
                      cluster_port_address(c, rank, port, false, address));
        if (mbit.send > 0)
            (void)fprintf(out, "%s" CABLE_RATE_SUFFIX " = %s\n", name,
                          nominal_rate_format(mbit, rate));
    }
}

/* A data root below /home is visible only without ProtectHome. */
static void print_drop_in(FILE *out, const struct cluster *c)
{
    const char *root = c->data_roots;
    bool at_home = false;

    if (root[0] == '\0')
        return;
    (void)fputs("# Written by 'torusctl init' for the data_roots of " CLUSTER_FOLDER
                "/cluster.ini.\n[Service]\n",
                out);
    for (size_t length; *root != '\0'; root += length + (root[length] == ':')) {
        length = strcspn(root, ":");
        if (length > 0)
            (void)fprintf(out, "ReadWritePaths=\"%.*s\"\n", (int)length, root);
        at_home |= strncmp(root, "/home", 5) == 0 || strncmp(root, "/root", 5) == 0;
    }
    if (at_home)
        (void)fputs("ProtectHome=no\n", out);
}

static void print_links(FILE *out, const struct cluster *c, uint32_t rank)
{
    const struct torus *t = &c->routes.torus;

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (cluster_has_cable(c, rank, port))
            (void)fprintf(out, "%s %s/64\n", c->hosts[rank].port[port].interface,
                          torus_port_dials(t, rank, port) ? CLUSTER_DIALLING_ADDRESS
                                                          : CLUSTER_LISTENING_ADDRESS);
}

/* What the content of the files depends on. */
struct making {
    const struct cluster *cluster;
    uint32_t rank;
    const struct key *key, *second_key;
    bool routed;
};

/* The network of the hosts unless it is given: one of RFC 4193 whose 40 bits come from the name of the first host. They
 * must stay when the key changes or hosts are added, because people write down addresses. */
static struct in6_addr derived_address6(const struct cluster *c)
{
    static const char purpose[] = "torusd address6 ";
    struct in6_addr address = {0};
    uint8_t hash[crypto_generichash_BYTES];
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, sizeof hash);
    (void)crypto_generichash_update(&state, (const uint8_t *)purpose, strlen(purpose));
    (void)crypto_generichash_update(&state, (const uint8_t *)c->hosts[0].name,
                                    strlen(c->hosts[0].name));
    (void)crypto_generichash_final(&state, hash, sizeof hash);
    address.s6_addr[0] = 0xfd;
    memcpy(&address.s6_addr[1], hash, 5);
    address.s6_addr[15] = 1;
    return address;
}

bool host_files_address6(const struct cluster *c, uint32_t rank, struct in6_addr *address)
{
    uint32_t carry = rank;

    if (c->address6_kind == ADDRESS6_NONE)
        return false;
    *address = c->address6_kind == ADDRESS6_DERIVED ? derived_address6(c) : c->address6;
    for (unsigned i = 15; carry > 0; i--, carry >>= 8) {
        carry += address->s6_addr[i];
        address->s6_addr[i] = (uint8_t)carry;
    }
    return true;
}

/* The same as a text, if torus-routed is installed. */
static bool address6(const struct making *m, uint32_t rank, char text[INET6_ADDRSTRLEN])
{
    struct in6_addr address;

    if (!m->routed || !host_files_address6(m->cluster, rank, &address))
        return false;
    (void)inet_ntop(AF_INET6, &address, text, INET6_ADDRSTRLEN);
    return true;
}

static void print_addresses(FILE *out, const struct making *m)
{
    const struct cluster *c = m->cluster;
    char v4[INET_ADDRSTRLEN], v6[INET6_ADDRSTRLEN];

    for (uint32_t rank = 0; c->ip_routes && m->routed && rank < c->count; rank++) {
        bool both = address6(m, rank, v6);
        (void)fprintf(out, "%s%s%s %s\n",
                      inet_ntop(AF_INET, &c->hosts[rank].address, v4, sizeof v4), both ? "," : "",
                      both ? v6 : "", c->hosts[rank].name);
    }
}

static void print_routes(FILE *out, const struct cluster *c, uint32_t rank)
{
    const struct route_script script = {&c->routes, c->hosts, "/run", NULL};

    if (c->ip_routes)
        route_script_print(out, &script, rank);
}

static void print_names(FILE *out, const struct making *m)
{
    const struct cluster *c = m->cluster;
    char address[INET_ADDRSTRLEN], v6[INET6_ADDRSTRLEN];

    if (!c->ip_routes)
        return;
    (void)fputs(HOST_BLOCK_BEGIN "\n", out);
    for (uint32_t rank = 0; rank < c->count; rank++) {
        (void)fprintf(out, "%s %s\n",
                      inet_ntop(AF_INET, &c->hosts[rank].address, address, sizeof address),
                      c->hosts[rank].name);
        if (address6(m, rank, v6))
            (void)fprintf(out, "%s %s\n", v6, c->hosts[rank].name);
    }
    (void)fputs(HOST_BLOCK_END "\n", out);
}

static void print_key(FILE *out, const struct key *key)
{
    char line[KEY_LINE_SIZE];

    if (key == NULL)
        return;
    (void)fputs(key_line(key, line), out);
    sodium_memzero(line, sizeof line);
}

static void print_file(FILE *out, enum host_file which, const struct making *m)
{
    const struct cluster *c = m->cluster;

    switch (which) {
    case HOST_FILE_CLUSTER:
        (void)fwrite(c->text, 1, c->length, out);
        break;
    case HOST_FILE_KEY:
        print_key(out, m->key);
        break;
    case HOST_FILE_SECOND_KEY:
        print_key(out, m->second_key);
        break;
    case HOST_FILE_CONFIG:
        print_config(out, c, m->rank);
        break;
    case HOST_FILE_DROP_IN:
        print_drop_in(out, c);
        break;
    case HOST_FILE_LINKS:
        print_links(out, c, m->rank);
        break;
    case HOST_FILE_ROUTES:
        if (!m->routed)
            print_routes(out, c, m->rank);
        break;
    case HOST_FILE_ADDRESSES:
        print_addresses(out, m);
        break;
    case HOST_FILE_NAMES:
    case HOST_FILES:
    default:
        print_names(out, m);
    }
}

int host_files_make(const struct cluster *c, uint32_t rank, const struct key *key,
                    const struct key *second_key, bool routed, char *text[HOST_FILES],
                    struct error *e)
{
    const struct making m = {c, rank, key, second_key, routed};

    for (unsigned i = 0; i < HOST_FILES; i++)
        text[i] = NULL;
    for (unsigned i = 0; i < HOST_FILES; i++) {
        size_t size;
        FILE *out = open_memstream(&text[i], &size);
        bool failed = out == NULL;
        if (!failed) {
            print_file(out, (enum host_file)i, &m);
            failed = ferror(out) != 0;
            failed |= fclose(out) != 0;
        }
        if (failed)
            return error_set(e, ERROR_MEMORY, "out of memory for %s", host_file_kinds[i].path);
    }
    return 0;
}

void host_files_forget(char *text[HOST_FILES])
{
    for (unsigned i = 0; i < HOST_FILES; i++) {
        if (text[i] != NULL && host_file_kinds[i].secret)
            sodium_memzero(text[i], strlen(text[i]));
        free(text[i]);
        text[i] = NULL;
    }
}
