/* The state of a simulation, and violations of invariants. */
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

void sim_violated(const struct sim *sim, const char *invariant, const char *format, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (sim->set.violated != NULL)
        sim->set.violated(sim, invariant, text);
    else
        fail_msg("%s, seed %llu, at %.6f s: %s: %s", sim->set.dims,
                 (unsigned long long)sim->set.seed, (double)sim->now / 1e9, invariant, text);
    abort(); /* neither returns */
}

void *sim_context(const struct sim *sim)
{
    return sim->set.context;
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now;
}

struct chance *sim_chance(struct sim *sim)
{
    return &sim->chance;
}

uint32_t sim_any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(&sim->chance, below);
}

const struct torus *sim_torus(const struct sim *sim)
{
    return &sim->torus;
}

bool sim_alive(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].alive;
}

bool sim_frozen(const struct sim *sim, uint32_t rank)
{
    return sim->node[rank].frozen;
}

uint64_t sim_frames_sent(const struct sim *sim, uint32_t rank, Peer__Head__KindCase kind)
{
    return sim->node[rank].sent[kind];
}

void sim_forget_frames(struct sim *sim)
{
    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++)
        memset(sim->node[rank].sent, 0, sizeof sim->node[rank].sent);
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

uint64_t sim_frames(const struct sim *sim)
{
    return sim->frames;
}

void sim_harmed(struct sim *sim)
{
    sim->harms++;
    if (sim->harmed_at > sim->now)
        sim->harmed_at = sim->now;
}

uint64_t sim_harmed_at(const struct sim *sim)
{
    return sim->harmed_at;
}

unsigned sim_harms(const struct sim *sim)
{
    return sim->harms;
}

bool sim_slowed(const struct sim *sim)
{
    return sim->slowed;
}

struct router *sim_router(struct sim *sim, uint32_t rank)
{
    return core_router(sim->node[rank].core);
}

struct exchanges *sim_exchanges(struct sim *sim, uint32_t rank)
{
    return core_exchanges(sim->node[rank].core);
}

struct groups *sim_groups(struct sim *sim, uint32_t rank)
{
    return core_groups(sim->node[rank].core);
}

struct survey *sim_survey(struct sim *sim, uint32_t rank)
{
    return core_survey(sim->node[rank].core);
}
