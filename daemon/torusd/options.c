#include "daemon/torusd/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/lib/service/service.h"
#include "daemon/torusd/from_env.h"
#include "daemon/torusd/settings.h"
#include "proto/version.h"

enum { EXIT_USAGE = 2, OPTIONS_MOST = 64, LEFT_WIDTH = 19, FIRST_OPTION = 256 };

static const char beginning[] =
    "torusd: one node of a torus of directly cabled machines\n"
    "\n"
    "usage: torusd [--config FILE | --from-env] [OPTION ...]\n"
    "\n"
    "Holds one TCP connection per port to its torus neighbours, and forwards the messages of\n"
    "complete exchanges. Runs in the foreground and logs to standard error; SIGTERM or Ctrl-C\n"
    "ends it; SIGHUP makes it read its settings again. Use torusctl to start exchanges.\n"
    "\n";

static const char end[] =
    "\n"
    "The INI file, UTF-8 text of at most 1 MiB, has the same settings. Section [node] has those\n"
    "named as the options above, with _ for - (\"state_dir = /var/lib/torusd\"); --data-root is\n"
    "data_roots there. Section [ports] has lines such as \"+0 = 10.0.0.2:7411\". ';' begins a\n"
    "comment; a value ends with its line.\n"
    "\n"
    "exit status: 0 ended by a signal, or --check found nothing wrong; 1 could not start; 2 "
    "invalid\n"
    "options or settings\n";

static void print_option(const struct setting *s)
{
    char left[64];

    (void)snprintf(left, sizeof left, "--%s%s%s", s->option, s->value != NULL ? " " : "",
                   s->value != NULL ? s->value : "");
    (void)printf("  %-*s", LEFT_WIDTH, left);
    if (strlen(left) > LEFT_WIDTH)
        (void)printf("\n  %*s", LEFT_WIDTH, "");
    (void)fputs("  ", stdout);
    for (const char *c = s->help; *c != '\0'; c++) {
        (void)putchar(*c);
        if (*c == '\n')
            (void)printf("  %*s  ", LEFT_WIDTH, "");
    }
    (void)putchar('\n');
}

static void print_help(void)
{
    (void)fputs(beginning, stdout);
    for (const struct setting *s = config_settings; s->option != NULL; s++)
        print_option(s);
    (void)fputs(end, stdout);
}

static void print_version(void)
{
    (void)printf("torusd " TORUSD_VERSION "\n" VERSION_PROTOCOLS_FORMAT "\n", VERSION_PROTOCOLS);
}

/* Fills the table for getopt_long() from the rows; an option's value is FIRST_OPTION + the index
 * of its row. */
static void make_long_options(struct option *options)
{
    size_t i = 0;

    for (; config_settings[i].option != NULL && i + 1 < OPTIONS_MOST; i++)
        options[i] = (struct option){
            .name = config_settings[i].option,
            .has_arg = config_settings[i].value != NULL ? required_argument : no_argument,
            .val = FIRST_OPTION + (int)i,
        };
    options[i] = (struct option){0};
}

static bool is_option(int option, const char *name)
{
    return option >= FIRST_OPTION &&
           strcmp(config_settings[option - FIRST_OPTION].option, name) == 0;
}

static bool has_option(int argc, char **argv, const struct option *options, const char *name)
{
    int option;
    bool found = false;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        found |= is_option(option, name);
    optind = 1;
    return found;
}

static int set_option(struct config *config, int option, struct error *e)
{
    const struct setting *s = &config_settings[option - FIRST_OPTION];

    if (s->set_option != NULL)
        return s->set_option(config, optarg, e);
    return s->set != NULL ? s->set(config, optarg, e) : 0;
}

/* Reads the file first, so that options override it wherever they stand. */
static int read_config_file(int argc, char **argv, const struct option *options,
                            struct config *config, struct error *e)
{
    int option, result = 0;

    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (is_option(option, "config"))
            result = config_read(config, optarg, e);
    optind = 1;
    return result;
}

/* Reads the cluster file; some options decide which file, and which host in it. */
static int read_cluster_file(int argc, char **argv, const struct option *options,
                             struct config *config, struct error *e)
{
    int option, result = 0;

