/* Clocks: whether they agree, and whether something keeps them right. */
#include "client/cli/doctor/doctor.h"

#define OFFSET_BAD_US 1000000
#define OFFSET_POOR_US 100000

/* The least offset that is certain, in microseconds. */
static int64_t certain(const struct doctor_node *n)
{
    const int64_t size = n->clock_offset_us < 0 ? -n->clock_offset_us : n->clock_offset_us;
    const int64_t error = (int64_t)n->clock_error_us;

    return size > error ? size - error : 0;
}

static void check_offset(struct doctor *d, uint32_t node)
{
    const struct doctor_node *n = &d->node[node];

    if (!doctor_has_state(d, node)) {
        doctor_unseen(d, "clocks", node, NULL);
        return;
    }
    if (n->clock_error_us == 0) {
        (void)doctor_find(d, SEVERITY_UNSEEN, "clocks", node, "the answer has no time");
        return;
    }
    if (certain(n) < OFFSET_POOR_US)
        return;
    struct finding *f = doctor_find(
        d, certain(n) >= OFFSET_BAD_US ? SEVERITY_WARNING : SEVERITY_HINT, "clocks", node,
        "the clock is %.3f s %s that of %s (measured to %.3f s)",
        (double)(n->clock_offset_us < 0 ? -n->clock_offset_us : n->clock_offset_us) / 1e6,
        n->clock_offset_us < 0 ? "behind" : "ahead of", d->node[d->initiator].host,
        (double)n->clock_error_us / 1e6);
    f->why = "times of files and of logs on the machines cannot be compared; torusd does not mind";
    finding_mend(f, "timedatectl set-ntp true; or apt-get install chrony");
}

static void check_kept(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;

    if (fact_is(facts, "clock.synchronised", "yes"))
        return;
    if (!fact_is(facts, "clock.synchronised", "no")) {
        doctor_unseen(d, "clocks", node, "clock.synchronised");
        return;
    }
    struct finding *f = doctor_find(d, SEVERITY_HINT, "clocks", node,
                                    "nothing keeps the clock of the machine right");
    f->why = "clocks drift apart by seconds a day, so times of files and logs disagree";
    finding_mend(f, "timedatectl set-ntp true; or apt-get install chrony");
}

static void check(struct doctor *d, uint32_t node)
{
    if (d->torus != NULL)
        check_offset(d, node);
    check_kept(d, node);
}

const struct check check_clocks = {
    .node = check, .alone = true, .subject = {{"clocks", "the clock is right", true}}};
