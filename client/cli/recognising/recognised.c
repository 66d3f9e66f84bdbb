#include "client/cli/recognising/recognised.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"
#include "daemon/lib/cluster/cluster_file.h"
#include "daemon/lib/cluster/hosts_file.h"

#define MOVE_SIZE 512

/* --- the input --- */

static bool is_excluded(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t item = strcspn(at, ",");
        if (item == length && strncmp(at, name, length) == 0)
            return true;
        at += item + (at[item] == ',');
    }
    return false;
}

/* Returns the index in the input of a discovered host; CABLING_NONE: it is not part of it. */
static uint32_t input_of(const struct recognised *r, uint32_t host)
{
    for (uint32_t i = 0; i < r->input.hosts; i++)
        if (r->host_of[i] == host)
            return i;
    return CABLING_NONE;
}

/* Fills in the neighbours of an interface that belong to the input. Returns 0, or -1 if there is no memory. */
static int fill_heard(const struct recognised *r, const struct reported_interface *from,
                      struct cabling_interface *to)
{
    struct cabling_end *heard = calloc(from->heards + 1, sizeof *heard);

    if (heard == NULL)
        return -1;
    to->heard = heard;
    for (unsigned i = 0; i < from->heards; i++) {
        uint32_t host = discovered_find(r->discovered, &from->heard[i].host), at;
        uint32_t input = host != UINT32_MAX ? input_of(r, host) : CABLING_NONE;
        if (input == CABLING_NONE)
            continue;
        at = discovered_interface(&r->discovered->host[host], from->heard[i].interface);
        if (at != UINT32_MAX)
            heard[to->heard_count++] = (struct cabling_end){input, at};
    }
    return 0;
}

/* Returns the port that the cluster file gives to an interface, or -1. */
static int port_in(const struct cluster *c, int64_t rank, const char *interface)
{
    if (rank < 0 || !c->has_dims || !c->has_ports)
        return -1;
    for (unsigned port = 0; port < torus_ports(&c->routes.torus); port++)
        if (strcmp(c->hosts[rank].port[port].interface, interface) == 0)
            return (int)port;
    return -1;
}

static bool is_there(const struct discovered *d, const char *id)
{
    for (uint32_t i = 0; i < d->hosts; i++)
        if (strcmp(d->host[i].id, id) == 0)
            return true;
    return false;
}

int64_t recognised_section(const struct discovered *d, const struct cluster *c, uint32_t host)
{
    const struct discovered_host *h = &d->host[host];
    int64_t named = cluster_find(c, h->report->name);

    for (uint32_t i = 0; i < c->count; i++)
        if (c->hosts[i].id[0] != '\0' && strcmp(c->hosts[i].id, h->id) == 0)
            return (int64_t)i;
    /* The host of the section may be another one, which has another name now. */
    return named >= 0 && c->hosts[named].id[0] != '\0' && is_there(d, c->hosts[named].id) ? -1
                                                                                          : named;
}

static int fill_host(const struct recognised *r, uint32_t number, const struct recognise_options *o,
                     struct cabling_host *to)
{
    const struct report *report = r->discovered->host[r->host_of[number]].report;
    struct cabling_interface *interface = calloc(report->interfaces + 1, sizeof *interface);
    int64_t rank = -1;

    if (interface == NULL)
        return -1;
    to->name = report->name;
    to->interface = interface;
    to->interfaces = report->interfaces;
    if (o->cluster != NULL && o->cluster->has_dims && o->cluster->has_ports)
        rank = recognised_section(r->discovered, o->cluster, r->host_of[number]);
    to->rank = rank >= 0 ? (uint32_t)rank : CABLING_NONE;
    for (unsigned i = 0; i < report->interfaces; i++) {
        const struct reported_interface *from = &report->interface[i];
        interface[i].name = from->name;
        interface[i].carrier = from->carrier;
        interface[i].excluded = is_excluded(o->exclude, from->name);
        interface[i].port =
            o->cluster != NULL && !o->any_port ? port_in(o->cluster, rank, from->name) : -1;
        if (fill_heard(r, from, &interface[i]) != 0)
            return -1;
    }
    return 0;
}

static void free_input(struct recognised *r)
{
    for (uint32_t i = 0; r->input.host != NULL && i < r->input.hosts; i++) {
        for (uint32_t n = 0; r->input.host[i].interface != NULL && n < r->input.host[i].interfaces;
             n++)
            free((void *)(uintptr_t)r->input.host[i].interface[n].heard);
        free((void *)(uintptr_t)r->input.host[i].interface);
    }
    free((void *)(uintptr_t)r->input.host);
    free(r->expected);
    free(r->host_of);
}

