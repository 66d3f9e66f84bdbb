#include "tests/sim/hole_fixture.h"

#include "tests/support/cmocka.h"

static const char *const tori[] = {"4x4", "3x3", "2x3",   "5", "4mx3", "2x2x2", "3x5",
                                   "1x4", "2x2", "3mx3m", "2", "7",    "2x4m"};

struct sim *holes_begin(uint64_t seed, struct damage *d)
{
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    struct error e;

    assert_int_equal(damage_init(d, sim_torus(sim), &e), 0);
    return sim;
}

void holes_change(struct sim *sim, struct damage *d, bool mend)
{
    const struct torus *t = sim_torus(sim);
    uint32_t rank = group_any(sim, t->nodes);
    unsigned port = group_any(sim, torus_ports(t));

    if (torus_neighbour(t, rank, port) == TORUS_NO_NODE)
        return;
    uint32_t there = torus_neighbour(t, rank, port);
    if (damage_has_link(d, rank, port)) {
        damage_add_link(d, rank, port);
        if (damage_is_connected(d, NULL) == 0) {
            sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
            return;
        }
    } else if (mend) {
        sim_set_wire(sim, rank, port, SIM_WIRE_UP);
    } else {
        return;
    }
    d->dead[rank] &= ~(1u << port);
    d->dead[there] &= ~(1u << torus_port_opposite(t, port));
}

bool holes_are_connected(const struct damage *d, uint32_t mask)
{
    const struct torus *t = &d->torus;
    uint32_t wanted = 1, order[64];

    for (unsigned dim = 0; dim < t->dims; dim++)
        wanted *= (mask & 1u << dim) != 0 ? t->size[dim] : 1;
    for (uint32_t node = 0; node < t->nodes; node++) {
        uint64_t seen = UINT64_C(1) << node;
        uint32_t known = 0;
        order[known++] = node;
        for (uint32_t i = 0; i < known; i++)
            for (unsigned port = 0; port < torus_ports(t); port++) {
                uint32_t there = torus_neighbour(t, order[i], port);
                if ((mask & 1u << torus_port_dim(t, port)) == 0 ||
                    !damage_has_link(d, order[i], port) || (seen & UINT64_C(1) << there) != 0)
                    continue;
                seen |= UINT64_C(1) << there;
                order[known++] = there;
            }
        if (known < wanted)
            return false;
    }
    return true;
}

uint32_t holes_draw_calls(struct sim *sim, struct sim_call *call)
{
    const struct torus *t = sim_torus(sim);
    uint32_t calls = 0, masks = 1;

    for (; masks < (1u << t->dims) - 1; masks++)
        call[calls++] = (struct sim_call){.operation = GROUP_PART, .part = masks};
    while (calls < CALLS_MOST) {
        struct sim_call *one = &call[calls++];
        *one = sim_any_call(sim_chance(sim), t);
        one->part = group_any(sim, masks);
        uint32_t size = 1;
        for (unsigned dim = 0; dim < t->dims; dim++)
            size *= one->part == 0 || (one->part & 1u << dim) != 0 ? t->size[dim] : 1;
        one->root %= size;
    }
    return calls;
}

void holes_must_succeed(struct sim *sim, struct sim_programs *programs)
{
    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs have not ended");
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u: %s", rank,
                         sim_program_error(programs, rank)->text);
    assert_int_equal(sim_programs_done(programs), sim_torus(sim)->nodes);
}

bool holes_are_said(struct sim *sim, const char *around)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open ||
            strcmp(info[0].avoids, around) != 0)
            return false;
    }
    return true;
}

bool holes_group_is_open(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open)
            return false;
    }
    return true;
}

bool holes_all_are_told(struct sim *sim, void *context)
{
    const struct holes_going *g = context;

    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) == g->nodes;
}
