#include "client/cli/recognising/merging.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/cluster/cluster_edit.h"

#define DIMS_SIZE 256
#define RANK_SIZE 16

static const struct text_kind kind = {.name = "a cluster file", .most = CLUSTER_FILE_MOST};

static int no_memory(const struct merging *m, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for %.200s", m->path);
}

static void add(json_t *sentences, json_t *sentence)
{
    (void)json_array_append_new(sentences, sentence);
}

int merging_begin(struct merging *m, const char *path, struct error *e)
{
    struct stat status;
    size_t length;

    *m = (struct merging){.path = path, .changes = json_array(), .kept = json_array()};
    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size == 0)
        return 0;
    if (text_file_read(path, &kind, &m->before, &length, e) != 0 ||
        cluster_read_unfinished(&m->cluster, path, m->before, length, e) != 0)
        return -1;
    m->is_read = true;
    m->after = strdup(m->before);
    return m->after != NULL ? 0 : no_memory(m, e);
}

void merging_free(struct merging *m)
{
    if (m->is_read)
        cluster_free(&m->cluster);
    free(m->before);
    free(m->after);
    json_decref(m->changes);
    json_decref(m->kept);
}

/* --- the text --- */

/* Takes over the text, with which the file goes on. */
static int go_on(struct merging *m, char *text, struct error *e)
{
    if (text == NULL)
        return no_memory(m, e);
    free(m->after);
    m->after = text;
    return 0;
}

static int set(struct merging *m, const char *section, const char *name, const char *value,
               struct error *e)
{
    return go_on(m, cluster_edit_set(m->after, section, name, value), e);
}

static int set_rank(struct merging *m, const char *section, uint32_t rank, struct error *e)
{
    char text[RANK_SIZE];

    (void)snprintf(text, sizeof text, "%u", rank);
    return set(m, section, "rank", text, e);
}

static bool is_set(const struct merging *m, const char *section, const char *name)
{
    char *value = cluster_edit_get(m->after, section, name);
    const bool found = value != NULL;

    free(value);
    return found;
}

/* Whether the hosts have ranks of their own; otherwise their order is that of the ranks. */
static bool is_ranked(const struct merging *m)
{
    for (uint32_t i = 0; i < m->cluster.count; i++)
        if (m->cluster.hosts[i].name[0] != '\0' && is_set(m, m->cluster.hosts[i].name, "rank"))
            return true;
    return false;
}

static int read_again(struct merging *m, struct error *e)
{
    struct cluster now;

    if (cluster_read_unfinished(&now, m->path, m->after, strlen(m->after), e) != 0)
        return -1;
    cluster_free(&m->cluster);
    m->cluster = now;
    return 0;
}

/* --- the network --- */

/* Gives the file dimensions that it does not have. */
static int set_dims(struct merging *m, const struct torus *t, struct error *e)
{
    char dims[DIMS_SIZE], line[DIMS_SIZE + sizeof "dims = \n"];
    char *former, *text;

    if (m->cluster.has_dims && torus_equal(&m->cluster.routes.torus, t))
        return 0;
    (void)cabling_dims(t, NULL, dims, sizeof dims);
    (void)snprintf(line, sizeof line, "dims = %s\n", dims);
    former = cluster_edit_get(m->after, CLUSTER_SECTION, "dims");
    add(m->changes, former != NULL
                        ? json_sprintf("the dimensions are %s now, and were %s", dims, former)
                        : json_sprintf("the dimensions are %s now", dims));
    free(former);
    m->has_new_dims = true;
    text = cluster_edit_set(m->after, CLUSTER_SECTION, "dims", dims);
    if (text == NULL)
        text = cluster_edit_add(m->after, CLUSTER_SECTION, line);
    return go_on(m, text, e) == 0 ? read_again(m, e) : -1;
}

/* Whether the cables are right where hosts are: hosts may be missing. */
static bool is_right(const struct recognised *r)
{
    if (r->result.finding == CABLING_FITS)
        return true;
    if (r->result.finding != CABLING_NEAR)
        return false;
    for (uint32_t i = 0; i < r->result.moves; i++)
        if (r->result.move[i].kind != CABLING_START_HOST)
            return false;
    return true;
}