/* Makes the input of the hosts that are reachable. Returns 0, or -1 if there is no memory. */
static int make_input(struct recognised *r, const struct recognise_options *o)
{
    struct cabling_host *host;
    int result = 0;

    r->host_of = calloc(r->discovered->hosts + 1, sizeof r->host_of[0]);
    host = calloc(r->discovered->hosts + 1, sizeof *host);
    r->input.host = host;
    r->input.wanted = o->wanted;
    if (o->cluster != NULL && o->cluster->has_dims)
        r->input.wanted = &o->cluster->routes.torus;
    if (o->cluster != NULL && o->cluster->has_dims && o->cluster->has_ports) {
        r->expected = calloc(o->cluster->count, sizeof r->expected[0]);
        for (uint32_t i = 0; r->expected != NULL && i < o->cluster->count; i++)
            r->expected[i] =
                o->cluster->hosts[i].name[0] != '\0' ? o->cluster->hosts[i].name : NULL;
        r->input.expected = r->expected;
    }
    if (r->host_of == NULL || host == NULL)
        return -1;
    for (uint32_t i = 0; i < r->discovered->hosts; i++)
        if (r->discovered->host[i].reachable)
            r->host_of[r->input.hosts++] = i;
    for (uint32_t i = 0; i < r->input.hosts && result == 0; i++)
        result = fill_host(r, i, o, &host[i]);
    return result;
}

int recognise(struct recognised *r, const struct discovered *d, const struct recognise_options *o,
              struct error *e)
{
    int result;

    *r = (struct recognised){.discovered = d, .exclude = o->exclude};
    result = make_input(r, o) == 0
                 ? cabling_find(&r->result, &r->input, e)
                 : error_set(e, ERROR_MEMORY, "out of memory for the cables of %u hosts", d->hosts);
    if (result != 0)
        free_input(r);
    return result;
}

void recognised_free(struct recognised *r)
{
    cabling_free(&r->result);
    free_input(r);
}

/* --- the result --- */

static void add(json_t *list, json_t *value)
{
    (void)json_array_append_new(list, value);
}

static const char *finding_of(const struct recognised *r)
{
    switch (r->result.finding) {
    case CABLING_FITS:
        return "fits";
    case CABLING_NEAR:
        return "near";
    case CABLING_GRAPH:
        return "graph";
    default:
        return "unclear";
    }
}

/* Returns the name of the host with a rank, or NULL if it is missing. */
static const char *name_of(const struct recognised *r, uint32_t rank)
{
    uint32_t host = r->result.host_of_rank[rank];

    return host != CABLING_NONE ? r->input.host[host].name : NULL;
}

/* Returns the name of the interface at a port, or NULL if there is none. */
static const char *interface_of(const struct recognised *r, uint32_t rank, unsigned port)
{
    uint32_t at = r->result.interface_at[rank * torus_ports(&r->result.torus) + port];
    uint32_t host = r->result.host_of_rank[rank];

    return host != CABLING_NONE && at != CABLING_NONE ? r->input.host[host].interface[at].name
                                                      : NULL;
}

static json_t *ports_json(const struct recognised *r, uint32_t rank)
{
    const struct torus *t = &r->result.torus;
    char name[TORUS_PORT_NAME_SIZE];
    json_t *ports = json_object();

    for (unsigned port = 0; port < torus_ports(t); port++) {
        const char *interface = interface_of(r, rank, port);
        if (torus_neighbour(t, rank, port) != TORUS_NO_NODE)
            (void)json_object_set_new(ports, torus_port_name(t, rank, port, name),
                                      interface != NULL ? json_string(interface) : json_null());
    }
    return ports;
}

static json_t *nodes_json(const struct recognised *r)
{
    json_t *list = json_array();

    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++) {
        const char *name = name_of(r, rank);
        add(list, json_pack("{s:I, s:o, s:o}", "rank", (json_int_t)rank, "host",
                            name != NULL ? json_string(name) : json_null(), "ports",
                            ports_json(r, rank)));
    }
    return list;
}

static json_t *moves_json(const struct recognised *r)
{
    char text[MOVE_SIZE];
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->result.moves; i++) {
        (void)cabling_move_text(&r->result, &r->input, i, text, sizeof text);
        add(list, json_string(text));
    }
    return list;
}

const char *recognised_left_out(const struct recognised *r, uint32_t host, uint32_t interface)
{
    const struct cabling_result *c = &r->result;
    const uint32_t input = input_of(r, host);

    for (uint32_t i = 0; i < c->shared_count; i++)
        if (c->shared[i].host == input && c->shared[i].interface == interface)
            return "is not a cable: several hosts are heard here, as at a switch";
    for (uint32_t i = 0; i < c->twins; i++)
        if (c->twin[i].left_out.host == input && c->twin[i].left_out.interface == interface)
            return "is another function of a port whose cable is listed";
    return "";
}

