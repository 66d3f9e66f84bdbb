/* torusctl support-bundle: what is known about all machines, in one archive. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "client/cli/bundle/bundle.h"
#include "client/cli/doctor/diagnosis.h"
#include "client/cli/doctor/report.h"
#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "proto/text_file.h"
#include "proto/version.h"

struct bundle_arguments {
    const char *file;
};

static const struct option options[] = {
    {"FILE", NULL, offsetof(struct bundle_arguments, file),
     "the archive, or - for standard output (default: torus-support-HOST-TIME.tar.gz in\nthis "
     "folder)"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("archive", "file"), FIELD("size", "bytes", FORMAT_BYTES)),
    TABLE("parts", FIELD("in it", "name"), FIELD("bytes", "bytes", FORMAT_BYTES),
          FIELD("", "about")),
};

/* --- parts --- */

static void add_doctor(struct bundle *b, const struct diagnosis *d)
{
    json_t *value = doctor_report_value(d, true);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    const bool printed = f != NULL && value != NULL && doctor_report_print(f, value) == 0;
    if (f != NULL && fclose(f) == 0 && printed)
        bundle_add(b, "doctor.txt", "findings of 'torusctl doctor --all'", text);
    free(text);
    bundle_add_json(b, "doctor.json", "the same in JSON", value);
}

static void add_nodes(struct bundle *b, const struct diagnosis *d)
{
    char name[64];

    if (d->no_daemon[0] != '\0') {
        bundle_add(b, "here/facts.txt", "facts about this machine", d->facts);
        return;
    }
    bundle_add_json(b, "status.json", "'torusctl status --all'", status_all_value(&d->all));
    bundle_add_json(b, "links.json", "'torusctl links --all'", links_all_value(&d->all));
    for (uint32_t i = 0; i < d->doctor.nodes; i++) {
        (void)snprintf(name, sizeof name, "nodes/%u.txt", i);
        bundle_add(b, name, "settings of that node's daemon, and facts about its machine",
                   d->node[i].facts);
    }
}

static void add_versions(struct bundle *b)
{
    struct utsname u = {.release = ""};
    char text[512];

    (void)uname(&u);
    (void)snprintf(
        text, sizeof text, "torusctl %s (" VERSION_PROTOCOLS_FORMAT ")\nlibtorus %s\n%s %s %s\n",
        TORUSD_VERSION, VERSION_PROTOCOLS, torus_version(), u.sysname, u.release, u.machine);
    bundle_add(b, "here/versions.txt", "releases of torusctl and of the kernel", text);
}

#define LOG_OF(unit)                                                                               \
    {                                                                                              \
        "journalctl", "-u", unit, "-n", "2000", "--no-pager", "-q", NULL                           \
    }

/* Adds a file of this machine, unless it is missing or this user may not read it. */
static void add_file(struct bundle *b, const char *name, const char *path)
{
    static const struct text_kind kind = {.name = "a configuration", .most = 1u << 20};
    struct error e;
    size_t length;
    char *text;

    if (text_file_read(path, &kind, &text, &length, &e) != 0)
        return;
    bundle_add(b, name, path, text);
    free(text);
}

static void add_this_machine(struct bundle *b)
{
    static const struct {
        const char *name, *about, *argv[10];
    } outputs[] = {
        {"here/torusd.log", "the last lines of the log of torusd", LOG_OF("torusd.service")},
        {"here/torus-routed.log", "the last lines of the log of torus-routed",
         LOG_OF("torus-routed.service")},
        {"here/torusd-discover.log", "the last lines of the log of torusd-discover",
         LOG_OF("torusd-discover.service")},
        {"here/torusd-setup.log", "the last lines of the log of torusd-setup",
         LOG_OF("torusd-setup.service")},
        {"here/units.txt",
         "the state of the units",
         {"systemctl", "status", "torusd.service", "torus-routed.service",
          "torusd-discover.service", "torusd-setup.service", "--no-pager", "-n", "0", NULL}},
        {"here/ip-routes.txt", "'torusctl routes'", {"/proc/self/exe", "routes", NULL}},
        {"here/rules.txt", "rules that choose among the tables of routes", {"ip", "rule", NULL}},
        {"here/addresses.txt",
         "interfaces and their counters",
         {"ip", "-d", "-s", "address", NULL}},
        {"here/routes.txt", "routes of IPv4", {"ip", "-4", "route", "show", "table", "all", NULL}},
        {"here/routes6.txt", "routes of IPv6", {"ip", "-6", "route", "show", "table", "all", NULL}},
        {"here/sockets.txt", "TCP connections", {"ss", "-tin", NULL}},
    };

    add_versions(b);
    add_file(b, "here/torusd.ini", CONFIGURATION);
    add_file(b, "here/cluster.ini", CLUSTER_FILE);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        bundle_add_output(b, outputs[i].name, outputs[i].about, outputs[i].argv);
}

/* --- the command --- */

/* Makes the name of the folder in the archive, and of the archive if no FILE is given. */
static void make_name(char *name, size_t size)
{
    struct utsname u = {.nodename = "host"};
    const time_t now = time(NULL);
    struct tm t = {0};
    char when[32];

    (void)uname(&u);
    (void)gmtime_r(&now, &t);
    (void)strftime(when, sizeof when, "%Y%m%d-%H%M%S", &t);
    (void)snprintf(name, size, "torus-support-%.40s-%s", u.nodename, when);
}

static json_t *value_of(const struct bundle *b, const char *path)
{
    json_t *o = json_object();
    int r = 0;

    r |= json_object_set_new(o, "file", json_path("", path));
    r |= json_object_set_new(o, "bytes", json_integer(b->bytes));
    r |= json_object_set(o, "parts", b->parts);
    return json_checked(o, r);
}

static int run(struct cli *cli, const void *arguments)
{
    const struct bundle_arguments *args = arguments;
    struct diagnosis d;
    struct bundle b = {.parts = NULL};
    char name[96], path[PATH_MAX];
    struct error e = {.code = ERROR_NONE};
    int code = diagnosis_make(cli, &d);

    make_name(name, sizeof name);
    if (args->file != NULL)
        (void)snprintf(path, sizeof path, "%s", args->file);
    else
        (void)snprintf(path, sizeof path, "%s.tar.gz", name);
    if (code == EXIT_DONE && bundle_begin(&b, name, &e) == 0) {
        long_work_next("the archive");
        add_doctor(&b, &d);
        add_nodes(&b, &d);
        add_this_machine(&b);
        if (bundle_write(&b, path, &e) == 0 && strcmp(path, "-") != 0)
            code = cli_print(cli, value_of(&b, path), VIEW(sections));
    }
    if (e.code != ERROR_NONE)
        code = cli_fail(cli, &e);
    bundle_free(&b);
    diagnosis_free(&d);
    return code;
}

const struct command command_support_bundle = {
    .name = "support-bundle",
    .summary = "Collect what is known of all machines in one archive",
    .usage = "[FILE] [--socket PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct bundle_arguments),
    .needs_daemon = true,
    .run = run,
};