/* Recognises the network with the file's ranks; with its ports if they fit, otherwise with those of the cables. */
static int with_ranks(const struct merging *m, struct recognised *r, const struct discovered *d,
                      const struct recognise_options *o, struct error *e)
{
    struct recognise_options with = {.cluster = &m->cluster, .exclude = o->exclude};
    struct recognised other;

    if (recognise(r, d, &with, e) != 0)
        return -1;
    if (is_right(r))
        return 0;
    with.any_port = true;
    if (recognise(&other, d, &with, e) != 0) {
        recognised_free(r);
        return -1;
    }
    recognised_free(is_right(&other) ? r : &other);
    if (is_right(&other))
        *r = other;
    return 0;
}

/* The cables do not make the network of the file: do they make another one? Then *r becomes that one. */
static int with_other_dims(struct merging *m, struct recognised *r, struct error *e)
{
    char text[3 * TORUS_TEXT_SIZE], dims[DIMS_SIZE];
    struct recognised other;
    const int found =
        recognised_other_dims(r, &m->cluster.routes.torus, text, sizeof text, &other, e);

    if (found <= 0)
        return found;
    (void)cabling_dims(&other.result.torus, NULL, dims, sizeof dims);
    add(m->kept,
        json_sprintf("%s: if the cluster has changed, run the same command with --dims %s; "
                     "ranks, and with them addresses, may change then",
                     text, dims));
    recognised_free(r);
    *r = other;
    return 0;
}

/* The cables make the network, but with other ranks than the file has. */
static int with_other_ranks(struct merging *m, const struct discovered *d,
                            const struct recognise_options *o, struct error *e)
{
    const struct recognise_options any_rank = {.wanted = &m->cluster.routes.torus,
                                               .exclude = o->exclude};
    struct recognised other;

    if (recognise(&other, d, &any_rank, e) != 0)
        return -1;
    if (other.result.finding == CABLING_FITS)
        add(m->kept, json_string("the cables make this network with other ranks "
                                 "only: change the ranks in the file, or the cables"));
    recognised_free(&other);
    return 0;
}

int merging_recognise(struct merging *m, struct recognised *r, const struct discovered *d,
                      const struct recognise_options *o, struct error *e)
{
    const struct recognise_options wanted = {.wanted = o->wanted, .exclude = o->exclude};
    struct torus found;

    if (m->before == NULL)
        return recognise(r, d, o, e);
    if (o->wanted != NULL && set_dims(m, o->wanted, e) != 0)
        return error_wrap(e, "with these dimensions");
    if (!m->cluster.has_dims) {
        if (recognise(r, d, &wanted, e) != 0)
            return -1;
        found = r->result.torus;
        if (r->result.finding != CABLING_FITS)
            return 0;
        recognised_free(r);
        if (set_dims(m, &found, e) != 0)
            return error_wrap(e, "with the dimensions that the cables make");
    }
    if (with_ranks(m, r, d, o, e) != 0)
        return -1;
    if (is_right(r))
        return 0;
    if (!m->has_new_dims)
        return with_other_ranks(m, d, o, e) != 0 ? -1 : with_other_dims(m, r, e);
    recognised_free(r);
    return recognise(
        r, d,
        &(struct recognise_options){.wanted = &m->cluster.routes.torus, .exclude = o->exclude}, e);
}

/* --- the hosts --- */

struct node {
    const struct recognised *r;
    const struct discovered_host *found; /* NULL if no host has the rank */
    const char *name;                    /* of the host that is found */
    uint32_t rank;
    int64_t former; /* the rank of its section in m->cluster; -1: none */
};

static struct node node_at(const struct merging *m, const struct recognised *r, uint32_t rank)
{
    const uint32_t host = r->result.host_of_rank[rank];
    struct node n = {.r = r, .rank = rank, .former = -1};

