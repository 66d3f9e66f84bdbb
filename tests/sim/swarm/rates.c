/* Links that carry less than others, or than before. What nodes state of them is true:
 *
 * - no link is called slower than three quarters of what it carried at its slowest, of the time that is looked at;
 * - a link that carries its nominal rate again is not called slow for longer than probes take;
 * - plans do not change more often than links, and once in PLAN_RATES_HOLD. */
#include <inttypes.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/router/observed.h"
#include "tests/sim/swarm/swarm.h"

enum { STREAM_RATES = 48, STREAM_RATE_FAULTS, STREAM_LOADS };

#define RATE_FAULTS 6u
#define LOADS 2u
/* Measurements of that time may count: as many as there are, each just before the one before is forgotten. */
#define LOOK_BACK (OBSERVED_WINDOWS * OBSERVED_FORGET)
/* Two probes, some five seconds apart, and as long as checks are apart. */
#define WELL_TIME (12 * SECONDS)

void swarm_draw_rate(struct swarm_world *w)
{
    struct chance c = chance_stream(w->seed, STREAM_RATES, 0);

    w->rated |= chance_below(&c, 8) == 0;
    if (w->rated && w->setup.rate > 0) /* exchanges that last do not take many events */
        w->setup.rate = chance_magnitude(&c, 500000, 2000000);
}

/* The mean number of links from a node to another, times the number of nodes. */
static uint64_t distances(const struct torus *t)
{
    uint64_t sum = 0;

    for (uint32_t rank = 1; rank < t->nodes; rank++)
        sum += torus_distance(t, 0, rank);
    return sum;
}

static unsigned links_of(const struct torus *t, uint32_t rank)
{
    unsigned links = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    return links;
}

/* An exchange that keeps links busy for about this time, perhaps in repetitions. */
static void draw_load(struct swarm_world *w, uint64_t time, struct chance *c)
{
    struct swarm_request *r = &w->request[w->requests];
    const uint64_t repeat = chance_below(c, 2) == 0 ? chance_magnitude(c, 2, 20) : 1;
    const uint64_t bytes =
        w->setup.rate * links_of(&w->torus, 0) * (time / MILLISECONDS) / 1000 / repeat;

    if (w->requests == SWARM_REQUESTS || w->setup.rate == 0)
        return;
    w->requests++;
    *r = (struct swarm_request){
        .at = chance_below(c, 30 * SECONDS),
        .root = (uint32_t)(chance_word(c) % w->torus.nodes),
        .spec = GENERATED(.algorithm = "auto", .mode = MODE_STREAMING, .barrier = "",
                          .block_bytes = 1 + bytes / distances(&w->torus),
                          .repeat = (uint32_t)repeat, .timeout_ns = SWARM_LOAD_TIMEOUT)};
}

void swarm_draw_rates(struct swarm_world *w)
{
    struct chance c = chance_stream(w->seed, STREAM_RATES, 1);
    const unsigned faults = (unsigned)chance_magnitude(&c, 1, RATE_FAULTS);
    const unsigned loads = (unsigned)chance_magnitude(&c, 1, LOADS);

    for (unsigned i = 0; i < faults && w->rated && w->faults < SWARM_FAULTS; i++) {
        struct chance own = chance_stream(w->seed, STREAM_RATE_FAULTS, i);
        struct swarm_fault *f = &w->fault[w->faults++];
        swarm_draw_fault(f, w, NEMESIS_RATES, &own);
        if (chance_below(&own, 3) == 0) /* from the start */
            f->at = f->frame = 0;
    }
    for (unsigned i = 0; i < loads && w->rated; i++) {
        struct chance own = chance_stream(w->seed, STREAM_LOADS, i);
        draw_load(w, chance_magnitude(&own, 1 * SECONDS, 4 * SECONDS), &own);
    }
}

/* --- what nodes state --- */

static uint64_t to_kbit(uint64_t bytes_per_second)
{
    return bytes_per_second * 8 / 1000;
}

/* What a node says that it sends by a port; 0: it says nothing, or the link is not up. */
static uint32_t stated(const struct swarm_play *play, uint32_t rank, unsigned port)
{
    const struct topology *p = router_topology(sim_router(play->sim, rank));

    return topology_link_up(p, rank, port) && p->entry[rank].rates != NULL
               ? p->entry[rank].rates[2 * port]
               : 0;
}