    if (has_option(argc, argv, options, "config"))
        return error_set(e, ERROR_USAGE,
                         "--config and --from-env are not possible together: --from-env reads the "
                         "cluster file");
    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (option >= FIRST_OPTION && from_env_needs(config_settings[option - FIRST_OPTION].option))
            result = set_option(config, option, e);
    optind = 1;
    return result == 0 ? from_env_begin(config, e) : -1;
}

/* Reads the file from which settings come before options override them. */
static int read_file(int argc, char **argv, const struct option *options, struct config *config,
                     struct error *e)
{
    int result;

    opterr = 0;
    if (has_option(argc, argv, options, "from-env"))
        result = read_cluster_file(argc, argv, options, config, e);
    else
        result = read_config_file(argc, argv, options, config, e);
    opterr = 1;
    return result;
}

/* Handles options that only print something. Returns 0 for any other option; otherwise sets *exit_code. */
static int print_and_end(int option, int *exit_code)
{
    bool help = is_option(option, "help"), version = is_option(option, "version");

    if (help)
        print_help();
    if (version)
        print_version();
    if (help || version)
        *exit_code = EXIT_SUCCESS;
    if (option == '?')
        (void)fputs("torusd --help lists the options\n", stderr);
    return help || version || option == '?' ? -1 : 0;
}

/* A pipe can be read only once: a second reader would wait for ever. */
static int refuse_pipe(int argc, char **argv, const struct option *options, struct error *e)
{
    struct stat status;
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if ((is_option(option, "config") || is_option(option, "cluster")) &&
            stat(optarg, &status) == 0 && !S_ISREG(status.st_mode))
            return error_set(e, ERROR_USAGE,
                             "%s is not a regular file, and cannot be read a second time: restart "
                             "the daemon",
                             optarg);
    optind = 1;
    return 0;
}

int options_read_again(int argc, char **argv, struct config *config, struct error *e)
{
    struct option options[OPTIONS_MOST];
    int option, result;

    make_long_options(options);
    result = refuse_pipe(argc, argv, options, e);
    if (result == 0)
        result = read_file(argc, argv, options, config, e);
    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        result = set_option(config, option, e);
    if (result == 0)
        result = from_env_finish(config, true, e);
    return result == 0 ? config_finish(config, e) : -1;
}

/* On a file system that is mounted read-only nobody expects to write. */
static bool is_read_only(const char *folder)
{
    struct statvfs status;

    return statvfs(folder, &status) == 0 && (status.f_flag & ST_RDONLY) != 0;
}

/* Prints the data roots in which the user of this process cannot write, each on a line of fields: the setting, its value,
 * what is wrong. torusd starts with them all the same, because there may be folders below in which it can. */
static void print_roots_not_writable(const struct roots *roots)
{
    const struct passwd *user = getpwuid(geteuid());

    for (size_t i = 0; i < roots->count; i++)
        if (faccessat(AT_FDCWD, roots->path[i], W_OK | X_OK, AT_EACCESS) != 0 &&
            !is_read_only(roots->path[i]))
            (void)printf("data_roots\t%s\tthe user %s cannot write there\n", roots_name(roots, i),
                         user != NULL ? user->pw_name : "of this process");
}

int options_read(int argc, char **argv, struct config *config, int *exit_code)
{
    struct option options[OPTIONS_MOST];
    struct error e = {0};
    int option, result;

    bool check = false;

    *exit_code = EXIT_USAGE;
    make_long_options(options);
    result = read_file(argc, argv, options, config, &e);
    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (print_and_end(option, exit_code) != 0)
            return -1;
        check |= is_option(option, "check");
        result = set_option(config, option, &e);
    }
    if (result == 0 && optind < argc)
        result = error_set(&e, ERROR_USAGE, "unexpected argument \"%s\": torusd takes options only",
                           argv[optind]);
    signals_hold(); /* from_env_remove() removes at the end what is made here */
    if (result == 0)
        result = from_env_finish(config, !check, &e);
    if (result == 0)
        result = config_finish(config, &e);
    if (result != 0)
        (void)fprintf(stderr, "torusd: %s\n", e.text);
    if (result != 0 || !check)
        return result;
    print_roots_not_writable(&config->roots);
    *exit_code = EXIT_SUCCESS;
    return -1;
}
