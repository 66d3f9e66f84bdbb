/* torusctl mpi-env: the options of mpiexec with which MPI programs use the torus. */
#include <dlfcn.h>
#include <net/if.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/route_script.h"

struct mpi_env_arguments {
    const char *library;
    const char *interface;
    bool oversubscribed;
};

static const struct option options[] = {
    {"LIBRARY", "LIBRARY", offsetof(struct mpi_env_arguments, library), "mpich or openmpi"},
    {"--interface", "NAME", offsetof(struct mpi_env_arguments, interface),
     "the network interface that MPI uses on every host (default: " OWN_INTERFACE ",\nif this host "
     "has it: see 'torusctl help ip-routes')"},
    {"--oversubscribed", NULL, offsetof(struct mpi_env_arguments, oversubscribed),
     "hosts run more ranks than they have processors"},
    {0},
};

/* How mpiexec of a library is told what. */
struct library {
    const char *name, *preload;
    const char *const *always;       /* options, ended by NULL */
    const char *const *on_interface; /* %s: its name */
    const char *const *oversubscribed;
    bool joined; /* a variable is set by "-x NAME=VALUE", not by "-genv NAME VALUE" */
};

static const char *const nothing[] = {NULL};
static const char *const mpich_interface[] = {"-iface %s", "-genv UCX_NET_DEVICES %s",
                                              "-genv UCX_TLS tcp,self", NULL};
static const char *const mpich_oversubscribed[] = {"-bind-to none", NULL};
static const char *const openmpi_always[] = {"--mca pml ob1", "--mca btl tcp,vader,self", NULL};
static const char *const openmpi_interface[] = {"--mca btl_tcp_if_include %s",
                                                "--mca oob_tcp_if_include %s", NULL};
static const char *const openmpi_oversubscribed[] = {"--oversubscribe", "--bind-to none",
                                                     "--mca mpi_yield_when_idle 1", NULL};

static const struct library libraries[] = {
    {"mpich", "libtorus-mpich.so", nothing, mpich_interface, mpich_oversubscribed, false},
    {"openmpi", "libtorus-openmpi.so", openmpi_always, openmpi_interface, openmpi_oversubscribed,
     true},
};
static const char *const names[] = {"mpich", "openmpi", NULL};

/* The path of the library to preload, which lies beside libtorus; to be freed by the caller. NULL
 * with *e set if there is none. */
static char *find_preload(const struct library *l, struct error *e)
{
    char *path = NULL, *libtorus;
    Dl_info info;

    if (dladdr((void *)(uintptr_t)torus_client_close, &info) == 0 || info.dli_fname == NULL ||
        (libtorus = realpath(info.dli_fname, NULL)) == NULL) {
        (void)error_set(e, ERROR_IO, "cannot find out where libtorus is");
        return NULL;
    }
    *strrchr(libtorus, '/') = '\0';
    if (asprintf(&path, "%s/%s", libtorus, l->preload) < 0) {
        path = NULL;
        (void)error_set(e, ERROR_MEMORY, "out of memory");
    } else if (access(path, R_OK) != 0) {
        free(path);
        path = NULL;
        (void)error_set(e, ERROR_IO,
                        "%s is not in %s: it is built where cmake finds the MPI library (Debian: "
                        "apt-get install lib%s-dev)",
                        l->preload, libtorus, l->name);
    }
    free(libtorus);
    return path;
}

static int append(json_t *list, json_t *text)
{
    return json_array_append_new(list, text);
}

static int append_all(json_t *list, const char *const *texts, const char *interface)
{
    int r = 0;

    for (; *texts != NULL; texts++) {
        const char *gap = strstr(*texts, "%s");
        r |= append(list, gap == NULL
                              ? json_string(*texts)
                              : json_sprintf("%.*s%s", (int)(gap - *texts), *texts, interface));
    }
    return r;
}

