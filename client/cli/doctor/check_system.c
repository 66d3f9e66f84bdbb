/* Settings of the system that make links slower (operating.md, "Settings of the system"). */
#include <string.h>

#include "client/cli/doctor/judge.h"
#include "client/cli/doctor/known_facts.h"

static void check_slow_start(struct doctor *d, uint32_t node)
{
    if (!fact_is(d->node[node].facts, "sysctl.net.ipv4.tcp_slow_start_after_idle", "1"))
        return;
    struct finding *f =
        doctor_find(d, SEVERITY_HINT, "system", node, "TCP starts slowly again after each pause");
    f->why = "the first exchange after a pause takes longer";
    finding_mend(f, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0");
}

static void check_governor(struct doctor *d, uint32_t node)
{
    char governor[FACT_SIZE];

    if (!fact_text(d->node[node].facts, "cpu.governor", governor) ||
        strcmp(governor, "performance") == 0)
        return;
    struct finding *f =
        doctor_find(d, SEVERITY_HINT, "system", node,
                    "processors are slowed down when idle (governor %.40s)", governor);
    f->why = "small exchanges wait until the processor is fast again";
    finding_mend(f, "cpupower frequency-set -g performance");
}

/* The effective filter of an interface is the larger one of its own and that of all. */
static bool is_strict(const char *facts, const char *interface)
{
    uint64_t own, all;

    (void)fact_number(facts, "sysctl.net.ipv4.conf.all.rp_filter", &all);
    return fact_number(facts, fact_name("interface.%s.rp_filter", interface), &own) &&
           (own > all ? own : all) == 1;
}

static void check_rp_filter(struct doctor *d, uint32_t node)
{
    const struct torus_links *links = d->node[node].links;

    for (size_t i = 0; links != NULL && i < links->count; i++) {
        const char *interface = links->link[i]->interface;
        if (interface[0] == '\0' || strcmp(interface, "lo") == 0 ||
            !is_strict(d->node[node].facts, interface))
            continue;
        const bool up = links->link[i]->state == TORUS_LINK_UP;
        struct finding *f = doctor_find(d, up ? SEVERITY_HINT : SEVERITY_WARNING, "rp_filter", node,
                                        "the kernel drops packets at %s whose way back leads "
                                        "elsewhere (rp_filter is 1)",
                                        interface);
        f->why = "cables with equal addresses, and IP routes over several hosts, do not work so";
        finding_mend(f, "sysctl -w net.ipv4.conf.%s.rp_filter=2", interface);
    }
}

void check_system(struct doctor *d)
{
    const size_t before = d->findings;
    uint32_t seen = 0;

    for (uint32_t node = 0; node < d->nodes; node++) {
        if (!doctor_has_facts(d, node))
            continue;
        seen++;
        check_slow_start(d, node);
        check_governor(d, node);
        check_rp_filter(d, node);
    }
    if (seen > 0 && d->findings == before)
        (void)doctor_find(d, SEVERITY_FINE, "system", FINDING_NOBODY, "settings of %u %s", seen,
                          seen == 1 ? "machine" : "machines");
}
