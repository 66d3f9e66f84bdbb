/* The routes of torus-routed or 'torusctl ip-routes', if they are in use, and what keeps packets from being forwarded. */
#include <string.h>

#include "client/cli/doctor/doctor.h"
#include "proto/text.h"

static bool has_routes(const struct doctor *d, uint32_t node)
{
    uint64_t count;

    return doctor_has_facts(d, node) &&
           ((fact_number(d->node[node].facts, "ip_routes.count", &count) && count > 0) ||
            fact_is(d->node[node].facts, "ip_routes.interface", "torus0"));
}

/* Whether torus-routed keeps the routes of the machine or, if the machine has none, those of any other machine. */
static bool uses_routed(const struct doctor *d, uint32_t node)
{
    char by[FACT_SIZE];

    if (fact_text(d->node[node].facts, "ip_routes.by", by))
        return strcmp(by, "torus-routed") == 0;
    for (uint32_t other = 0; other < d->nodes; other++)
        if (doctor_has_facts(d, other) &&
            fact_is(d->node[other].facts, "ip_routes.by", "torus-routed"))
            return true;
    return false;
}

static void check_count(struct doctor *d, uint32_t node)
{
    const char *host = d->node[node].host;
    uint64_t count;
    uint32_t others = 0;
    struct finding *f;

    /* Those that do not answer need not be reached. */
    for (uint32_t other = 0; other < d->nodes; other++)
        others += other != node && d->node[other].missing[0] == '\0';
    if (!has_routes(d, node)) {
        f = doctor_find(d, SEVERITY_ERROR, "ip routes", node,
                        "the machine has no IP routes over the cables; other machines have them");
    } else if (d->torus != NULL && fact_number(d->node[node].facts, "ip_routes.count", &count) &&
               count < others) {
        f = doctor_find(d, SEVERITY_WARNING, "ip routes", node,
                        "the machine has IP routes to %llu of %u other machines",
                        (unsigned long long)count, others);
    } else {
        return;
    }
    f->why = "ssh, MPI and everything else that uses IP cannot reach all machines";
    if (uses_routed(d, node))
        finding_mend(f, "on that machine: torusctl routes says why; sudo systemctl restart "
                        "torus-routed");
    else
        finding_mend(f, "sudo sh %.80s.sh up (torusctl help ip-routes)", host);
}

/* What the kernel does, not what was set. */
static void check_diverted(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    char by[FACT_SIZE], mend[FACT_SIZE];
    uint64_t count;
    struct finding *f;

    if (!fact_number(facts, "ip_routes.diverted", &count)) {
        if (fact_number(facts, "ip_routes.count", &count) && count > 0)
            doctor_unseen(d, "ip routes", node, "ip_routes.diverted");
        return;
    }
    if (count == 0)
        return;
    (void)fact_text(facts, "ip_routes.diverted_by", by);
    f = doctor_find(d, SEVERITY_ERROR, "ip routes", node,
                    "the machine does not use its routes to %llu other %s: %.200s",
                    (unsigned long long)count, text_plural(count, "machine", "machines"), by);
    f->why = "packets to these machines do not leave over the cables";
    if (fact_text(facts, "ip_routes.mend", mend))
        finding_mend(f, "on that machine: %.200s", mend);
    else
        finding_mend(f, "on that machine: torusctl routes; ip rule list");
}

/* Returns the interface of a cable that forwards nothing, or NULL; *known tells whether it is known for any. */
static const char *find_idle_cable(const struct doctor *d, uint32_t node, bool *known)
{
    const struct torus_links *links = d->node[node].links;
    uint64_t on;

    *known = false;
    for (size_t i = 0; links != NULL && i < links->count; i++) {
        const char *interface = links->link[i]->interface;
        if (interface[0] == '\0' ||
            !fact_number(d->node[node].facts, fact_name("interface.%s.forwarding", interface), &on))
            continue;
        *known = true;
        if (on == 0)
            return interface;
    }
    return NULL;
}

