/* The routes of 'torusctl ip-routes', if they are in use, and what keeps packets from being forwarded. */
#include <string.h>

#include "client/cli/doctor/judge.h"
#include "client/cli/doctor/known_facts.h"

static bool has_routes(const struct doctor *d, uint32_t node)
{
    uint64_t count;

    return doctor_has_facts(d, node) &&
           ((fact_number(d->node[node].facts, "ip_routes.count", &count) && count > 0) ||
            fact_is(d->node[node].facts, "ip_routes.interface", "torus0"));
}

static void check_count(struct doctor *d, uint32_t node)
{
    const char *host = d->node[node].host;
    uint64_t count;
    struct finding *f;

    if (!has_routes(d, node)) {
        f = doctor_find(d, SEVERITY_ERROR, "ip routes", node,
                        "the machine has no IP routes over the cables; other machines have them");
    } else if (d->torus != NULL && fact_number(d->node[node].facts, "ip_routes.count", &count) &&
               count < d->nodes - 1) {
        f = doctor_find(d, SEVERITY_WARNING, "ip routes", node,
                        "the machine has IP routes to %llu of %u other machines",
                        (unsigned long long)count, d->nodes - 1);
    } else {
        return;
    }
    f->why = "ssh, MPI and everything else that uses IP cannot reach all machines";
    finding_mend(f, "sudo sh %.80s.sh up (torusctl help ip-routes)", host);
}

static void check_forwarding(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    const bool docker = fact_is(facts, "firewall.docker", "yes");
    struct finding *f;

    if (fact_is(facts, "sysctl.net.ipv4.ip_forward", "0")) {
        f = doctor_find(d, SEVERITY_ERROR, "forwarding", node, "the machine forwards no packets");
        f->why = "IP packets between machines that are not neighbours are lost here";
        finding_mend(f, "sysctl -w net.ipv4.ip_forward=1");
    }
    if (fact_is(facts, "firewall.forward", "drop")) {
        f = doctor_find(d, SEVERITY_ERROR, "firewall", node,
                        "the firewall drops packets that the machine should forward%s",
                        docker ? " (Docker sets this policy)" : "");
        f->why = "IP packets between machines that are not neighbours are lost here";
        finding_mend(f, "iptables -P FORWARD ACCEPT; or for each pair of interfaces with cables: "
                        "iptables -I DOCKER-USER -i IN -o OUT -j ACCEPT");
    } else if (fact_is(facts, "firewall.forward", "unknown")) {
        f = doctor_find(d, docker ? SEVERITY_WARNING : SEVERITY_FINE, "firewall", node,
                        docker ? "Docker runs there, whose firewall usually drops forwarded "
                                 "packets; the rules cannot be seen without root"
                               : "the rules of the firewall cannot be seen without root");
        if (docker)
            f->why = "IP packets between machines that are not neighbours may be lost here";
        finding_mend(f, "on that machine: sudo torusctl doctor; or sudo iptables -S FORWARD");
    }
}

void check_routes(struct doctor *d)
{
    const size_t before = d->findings;
    uint32_t using = 0, seen = 0;

    for (uint32_t node = 0; node < d->nodes; node++) {
        seen += doctor_has_facts(d, node);
        using += has_routes(d, node);
    }
    if (using == 0) {
        if (seen > 0)
            (void)doctor_find(d, SEVERITY_FINE, "ip routes", FINDING_NOBODY,
                              "no machine uses 'torusctl ip-routes'");
        return;
    }
    for (uint32_t node = 0; node < d->nodes; node++) {
        if (!doctor_has_facts(d, node))
            continue;
        check_count(d, node);
        check_forwarding(d, node);
    }
    if (d->findings == before)
        (void)doctor_find(d, SEVERITY_FINE, "ip routes", FINDING_NOBODY,
                          "routes and forwarding of %u machines", using);
}
