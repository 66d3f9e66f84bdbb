/* The kinds of faults, one row each. */
#include "tests/sim/swarm/swarm.h"

static void cut(struct swarm_fault *f, struct sim *sim)
{
    sim_set_wire(sim, f->rank, f->port, SIM_WIRE_CUT);
}

static void mend(struct swarm_fault *f, struct sim *sim)
{
    sim_set_wire(sim, f->rank, f->port, SIM_WIRE_UP);
}

static void flap_again(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;

    if (f->over || f->amount == 0)
        return;
    sim_set_wire(sim, f->rank, f->port, f->amount % 2 == 0 ? SIM_WIRE_CUT : SIM_WIRE_UP);
    f->amount--;
    sim_at(sim, sim_now(sim) + f->time / 16, flap_again, f);
}

static void flap(struct swarm_fault *f, struct sim *sim)
{
    f->amount = 2 * (1 + f->amount % 8);
    flap_again(sim, f);
}

static void stall(struct swarm_fault *f, struct sim *sim)
{
    sim_stall(sim, f->rank, f->port, SIM_WIRE_SILENT, f->time);
}

static void deafen(struct swarm_fault *f, struct sim *sim)
{
    sim_stall(sim, f->rank, f->port, SIM_WIRE_DEAF, f->time);
}

static void half_open(struct swarm_fault *f, struct sim *sim)
{
    sim_half_open(sim, f->rank, f->port);
}

static void draw_delay(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    f->amount = chance_magnitude(c, 1 * MILLISECONDS, 4 * SECONDS);
}

static void delay(struct swarm_fault *f, struct sim *sim)
{
    sim_set_latency(sim, f->rank, f->port, f->amount);
}

static void delay_over(struct swarm_fault *f, struct sim *sim)
{
    sim_set_latency(sim, f->rank, f->port, 0);
}

static void kill_process(struct swarm_fault *f, struct sim *sim)
{
    sim_kill(sim, f->rank, SIM_CRASH);
}

static void power_off(struct swarm_fault *f, struct sim *sim)
{
    sim_kill(sim, f->rank, SIM_POWER);
}

static void terminate(struct swarm_fault *f, struct sim *sim)
{
    if (!sim_frozen(sim, f->rank))
        sim_kill(sim, f->rank, SIM_STOP);
}

static void start_again(struct swarm_fault *f, struct sim *sim)
{
    sim_restart(sim, f->rank);
}

static void restart(struct swarm_fault *f, struct sim *sim)
{
    sim_kill(sim, f->rank, f->amount % 2 == 0 ? SIM_CRASH : SIM_STOP);
    sim_restart(sim, f->rank);
}

static void die_deciding(struct swarm_fault *f, struct sim *sim)
{
    sim_crash_when_decided(sim, f->rank);
}

static void freeze(struct swarm_fault *f, struct sim *sim)
{
    sim_freeze(sim, f->rank, f->time);
}

static void draw_slowness(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    f->amount = chance_magnitude(c, 1 * MILLISECONDS, 8 * SECONDS);
}

static void slow_disk(struct swarm_fault *f, struct sim *sim)
{
    sim_disk_slow(sim, f->rank, f->amount);
}

static void slow_disk_over(struct swarm_fault *f, struct sim *sim)
{
    sim_disk_slow(sim, f->rank, 0);
}

static void full_disk(struct swarm_fault *f, struct sim *sim)
{
    sim_disk_full(sim, f->rank, true);
}

static void full_disk_over(struct swarm_fault *f, struct sim *sim)
{
    sim_disk_full(sim, f->rank, false);
}

static void disk_error(struct swarm_fault *f, struct sim *sim)
{
    sim_disk_fail(sim, f->rank, (enum sim_disk_fault)(f->amount % SIM_DISK_FAULTS));
}

static void draw_allocation(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    f->amount = chance_magnitude(c, 1, 500);
}

static void fail_allocation(struct swarm_fault *f, struct sim *sim)
{
    sim_fail_allocation(sim, f->rank, f->amount);
}

static struct swarm_request *any_request(struct swarm_fault *f)
{
    struct swarm_world *w = f->play->world;
    struct swarm_request *r = &w->request[f->amount % w->requests];

    return r->asked != NULL && r->asked->exchange != NULL && !sim_frozen(f->play->sim, r->root)
               ? r
               : NULL;
}

