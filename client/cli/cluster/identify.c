#include "client/cli/cluster/identify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cluster/cluster_edit.h"
#include "client/cli/discovering/discovery_socket.h"
#include "proto/text.h"

#define LIST_SIZE 160u

struct identifying {
    struct cluster *cluster;
    const struct identify_options *options;
    struct discovered found;
    const struct discovered_host *
        *taken; /* by index of the host; NULL: has an id, or is not found */
    uint32_t unconfirmed;
    bool first; /* this host has no key, and no other one has an id: this is a new cluster */
};

static bool is_wanted(const struct identifying *x, uint32_t i)
{
    return x->options->host == NULL ||
           hosts_file_is_same_host(x->cluster->hosts[i].name, x->options->host);
}

static int several(const struct identifying *x, const char *name, struct error *e)
{
    char list[LIST_SIZE] = "";

    for (uint32_t i = 0; i < x->found.hosts; i++)
        if (hosts_file_is_same_host(x->found.host[i].name, name))
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                           list[0] != '\0' ? ", " : "", x->found.host[i].id);
    return error_set(e, ERROR_REFUSED,
                     "several hosts call themselves %.80s: %s. 'torusd-discover --id' on the right "
                     "one prints its id: write \"id = ID\" into its section of %.200s",
                     name, list, x->options->file);
}

/* Finds the host for a section without an id. */
static int find_by_name(struct identifying *x, uint32_t i, struct error *e)
{
    const char *name = x->cluster->hosts[i].name;
    const struct discovered_host *found = NULL;
    unsigned count = 0;

    for (uint32_t n = 0; n < x->found.hosts; n++) {
        const struct discovered_host *h = &x->found.host[n];
        if (!h->reachable && !h->self)
            continue;
        if (!hosts_file_is_same_host(h->name, name))
            continue;
        count++;
        found = h;
        if (h->self)
            break;
    }
    if (count > 1 && !found->self)
        return several(x, name, e);
    x->taken[i] = found;
    x->unconfirmed += found != NULL && !discovered_is_certain(found);
    return 0;
}

static bool is_this_host(const struct identifying *x, const char *id)
{
    for (uint32_t i = 0; i < x->found.hosts; i++)
        if (x->found.host[i].self && strcmp(x->found.host[i].id, id) == 0)
            return true;
    return false;
}

static int find_all(struct identifying *x, struct error *e)
{
    x->first = x->found.key[0] == '\0'; /* this host has no cluster key */
    for (uint32_t i = 0; i < x->cluster->count; i++)
        x->first &= x->cluster->hosts[i].id[0] == '\0' || is_this_host(x, x->cluster->hosts[i].id);
    for (uint32_t i = 0; i < x->cluster->count; i++)
        if (is_wanted(x, i) && x->cluster->hosts[i].id[0] == '\0' && find_by_name(x, i, e) != 0)
            return -1;
    return 0;
}

/* --- confirmation --- */

/* Asks the user, who compares the ids with what the hosts show. */
static bool ask(const struct identifying *x)
{
    char answer[16] = "";

    (void)fflush(stdout);
    (void)fprintf(
        stderr,
        "%s has no ids of these hosts, and each will get the cluster key. 'torusd-discover "
        "--id' prints the id on a host:\n",
        x->options->file);
    for (uint32_t i = 0; i < x->cluster->count; i++)
        if (x->taken[i] != NULL && !discovered_is_certain(x->taken[i]))
            (void)fprintf(stderr, "  %-16s %s\n", x->cluster->hosts[i].name, x->taken[i]->id);
    (void)fprintf(stderr, "Are these ids right? [y/N] ");
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int confirm(const struct identifying *x, const struct cli *cli, struct error *e)
{
    const struct identify_options *o = x->options;
    uint32_t i = 0;

    if (x->unconfirmed == 0)
        return 0;
    if (o->trust_cables && x->first)
        return 0;
    if (o->trust_cables)
        return error_set(
            e, ERROR_REFUSED,
            "--trust-cables is for the first setup of a cluster, and this one has been "
            "set up: leave it out, and confirm the ids of new hosts");
    if (!o->yes && !cli->json && isatty(STDIN_FILENO) != 0 && ask(x))
        return 0;
    while (x->taken[i] == NULL || discovered_is_certain(x->taken[i]))
        i++;
    return error_set(
        e, ERROR_REFUSED,
        "%u %s not confirmed, such as %.40s (found: id %s): answer on a terminal without "
        "--yes, or write \"id = ID\" into each section of %.80s, as 'torusd-discover "
        "--id' prints it there, or trust the cables of a new cluster with --trust-cables",
        x->unconfirmed, text_plural(x->unconfirmed, "host is", "hosts are"),
        x->cluster->hosts[i].name, x->taken[i]->id, o->file);
}

/* --- the file --- */

static void write_back(const char *path, const char *before, const char *after)
{
    struct error e;

    if (cluster_edit_write(path, before, after, &e) == 0)
        return;
    cli_warn(e.text);
    cli_warn("the ids of the hosts are not in the cluster file: write them there");
}

/* Reads the cluster again from the text with all ids. */
static int add_ids(struct identifying *x, struct error *e)
{
    struct cluster *c = x->cluster, with;
    char *text = strdup(c->text);
    bool changed = false;
    int rc = 0;

    for (uint32_t i = 0; i < c->count && text != NULL; i++) {
        if (x->taken[i] == NULL)
            continue;
        char *more = cluster_edit_set(text, c->hosts[i].name, "id", x->taken[i]->id);
        free(text);
        text = more;
        changed = true;
    }
    if (text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the cluster file");
    if (changed)
        rc = cluster_read_text(&with, x->options->file, text, strlen(text), e);
    if (changed && rc == 0) {
        if (!x->options->dry_run)
            write_back(x->options->file, c->text, text);
        cluster_free(c);
        *c = with;
    }
    free(text);
    return rc;
}

int identify_hosts(struct cluster *c, const struct identify_options *o, const struct cli *cli,
                   struct error *e)
{
    struct identifying x = {.cluster = c, .options = o};
    int rc = -1;

    if (discover_hosts(o->socket, &x.found, e) != 0)
        return -1;
    x.taken = calloc(c->count, sizeof(const struct discovered_host *));
    if (x.taken == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    else if (find_all(&x, e) == 0 && confirm(&x, cli, e) == 0)
        rc = add_ids(&x, e);
    free(x.taken);
    discovered_free(&x.found);
    return rc;
}
