/* torusctl mpi-env: prints the options of mpiexec with which MPI programs use the torus. */
#include <dlfcn.h>
#include <net/if.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/ip_routes/route_script.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/shell_words.h"

struct mpi_env_arguments {
    const char *library;
    const char *interface;
    bool oversubscribed;
};

static const struct option options[] = {
    {"LIBRARY", "LIBRARY", offsetof(struct mpi_env_arguments, library), "mpich or openmpi"},
    {"--interface", "NAME", offsetof(struct mpi_env_arguments, interface),
     "network interface that MPI uses on every host (default:\n" OWN_INTERFACE
     ", if this host has it: see 'torusctl help ip-routes')"},
    {"--oversubscribed", NULL, offsetof(struct mpi_env_arguments, oversubscribed),
     "hosts run more ranks than they have processors"},
    {0},
};

/* The options of the mpiexec of an MPI library. */
struct library {
    const char *name, *preload;
    const char *const *always;       /* options, ended by NULL */
    const char *const *on_interface; /* %s stands for the name of the interface */
    const char *const *oversubscribed;
    bool joined; /* sets a variable with "-x NAME=VALUE" instead of "-genv NAME VALUE" */
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

/* Returns the path of a file in a folder that can be read. The caller frees it. NULL if there is none. */
static char *readable(const char *folder, const char *below, const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s%s", folder, below, name) < 0)
        return NULL;
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Returns the path of the library to preload, which is in the folder of libtorus (in a build), or in the folder
 * `torus` in it (installed). The caller frees it. NULL with *e if there is none. */
static char *find_preload(const struct library *l, struct error *e)
{
    char *path, *libtorus;
    Dl_info info;

    if (dladdr((void *)(uintptr_t)torus_client_close, &info) == 0 || info.dli_fname == NULL ||
        (libtorus = realpath(info.dli_fname, NULL)) == NULL) {
        (void)error_set(e, ERROR_IO, "cannot find the folder of libtorus");
        return NULL;
    }
    *strrchr(libtorus, '/') = '\0';
    path = readable(libtorus, "", l->preload);
    if (path == NULL)
        path = readable(libtorus, "torus/", l->preload);
    if (path == NULL)
        (void)error_set(
            e, ERROR_IO,
            "%s is not in %s: install the package torus-mpi, or build torusd where cmake "
            "finds the MPI library (Debian: apt-get install lib%s-dev)",
            l->preload, libtorus, l->name);
    free(libtorus);
    return path;
}

#define OPTIONS_MOST 16u

/* Options with their values. */
struct list {
    size_t count;
    struct entry {
        char text[40];     /* the option up to the value: "-x NAME=" */
        const char *value; /* any bytes, ended by 0; NULL: no value */
    } entry[OPTIONS_MOST];
};

/* ---- Collecting ------------------------------------------------------------------------------ */

static void append(struct list *list, const char *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(struct list *list, const char *value, const char *format, ...)
{
    struct entry *entry = &list->entry[list->count++];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(entry->text, sizeof entry->text, format, arguments);
    va_end(arguments);
    entry->value = value;
}

static void append_all(struct list *list, const char *const *texts, const char *interface)
{
    for (; *texts != NULL; texts++) {
        const char *gap = strstr(*texts, "%s");
        if (gap == NULL)
            append(list, NULL, "%s", *texts);
        else
            append(list, interface, "%.*s", (int)(gap - *texts), *texts);
    }
}

static void append_variable(struct list *list, const struct library *l, const char *name,
                            const char *value)
{
    append(list, value, l->joined ? "-x %s=" : "-genv %s ", name);
}

static void append_options(struct list *list, const struct cli *cli, const struct library *l,
                           const struct mpi_env_arguments *a, const char *preloads)
{
    const char *interface = a->interface, *socket = cli->socket;

    if (interface == NULL && if_nametoindex(OWN_INTERFACE) != 0)
        interface = OWN_INTERFACE;
    if (socket == NULL)
        socket = getenv("TORUS_SOCKET");
    append_variable(list, l, "LD_PRELOAD", preloads);
    if (socket != NULL)
        append_variable(list, l, "TORUS_SOCKET", socket);
    append_all(list, l->always, NULL);
    if (interface != NULL)
        append_all(list, l->on_interface, interface);
    if (a->oversubscribed)
        append_all(list, l->oversubscribed, NULL);
}

/* ---- Printing -------------------------------------------------------------------------------- */

/* Prints a value for a shell. */
static void print_quoted(const char *value)
{
    char *word = shell_word(value);

    (void)fputs(word != NULL ? word : "", stdout);
    free(word);
}

static json_t *value_of(const struct list *list)
{
    json_t *values = json_array();
    int r = 0;

    for (const struct entry *e = list->entry; e < list->entry + list->count; e++)
        r |= json_array_append_new(values, json_path(e->text, e->value != NULL ? e->value : ""));
    return json_checked(values, r);
}

static int print_options(const struct cli *cli, const struct library *l, const struct list *list)
{
    if (cli->json)
        return cli_print(
            cli, json_pack("{s:s, s:o}", "library", l->name, "options", value_of(list)), NULL);
    for (const struct entry *e = list->entry; e < list->entry + list->count; e++) {
        (void)fputs(e->text, stdout);
        if (e->value != NULL)
            print_quoted(e->value);
        (void)putchar('\n');
    }
    return EXIT_DONE;
}

/* The separators of names in LD_PRELOAD. */
#define ENDS_OF_NAMES " :"

/* Returns the value for LD_PRELOAD, which the caller frees, or NULL with *e. */
static char *find_preloads(const struct library *l, struct error *e)
{
    char *path = find_preload(l, e), *both = NULL;
    const char *others = getenv("LD_PRELOAD");

    if (path != NULL && strpbrk(path, ENDS_OF_NAMES) != NULL) {
        (void)error_set(e, ERROR_IO,
                        "'%.200s' cannot be preloaded: a path in LD_PRELOAD cannot have a space or "
                        "a colon; install libtorus and %s in another folder",
                        path, l->preload);
        free(path);
        return NULL;
    }
    if (path == NULL || others == NULL || others[0] == '\0')
        return path;
    if (asprintf(&both, "%s:%s", path, others) < 0) {
        both = NULL;
        (void)error_set(e, ERROR_MEMORY, "out of memory");
    }
    free(path);
    /* The names that were there may be separated by spaces. */
    for (char *gap = both; gap != NULL && (gap = strchr(gap, ' ')) != NULL;)
        *gap = ':';
    return both;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct mpi_env_arguments *a = arguments;
    struct error e;
    size_t index;

    if (a->library == NULL)
        return cli_fail_usage(cli, "the MPI library is missing: give mpich or openmpi");
    if (parse_named(a->library, names, &index, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    if (a->interface != NULL && (a->interface[0] == '\0' || strlen(a->interface) >= IFNAMSIZ ||
                                 strpbrk(a->interface, " \t\n/") != NULL))
        return cli_fail_usage(cli, "--interface: \"%.40s\" is not the name of an interface",
                              a->interface);
    char *preloads = find_preloads(&libraries[index], &e);
    if (preloads == NULL)
        return cli_fail(cli, &e);
    struct list list = {0};
    append_options(&list, cli, &libraries[index], a, preloads);
    int code = print_options(cli, &libraries[index], &list);
    free(preloads);
    return code;
}

const struct command command_mpi_env = {
    .name = "mpi-env",
    .summary = "Print the options of mpiexec with which MPI programs use the torus",
    .usage = "mpich | openmpi [--interface NAME] [--oversubscribed] [--json]",
    .options = options,
    .arguments_size = sizeof(struct mpi_env_arguments),
    .run = run,
};
