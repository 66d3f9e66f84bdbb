#include "client/cli/cluster/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cluster/child.h"
#include "client/cli/cluster/setup.h"
#include "proto/text_file.h"

/* Carries out a setup on this host, completely or not at all. */

#define DAEMON_USER "torusd"
#define CHECK_MS 30000
#define UNIT_MS 120000
#define LOCK_FILE CLUSTER_FOLDER "/.lock"
#define LOCK_MS 150000
#define LOCK_STEP_MS 50

#define SETUP_UNIT "torusd-setup.service" /* is told of new keys, if it runs */

enum unit { LINKS, DAEMON, ROUTED, UNITS };
static const char *const units[UNITS] = {"torus-links.service", "torusd.service",
                                         "torus-routed.service"};

/* --- files --- */

static int write_all(int fd, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return -1;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* Gives a secret file to the user of torusd, if there is one. */
static int set_owner(int fd, const struct host_file_kind *kind)
{
    const struct passwd *user = kind->secret ? getpwnam(DAEMON_USER) : NULL;

    return geteuid() != 0 || user == NULL ? 0 : fchown(fd, user->pw_uid, user->pw_gid);
}

/* Gives a file the mode and the owner of `former`, the file of others that it replaces. */
static int set_like(int fd, const struct stat *former)
{
    return (geteuid() == 0 ? fchown(fd, former->st_uid, former->st_gid) : 0) |
           fchmod(fd, former->st_mode & 07777);
}

/* `former` NULL: no file of others is replaced. */
static int write_new(const char *path, const char *text, const struct host_file_kind *kind,
                     const struct stat *former)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kind->mode);
    int rc;

    if (fd < 0)
        return -1;
    rc = former != NULL ? set_like(fd, former) : fchmod(fd, kind->mode) | set_owner(fd, kind);
    rc |= write_all(fd, text);
    return close(fd) | rc;
}

/* A file that is mounted, as /etc/hosts is in containers, cannot be replaced. It is written in place. */
static int write_in_place(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), rc;

    if (fd < 0)
        return -1;
    rc = write_all(fd, text);
    return close(fd) | rc;
}

/* Replaces the file by one with this content. */
static int replace_file(const char *path, const char *text, const struct host_file_kind *kind,
                        struct error *e)
{
    struct stat former;
    bool is_of_others = kind->block && stat(path, &former) == 0;
    char *fresh;
    int rc;