static bool is_at(const struct swarm_fault *f, uint32_t rank, unsigned port)
{
    const struct torus *t = &f->play->world->torus;
    const uint32_t peer = torus_neighbour(t, rank, port);

    return f->begun &&
           (f->rank == rank || f->rank == peer || torus_neighbour(t, f->rank, f->port) == rank);
}

static bool is_recent(const struct swarm_play *play, const struct swarm_fault *f, uint64_t time)
{
    return !f->over || f->changed_at + time > sim_now(play->sim);
}

/* The lowest rate that the link carried lately while bytes waited for it; 0: the link was held up. */
static uint64_t least_carried(const struct swarm_play *play, uint32_t rank, unsigned port)
{
    const struct swarm_world *w = play->world;
    uint64_t least = sim_usual_rate(play->sim, rank, port);

    for (unsigned i = 0; i < w->faults; i++) {
        const struct swarm_fault *f = &w->fault[i];
        const uint64_t rate = f->begun ? swarm_fault_rate(f, rank, port) : 0;
        if (is_at(f, rank, port) && swarm_fault_stalls(f) && is_recent(play, f, LOOK_BACK))
            return 0;
        if (rate > 0 && rate < least && is_recent(play, f, LOOK_BACK))
            least = rate;
    }
    return least;
}

/* Whether nothing has happened to the link for long, and it carries what it should. */
static bool is_well(const struct swarm_play *play, uint32_t rank, unsigned port)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->faults; i++)
        if (is_at(&w->fault[i], rank, port) && is_recent(play, &w->fault[i], WELL_TIME))
            return false;
    return sim_usual_rate(play->sim, rank, port) >= sim_nominal(play->sim, rank, port);
}

static void check_port(struct swarm_play *play, uint32_t rank, unsigned port)
{
    const uint64_t nominal = to_kbit(sim_nominal(play->sim, rank, port));
    const uint32_t before = play->stated[rank][port], now = stated(play, rank, port);

    play->stated[rank][port] = now;
    if (now == 0 || now >= nominal)
        return;
    const uint64_t least = to_kbit(least_carried(play, rank, port));
    if (now != before && 4 * (uint64_t)now < 3 * least)
        sim_violated(play->sim, "links are not slandered",
                     "node %u says that port %u carries %u kbit/s, and it carried %" PRIu64, rank,
                     port, now, least);
    if (is_well(play, rank, port))
        sim_violated(play->sim, "what is well is used",
                     "node %u still says that port %u carries %u kbit/s", rank, port, now);
}

/* --- plans --- */

/* How often links have changed; UINT64_MAX: more than rates has. */
static uint64_t changes_of_links(const struct swarm_play *play)
{
    const struct swarm_world *w = play->world;
    uint64_t changes = 0;

    for (unsigned i = 0; i < w->faults; i++) {
        const struct swarm_fault *f = &w->fault[i];
        if (!f->begun)
            continue;
        if (swarm_fault_rate(f, f->rank, f->port) == 0)
            return UINT64_MAX;
        changes += 2u * (1u + f->over); /* in two directions */
    }
    return changes;
}

static void check_plans(const struct swarm_play *play, uint32_t rank)
{
    const uint64_t changes = sim_exchanges(play->sim, rank)->rates.changes;
    const uint64_t most = changes_of_links(play);

    if (most < UINT64_MAX && changes > most + sim_now(play->sim) / PLAN_RATES_HOLD + 1)
        sim_violated(play->sim, "plans do not flap",
                     "those of node %u have changed %" PRIu64 " times, and links %" PRIu64, rank,
                     changes, most);
}

void swarm_check_rates(struct swarm_play *play)
{
    const struct torus *t = &play->world->torus;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (!sim_alive(play->sim, rank) || sim_frozen(play->sim, rank))
            continue;
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE)
                check_port(play, rank, port);
        check_plans(play, rank);
    }
}

void swarm_end_rates(struct swarm_play *play)
{
    if (!play->world->rated)
        return;
    sim_pass(play->sim, WELL_TIME);
    swarm_check_rates(play);
}
