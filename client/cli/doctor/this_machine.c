#include "client/cli/doctor/this_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/doctor/known_facts.h"
#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/run.h"
#include "proto/ini.h"

#define PATIENCE_MS 3000

/* --- facts --- */

struct folders {
    struct gather_setup setup;
    char path[GATHER_FOLDERS_MOST][256];
};

static void add_folder(struct folders *f, const char *kind, const char *path, size_t length)
{
    const size_t i = f->setup.folders;

    if (i == GATHER_FOLDERS_MOST || length == 0 || length >= sizeof f->path[0])
        return;
    memcpy(f->path[i], path, length);
    f->path[i][length] = '\0';
    f->setup.folder[i] = f->path[i];
    f->setup.kind[i] = kind;
    f->setup.folders++;
}

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    struct folders *f = context;

    (void)e;
    if (line->name == NULL || strcmp(line->section, "node") != 0)
        return 0;
    if (strcmp(line->name, "state_dir") == 0)
        add_folder(f, "state_dir", line->value, strlen(line->value));
    for (const char *at = line->value; strcmp(line->name, "data_roots") == 0 && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        add_folder(f, "data_root", at, length);
        at += length + (at[length] == ':');
    }
    return 0;
}

char *this_machine_facts(void)
{
    static const struct text_kind kind = {.name = "a configuration", .most = 1u << 20};
    struct facts *facts = malloc(sizeof *facts);
    struct folders *folders = calloc(1, sizeof *folders);
    char *text = NULL;
    struct error e;

    if (facts != NULL && folders != NULL) {
        (void)ini_read(CONFIGURATION, &kind, on_line, folders, &e); /* perhaps there is none */
        gather_facts(facts, "", &folders->setup);
        text = strdup(facts->text);
    }
    free(folders);
    free(facts);
    return text;
}

/* --- the daemon --- */

/* Says what systemd knows of the unit. Returns whether it explains why no daemon runs. */
static bool check_unit(struct doctor *d)
{
    static const char *const show[] = {
        "systemctl", "show", UNIT, "--property", "LoadState,ActiveState,SubState,Result", NULL};
    char text[1024];
    struct finding *f;

    if (access("/run/systemd/system", F_OK) != 0 ||
        !host_run(show, PATIENCE_MS, text, sizeof text, NULL))
        return false;
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '=' ? ' ' : *c;
    if (fact_is(text, "LoadState", "not-found")) {
        f = doctor_find(d, SEVERITY_ERROR, "unit", 0, "systemd has no unit " UNIT);
        finding_mend(f, "install the package torusd; or run torusd --config FILE");
    } else if (fact_is(text, "ActiveState", "failed")) {
        char result[FACT_SIZE];
        (void)fact_text(text, "Result", result);
        f = doctor_find(d, SEVERITY_ERROR, "unit", 0, "the unit " UNIT " has failed (%.40s)",
                        result);
        finding_mend(f, "journalctl -u torusd -n 50 shows why; then: systemctl restart torusd");
    } else if (fact_is(text, "ActiveState", "active")) {
        f = doctor_find(d, SEVERITY_FINE, "unit", 0, "the unit " UNIT " is active");
        return false;
    } else {
        f = doctor_find(d, SEVERITY_ERROR, "unit", 0, "the unit " UNIT " is not started");
        finding_mend(f, "systemctl enable --now torusd");
    }
    f->why = "no daemon runs on this machine";
    return true;
}

static void check_configuration(struct doctor *d)
{
    struct finding *f;

    if (access(CONFIGURATION, R_OK) == 0) {
        (void)doctor_find(d, SEVERITY_FINE, "configuration", 0, CONFIGURATION " can be read");
    } else if (errno == EACCES) {
        (void)doctor_find(d, SEVERITY_FINE, "configuration", 0,
                          CONFIGURATION " exists, and you may not read it");
    } else {
        f = doctor_find(d, SEVERITY_ERROR, "configuration", 0,
                        "there is no configuration " CONFIGURATION);
        f->why = "without it, torusd knows neither its rank nor its neighbours";
        finding_mend(
            f, "torusctl discover --output cluster.ini, then torusctl init cluster.ini --links, "
               "configure all machines; or write it by hand: man torusd.ini");
    }
}

void this_machine_check_daemon(struct doctor *d, const char *socket, const char *error)
{
    struct finding *f =
        doctor_find(d, SEVERITY_ERROR, "daemon", 0, "no daemon can be asked: %.380s", error);

    f->why = "only this machine is judged, without its links";
    if (access(socket, F_OK) != 0 && errno == ENOENT) {
        finding_mend(f, "start torusd; or name its socket: --socket PATH");
    } else if (access(socket, W_OK) != 0) {
        finding_mend(f, "sudo usermod -aG torusd %.40s, and log in again; or use sudo",
                     getenv("USER") != NULL ? getenv("USER") : "USER");
        return; /* it may well run */
    } else {
        finding_mend(f, "systemctl restart torusd");
    }
    check_configuration(d);
    (void)check_unit(d);
}
