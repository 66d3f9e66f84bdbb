/* All checks, in the order in which their findings are listed. */
#include "client/cli/doctor/doctor.h"

static const struct check *const checks[] = {
    &check_nodes,  &check_versions, &check_links,  &check_cables, &check_interfaces, &check_keys,
    &check_clocks, &check_disks,    &check_limits, &check_routes, &check_system};

void doctor_judge(struct doctor *d)
{
    d->usual_known = false;
    d->usual_mbit = 0;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        const struct check *c = checks[i];
        const size_t before = d->findings;

        if (d->torus == NULL && !c->alone)
            continue;
        for (uint32_t node = 0; c->node != NULL && node < d->nodes; node++)
            c->node(d, node);
        if (c->all != NULL)
            c->all(d);
        for (const struct check_subject *s = c->subject; s->name != NULL; s++)
            if (d->torus != NULL || s->alone)
                doctor_fine(d, before, s->name, s->fine);
    }
}