static void cancel(struct swarm_fault *f, struct sim *sim)
{
    struct swarm_request *r = any_request(f);

    if (r == NULL)
        return;
    r->left = true;
    sim_cancel(r->asked);
}

static void vanish(struct swarm_fault *f, struct sim *sim)
{
    struct swarm_request *r = any_request(f);

    if (r == NULL)
        return;
    r->left = r->seen_ended = true;
    sim_abandon(r->asked);
    swarm_ask_again(f->play, r);
}

static struct swarm_group *group_of(const struct swarm_fault *f)
{
    struct swarm_world *w = f->play->world;
    struct swarm_group *g = w->groups > 0 ? &w->group[f->group % w->groups] : NULL;

    return g != NULL && g->programs != NULL && !g->over ? g : NULL;
}

static void stop_program(struct swarm_fault *f, struct sim *sim)
{
    const struct swarm_group *g = group_of(f);

    if (g != NULL)
        sim_program_stop(g->programs, f->rank);
}

static void go_on_program(struct swarm_fault *f, struct sim *sim)
{
    const struct swarm_group *g = group_of(f);

    if (g != NULL)
        sim_program_go_on(g->programs, f->rank);
}

/* The node hears nothing while it is stopped. */
static bool must_wait(struct swarm_fault *f, struct sim *sim,
                      void (*again)(struct sim *sim, void *context))
{
    if (!sim_frozen(sim, f->rank))
        return false;
    sim_at(sim, sim_now(sim) + 10 * MILLISECONDS, again, f);
    return true;
}

static void kill_later(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;
    struct swarm_group *g = group_of(f);

    if (g == NULL || must_wait(f, sim, kill_later))
        return;
    g->faults++;
    sim_program_die(g->programs, f->rank);
}

static void kill_program(struct swarm_fault *f, struct sim *sim)
{
    kill_later(sim, f);
}

static void draw_mistake(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    f->call = swarm_draw_call(w, 0, c);
}

static void mistake(struct swarm_fault *f, struct sim *sim)
{
    struct swarm_group *g = group_of(f);

    if (g == NULL)
        return;
    g->faults++;
    sim_program_mistake(g->programs, f->rank, &f->call);
}

static void leave_later(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;
    struct swarm_group *g = group_of(f);

    if (g == NULL || must_wait(f, sim, leave_later))
        return;
    g->faults++;
    sim_program_leave(g->programs, f->rank);
}

static void leave_group(struct swarm_fault *f, struct sim *sim)
{
    leave_later(sim, f);
}

static const struct nemesis nemeses[] = {
    {"cut", 10, false, "both ends of a link see the carrier go", 20 * SECONDS, NULL, cut, mend},
    {"flap", 6, false, "a link is cut and mended up to eight times", 4 * SECONDS, NULL, flap, mend},
    {"stall", 8, false, "nothing passes a link", 12 * SECONDS, NULL, stall, NULL},
    {"deaf", 6, false, "nothing passes a link in one direction", 12 * SECONDS, NULL, deafen, NULL},
    {"half-open", 6, false, "one end of a connection is gone and the other is not told", 0, NULL,
     half_open, NULL},
    {"delay", 6, false, "a link's latency grows", 20 * SECONDS, draw_delay, delay, delay_over},
    {"kill", 10, false, "SIGKILL", 20 * SECONDS, NULL, kill_process, start_again},
    {"terminate", 4, false, "SIGTERM", 20 * SECONDS, NULL, terminate, start_again},
    {"power", 10, false, "a machine loses its power", 20 * SECONDS, NULL, power_off, start_again},
    {"restart", 6, false, "a daemon is started again at once", 0, NULL, restart, NULL},
    {"deciding", 6, false, "the daemon is killed once it has recorded a decision", 0, NULL,
     die_deciding, NULL},
    {"freeze", 8, false, "SIGSTOP, SIGCONT", 12 * SECONDS, NULL, freeze, NULL},
    {"slow disk", 6, false, "each operation of a disk takes long", 20 * SECONDS, draw_slowness,
     slow_disk, slow_disk_over},
    {"full disk", 5, false, "a disk takes nothing more", 20 * SECONDS, NULL, full_disk,
     full_disk_over},
    {"disk error", 8, false, "an operation of a disk fails", 0, NULL, disk_error, NULL},
    {"memory", 8, false, "an allocation fails", 0, draw_allocation, fail_allocation, NULL},
    {"cancel", 6, false, "a client asks that its exchange ends", 0, NULL, cancel, NULL},
    {"vanish", 6, false, "a client goes away", 0, NULL, vanish, NULL},
    {"late", 8, true, "a program calls nothing for a while", 12 * SECONDS, NULL, stop_program,
     go_on_program},
    {"dead", 8, true, "a program dies", 0, NULL, kill_program, NULL},
    {"mistaken", 8, true, "a program calls something else", 0, draw_mistake, mistake, NULL},
    {"leaves", 6, true, "a program closes its group", 0, NULL, leave_group, NULL},
};