/* torus-routed enables the cables only, so `ip_forward` may be 0. */
static void check_forwarding(struct doctor *d, uint32_t node)
{
    const bool off = fact_is(d->node[node].facts, "sysctl.net.ipv4.ip_forward", "0");
    bool known;
    uint64_t on;
    const char *idle = find_idle_cable(d, node, &known);
    struct finding *f;

    if (!known && (uses_routed(d, node) ||
                   !fact_number(d->node[node].facts, "sysctl.net.ipv4.ip_forward", &on))) {
        doctor_unseen(d, "forwarding", node, "sysctl.net.ipv4.ip_forward");
        return;
    }
    if (idle == NULL && (known || !off))
        return;
    f = doctor_find(d, SEVERITY_ERROR, "forwarding", node, "the machine forwards no packets%s%s",
                    idle != NULL ? " that come by " : "", idle != NULL ? idle : "");
    f->why = "IP packets between machines that are not neighbours are lost here";
    if (uses_routed(d, node))
        finding_mend(f, "on that machine: sudo systemctl restart torus-routed");
    else if (off)
        finding_mend(f, "sysctl -w net.ipv4.ip_forward=1");
    else
        finding_mend(f, "sysctl -w net.ipv4.conf.%s.forwarding=1", idle);
}

static void check_unknown_firewall(struct doctor *d, uint32_t node, bool docker)
{
    const bool may_drop = docker && !uses_routed(d, node); /* which lets packets pass Docker */
    char why[FACT_SIZE];
    struct finding *f;

    if (!fact_text(d->node[node].facts, "unseen.firewall.forward", why))
        (void)strcpy(why, "only root can read the rules of the firewall");
    f = doctor_find(
        d, may_drop ? SEVERITY_WARNING : SEVERITY_UNSEEN, "firewall", node, "%s%.200s",
        may_drop ? "Docker runs there, whose firewall usually drops forwarded packets; " : "", why);
    if (may_drop)
        f->why = "IP packets between machines that are not neighbours may be lost here";
    finding_mend(f, "on that machine: sudo torusctl doctor; or sudo iptables -S FORWARD");
}

static void check_firewall(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    const bool docker = fact_is(facts, "firewall.docker", "yes");
    struct finding *f;

    if (fact_is(facts, "firewall.forward", "unknown")) {
        check_unknown_firewall(d, node, docker);
        return;
    }
    if (!fact_is(facts, "firewall.forward", "drop")) {
        if (!fact_is(facts, "firewall.forward", "accept"))
            doctor_unseen(d, "firewall", node, "firewall.forward");
        return;
    }
    f = doctor_find(d, SEVERITY_ERROR, "firewall", node,
                    "the firewall drops packets that the machine should forward%s",
                    docker ? " (Docker sets this policy)" : "");
    f->why = "IP packets between machines that are not neighbours are lost here";
    if (docker && uses_routed(d, node))
        finding_mend(f, "on that machine: sudo apt-get install nftables; sudo systemctl restart "
                        "torus-routed, which lets packets pass Docker");
    else
        finding_mend(f,
                     "%sfor each pair of interfaces with cables: iptables -I %s -i IN -o OUT -j "
                     "ACCEPT",
                     uses_routed(d, node) ? "" : "iptables -P FORWARD ACCEPT; or ",
                     docker ? "DOCKER-USER" : "FORWARD");
}

static void check_routes_of(struct doctor *d, uint32_t node)
{
    uint64_t count;

    if (!doctor_has_facts(d, node)) {
        doctor_unseen(d, "ip routes", node, "ip_routes.count");
        doctor_unseen(d, "forwarding", node, "ip_routes.count");
        doctor_unseen(d, "firewall", node, "ip_routes.count");
        return;
    }
    if (fact_number(d->node[node].facts, "ip_routes.count", &count))
        check_count(d, node);
    else
        doctor_unseen(d, "ip routes", node, "ip_routes.count");
    check_diverted(d, node);
    check_forwarding(d, node);
    check_firewall(d, node);
}

static void check(struct doctor *d)
{
    const size_t before = d->findings;
    uint32_t using = 0;

    for (uint32_t node = 0; node < d->nodes; node++)
        using += has_routes(d, node);
    for (uint32_t node = 0; node < d->nodes; node++) {
        uint64_t count;
        if (using > 0)
            check_routes_of(d, node);
        else if (!fact_number(d->node[node].facts, "ip_routes.count", &count))
            doctor_unseen(d, "ip routes", node, "ip_routes.count");
    }
    if (using == 0) {
        doctor_fine(d, before, "ip routes", "torus-routed and 'torusctl ip-routes' are not in use");
        return;
    }
    doctor_fine(d, before, "ip routes", "the kernel uses the routes over the cables");
    doctor_fine(d, before, "forwarding", "the machine forwards packets");
    doctor_fine(d, before, "firewall", "the firewall lets packets pass");
}

const struct check check_routes = {.all = check, .alone = true};
