/* Settings of the system that make links slower (operating.md, "Settings of the system"). */
#include <string.h>

#include "client/cli/doctor/doctor.h"

static void check_slow_start(struct doctor *d, uint32_t node)
{
    static const char name[] = "sysctl.net.ipv4.tcp_slow_start_after_idle";
    uint64_t on;

    if (!doctor_number(d, "system", node, name, &on) || on == 0)
        return;
    struct finding *f =
        doctor_find(d, SEVERITY_HINT, "system", node, "TCP starts slowly again after each pause");
    f->why = "the first exchange after a pause takes longer";
    finding_mend(f, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0");
}

static void check_governor(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    char governor[FACT_SIZE];
    uint64_t count;

    if (!fact_text(facts, "cpu.governor", governor)) {
        if (!fact_number(facts, "cpu.governors", &count)) /* 0: a machine without governors */
            doctor_unseen(d, "system", node, "cpu.governors");
        return;
    }
    if (strcmp(governor, "performance") == 0)
        return;
    struct finding *f =
        doctor_find(d, SEVERITY_HINT, "system", node,
                    "processors are slowed down when idle (governor %.40s)", governor);
    f->why = "small exchanges wait until the processor is fast again";
    finding_mend(f, "cpupower frequency-set -g performance");
}

/* The effective filter of an interface is the larger one of its own and that of all. */
static void check_rp_filter_of(struct doctor *d, uint32_t node, const struct torus_link *link)
{
    static const char for_all[] = "sysctl.net.ipv4.conf.all.rp_filter";
    const char *name = fact_name("interface.%s.rp_filter", link->interface);
    uint64_t own, all;

    if (!doctor_number(d, "rp_filter", node, for_all, &all) ||
        !doctor_number(d, "rp_filter", node, name, &own) || (own > all ? own : all) != 1)
        return;
    const bool up = link->state == TORUS_LINK_UP;
    struct finding *f = doctor_find(d, up ? SEVERITY_HINT : SEVERITY_WARNING, "rp_filter", node,
                                    "the kernel drops packets at %s whose way back leads "
                                    "elsewhere (rp_filter is 1)",
                                    link->interface);
    f->why = "cables with equal addresses, and IP routes over several hosts, do not work so";
    finding_mend(f, "sysctl -w net.ipv4.conf.%s.rp_filter=2", link->interface);
}

static void check_rp_filter(struct doctor *d, uint32_t node)
{
    const struct torus_links *links = d->node[node].links;

    if (!doctor_has_state(d, node) || !doctor_has_facts(d, node)) {
        doctor_unseen(d, "rp_filter", node, doctor_has_state(d, node) ? "interfaces" : NULL);
        return;
    }
    for (size_t i = 0; i < links->count; i++) {
        if (links->link[i]->interface[0] == '\0')
            doctor_unseen(d, "rp_filter", node,
                          fact_name("port.%s.interface", links->link[i]->name));
        else if (strcmp(links->link[i]->interface, "lo") != 0)
            check_rp_filter_of(d, node, links->link[i]);
    }
}

static void check(struct doctor *d, uint32_t node)
{
    check_slow_start(d, node);
    check_governor(d, node);
    if (d->torus != NULL)
        check_rp_filter(d, node);
}

const struct check check_system = {
    .node = check,
    .alone = true,
    .subject = {{"system", "settings of the kernel and of the processors", true},
                {"rp_filter", "no cable drops packets by rp_filter", false}}};