    if (asprintf(&fresh, "%s.torusd-new", path) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
    rc = write_new(fresh, text, kind, is_of_others ? &former : NULL);
    if (rc == 0 && rename(fresh, path) != 0)
        rc = errno == EBUSY ? write_in_place(path, text) : -1;
    if (rc != 0)
        rc = error_set(e, ERROR_IO, "cannot write %.200s: %s", path, strerror(errno));
    (void)unlink(fresh);
    free(fresh);
    return rc;
}

/* Whether a path without links is the folder `root`, or below it. */
static bool is_below(const char *path, const char *root)
{
    char *real = realpath(root[0] != '\0' ? root : "/", NULL);
    size_t length = real != NULL ? strlen(real) : 0;
    bool below = real != NULL && (length == 1 || (strncmp(path, real, length) == 0 &&
                                                  (path[length] == '/' || path[length] == '\0')));

    free(real);
    return below;
}

/* Gives a file this content, or removes it (NULL). A link to a file of others stays. */
static int put_file(const char *path, const char *text, const struct host_file_kind *kind,
                    const char *root, struct error *e)
{
    char *real;
    int rc;

    if (text == NULL)
        return unlink(path) == 0 || errno == ENOENT
                   ? 0
                   : error_set(e, ERROR_IO, "cannot remove %.200s: %s", path, strerror(errno));
    real = kind->block ? realpath(path, NULL) : NULL;
    if (real != NULL && !is_below(real, root))
        rc = error_set(e, ERROR_REFUSED, "%.140s leads to %.140s, which is not below %.140s", path,
                       real, root);
    else
        rc = replace_file(real != NULL ? real : path, text, kind, e);
    free(real);
    return rc;
}

/* Makes the folders of a file that will exist. */
static int make_folders(const char *file, struct error *e)
{
    char *path = strdup(file);
    int rc = path != NULL ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the folders");

    for (char *slash = path; rc == 0 && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            rc = error_set(e, ERROR_IO, "cannot create %.200s: %s", path, strerror(errno));
        *slash = '/';
    }
    free(path);
    return rc;
}

static int make_all_folders(const struct setup_plan *p, struct error *e)
{
    for (unsigned i = 0; i < HOST_FILES; i++)
        if (p->change[i].after != NULL && make_folders(p->change[i].path, e) != 0)
            return -1;
    return 0;
}

/* Puts all files into the state before or after the setup. Returns 0, or -1 with *e of the first failure. */
static int put_files(const struct setup_plan *p, bool after, struct error *e)
{
    struct error more;
    int rc = 0;

    for (unsigned i = 0; i < HOST_FILES; i++) {
        const struct setup_change *c = &p->change[i];
        if (c->differs && put_file(c->path, after ? c->after : c->before, &host_file_kinds[i],
                                   p->root, rc == 0 ? e : &more) != 0)
            rc = -1;
        if (rc != 0 && after)
            return rc;
    }
    return rc;
}

/* --- programs --- */

/* Runs a program to its end. The caller frees the child. */
static int run_child(struct child *child, int milliseconds, struct error *e)
{
    char text[300];

    child_run(child, 1, 1, milliseconds, NULL, NULL);
    if (child_exit_status(child) == 0)
        return 0;
    if (!child->started && child->start_errno == ENOENT)
        return error_set(e, ERROR_REFUSED, "%s is missing: install the package torusd",
                         child->arguments[0]);
    return error_set(e, ERROR_REFUSED, "%s", child_problem(child, text, sizeof text));
}

static int run(const char *const *arguments, int milliseconds, struct error *e)
{
    struct child child = {.arguments = arguments};
    int rc = run_child(&child, milliseconds, e);

    child_free(&child);
    return rc;
}

/* --- the check of torusd --- */

#define SYSTEM_BUS "/run/dbus/system_bus_socket"
#define CHECK_COMMAND "torusd", "--check", "--config", "/dev/stdin", NULL

/* Returns the command that checks a configuration as the user of torusd, who may have fewer rights than root.
 * torusd-setup runs in a sandbox and cannot become another user, so systemd starts the command there; without the bus
 * of systemd, only root's view can be checked. */
static const char *const *check_command(const struct passwd *user)
{
    static const char *const as_this_user[] = {CHECK_COMMAND};
    static const char *const as_torusd[] = {"setpriv", "--reuid=" DAEMON_USER,
                                            "--regid=" DAEMON_USER, "--init-groups", CHECK_COMMAND};
    static const char *const by_systemd[] = {
        "systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--property=User=" DAEMON_USER,
        CHECK_COMMAND};

    if (geteuid() != 0 || user == NULL)
        return as_this_user;
    if (prctl(PR_CAPBSET_READ, CAP_SETUID) == 1)
        return as_torusd;
    return access(SYSTEM_BUS, F_OK) == 0 ? by_systemd : as_this_user;
}

#define ROOT_FINDING                                                                               \
    "data root %s: %s. Give it the folder ('chown " DAEMON_USER ": DIR'), or mount it read-only "  \
    "if torusd only has to read there"

/* Judges the data roots in which torusd cannot write, although torusd would start. The first of them that is new on the
 * host is an error; a data root that the host had before works as well as it did. */
static int judge_check(const struct setup_plan *p, char *output, json_t *warnings, struct error *e)
{
    for (char *line; output != NULL && *output != '\0';) {
        line = strsep(&output, "\n");
        const char *setting = strsep(&line, "\t"), *root = strsep(&line, "\t");
        if (line == NULL || strcmp(setting, "data_roots") != 0)
            return error_set(e, ERROR_REFUSED,
                             "torusd reported a warning that this torusctl does not know: %s",
                             setting);
        if (!less_safe_had_root(p, root))
            return error_set(e, ERROR_REFUSED, ROOT_FINDING, root, line);
        if (json_array_append_new(warnings, json_sprintf(ROOT_FINDING, root, line)) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory for a warning about %s", root);
    }
    return 0;
}

/* Lets torusd check a configuration: on this host as its own user, if there is one, otherwise as the user of this
 * process. */
static int run_check(const struct setup_plan *p, const char *config, json_t *warnings,
                     struct error *e)
{
    const struct passwd *user = p->root[0] == '\0' ? getpwnam(DAEMON_USER) : NULL;
    struct child child = {.arguments = check_command(user),
                          .input = config,
                          .input_length = strlen(config),
                          .input_owner = user != NULL ? user->pw_uid : 0};
    int rc = run_child(&child, CHECK_MS, e) == 0
                 ? judge_check(p, child.output, warnings, e)
                 : error_wrap(e, "torusd%s does not accept its configuration",
                              user != NULL ? ", as the user " DAEMON_USER "," : "");

    child_free(&child);
    return rc;
}

/* Checks a data root, a path of `length` bytes, on this host or in the image below `root`. */
static int check_data_root(const char *root, const char *path, size_t length, struct error *e)
{
    char *name, *real = NULL;
    struct stat status;
    int rc = 0;

    if (asprintf(&name, "%s%.*s", root, (int)length, path) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the data roots");
    if (stat(name, &status) != 0 && errno == ENOENT)
        rc = error_set(e, ERROR_REFUSED,
                       "data root %.200s does not exist: 'install -d -o " DAEMON_USER
                       " -g " DAEMON_USER " DIR' makes it",
                       name);
    else if (stat(name, &status) != 0 || (real = realpath(name, NULL)) == NULL)
        rc = error_set(e, ERROR_USAGE, "data root %.200s cannot be opened: %s", name,
                       strerror(errno));
    else if (!S_ISDIR(status.st_mode))
        rc = error_set(e, ERROR_USAGE, "data root %.200s is not a folder", name);
    else if (!is_below(real, root))
        rc = error_set(e, ERROR_REFUSED,
                       "data root %.140s leads to %.140s, which is not below %.140s", name, real,
                       root);
    free(real);
    free(name);
    return rc;
}

static int check_data_roots(const char *root, const char *list, struct error *e)
{
    for (size_t length; *list != '\0'; list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        if (length > 0 && check_data_root(root, list, length, e) != 0)
            return -1;
    }
    return 0;
}

/* Checks that the image has a group, unless that is a number. */
static int check_image_group(const char *root, const char *group, struct error *e)
{
    const struct group *found = NULL;
    char *path;
    FILE *in;

    if (group[strspn(group, "0123456789")] == '\0')
        return 0;
    if (asprintf(&path, "%s/etc/group", root) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the groups");
    in = fopen(path, "re");
    while (in != NULL && (found = fgetgrent(in)) != NULL && strcmp(found->gr_name, group) != 0)
        ;
    if (in != NULL)
        (void)fclose(in);
    free(path);
    return found != NULL
               ? 0
               : error_set(e, ERROR_USAGE, "there is no group \"%.60s\" in %.140s/etc/group", group,
                           root);
}

/* Checks a line of the configuration if it names what only the host has; writes all others to `rest`. */
static int check_line(const char *root, const char *line, FILE *rest, struct error *e)
{
    const char *value = strstr(line, " = ");
    const size_t length = value != NULL ? (size_t)(value - line) : 0;
    const bool of_image = root[0] != '\0';

    if (of_image && length > 6 && strncmp(value - 6, "_group", 6) == 0)
        return check_image_group(root, value + 3, e);
    if (length == strlen("data_roots") && strncmp(line, "data_roots", length) == 0) {
        if (check_data_roots(root, value + 3, e) != 0)
            return -1;
        if (of_image)
            return 0;
    }
    (void)fprintf(rest, "%s\n", line);
    return 0;
}

/* Lets torusd check its configuration, before the file gets its name. For the image of a host, folders and groups are
 * those of the image, and its users are not known here. */
static int check_config(const struct setup_plan *p, json_t *warnings, struct error *e)
{
    const struct setup_change *config = &p->change[HOST_FILE_CONFIG];
    char *lines, *rest = NULL, *next;
    size_t size;
    FILE *out;
    int rc = 0;

    if (!config->differs)
        return 0;
    lines = next = strdup(config->after);
    out = open_memstream(&rest, &size);
    if (lines == NULL || out == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory for the configuration");
    while (rc == 0 && next != NULL && *next != '\0')
        rc = check_line(p->root, strsep(&next, "\n"), out, e);
    if (out != NULL && fclose(out) != 0 && rc == 0)
        rc = error_set(e, ERROR_MEMORY, "out of memory for the configuration");
    if (rc == 0)
        rc = run_check(p, rest, warnings, e);
    free(rest);
    free(lines);
    return rc;
}

/* `unit` NULL: the command is not about a unit. */
static int systemctl(const char *command, const char *unit, struct error *e)
{
    const char *const arguments[] = {"systemctl", "--quiet", command, unit, NULL};

    return run(arguments, UNIT_MS, e) == 0
               ? 0
               : error_wrap(e, "systemctl %s%s%s", command, unit != NULL ? " " : "",
                            unit != NULL ? unit : "");
}

static bool has_systemd(const struct setup_plan *p)
{
    return p->root[0] == '\0' && access("/run/systemd/system", F_OK) == 0;
}

/* Returns what systemctl has to do with a unit, so that it runs with the new files. */
static const char *command_for(const struct setup_plan *p, enum unit unit)
{
    const char *command = "start";

    for (unsigned i = 0; i < HOST_FILES; i++) {
        const struct host_file_kind *kind = &host_file_kinds[i];
        if (!p->change[i].differs || kind->unit == NULL || strcmp(kind->unit, units[unit]) != 0)
            continue;
        if (unit == DAEMON && !kind->secret)
            return "restart";
        command =
            "reload-or-restart"; /* torus-links and torus-routed set the new addresses, torusd reads the keys */
    }
    return command;
}

/* Whether a unit has to run. torus-routed does with its file of addresses only. */
static bool is_needed(const struct setup_plan *p, enum unit unit)
{
    return unit != ROUTED || p->change[HOST_FILE_ADDRESSES].after != NULL;
}

/* Starts a unit, or stops it if it is not needed any more. */
static int set_unit(const struct setup_plan *p, enum unit unit, struct error *e)
{
    if (is_needed(p, unit))
        return systemctl("enable", units[unit], e) != 0
                   ? -1
                   : systemctl(command_for(p, unit), units[unit], e);
    if (p->change[HOST_FILE_ADDRESSES].before == NULL)
        return 0;
    return systemctl("disable", units[unit], e) != 0 ? -1 : systemctl("stop", units[unit], e);
}

static int tell_discovery(const struct setup_plan *p, struct error *e)
{
    struct error ignored;

    if (!p->change[HOST_FILE_KEY].differs && !p->change[HOST_FILE_SECOND_KEY].differs)
        return 0;
    if (systemctl("is-active", SETUP_UNIT, &ignored) != 0)
        return 0;
    return systemctl("reload", SETUP_UNIT, e);
}

static int start_units(const struct setup_plan *p, struct error *e)
{
    if (p->change[HOST_FILE_DROP_IN].differs && systemctl("daemon-reload", NULL, e) != 0)
        return -1;
    for (unsigned unit = 0; unit < UNITS; unit++)
        if (set_unit(p, (enum unit)unit, e) != 0)
            return -1;
    return tell_discovery(p, e);
}

/* Undoes the static routes before their script goes, because torus-routed takes their place. They may not be set. */
static void leave_static_routes(const struct setup_plan *p)
{
    const struct setup_change *c = &p->change[HOST_FILE_ROUTES];
    const char *const arguments[] = {
        "sh", "-c",
        "TORUS_HOST=$(sed -n 's/^host=\\([^ ]*\\) .*/\\1/p' \"$0\") exec sh \"$0\" down", c->path,
        NULL};
    struct error ignored;

    if (has_systemd(p) && c->before != NULL && c->after == NULL)
        (void)run(arguments, CHECK_MS, &ignored);
}

/* Restores the previous files, and the units that ran with them. The error that led here is the one that counts. */
static void undo(const struct setup_plan *p, const bool *was_active)
{
    struct error e;

    (void)put_files(p, false, &e);
    if (has_systemd(p) && p->change[HOST_FILE_DROP_IN].differs)
        (void)systemctl("daemon-reload", NULL, &e);
    for (unsigned unit = 0; has_systemd(p) && unit < UNITS; unit++)
        if (unit != ROUTED || is_needed(p, ROUTED) || was_active[unit])
            (void)systemctl(was_active[unit] ? "restart" : "stop", units[unit], &e);
}

/* A signal must not leave half of a setup. */
static void hold_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Whether files can be made in the folder of this file, or in the nearest one that exists. */
static int check_folder(const char *file, struct error *e)
{
    char *path = strdup(file), *slash;
    int rc = 0;

    while (path != NULL && (slash = strrchr(path, '/')) != NULL && slash > path) {
        *slash = '\0';
        if (access(path, F_OK) == 0 || errno != ENOENT)
            break;
    }
    if (path != NULL && access(path, W_OK | X_OK) != 0)
        rc = error_set(e, ERROR_IO, "cannot write %.200s: %.140s: %s", file, path, strerror(errno));
    free(path);
    return rc;
}

/* Other users must not be able to hold the lock. */
static int open_lock(const char *root, struct error *e)
{
    char *path;
    int fd = -1;

    if (asprintf(&path, "%s" LOCK_FILE, root) < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the lock");
    if (make_folders(path, e) == 0) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            (void)error_set(e, ERROR_IO, "cannot open %.200s: %s", path, strerror(errno));
    }
    free(path);
    return fd;
}

/* Waits until no other setup is being applied on this host. One may still be running whose sender has gone. The process
 * holds the lock until it ends. Returns 0, or -1 with *e if another setup takes too long. */
static int setup_lock(const char *root, struct error *e)
{
    int fd;

    (void)umask(S_IWGRP |
                S_IWOTH); /* everybody may read the folders; the files have modes of their own */
    fd = open_lock(root, e);
    if (fd < 0)
        return -1;
    for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited += LOCK_STEP_MS) {
        if (errno == EWOULDBLOCK && waited < LOCK_MS && poll(NULL, 0, LOCK_STEP_MS) == 0)
            continue;
        (void)close(fd);
        return error_set(e, ERROR_BUSY, "another setup is being applied on this host");
    }
    return 0; /* the descriptor stays open until the process ends */
}

/* Checks whether a setup is possible on this host, and changes nothing: the files can be written, and torusd, as its
 * own user, accepts the configuration with its data roots and groups. A data root that the host has already, and in
 * which torusd cannot write, refuses no other change: it gets a sentence in `warnings`, an array that the caller keeps.
 * With a root folder, data roots and groups are those of the image, and its users are not checked. Returns 0, or -1 with
 * *e. */
static int setup_check(const struct setup_plan *p, json_t *warnings, struct error *e)
{
    for (unsigned i = 0; i < HOST_FILES; i++)
        if (p->change[i].differs && check_folder(p->change[i].path, e) != 0)
            return -1;
    return check_config(p, warnings, e);
}

/* Writes the files that differ, then enables, starts, restarts or reloads the units that read them; if only keys
 * differ, torusd is reloaded and keeps its links. Checks first, as setup_check() does. If anything fails,
 * the previous files are restored, and the units that ran before run with them again. With a root folder, or on a host
 * without systemd, only the files are written. The caller has the lock. Returns 0, or -1 with *e. */
static int setup_apply(const struct setup_plan *p, json_t *warnings, struct error *e)
{
    bool was_active[UNITS] = {false};
    struct error ignored;

    hold_signals();
    if (setup_check(p, warnings, e) != 0 || make_all_folders(p, e) != 0)
        return -1;
    for (unsigned unit = 0; has_systemd(p) && unit < UNITS; unit++)
        was_active[unit] = systemctl("is-active", units[unit], &ignored) == 0;
    leave_static_routes(p);
    if (put_files(p, true, e) == 0 && (!has_systemd(p) || start_units(p, e) == 0))
        return 0;
    undo(p, was_active);
    return error_wrap(e, "the setup was undone");
}

#define WAIT_MS 30000

static const struct section sections[] = {
    RECORD(NULL, FIELD("host"), FIELD("applied")),
    TABLE("changes", FIELD("file"), FIELD("change", "action")),
};

static int read_stdin(struct setup *s, struct error *e)
{
    static char json[SETUP_MOST + 1];
    ssize_t length = text_file_fill(STDIN_FILENO, "standard input", json, sizeof json, WAIT_MS, e);
    int rc = length < 0 ? -1 : setup_read(s, json, (size_t)length, e);

    sodium_memzero(json, sizeof json);
    return rc;
}

static int carry_out(const struct cli *cli, const struct setup *s, bool apply, const char *root)
{
    struct setup_plan plan;
    struct error e;
    json_t *value = NULL, *warnings;
    int rc;

    if (root == NULL)
        root = "";
    if (apply && setup_lock(root, &e) != 0)
        return cli_fail(cli, &e);
    rc = setup_plan_make(&plan, s, root, &e);
    if (rc == 0)
        value = setup_plan_json(&plan, s); /* before the files change */
    warnings = json_object_get(value, "warnings");
    if (rc == 0)
        rc = apply ? setup_apply(&plan, warnings, &e) : setup_check(&plan, warnings, &e);
    setup_plan_free(&plan);
    if (rc != 0) {
        json_decref(value);
        return cli_fail(cli, &e);
    }
    (void)json_object_set_new(value, "applied", json_boolean(apply));
    return cli_print(cli, value, &(struct view){sections, 2});
}

int receive_run(const struct cli *cli, bool apply, const char *root)
{
    struct setup setup;
    struct error e;
    int code;

    if (isatty(STDIN_FILENO))
        return cli_fail_usage(cli,
                              "--receive reads a setup from standard input, which is a terminal "
                              "here; 'torusctl init CLUSTER.ini --here' sets up this host");
    if (read_stdin(&setup, &e) != 0) {
        e.code =
            e.code == ERROR_USAGE ? ERROR_REFUSED : e.code; /* the command line is not at fault */
        return cli_fail(cli, &e);
    }
    code = carry_out(cli, &setup, apply, root);
    setup_free(&setup);
    return code;
}
