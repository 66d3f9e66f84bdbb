#include "client/cli/cluster/host_files.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/ip_routes/route_script.h"
#include "daemon/cluster/cluster_port.h"

#define UNIT_DAEMON "torusd.service"
#define UNIT_LINKS "torus-links.service"

const struct host_file_kind host_file_kinds[HOST_FILES] = {
    [HOST_FILE_CLUSTER] = {CLUSTER_FOLDER "/cluster.ini", 0644, false, false, NULL},
    [HOST_FILE_KEY] = {CLUSTER_FOLDER "/cluster.key", 0600, true, false, UNIT_DAEMON},
    [HOST_FILE_SECOND_KEY] = {CLUSTER_FOLDER "/second.key", 0600, true, false, UNIT_DAEMON},
    [HOST_FILE_CONFIG] = {CLUSTER_FOLDER "/torusd.ini", 0644, false, false, UNIT_DAEMON},
    [HOST_FILE_DROP_IN] = {"/etc/systemd/system/torusd.service.d/torusctl-init.conf", 0644, false,
                           false, UNIT_DAEMON},
    [HOST_FILE_LINKS] = {CLUSTER_FOLDER "/links", 0644, false, false, UNIT_LINKS},
    [HOST_FILE_ROUTES] = {CLUSTER_FOLDER "/routes.sh", 0644, false, false, UNIT_LINKS},
    [HOST_FILE_NAMES] = {"/etc/hosts", 0644, false, true, NULL},
};

static void print_config(FILE *out, const struct cluster *c, uint32_t rank)
{
    const struct torus *t = &c->routes.torus;
    char dims[TORUS_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE], address[CLUSTER_PORT_TEXT_SIZE];

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
    for (unsigned port = 0; port < torus_ports(t); port++)
        if (cluster_has_cable(c, rank, port))
            (void)fprintf(out, "%s = %s\n", torus_port_name(t, rank, port, name),
                          cluster_port_address(c, rank, port, false, address));
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

static void print_routes(FILE *out, const struct cluster *c, uint32_t rank)
{
    const struct route_script script = {&c->routes, c->hosts, "/run", NULL};

    if (c->ip_routes)
        route_script_print(out, &script, rank);
}

static void print_names(FILE *out, const struct cluster *c)
{
    char address[INET_ADDRSTRLEN];

    if (!c->ip_routes)
        return;
    (void)fputs(HOST_BLOCK_BEGIN "\n", out);
    for (uint32_t rank = 0; rank < c->count; rank++)
        (void)fprintf(out, "%s %s\n",
                      inet_ntop(AF_INET, &c->hosts[rank].address, address, sizeof address),
                      c->hosts[rank].name);
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

static void print_file(FILE *out, enum host_file which, const struct cluster *c, uint32_t rank,
                       const struct key *key, const struct key *second_key)
{
    switch (which) {
    case HOST_FILE_CLUSTER:
        (void)fwrite(c->text, 1, c->length, out);
        break;
    case HOST_FILE_KEY:
        print_key(out, key);
        break;
    case HOST_FILE_SECOND_KEY:
        print_key(out, second_key);
        break;
    case HOST_FILE_CONFIG:
        print_config(out, c, rank);
        break;
    case HOST_FILE_DROP_IN:
        print_drop_in(out, c);
        break;
    case HOST_FILE_LINKS:
        print_links(out, c, rank);
        break;
    case HOST_FILE_ROUTES:
        print_routes(out, c, rank);
        break;
    case HOST_FILE_NAMES:
    case HOST_FILES:
    default:
        print_names(out, c);
    }
}

int host_files_make(const struct cluster *c, uint32_t rank, const struct key *key,
                    const struct key *second_key, char *text[HOST_FILES], struct error *e)
{
    for (unsigned i = 0; i < HOST_FILES; i++)
        text[i] = NULL;
    for (unsigned i = 0; i < HOST_FILES; i++) {
        size_t size;
        FILE *out = open_memstream(&text[i], &size);
        bool failed = out == NULL;
        if (!failed) {
            print_file(out, (enum host_file)i, c, rank, key, second_key);
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