    if (host == CABLING_NONE)
        return n;
    n.name = r->input.host[host].name;
    n.found = &r->discovered->host[r->host_of[host]];
    n.former = recognised_section(r->discovered, &m->cluster, r->host_of[host]);
    return n;
}

static int set_port(struct merging *m, const struct node *n, const struct host *h, unsigned port,
                    struct error *e)
{
    const struct torus *t = &n->r->result.torus;
    const uint32_t at = n->r->result.interface_at[n->rank * torus_ports(t) + port];
    const struct cabling_host *host = &n->r->input.host[n->r->result.host_of_rank[n->rank]];
    const char *former = h->port[port].interface, *now;
    char name[TORUS_PORT_NAME_SIZE], text[64], address[INET_ADDRSTRLEN];

    if (torus_neighbour(t, n->rank, port) == TORUS_NO_NODE || at == CABLING_NONE)
        return 0;
    now = host->interface[at].name;
    if (strcmp(former, now) == 0)
        return 0;
    (void)torus_port_name(t, n->rank, port, name);
    add(m->changes, former[0] != '\0' ? json_sprintf("%s has port %s at %s now, not at %s", h->name,
                                                     name, now, former)
                                      : json_sprintf("%s has port %s at %s", h->name, name, now));
    const bool has_address = h->port[port].address.s_addr != 0;
    (void)snprintf(text, sizeof text, "%s%s%s", now, has_address ? " " : "",
                   has_address ? inet_ntop(AF_INET, &h->port[port].address, address, sizeof address)
                               : "");
    return set(m, h->name, name, text, e);
}

static int set_id(struct merging *m, const struct node *n, const struct host *h, struct error *e)
{
    if (h->id[0] != '\0' && strcmp(h->id, n->found->id) != 0)
        add(m->kept, json_sprintf("%s has the id %s in the file, and %s here: if the machine was "
                                  "installed again, remove the line of the id",
                                  h->name, h->id, n->found->id));
    if (h->id[0] != '\0' || !discovered_is_certain(n->found))
        return 0;
    add(m->changes, json_sprintf("%s has the id %s", h->name, n->found->id));
    return set(m, h->name, "id", n->found->id, e);
}

static bool has_port(const struct torus *t, uint32_t rank, const char *name)
{
    const int port = torus_port_parse(t, rank, name);

    return port >= 0 && torus_neighbour(t, rank, (unsigned)port) != TORUS_NO_NODE;
}

/* Removes the lines of ports that the host does not have at its new rank. */
static int remove_ports(struct merging *m, const struct node *n, const struct host *h,
                        struct error *e)
{
    const struct torus *t = &n->r->result.torus;
    char name[TORUS_PORT_NAME_SIZE];

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (h->port[port].line == 0)
            continue;
        (void)torus_port_name(t, (uint32_t)n->former, port, name);
        if (!has_port(t, n->rank, name) &&
            go_on(m, cluster_edit_remove(m->after, h->name, name), e) != 0)
            return -1;
    }
    return 0;
}

/* Updates a host that has a section. */
static int update(struct merging *m, const struct node *n, struct error *e)
{
    const struct host *h = &m->cluster.hosts[n->former];

    if (!hosts_file_is_same_host(h->name, n->name))
        add(m->kept, json_sprintf("%s calls itself %s now: rename its section if that is right",
                                  h->name, n->name));
    if (n->former != n->rank) {
        add(m->changes,
            json_sprintf("%s has rank %u now, not %u", h->name, n->rank, (uint32_t)n->former));
        if (set_rank(m, h->name, n->rank, e) != 0 || remove_ports(m, n, h, e) != 0)
            return -1;
    }
    for (unsigned port = 0; port < torus_ports(&n->r->result.torus); port++)
        if (set_port(m, n, h, port, e) != 0)
            return -1;
    return set_id(m, n, h, e);
}