#define NEMESES (sizeof nemeses / sizeof nemeses[0])
_Static_assert(NEMESES <= SWARM_NEMESES, "swarm_outcome counts them");

const struct nemesis *swarm_nemesis(unsigned index)
{
    return index < NEMESES ? &nemeses[index] : NULL;
}

unsigned swarm_nemesis_index(const struct nemesis *nemesis)
{
    return (unsigned)(nemesis - nemeses);
}

static uint64_t weight(size_t i, bool programs)
{
    return nemeses[i].programs == programs ? nemeses[i].weight : 0;
}

static const struct nemesis *draw_nemesis(bool programs, struct chance *c)
{
    uint64_t all = 0, chosen;
    size_t i = 0;

    for (size_t k = 0; k < NEMESES; k++)
        all += weight(k, programs);
    for (chosen = chance_below(c, all); chosen >= weight(i, programs); i++)
        chosen -= weight(i, programs);
    return &nemeses[i];
}

/* A third of the faults wait until the node sends a certain frame, to hit moments without duration. */
static void draw_moment(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    static const Peer__Head__KindCase frames[] = {
        PEER__HEAD__KIND_PREPARE,
        PEER__HEAD__KIND_READY,
        PEER__HEAD__KIND_GO,
        PEER__HEAD__KIND_STEPPED_DATA,
        PEER__HEAD__KIND_STREAMED_DATA,
        PEER__HEAD__KIND_DONE,
        PEER__HEAD__KIND_COMMIT,
        PEER__HEAD__KIND_COMMIT,
        PEER__HEAD__KIND_CONFIRM,
        PEER__HEAD__KIND_ABORT,
        PEER__HEAD__KIND_NACK,
        PEER__HEAD__KIND_SIZES,
        PEER__HEAD__KIND_LAYOUT,
        PEER__HEAD__KIND_SCHEDULE_QUERY,
        PEER__HEAD__KIND_SCHEDULE_PART,
    };
    const struct swarm_request *near = &w->request[chance_word(c) % w->requests];
    uint64_t later = chance_magnitude(c, 10 * MICROSECONDS, 10 * SECONDS);
    uint64_t soon = chance_magnitude(c, 1, 20 * MILLISECONDS);

    f->at = near->at + later;
    if (chance_below(c, 3) > 0)
        return;
    f->frame = frames[chance_below(c, sizeof frames / sizeof frames[0])];
    f->nth = 1 + (unsigned)chance_below(c, 6);
    f->at = chance_below(c, 2) == 0 ? 0 : soon;
}

void swarm_draw_fault(struct swarm_fault *f, const struct swarm_world *w, bool programs,
                      struct chance *c)
{
    *f = (struct swarm_fault){.nemesis = draw_nemesis(programs, c)};
    f->rank = (uint32_t)(chance_word(c) % w->torus.nodes);
    unsigned ports = torus_ports(&w->torus), port = (unsigned)(chance_word(c) % ports);
    while (torus_neighbour(&w->torus, f->rank, port) == TORUS_NO_NODE)
        port = (port + 1) % ports;
    f->port = port;
    f->amount = chance_word(c) >> 32;
    f->time =
        f->nemesis->longest > 0 ? chance_magnitude(c, 1 * MILLISECONDS, f->nemesis->longest) : 0;
    if (programs) {
        f->group = (unsigned)chance_below(c, w->groups);
        f->at = w->group[f->group].at + chance_magnitude(c, 10 * MICROSECONDS, 1 * SECONDS);
    } else {
        draw_moment(f, w, c);
    }
    if (f->nemesis->draw != NULL)
        f->nemesis->draw(f, w, c);
}