static json_t *twins_json(const struct recognised *r)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->result.twins; i++) {
        const struct cabling_twin *twin = &r->result.twin[i];
        const struct cabling_host *host = &r->input.host[twin->left_out.host];
        add(list, json_pack("{s:s, s:s, s:s}", "host", host->name, "interface",
                            host->interface[twin->left_out.interface].name, "taken",
                            host->interface[twin->taken].name));
    }
    return list;
}

static json_t *shared_json(const struct recognised *r)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->result.shared_count; i++) {
        const struct cabling_host *host = &r->input.host[r->result.shared[i].host];
        add(list, json_pack("{s:s, s:s}", "host", host->name, "interface",
                            host->interface[r->result.shared[i].interface].name));
    }
    return list;
}

/* Adds what differs at one rank. */
static void add_differences(const struct recognised *r, const struct host *h, uint32_t rank,
                            json_t *list)
{
    const struct torus *t = &r->result.torus;
    const char *name = name_of(r, rank);

    if (h->name[0] == '\0')
        return; /* the file has no host there yet */
    if (name == NULL || !hosts_file_is_same_host(name, h->name)) {
        add(list, json_sprintf("rank %u is %s in the file, and %s here", rank, h->name,
                               name != NULL ? name : "missing"));
        return;
    }
    const struct discovered_host *found =
        &r->discovered->host[r->host_of[r->result.host_of_rank[rank]]];
    if (h->id[0] != '\0' && strcmp(h->id, found->id) != 0)
        add(list,
            json_sprintf("%s has the id %s in the file, and %s here", h->name, h->id, found->id));
    for (unsigned port = 0; port < torus_ports(t); port++) {
        const char *here = interface_of(r, rank, port), *there = h->port[port].interface;
        char port_name[TORUS_PORT_NAME_SIZE];
        if (torus_neighbour(t, rank, port) == TORUS_NO_NODE ||
            (here != NULL && strcmp(here, there) == 0))
            continue;
        add(list, json_sprintf("%s has port %s at %s in the file, and at %s here", h->name,
                               torus_port_name(t, rank, port, port_name),
                               there[0] != '\0' ? there : "no interface",
                               here != NULL ? here : "no interface"));
    }
}

int recognised_other_dims(const struct recognised *r, const struct torus *t, char *text,
                          size_t size, struct recognised *other, struct error *e)
{
    const struct recognise_options any = {.exclude = r->exclude};
    char found[TORUS_TEXT_SIZE], wanted[TORUS_TEXT_SIZE];

    text[0] = '\0';
    if (recognise(other, r->discovered, &any, e) != 0)
        return -1;
    if (other->result.finding != CABLING_FITS || torus_equal(&other->result.torus, t)) {
        recognised_free(other);
        return 0;
    }
    (void)snprintf(text, size, "the cables make %s with %u hosts, and the file has %s with %u",
                   torus_format(&other->result.torus, found), other->result.torus.nodes,
                   torus_format(t, wanted), t->nodes);
    return 1;
}

json_t *recognised_differences(const struct recognised *r, const struct cluster *c)
{
    char dims[3 * TORUS_TEXT_SIZE];
    struct recognised other;
    struct error e;
    json_t *list = json_array();

    if (r->result.finding != CABLING_FITS && c->has_dims &&
        recognised_other_dims(r, &c->routes.torus, dims, sizeof dims, &other, &e) == 1) {
        add(list, json_string(dims));
        recognised_free(&other);
    }
    if (r->result.finding != CABLING_FITS || !c->has_dims || !c->has_ports ||
        !torus_equal(&r->result.torus, &c->routes.torus))
        return list;
    for (uint32_t rank = 0; rank < c->count; rank++)
        add_differences(r, &c->hosts[rank], rank, list);
    return list;
}

int recognised_to_json(const struct recognised *r, json_t *object)
{
    int failed = json_object_update_new(
        object, json_pack("{s:s, s:s}", "finding", finding_of(r), "network", r->result.text));

    if (r->result.finding != CABLING_UNCLEAR) {
        failed |= json_set_torus(object, &r->result.torus);
        failed |= json_object_set_new(object, "nodes", nodes_json(r));
    }
    return failed | json_object_update_new(
                        object, json_pack("{s:o, s:o, s:o}", "moves", moves_json(r), "shared",
                                          shared_json(r), "twins", twins_json(r)));
}

/* ---- The cluster file of a network ----------------------------------------------------------- */

/* Writes the cluster file of a network. */

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
