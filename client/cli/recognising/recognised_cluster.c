/* Writes the cluster file of a network. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/recognising/recognised.h"
#include "client/cli/terminal/output_file.h"
#include "daemon/cluster/hosts_file.h"

#define DIMS_SIZE 256

/* The id decides which host gets the key: only a host that has proved the cluster key needs nobody to confirm it. */
static void write_id(FILE *out, const struct discovered *d, const char *name)
{
    for (uint32_t i = 0; i < d->hosts; i++) {
        const struct discovered_host *h = &d->host[i];
        if (strcmp(h->report->name, name) != 0)
            continue;
        if (h->self || h->trust == DISCOVERED_PROVED)
            (void)fprintf(out, "id = %s\n", h->id);
        else
            (void)fprintf(out, "; found with the id %s\n", h->id);
    }
}

static void write_host(FILE *out, const struct recognised *r, uint32_t rank)
{
    const struct torus *t = &r->result.torus;
    const struct cabling_host *host = &r->input.host[r->result.host_of_rank[rank]];
    char name[TORUS_PORT_NAME_SIZE];

    (void)fprintf(out, "\n[%s]\nrank = %u\n", host->name, rank);
    write_id(out, r->discovered, host->name);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t at = r->result.interface_at[rank * torus_ports(t) + port];
        if (at != CABLING_NONE)
            (void)fprintf(out, "%s = %s\n", torus_port_name(t, rank, port, name),
                          host->interface[at].name);
    }
}

/* Settings, comments and ids of a file that exists would be lost. */
static int check_new(const char *path, struct error *e)
{
    struct stat status;

    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size == 0)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "%.200s exists, and may have settings that would be lost: 'torusctl discover "
                     "--cluster' compares it with the cables; give another name to write a new one",
                     path);
}

/* Checks that each rank has a host with an interface for each port. */
static int check(const struct recognised *r, const char *path, struct error *e)
{
    const struct torus *t = &r->result.torus;
    char name[TORUS_PORT_NAME_SIZE];

    if (r->result.finding == CABLING_UNCLEAR)
        return error_set(e, ERROR_REFUSED, "%s is not written: %.200s", path, r->result.text);
    if (r->result.finding == CABLING_GRAPH)
        return error_set(e, ERROR_REFUSED,
                         "%s is not written: the cables make no torus, mesh, ring or other network "
                         "that has a name",
                         path);
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (r->result.host_of_rank[rank] == CABLING_NONE)
            return error_set(e, ERROR_REFUSED, "%s is not written: the host of rank %u is missing",
                             path, rank);
        if (strcmp(r->input.host[r->result.host_of_rank[rank]].name, CLUSTER_SECTION) == 0 ||
            hosts_file_check_name(r->input.host[r->result.host_of_rank[rank]].name, e) != 0)
            return error_set(e, ERROR_REFUSED,
                             "%s is not written: \"%.60s\" cannot be the name of a host there; "
                             "rename the host",
                             path, r->input.host[r->result.host_of_rank[rank]].name);
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE &&
                r->result.interface_at[rank * torus_ports(t) + port] == CABLING_NONE)
                return error_set(e, ERROR_REFUSED,
                                 "%s is not written: host %s has no interface for port %s", path,
                                 r->input.host[r->result.host_of_rank[rank]].name,
                                 torus_port_name(t, rank, port, name));
    }
    return 0;
}

int recognised_write_cluster(const struct recognised *r, const char *path, struct error *e)
{
    struct output_file file;
    char dims[DIMS_SIZE];

    if (check(r, path, e) != 0 || check_new(path, e) != 0 || output_file_open(&file, path, e) != 0)
        return -1;
    (void)cabling_dims(&r->result.torus, NULL, dims, sizeof dims);
    (void)fprintf(
        file.stream,
        "; %s.\n; Written by torusctl discover. 'torusctl init %s --links' sets up all hosts.\n"
        "[cluster]\ndims = %s\n",
        r->result.text, path, dims);
    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++)
        write_host(file.stream, r, rank);
    return output_file_finish(&file, e);
}
