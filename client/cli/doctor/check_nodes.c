/* Nodes that do not answer, and versions. */
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor.h"

/* Adds what the neighbours say about their links to a node that does not answer. */
static void add_reasons(struct doctor *d, uint32_t node, struct finding *f)
{
    for (unsigned port = 0; port < torus_ports(d->torus); port++) {
        const uint32_t there = torus_neighbour(d->torus, node, port);
        const unsigned back = there < d->nodes ? torus_port_opposite(d->torus, port) : 0;
        const struct torus_link *l = doctor_link(d, there, back);
        const size_t used = strlen(f->what);
        char name[TORUS_PORT_NAME_SIZE];
        if (l != NULL && l->reason[0] != '\0')
            (void)snprintf(f->what + used, sizeof f->what - used, "; port %s of %.80s: %.160s",
                           torus_port_name(d->torus, there, back, name), d->node[there].host,
                           l->reason);
    }
}

static void find_down(struct doctor *d, uint32_t node, struct finding *f)
{
    add_reasons(d, node, f);
    f->why = "exchanges that need all nodes fail; what else is wrong there cannot be seen";
    finding_mend(f, "on that machine: systemctl status torusd; torusctl doctor");
}

/* A loaded machine answers late. That is not a fault of the node, nor a sign of one. */
static void find_late(const struct doctor *d, uint32_t node, struct finding *f)
{
    const size_t used = strlen(f->what);

    if (doctor_has_facts(d, node))
        (void)snprintf(f->what + used, sizeof f->what - used,
                       "; it has told facts about its machine meanwhile, so it runs");
    f->why =
        "what is wrong there, if anything, cannot be seen: the machine or its torusd may be busy";
    finding_mend(f, "torusctl doctor, once more; on that machine: uptime; torusctl doctor");
}

static void check_missing(struct doctor *d, uint32_t node)
{
    const bool late = d->node[node].late;

    if (doctor_has_state(d, node))
        return;
    struct finding *f = doctor_find(d, late ? SEVERITY_WARNING : SEVERITY_ERROR, "nodes", node,
                                    "the node %s", d->node[node].missing);
    if (late)
        find_late(d, node, f);
    else
        find_down(d, node, f);
}

const struct check check_nodes = {.node = check_missing,
                                  .subject = {{"nodes", "the node answers", false}}};

/* Returns the release that most nodes run; "" if none is known. */
static const char *usual_version(const struct doctor *d)
{
    const char *usual = "";
    uint32_t most = 0;

    for (uint32_t i = 0; i < d->nodes; i++) {
        uint32_t same = 0;
        for (uint32_t j = 0; doctor_has_state(d, i) && j < d->nodes; j++)
            same += doctor_has_state(d, j) &&
                    strcmp(d->node[i].status->version, d->node[j].status->version) == 0;
        if (same > most) {
            most = same;
            usual = d->node[i].status->version;
        }
    }
    return usual;
}

static void check_all_versions(struct doctor *d)
{
    const char *usual = usual_version(d);

    for (uint32_t i = 0; i < d->nodes; i++) {
        if (!doctor_has_state(d, i)) {
            doctor_unseen(d, "versions", i, NULL);
            continue;
        }
        if (strcmp(d->node[i].status->version, usual) == 0)
            continue;
        struct finding *f =
            doctor_find(d, SEVERITY_WARNING, "versions", i,
                        "runs torusd %s (peer protocol %u); most nodes run %s",
                        d->node[i].status->version, d->node[i].status->peer_protocol, usual);
        f->why = "an upgrade is not finished: the older release rules what all nodes can do";
        finding_mend(f, "install the same release there, then: systemctl restart torusd");
    }
}

const struct check check_versions = {
    .all = check_all_versions,
    .subject = {{"versions", "the node runs the release that most nodes run", false}}};
