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

/* --- rates --- */

#define SLOWEST 20u /* times */
#define BOTH_WAYS (1u << 16)
#define IS_SAID (1u << 17)
#define UNLIMITED UINT64_C(10000000) /* bytes per second, in worlds without a rate */

static void draw_rate(struct swarm_fault *f, const struct swarm_world *w, struct chance *c)
{
    f->amount = chance_magnitude(c, 2, SLOWEST);
    f->amount |= chance_below(c, 2) == 0 ? BOTH_WAYS : 0;
    f->amount |= chance_below(c, 2) == 0 ? IS_SAID : 0;
}

static uint64_t slow_rate(const struct swarm_fault *f)
{
    const uint64_t usual = f->play->world->setup.rate;

    return (usual > 0 ? usual : UNLIMITED) / (f->amount & (BOTH_WAYS - 1));
}

/* Calls `set` for the end of the link that sends slowly, or both. */
static void at_ends(const struct swarm_fault *f, struct sim *sim,
                    void (*set)(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate))
{
    const struct torus *t = sim_torus(sim);
    const uint64_t rate = slow_rate(f);

    set(sim, f->rank, f->port, rate);
    if ((f->amount & BOTH_WAYS) != 0)
        set(sim, torus_neighbour(t, f->rank, f->port), torus_port_opposite(t, f->port), rate);
}

static void slow_link(struct swarm_fault *f, struct sim *sim)
{
    at_ends(f, sim, sim_set_rate_from);
}

static void set_usual(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    sim_set_rate_from(sim, rank, port, sim_usual_rate(sim, rank, port));
}

static void slow_link_over(struct swarm_fault *f, struct sim *sim)
{
    at_ends(f, sim, set_usual);
}

static void say_rate(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;

    if (!must_wait(f, sim, say_rate))
        sim_set_nominal(sim, f->rank, f->port, sim_usual_rate(sim, f->rank, f->port));
}

static void other_rate(struct swarm_fault *f, struct sim *sim)
{
    at_ends(f, sim, sim_set_usual_rate);
    if ((f->amount & IS_SAID) != 0 && f->play->world->setup.rate > 0)
        say_rate(sim, f);
}

static void older(struct swarm_fault *f, struct sim *sim)
{
    sim_kill(sim, f->rank, SIM_CRASH);
    sim_set_minors_back(sim, f->rank, 1);
    sim_restart(sim, f->rank);
}

static void upgrade(struct swarm_fault *f, struct sim *sim)
{
    sim_kill(sim, f->rank, SIM_CRASH);
    sim_set_minors_back(sim, f->rank, 0);
    sim_restart(sim, f->rank);
}

