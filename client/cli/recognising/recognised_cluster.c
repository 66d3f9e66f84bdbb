/* Writes the cluster file of a network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/recognising/recognised.h"
#include "client/cli/terminal/output_file.h"
#include "daemon/lib/cluster/hosts_file.h"

#define DIMS_SIZE 256

static void print_lines(FILE *out, const struct recognised *r, uint32_t rank, bool ranked)
{
    const struct torus *t = &r->result.torus;
    const uint32_t number = r->result.host_of_rank[rank];
    const struct cabling_host *host = &r->input.host[number];
    const struct discovered_host *found = &r->discovered->host[r->host_of[number]];
    char name[TORUS_PORT_NAME_SIZE];

    if (ranked)
        (void)fprintf(out, "rank = %u\n", rank);
    (void)fprintf(out, discovered_is_certain(found) ? "id = %s\n" : "; found with the id %s\n",
                  found->id);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t at = r->result.interface_at[rank * torus_ports(t) + port];
        if (at != CABLING_NONE)
            (void)fprintf(out, "%s = %s\n", torus_port_name(t, rank, port, name),
                          host->interface[at].name);
    }
}

char *recognised_lines(const struct recognised *r, uint32_t rank, bool ranked)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    print_lines(out, r, rank, ranked);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

int recognised_check_name(const char *name, const char *path, struct error *e)
{
    if (strcmp(name, CLUSTER_SECTION) != 0 && hosts_file_check_name(name, e) == 0)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "%.200s is not written: \"%.60s\" cannot be the name of a host there; "
                     "rename the host",
                     path, name);
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
        if (recognised_check_name(r->input.host[r->result.host_of_rank[rank]].name, path, e) != 0)
            return -1;
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

    if (check(r, path, e) != 0 || output_file_open(&file, path, e) != 0)
        return -1;
    (void)cabling_dims(&r->result.torus, NULL, dims, sizeof dims);
    (void)fprintf(
        file.stream,
        "; %s.\n; Written by torusctl discover. 'torusctl init %s --links' sets up all hosts.\n"
        "[cluster]\ndims = %s\n",
        r->result.text, path, dims);
    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++) {
        (void)fprintf(file.stream, "\n[%s]\n", r->input.host[r->result.host_of_rank[rank]].name);
        print_lines(file.stream, r, rank, true);
    }
    return output_file_finish(&file, e);
}
