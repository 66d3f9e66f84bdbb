/* Limits of the daemon's process, and memory. */
#include "client/cli/doctor/judge.h"
#include "client/cli/doctor/known_facts.h"

#define FILES_SPARE 64u
#define FILES_FEW 1024u
#define MIB (UINT64_C(1024) * 1024)

static void check_files(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    uint64_t limit, open;
    struct finding *f;

    if (!fact_number(facts, "files.limit", &limit) || !fact_number(facts, "files.open", &open))
        return;
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
    struct finding *f;

    if (s == NULL)
        return;
    if (fact_number(facts, "memory.available_bytes", &available) &&
        s->memory_budget > available + s->memory_used) {
        f = doctor_find(d, SEVERITY_WARNING, "memory", node,
                        "torusd may use %llu MiB for blocks (setting memory), and the machine has "
                        "%llu MiB available",
                        (unsigned long long)(s->memory_budget / MIB),
                        (unsigned long long)(available / MIB));
        f->why = "when memory runs out, the kernel ends processes";
        finding_mend(f, "set memory = %lluMiB in torusd.ini, then: systemctl restart torusd",
                     (unsigned long long)(available / 2 / MIB));
    }
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

void check_limits(struct doctor *d)
{
    const size_t before = d->findings;
    uint32_t seen = 0;

    for (uint32_t node = 0; node < d->nodes; node++) {
        if (!doctor_has_facts(d, node))
            continue;
        seen++;
        if (d->torus != NULL)
            check_files(d, node);
        check_memory(d, node);
    }
    if (seen > 0 && d->findings == before)
        (void)doctor_find(d, SEVERITY_FINE, "limits", FINDING_NOBODY, "files and memory of %u %s",
                          seen, seen == 1 ? "machine" : "machines");
}
