#include "tests/sim/down_fixture.h"

#include "tests/support/cmocka.h"

static const char *const tori[] = {"4x4", "3x3", "2x3", "5", "4mx3", "2x2x2", "3x5"};

static const struct spec specs[] = {
    GENERATED(.algorithm = "auto", .block_bytes = 20000),
    GENERATED(.algorithm = "auto", .block_bytes = 200000),
    GENERATED(.algorithm = "auto", .block_bytes = 1000, .repeat = 5),
    GENERATED(.algorithm = "auto", .block_bytes = 2000, .mode = MODE_STEPPED),
    GENERATED(.algorithm = "auto", .block_bytes = 0),
    {.algorithm = "auto", .from = "/random/5000", .to = "/a"},
    {.algorithm = "auto", .from = "/same/3000", .to = "/b"},
};

struct sim *down_begin(uint64_t seed)
{
    return sim_new_whole(tori[seed % (sizeof tori / sizeof tori[0])], seed);
}

const struct spec *down_any_spec(struct sim *sim)
{
    return &specs[sim_any(sim, sizeof specs / sizeof specs[0])];
}

void down_cut(struct sim *sim, struct damage *d)
{
    const struct torus *t = sim_torus(sim);
    uint32_t rank;
    unsigned port;

    do {
        rank = sim_any(sim, t->nodes);
        port = sim_any(sim, torus_ports(t));
    } while (torus_neighbour(t, rank, port) == TORUS_NO_NODE);
    damage_add_link(d, rank, port);
    sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
}

void down_change(struct sim *sim, struct damage *d, bool mends)
{
    const struct torus *t = sim_torus(sim);
    enum sim_wire how = sim_any(sim, 4) == 0 ? SIM_WIRE_SILENT : SIM_WIRE_CUT;

    for (int tries = 0; tries < 20; tries++) {
        uint32_t rank = sim_any(sim, t->nodes);
        unsigned port = sim_any(sim, torus_ports(t));
        if (torus_neighbour(t, rank, port) == TORUS_NO_NODE)
            continue;
        if (!damage_has_link(d, rank, port) && !mends)
            continue;
        if (!damage_has_link(d, rank, port)) {
            sim_set_wire(sim, rank, port, SIM_WIRE_UP);
            return;
        }
        damage_add_link(d, rank, port);
        if (damage_is_connected(d, NULL) == 0) {
            sim_set_wire(sim, rank, port, how);
            return;
        }
        d->dead[rank] &= ~(1u << port);
        d->dead[torus_neighbour(t, rank, port)] &= ~(1u << torus_port_opposite(t, port));
    }
}

void down_check_success(struct sim_request *r, const struct spec *spec)
{
    struct spec chosen = *spec;

    if (r->error.code == ERROR_NONE)
        chosen.algorithm = r->result.algorithm;
    check_success(r, &chosen);
}

void down_must_complete(struct sim_request *r, const struct spec *spec)
{
    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("%s does not end", r->id);
    down_check_success(r, spec);
    assert_true(check_agreement(r, spec));
}

bool down_is_in_parts(const struct error *e)
{
    return e->code == ERROR_LINK && strstr(e->text, "the torus is in parts") != NULL;
}

bool down_no_leftover(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_leftover(sim, rank) != NULL)
            return false;
    return true;
}
