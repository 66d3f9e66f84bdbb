#include "daemon/torusd/from_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/cluster/cluster_file.h"
#include "daemon/torusd/launcher.h"
#include "daemon/torusd/settings.h"
#include "proto/text.h"

/* What the decisions of this file are made from. */
struct facts {
    const char *file;
    struct cluster cluster;
    struct launcher launcher;
    char host[HOST_NAME_SIZE];
    char dims[TORUS_TEXT_SIZE];
};

bool from_env_needs(const char *option)
{
    static const char *const needed[] = {"from-env", "cluster", "name", "rank"};

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (strcmp(option, needed[i]) == 0)
            return true;
    return false;
}

/* The host's name decides which node this is: a launcher counts the hosts in its own order, and the cables are those
 * of this host. The launcher's rank counts only if the file does not have the name. */
static int choose_rank(struct config *c, const struct facts *f, struct error *e)
{
    const struct launcher *l = &f->launcher;
    int64_t found = cluster_find(&f->cluster, f->host);
    char *note = c->from_env.note;
    size_t size = sizeof c->from_env.note;

    if (c->have_rank && c->rank >= f->cluster.count)
        return error_set(e, ERROR_USAGE,
                         "rank %u does not exist: torus %s of %.100s has ranks 0 to %u", c->rank,
                         f->dims, f->file, f->cluster.count - 1);
    if (c->have_rank)
        return 0;
    if (found < 0 && (l->rank_variable == NULL || l->rank >= f->cluster.count))
        return error_set(e, ERROR_USAGE,
                         "%.100s has no host [%.64s], the name of this host: add it there, or give "
                         "the name that this host has there with --name",
                         f->file, f->host);
    c->have_rank = true;
    c->rank = found >= 0 ? (uint32_t)found : l->rank;
    c->from_env.guessed = found < 0;
    if (found < 0)
        (void)snprintf(
            note, size,
            "%.100s has no host [%.64s], the name of this host: this is node %u, because "
            "%s is %u",
            f->file, f->host, c->rank, l->rank_variable, l->rank);
    else if (l->rank_variable != NULL && l->rank != c->rank)
        (void)snprintf(note, size,
                       "this host is node %u, [%.64s] of %.100s; %s, which is %u, does not matter",
                       c->rank, f->cluster.hosts[c->rank].name, f->file, l->rank_variable, l->rank);
    return 0;
}

/* Each host of the cluster needs one daemon. */
static int check_launcher(const struct facts *f, struct error *e)
{
    const struct launcher *l = &f->launcher;
    uint32_t count = f->cluster.count;

    if (l->local_rank > 0)
        return error_set(
            e, ERROR_USAGE,
            "the launcher has started several processes on host %.64s: start one torusd on "
            "each host (srun --ntasks-per-node=1, mpiexec -ppn 1 or -npernode 1)",
            f->host);
    if (!l->has_size || l->size == count)
        return 0;
    return error_set(
        e, ERROR_USAGE,
        "the launcher has started %u %s (%s), but torus %s of %.100s has %u %s: start one torusd "
        "on each of them",
        l->size, text_plural(l->size, "process", "processes"), l->size_variable, f->dims, f->file,
        count, text_plural(count, "host", "hosts"));
}

/* Settings of [cluster] that are for the service and its users, and not for a daemon of one user. */
static bool is_of_service(const char *name)
{
    static const char *const names[] = {"data_roots", "read_group", "exchange_group",
                                        "admin_group"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Sets the settings that all hosts share. `lines` is changed. */
static int set_shared(struct config *c, char *lines, struct error *e)
{
    char *rest = lines, *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        char *value = strstr(line, " = ");
        if (value == NULL)
            continue;
        *value = '\0';
        if (!is_of_service(line) && config_set(c, line, value + 3, e) != 0)
            return -1;
    }
    return 0;
}

static int set_ports(struct config *c, const struct facts *f, struct error *e)
{
    const struct torus *t = &f->cluster.routes.torus;
    char name[TORUS_PORT_NAME_SIZE + sizeof PORT_RATE_SUFFIX], text[CLUSTER_PORT_TEXT_SIZE];

    _Static_assert(sizeof text >= NOMINAL_RATE_TEXT_SIZE, "room for both");
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!cluster_has_cable(&f->cluster, c->rank, port))
            continue;
        const struct nominal_rate rate = cluster_port_rate(&f->cluster, c->rank, port);
        if (config_set(c, torus_port_name(t, c->rank, port, name),
                       cluster_port_address(&f->cluster, c->rank, port, true, text), e) != 0)
            return -1;
        (void)strcat(name, PORT_RATE_SUFFIX);
        if (rate.send > 0 && config_set(c, name, nominal_rate_format(rate, text), e) != 0)
            return -1;
    }
    return 0;
}

