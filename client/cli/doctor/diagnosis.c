#include "client/cli/doctor/diagnosis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/doctor/doctor.h"
#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/run.h"
#include "proto/ini.h"

/* --- this machine, where no daemon can be asked --- */

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

/* Returns the facts of this machine, which the caller frees with free(); NULL if memory is short. They include the disks
 * of the folders that the configuration names, if the configuration can be read. */
static char *this_machine_facts(void)
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

/* Adds findings that say why no daemon can be asked at this socket; `error` is what the attempt said. */
static void this_machine_check_daemon(struct doctor *d, const char *socket, const char *error)
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

#define HOST_WAIT_MS 5000u

/* Root sees the firewall, which the daemon does not: `more` goes before the facts of the daemon, and so counts. */
static char *with_firewall(const char *facts)
{
    struct facts *own = malloc(sizeof *own);
    char *all = NULL;

    if (own == NULL)
        return NULL;
    facts_begin(own);
    gather_firewall(own);
    all = malloc(own->length + strlen(facts) + 1);
    if (all != NULL) {
        (void)strcpy(all, own->text);
        (void)strcpy(all + own->length, facts);
    }
    free(own);
    return all;
}

static int fill_nodes(struct diagnosis *d)
{
    const struct all_nodes *c = &d->all;

    d->node = calloc(c->torus.nodes, sizeof *d->node);
    if (d->node == NULL)
        return -1;
    for (uint32_t rank = 0; rank < c->torus.nodes; rank++) {
        const struct torus_node_answer *state = c->state->nodes[rank];
        d->node[rank] = (struct doctor_node){
            .host = all_nodes_name(c, rank),
            .missing = all_nodes_missing(c, rank),
            .late = all_nodes_late(c, rank),
            .status = state->status,
            .links = state->links,
            .facts = rank < d->hosts->count ? d->hosts->nodes[rank]->facts : "",
            .clock_offset_us = state->clock_offset_us,
            .clock_error_us = state->clock_error_us};
    }
    if (geteuid() == 0 && c->initiator < c->torus.nodes &&
        (d->facts = with_firewall(d->node[c->initiator].facts)) != NULL)
        d->node[c->initiator].facts = d->facts;
    d->doctor = (struct doctor){.torus = &c->torus,
                                .nodes = c->torus.nodes,
                                .node = d->node,
                                .initiator = c->initiator,
                                .facts_ms = d->hosts->took_us / 1000};
    return 0;
}

/* Says on a terminal what is under way; NULL: removes the line. */
static void show_progress(const char *text)
{
    if (isatty(STDERR_FILENO) != 1)
        return;
    if (text != NULL)
        (void)fprintf(stderr, "\rtorusctl: asking for %s ...\033[K", text);
    else
        (void)fputs("\r\033[K", stderr);
}

/* Returns 0; 1 with *e: the daemon cannot be asked; -1: no memory. */
static int ask_daemon(struct cli *cli, struct diagnosis *d, struct torus_error *e)
{
    cli->client = torus_client_open(cli->socket, e);
    if (cli->client == NULL || all_nodes_try(cli, &d->all, e) != 0)
        return 1;
    show_progress("facts about all machines");
    if (torus_client_survey(cli->client, TORUS_SURVEY_HOST, HOST_WAIT_MS, &d->hosts, e) != 0)
        return 1;
    return fill_nodes(d);
}

/* The daemon runs, and cannot ask the others. */
static void find_refusal(struct doctor *d, const char *text)
{
    struct finding *f = doctor_find(d, SEVERITY_ERROR, "versions", 0, "%.399s", text);

    f->why = "only this machine is judged, without its links";
    finding_mend(f, "install the same release of torusd on all machines, and restart it there");
}

static int judge_this_machine(struct cli *cli, struct diagnosis *d, const struct torus_error *e)
{
    static struct utsname host;

    (void)snprintf(d->no_daemon, sizeof d->no_daemon, "%.399s", e->text);
    d->facts = this_machine_facts();
    d->node = calloc(1, sizeof *d->node);
    if (d->facts == NULL || d->node == NULL)
        return -1;
    (void)uname(&host);
    d->node[0] = (struct doctor_node){.host = host.nodename, .missing = "", .facts = d->facts};
    d->doctor = (struct doctor){.nodes = 1, .node = d->node};
    if (cli->client != NULL && e->code == TORUS_ERROR_REFUSED)
        find_refusal(&d->doctor, d->no_daemon);
    else
        this_machine_check_daemon(
            &d->doctor, cli->socket != NULL ? cli->socket : torus_default_socket(), d->no_daemon);
    return 0;
}

int diagnosis_make(struct cli *cli, struct diagnosis *d)
{
    const struct error memory = {.code = ERROR_MEMORY, .text = "out of memory"};
    struct torus_error e;

    *d = (struct diagnosis){.hosts = NULL};
    show_progress("the state of all nodes");
    int result = ask_daemon(cli, d, &e);
    if (result > 0)
        result = judge_this_machine(cli, d, &e);
    show_progress(NULL);
    if (result < 0)
        return cli_fail(cli, &memory);
    doctor_judge(&d->doctor);
    return EXIT_DONE;
}

void diagnosis_free(struct diagnosis *d)
{
    doctor_free(&d->doctor);
    free(d->node);
    free(d->facts);
    torus_survey_free(d->hosts);
    all_nodes_free(&d->all);
}

const char *diagnosis_host(const struct diagnosis *d, const struct finding *f)
{
    return f->node < d->doctor.nodes ? d->doctor.node[f->node].host : "";
}
