/* Limits of the daemon's process, memory, and load. */
#include <stdio.h>

#include "client/cli/doctor/doctor.h"

#define FILES_SPARE 64u
#define FILES_FEW 1024u
#define LOAD_MUCH 2.0
#define MIB (UINT64_C(1024) * 1024)

static void check_files(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    uint64_t limit, open;
    struct finding *f;

    if (fact_is(facts, "files.limit", "unlimited"))
        return;
    if (!fact_number(facts, "files.limit", &limit) || !fact_number(facts, "files.open", &open)) {
        doctor_unseen(d, "limits", node, "files.open");
        return;
    }
    if (open + FILES_SPARE > limit) {
        f = doctor_find(d, SEVERITY_ERROR, "limits", node, "torusd has %llu of %llu files open",
                        (unsigned long long)open, (unsigned long long)limit);
        f->why = "it cannot accept more clients, links or files";
    } else if (limit < FILES_FEW) {
        f = doctor_find(d, SEVERITY_WARNING, "limits", node, "torusd may have %llu files open",
                        (unsigned long long)limit);
        f->why = "that is little for many clients and large exchanges of files";
    } else {
        return;
    }
    finding_mend(f, "systemctl edit torusd: [Service] LimitNOFILE=65536; then restart it");
}

static void check_memory(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    const struct torus_status *s = d->node[node].status;
    uint64_t available, group;
    char why[FACT_SIZE];
    struct finding *f;

    if (s == NULL) {
        doctor_unseen(d, "memory", node, NULL);
        return;
    }
    if (!fact_number(facts, "memory.available_bytes", &available)) {
        doctor_unseen(d, "memory", node, "memory.available_bytes");
    } else if (s->memory_budget > available + s->memory_used) {
        f = doctor_find(d, SEVERITY_WARNING, "memory", node,
                        "torusd may use %llu MiB for blocks (setting memory), and the machine has "
                        "%llu MiB available",
                        (unsigned long long)(s->memory_budget / MIB),
                        (unsigned long long)(available / MIB));
        f->why = "when memory runs out, the kernel ends processes";
        finding_mend(f, "set memory = %lluMiB in torusd.ini, then: systemctl restart torusd",
                     (unsigned long long)(available / 2 / MIB));
    }
    if (fact_text(facts, "unseen.memory.group_max", why))
        doctor_unseen(d, "memory", node, "memory.group_max");
    if (fact_number(facts, "memory.group_max", &group) && s->memory_budget > group / 4 * 3) {
        f = doctor_find(d, SEVERITY_WARNING, "memory", node,
                        "torusd may use %llu MiB for blocks, and its service %llu MiB in all",
                        (unsigned long long)(s->memory_budget / MIB),
                        (unsigned long long)(group / MIB));
        f->why = "torusd also needs memory for other things, and is ended at that limit";
        finding_mend(f, "systemctl edit torusd: [Service] MemoryMax=%lluM; or lower memory",
                     (unsigned long long)(2 * s->memory_budget / MIB));
    }
}

/* "cpu.load 3.20 2.90 2.50 2/345 6789": over one, five and fifteen minutes. */
static void check_load(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    char text[FACT_SIZE];
    double one, five;
    uint64_t processors;

    if (!fact_text(facts, "cpu.load", text) || sscanf(text, "%lf %lf", &one, &five) != 2 ||
        !fact_number(facts, "cpu.count", &processors) || processors == 0) {
        doctor_unseen(d, "load", node, "cpu.load");
        return;
    }
    const double least = one < five ? one : five; /* for minutes, and now */
    if (!(least > LOAD_MUCH * (double)processors))
        return;
    struct finding *f =
        doctor_find(d, SEVERITY_HINT, "load", node, "%.0f processes compete for %llu %s", least,
                    (unsigned long long)processors, processors == 1 ? "processor" : "processors");
    f->why = "torusd waits for a processor: exchanges are slower, and answers may come late";
    finding_mend(f, "top on that machine shows what runs");
}

static void check(struct doctor *d, uint32_t node)
{
    check_load(d, node);
    if (d->torus == NULL)
        return; /* there is no daemon */
    check_files(d, node);
    check_memory(d, node);
}

const struct check check_limits = {
    .node = check,
    .alone = true,
    .subject = {{"load", "the processors are not overloaded", true},
                {"limits", "files that torusd may open", false},
                {"memory", "memory of the machine and of torusd", false}}};
