#include "daemon/torusd/options.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/lib/command_line/options.h"
#include "daemon/lib/service/service.h"
#include "daemon/torusd/from_env.h"
#include "daemon/torusd/settings.h"
#include "proto/version.h"

#define EXIT_USAGE 2
#define OPTIONS_MOST 64u

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

/* A command line, whose options are in the order of the arguments. */
struct command_line {
    struct option table[OPTIONS_MOST]; /* for each row of config_settings, and an end */
    char name[OPTIONS_MOST][32];
    struct option_given *given;
    size_t count;
};

static void make_table(struct command_line *l)
{
    *l = (struct command_line){0};
    for (size_t i = 0; config_settings[i].option != NULL && i + 1 < OPTIONS_MOST; i++) {
        const struct setting *s = &config_settings[i];
        (void)snprintf(l->name[i], sizeof l->name[i], "--%s", s->option);
        l->table[i] = (struct option){.name = l->name[i], .value = s->value, .help = s->help};
    }
}

/* Reads the options; the caller frees l->given. */
static int read_options(struct command_line *l, int argc, char **argv, struct error *e)
{
    int used;

    l->given = calloc((size_t)argc, sizeof *l->given);
    if (l->given == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the options");
    used = options_list(l->table, argc - 1, argv + 1, l->given, &l->count, e);
    if (used < 0 || used == argc - 1)
        return used < 0 ? -1 : 0;
    return error_set(e, ERROR_USAGE, "unexpected argument \"%s\": torusd takes options only",
                     argv[used + 1]);
}

static const struct setting *setting_of(const struct command_line *l, size_t i)
{
    return &config_settings[l->given[i].option - l->table];
}

static bool is_option(const struct command_line *l, size_t i, const char *name)
{
    return strcmp(setting_of(l, i)->option, name) == 0;
}

static bool has_option(const struct command_line *l, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < l->count; i++)
        found |= is_option(l, i, name);
    return found;
}

static int set_option(struct config *config, const struct command_line *l, size_t i,
                      struct error *e)
{
    const struct setting *s = setting_of(l, i);

    if (s->set_option != NULL)
        return s->set_option(config, l->given[i].text, e);
    return s->name != NULL ? config_set(config, s->name, l->given[i].text, e) : 0;
}

/* Reads the cluster file; some options decide which file, and which host in it. */
static int read_cluster_file(const struct command_line *l, struct config *config, struct error *e)
{
    if (has_option(l, "config"))
        return error_set(e, ERROR_USAGE,
                         "--config and --from-env are not possible together: --from-env reads the "
                         "cluster file");
    for (size_t i = 0; i < l->count; i++)
        if (from_env_needs(setting_of(l, i)->option) && set_option(config, l, i, e) != 0)
            return -1;
    return from_env_begin(config, e);
}

/* Reads the file from which settings come, and then the options, which override it wherever they stand. */
static int read_settings(const struct command_line *l, struct config *config, struct error *e)
{
    if (has_option(l, "from-env") && read_cluster_file(l, config, e) != 0)
        return -1;
    for (size_t i = 0; i < l->count; i++)
        if (is_option(l, i, "config") && config_read(config, l->given[i].text, e) != 0)
            return -1;
    for (size_t i = 0; i < l->count; i++)
        if (set_option(config, l, i, e) != 0)
            return -1;
    return 0;
}

/* Handles options that only print something. Returns whether there was one. */
static bool print_and_end(const struct command_line *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (is_option(l, i, "version")) {
            (void)printf("torusd " TORUSD_VERSION "\n" VERSION_PROTOCOLS_FORMAT "\n",
                         VERSION_PROTOCOLS);
            return true;
        }
        if (is_option(l, i, "help")) {
            (void)fputs(beginning, stdout);
            options_help(stdout, l->table);
            (void)fputs(end, stdout);
            return true;
        }
    }
    return false;
}

/* A pipe can be read only once: a second reader would wait for ever. */
static int refuse_pipe(const struct command_line *l, struct error *e)
{
    struct stat status;

    for (size_t i = 0; i < l->count; i++)
        if ((is_option(l, i, "config") || is_option(l, i, "cluster")) &&
            stat(l->given[i].text, &status) == 0 && !S_ISREG(status.st_mode))
            return error_set(e, ERROR_USAGE,
                             "%s is not a regular file, and cannot be read a second time: restart "
                             "the daemon",
                             l->given[i].text);
    return 0;
}

int options_read_again(int argc, char **argv, struct config *config, struct error *e)
{
    struct command_line line;
    int result;

    make_table(&line);
    result = read_options(&line, argc, argv, e);
    if (result == 0)
        result = refuse_pipe(&line, e);
    if (result == 0)
        result = read_settings(&line, config, e);
    if (result == 0)
        result = from_env_finish(config, true, e);
    free(line.given);
    return result == 0 ? config_finish(config, e) : -1;
}

/* A file system that is mounted read-only is no problem: nobody expects to write there. */
static bool is_read_only(const char *folder)
{
    struct statvfs status;

    return statvfs(folder, &status) == 0 && (status.f_flag & ST_RDONLY) != 0;
}

/* Prints the data roots in which the user of this process cannot write, each on a line of fields: the setting, its
 * value, what is wrong. torusd starts with them anyway, because there may be folders below in which it can. */
static void print_roots_not_writable(const struct roots *roots)
{
    const struct passwd *user = getpwuid(geteuid());

    for (size_t i = 0; i < roots->count; i++)
        if (faccessat(AT_FDCWD, roots->path[i], W_OK | X_OK, AT_EACCESS) != 0 &&
            !is_read_only(roots->path[i]))
            (void)printf("data_roots\t%s\tthe user %s cannot write there\n", roots_name(roots, i),
                         user != NULL ? user->pw_name : "of this process");
}

/* Reads the settings of an accepted command line, and completes them. */
static int complete(const struct command_line *l, struct config *config, bool check,
                    struct error *e)
{
    int result = read_settings(l, config, e);

    signals_hold(); /* from_env_remove() removes at the end what is made here */
    if (result == 0)
        result = from_env_finish(config, !check, e);
    return result == 0 ? config_finish(config, e) : -1;
}

int options_read(int argc, char **argv, struct config *config, int *exit_code)
{
    struct command_line line;
    struct error e;
    int result;

    make_table(&line);
    result = read_options(&line, argc, argv, &e);
    if (result != 0)
        (void)fprintf(stderr, "torusd: %s\ntorusd --help lists the options\n", e.text);
    const bool prints = result == 0 && print_and_end(&line), check = has_option(&line, "check");
    *exit_code = prints ? EXIT_SUCCESS : EXIT_USAGE;
    if (result == 0 && !prints) {
        result = complete(&line, config, check, &e);
        if (result != 0)
            (void)fprintf(stderr, "torusd: %s\n", e.text);
    }
    free(line.given);
    if (result != 0 || prints || !check)
        return prints ? -1 : result;
    print_roots_not_writable(&config->roots);
    *exit_code = EXIT_SUCCESS;
    return -1;
}