static int append_variable(json_t *list, const struct library *l, const char *name,
                           const char *value)
{
    return append(list, json_sprintf(l->joined ? "-x %s=%s" : "-genv %s %s", name, value));
}

static json_t *options_of(const struct cli *cli, const struct library *l,
                          const struct mpi_env_arguments *a, const char *preload)
{
    const char *interface = a->interface, *socket = cli->socket, *others = getenv("LD_PRELOAD");
    json_t *list = json_array();
    char *both = NULL;
    int r;

    if (interface == NULL && if_nametoindex(OWN_INTERFACE) != 0)
        interface = OWN_INTERFACE;
    if (socket == NULL)
        socket = getenv("TORUS_SOCKET");
    if (others != NULL && others[0] != '\0' && asprintf(&both, "%s:%s", preload, others) < 0)
        both = NULL;
    r = append_variable(list, l, "LD_PRELOAD", both != NULL ? both : preload);
    if (socket != NULL)
        r |= append_variable(list, l, "TORUS_SOCKET", socket);
    r |= append_all(list, l->always, NULL);
    if (interface != NULL)
        r |= append_all(list, l->on_interface, interface);
    if (a->oversubscribed)
        r |= append_all(list, l->oversubscribed, NULL);
    free(both);
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int print_options(const struct cli *cli, const struct library *l, json_t *list)
{
    size_t i;
    json_t *text;

    if (list == NULL || cli->json)
        return cli_print(
            cli, list == NULL ? NULL : json_pack("{s:s, s:o}", "library", l->name, "options", list),
            NULL);
    json_array_foreach(list, i, text)(void) printf("%s\n", json_string_value(text));
    json_decref(list);
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct mpi_env_arguments *a = arguments;
    struct error e;
    size_t index;

    if (a->library == NULL)
        return cli_fail_usage(cli, "which MPI library? torusctl mpi-env mpich, or openmpi");
    if (parse_named(a->library, names, &index, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    if (a->interface != NULL && (a->interface[0] == '\0' || strlen(a->interface) >= IFNAMSIZ ||
                                 strpbrk(a->interface, " \t\n/") != NULL))
        return cli_fail_usage(cli, "--interface: \"%.40s\" is not the name of an interface",
                              a->interface);
    char *preload = find_preload(&libraries[index], &e);
    if (preload == NULL)
        return cli_fail(cli, &e);
    json_t *list = options_of(cli, &libraries[index], a, preload);
    free(preload);
    return print_options(cli, &libraries[index], list);
}

extern const struct command command_mpi_env;
const struct command command_mpi_env = {
    .name = "mpi-env",
    .summary = "Print the options of mpiexec with which MPI programs use the torus",
    .usage = "mpich | openmpi [--interface NAME] [--oversubscribed] [--json]",
    .details =
        "MPI programs get the torus' collective operations, without being compiled again, from a\n"
        "library that is loaded before MPI's own: libtorus-mpich.so or libtorus-openmpi.so. The\n"
        "options printed here load it on all hosts, and name the daemon's socket (--socket or\n"
        "TORUS_SOCKET; %h stands for the host's name). What LD_PRELOAD already names is loaded, "
        "too.\n"
        "They also keep MPI from using the cables' addresses, by which only neighbours reach each\n"
        "other, if this host has the interface " OWN_INTERFACE ", or another one is named.\n"
        "\n"
        "examples:\n"
        "  torusctl mpi-env openmpi\n"
        "  mpiexec.mpich $(torusctl mpi-env mpich) -hosts alpha,beta,gamma ./program\n"
        "  mpiexec.openmpi $(torusctl mpi-env openmpi) --hostfile hosts ./program\n"
        "  sudo topo/torus.py 4x4 --ip-routes --run 'mpiexec $(torusctl mpi-env openmpi) "
        "./program'\n",
    .options = options,
    .arguments_size = sizeof(struct mpi_env_arguments),
    .run = run,
};