static int add_host(struct merging *m, const struct node *n, bool ranked, struct error *e)
{
    char *lines;
    int rc;

    if (recognised_check_name(n->name, m->path, e) != 0)
        return -1;
    lines = recognised_lines(n->r, n->rank, ranked);
    if (lines == NULL)
        return no_memory(m, e);
    add(m->changes, json_sprintf("%s is new, and has rank %u", n->name, n->rank));
    rc = go_on(m, cluster_edit_add(m->after, n->name, lines), e);
    free(lines);
    return rc;
}

/* Whether the section of a rank of the file is that of a host which is found, perhaps at another rank. */
static bool is_found(const struct merging *m, const struct recognised *r, uint32_t rank)
{
    for (uint32_t i = 0; i < r->result.torus.nodes; i++)
        if (node_at(m, r, i).former == (int64_t)rank)
            return true;
    return false;
}

/* Whether the order of the hosts, with new ones at the end of the file, will not be that of their ranks. */
static bool needs_ranks(const struct merging *m, const struct recognised *r)
{
    bool gap = false; /* a rank that stays without a section */

    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++) {
        const struct node n = node_at(m, r, rank);
        const bool is_free = m->cluster.hosts[rank].name[0] == '\0';
        if ((n.former >= 0 && n.former != rank) || (is_free && gap && n.found != NULL))
            return true;
        gap |= is_free && n.found == NULL;
    }
    return false;
}

/* Gives a rank to each section. */
static int rank_all(struct merging *m, struct error *e)
{
    for (uint32_t i = 0; i < m->cluster.count; i++)
        if (m->cluster.hosts[i].name[0] != '\0' && set_rank(m, m->cluster.hosts[i].name, i, e) != 0)
            return -1;
    return 0;
}

static int merge_rank(struct merging *m, const struct recognised *r, uint32_t rank, bool ranked,
                      struct error *e)
{
    const struct node n = node_at(m, r, rank);
    const struct host *there = &m->cluster.hosts[rank];
    const bool is_missing = there->name[0] != '\0' && !is_found(m, r, rank);

    if (n.found != NULL && n.former >= 0)
        return update(m, &n, e);
    if (n.found == NULL && is_missing)
        add(m->kept, json_sprintf("%s (rank %u) was not found", there->name, rank));
    else if (n.found != NULL && is_missing)
        add(m->kept, json_sprintf("%s is where %s (rank %u) should be, which was not found: if %s "
                                  "replaces it, rename the section and remove the line of the id",
                                  n.name, there->name, rank, n.name));
    else if (n.found == NULL)
        add(m->kept, json_sprintf("rank %u has no host yet", rank));
    return n.found == NULL || is_missing ? 0 : add_host(m, &n, ranked, e);
}

/* Says what the cables have and the network has not. */
static void keep_strangers(struct merging *m, const struct recognised *r)
{
    for (uint32_t i = 0; i < r->input.hosts; i++)
        if (r->result.rank_of_host[i] == CABLING_NONE)
            add(m->kept, json_sprintf("%s was found, and has no place in the network of the file",
                                      r->input.host[i].name));
}

/* Checks that the changed file can be read. */
static int check_after(const struct merging *m, struct error *e)
{
    struct cluster after;

    if (cluster_read_unfinished(&after, m->path, m->after, strlen(m->after), e) != 0)
        return error_wrap(e, "the changed file would be wrong");
    cluster_free(&after);
    return 0;
}

int merging_finish(struct merging *m, const struct recognised *r, struct error *e)
{
    if (!is_right(r) || !m->cluster.has_dims ||
        !torus_equal(&r->result.torus, &m->cluster.routes.torus)) {
        (void)json_array_clear(m->changes);
        if (json_array_size(m->kept) == 0)
            add(m->kept, json_string("the cables do not make its network"));
        return 0;
    }
    if (!is_ranked(m) && needs_ranks(m, r) && rank_all(m, e) != 0)
        return -1;
    const bool ranked = is_ranked(m);
    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++)
        if (merge_rank(m, r, rank, ranked, e) != 0)
            return -1;
    keep_strangers(m, r);
    if (strcmp(m->before, m->after) == 0)
        return 0;
    return check_after(m, e) == 0 ? cluster_edit_write(m->path, m->before, m->after, e) : -1;
}