static const struct nemesis nemeses[] = {
    {"cut", 10, NEMESIS_ANY, "both ends of a link see the carrier go", 20 * SECONDS, NULL, cut,
     mend},
    {"flap", 6, NEMESIS_ANY, "a link is cut and mended up to eight times", 4 * SECONDS, NULL, flap,
     mend},
    {"stall", 8, NEMESIS_ANY, "nothing passes a link", 12 * SECONDS, NULL, stall, NULL},
    {"deaf", 6, NEMESIS_ANY, "nothing passes a link in one direction", 12 * SECONDS, NULL, deafen,
     NULL},
    {"half-open", 6, NEMESIS_ANY, "one end of a connection is gone and the other is not told", 0,
     NULL, half_open, NULL},
    {"delay", 6, NEMESIS_ANY, "a link's latency grows", 20 * SECONDS, draw_delay, delay,
     delay_over},
    {"kill", 10, NEMESIS_ANY, "SIGKILL", 20 * SECONDS, NULL, kill_process, start_again},
    {"terminate", 4, NEMESIS_ANY, "SIGTERM", 20 * SECONDS, NULL, terminate, start_again},
    {"power", 10, NEMESIS_ANY, "a machine loses its power", 20 * SECONDS, NULL, power_off,
     start_again},
    {"restart", 6, NEMESIS_ANY, "a daemon is started again at once", 0, NULL, restart, NULL},
    {"deciding", 6, NEMESIS_ANY, "the daemon is killed once it has recorded a decision", 0, NULL,
     die_deciding, NULL},
    {"freeze", 8, NEMESIS_ANY, "SIGSTOP, SIGCONT", 12 * SECONDS, NULL, freeze, NULL},
    {"slow disk", 6, NEMESIS_ANY, "each operation of a disk takes long", 20 * SECONDS,
     draw_slowness, slow_disk, slow_disk_over},
    {"full disk", 5, NEMESIS_ANY, "a disk takes nothing more", 20 * SECONDS, NULL, full_disk,
     full_disk_over},
    {"disk error", 8, NEMESIS_ANY, "an operation of a disk fails", 0, NULL, disk_error, NULL},
    {"memory", 8, NEMESIS_ANY, "an allocation fails", 0, draw_allocation, fail_allocation, NULL},
    {"cancel", 6, NEMESIS_ANY, "a client asks that its exchange ends", 0, NULL, cancel, NULL},
    {"vanish", 6, NEMESIS_ANY, "a client goes away", 0, NULL, vanish, NULL},
    {"late", 8, NEMESIS_PROGRAMS, "a program calls nothing for a while", 12 * SECONDS, NULL,
     stop_program, go_on_program},
    {"dead", 8, NEMESIS_PROGRAMS, "a program dies", 0, NULL, kill_program, NULL},
    {"mistaken", 8, NEMESIS_PROGRAMS, "a program calls something else", 0, draw_mistake, mistake,
     NULL},
    {"leaves", 6, NEMESIS_PROGRAMS, "a program closes its group", 0, NULL, leave_group, NULL},
    {"slow link", 10, NEMESIS_RATES, "a link carries less for a while", 30 * SECONDS, draw_rate,
     slow_link, slow_link_over},
    {"other rate", 4, NEMESIS_RATES, "a link carries less from now on, and a setting may say so", 0,
     draw_rate, other_rate, NULL},
    {"older", 1, NEMESIS_RATES, "a node has an older version for a while", 20 * SECONDS, NULL,
     older, upgrade},
};

uint64_t swarm_fault_rate(const struct swarm_fault *f, uint32_t rank, unsigned port)
{
    const struct torus *t = &f->play->world->torus;
    const bool here = f->rank == rank && f->port == port;
    const bool there =
        torus_neighbour(t, f->rank, f->port) == rank && torus_port_opposite(t, f->port) == port;

    if (f->nemesis->begin != slow_link && f->nemesis->begin != other_rate)
        return 0;
    return here || (there && (f->amount & BOTH_WAYS) != 0) ? slow_rate(f) : 0;
}

bool swarm_fault_stalls(const struct swarm_fault *f)
{
    void (*const begin)(struct swarm_fault * fault, struct sim * sim) = f->nemesis->begin;

    return begin == stall || begin == deafen || begin == delay || begin == cut || begin == flap;
}

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

static uint64_t weight(size_t i, enum nemesis_kind kind)
{
    return nemeses[i].kind == kind ? nemeses[i].weight : 0;
}

static const struct nemesis *draw_nemesis(enum nemesis_kind kind, struct chance *c)
{
    uint64_t all = 0, chosen;
    size_t i = 0;

    for (size_t k = 0; k < NEMESES; k++)
        all += weight(k, kind);
    for (chosen = chance_below(c, all); chosen >= weight(i, kind); i++)
        chosen -= weight(i, kind);
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

void swarm_draw_fault(struct swarm_fault *f, const struct swarm_world *w, enum nemesis_kind kind,
                      struct chance *c)
{
    *f = (struct swarm_fault){.nemesis = draw_nemesis(kind, c)};
    f->rank = (uint32_t)(chance_word(c) % w->torus.nodes);
    unsigned ports = torus_ports(&w->torus), port = (unsigned)(chance_word(c) % ports);
    while (torus_neighbour(&w->torus, f->rank, port) == TORUS_NO_NODE)
        port = (port + 1) % ports;
    f->port = port;
    f->amount = chance_word(c) >> 32;
    f->time =
        f->nemesis->longest > 0 ? chance_magnitude(c, 1 * MILLISECONDS, f->nemesis->longest) : 0;
    if (kind == NEMESIS_PROGRAMS) {
        f->group = (unsigned)chance_below(c, w->groups);
        f->at = w->group[f->group].at + chance_magnitude(c, 10 * MICROSECONDS, 1 * SECONDS);
    } else {
        draw_moment(f, w, c);
    }
    if (f->nemesis->draw != NULL)
        f->nemesis->draw(f, w, c);
}
