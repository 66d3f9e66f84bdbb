#include "client/cli/doctor/diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/doctor/judge.h"
#include "client/cli/doctor/this_machine.h"
#include "daemon/lib/host/facts.h"

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
    if (geteuid() == 0 && c->asker < c->torus.nodes &&
        (d->facts = with_firewall(d->node[c->asker].facts)) != NULL)
        d->node[c->asker].facts = d->facts;
    d->doctor = (struct doctor){.torus = &c->torus,
                                .nodes = c->torus.nodes,
                                .node = d->node,
                                .asker = c->asker,
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