static int set_all(struct config *c, struct facts *f, struct error *e)
{
    if (!f->cluster.has_ports)
        return error_set(e, ERROR_USAGE,
                         "%.200s has no ports: write the interface of each port into it, or let "
                         "'torusctl discover --output' write it",
                         f->file);
    (void)torus_format(&f->cluster.routes.torus, f->dims);
    if (choose_rank(c, f, e) != 0 || check_launcher(f, e) != 0 ||
        config_set(c, "dims", f->dims, e) != 0)
        return -1;
    if (set_shared(c, f->cluster.settings, e) != 0)
        return error_wrap(e, "%.200s", f->file);
    return set_ports(c, f, e);
}

int from_env_begin(struct config *c, struct error *e)
{
    struct facts f = {.file = c->from_env.cluster};
    int result;

    if (f.file[0] == '\0')
        f.file = DEFAULT_CLUSTER_FILE;
    if (launcher_find(&f.launcher, e) != 0)
        return -1;
    (void)strcpy(c->from_env.job, f.launcher.job);
    if (c->from_env.name[0] != '\0')
        (void)strcpy(f.host, c->from_env.name);
    else if (gethostname(f.host, sizeof f.host - 1) != 0)
        return error_set(e, ERROR_IO, "cannot find the name of this host: give it with --name");
    if (cluster_read(&f.cluster, f.file, e) != 0)
        return error_wrap(e, "--from-env reads a cluster file (--cluster)");
    result = set_all(c, &f, e);
    cluster_free(&f.cluster);
    c->control[0] = c->state_folder[0] = '\0';
    return result;
}

/* The socket that TORUS_SOCKET names is where programs of the same job look for the daemon, too. */
static int set_control(struct config *c, const char *otherwise, struct error *e)
{
    const char *path = getenv("TORUS_SOCKET");
    char host[HOST_NAME_SIZE] = "";
    size_t used = 0;

    if (path == NULL || path[0] == '\0')
        return config_set(c, "control", otherwise, e);
    (void)gethostname(host, sizeof host - 1);
    for (const char *at = path; *at != '\0'; at++) {
        bool is_host = at[0] == '%' && at[1] == 'h';
        int length = snprintf(c->control + used, sizeof c->control - used, "%.*s",
                              is_host ? (int)sizeof host : 1, is_host ? host : at);
        used += (size_t)length;
        if (used >= sizeof c->control)
            return error_set(e, ERROR_USAGE, "the path in TORUS_SOCKET is too long");
        at += is_host;
    }
    return 0;
}

int from_env_finish(struct config *c, bool make, struct error *e)
{
    struct job_folder f;

    if (!c->from_env.on && c->from_env.name[0] != '\0')
        return error_set(e, ERROR_USAGE,
                         "--name is an option of --from-env: add --from-env, or remove it");
    if (!c->from_env.on && c->from_env.cluster[0] != '\0')
        return error_set(e, ERROR_USAGE, "--cluster is an option of --from-env: add --from-env");
    if (!c->from_env.on)
        return 0;
    if (job_folder_name(&f, c->from_env.job, e) != 0 || (make && job_folder_make(&f, e) != 0))
        return -1;
    if (c->control[0] == '\0' && set_control(c, f.control, e) != 0)
        return -1;
    if (c->state_folder[0] == '\0' && config_set(c, "state_dir", f.state, e) != 0)
        return -1;
    return make && c->roots.count == 0 ? config_set(c, "data_roots", f.data, e) : 0;
}

void from_env_log(const struct config *c)
{
    const struct from_env_config *f = &c->from_env;

    if (f->note[0] != '\0' && f->guessed)
        log_warning("%s", f->note);
    else if (f->note[0] != '\0')
        log_info("%s", f->note);
    for (size_t i = 0; i < c->roots.count; i++)
        log_info("job %s: files to exchange are below %s", f->job, c->roots.path[i]);
    log_info("job %s: torusctl and programs find this node with TORUS_SOCKET=%s", f->job,
             c->control);
}

void from_env_remove(const struct config *c)
{
    struct job_folder f;

    if (c->from_env.on && job_folder_name(&f, c->from_env.job, NULL) == 0)
        job_folder_remove(&f);
}
