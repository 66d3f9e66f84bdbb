/* One world, from its start to its end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/checks.h"
#include "tests/sim/memory.h"
#include "tests/sim/swarm/copies.h"

#define ASK_AGAIN (10 * MILLISECONDS) /* whether a stopped process takes a request */
/* Time after a timeout until all nodes have heard of it, and nothing is left of the exchange. */
#define GRACE (15 * SECONDS)
#define LONGEST (400 * SECONDS)

void swarm_tell(const struct swarm_play *play, const char *format, ...)
{
    va_list ap;

    if (!play->tell)
        return;
    (void)fprintf(stderr, "%12.6f  ", (double)(sim_now(play->sim) - play->began) / 1e9);
    va_start(ap, format);
    (void)vfprintf(stderr, format, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
}

static void on_violated(const struct sim *sim, const char *invariant, const char *text)
{
    struct swarm_play *play = sim_context(sim);
    struct swarm_outcome *o = play->outcome;

    o->end = SWARM_VIOLATED;
    o->at = sim_now(sim) - play->began;
    o->trace = sim_trace(sim);
    (void)snprintf(o->invariant, sizeof o->invariant, "%s", invariant);
    (void)snprintf(o->text, sizeof o->text, "%s", text);
    swarm_tell(play, "VIOLATED: %s: %s", invariant, text);
    _exit(1);
}

/* --- requests --- */

static void ask(struct sim *sim, void *context)
{
    struct swarm_request *r = context;
    struct swarm_play *play = r->play;

    if (!sim_alive(sim, r->root)) {
        r->seen_ended = r->left = true;
        swarm_ask_again(play, r);
        return;
    }
    if (sim_frozen(sim, r->root)) {
        sim_at(sim, sim_now(sim) + ASK_AGAIN, ask, r);
        return;
    }
    r->asked_at = sim_now(sim);
    r->due = r->asked_at + r->spec.timeout_ns + GRACE;
    r->asked = r->imported ? sim_exchange_imported(sim, r->root, &r->spec)
                           : sim_exchange(sim, r->root, &r->spec);
    play->asked |= UINT64_C(1) << (r - play->world->request);
    play->outcome->asked++;
    swarm_tell(play, "node %u is asked for request %d: %s", r->root,
               (int)(r - play->world->request),
               r->asked->id[0] != '\0' ? r->asked->id : r->asked->error.text);
}

void swarm_ask_again(struct swarm_play *play, const struct swarm_request *r)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->requests; i++)
        if (w->request[i].after == r && (w->no_request & UINT64_C(1) << i) == 0)
            sim_at(play->sim, sim_now(play->sim) + w->request[i].at, ask, &w->request[i]);
}

/* --- faults --- */

static void end_fault(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;

    swarm_tell(f->play, "%s of node %u is over", f->nemesis->name, f->rank);
    f->over = true;
    f->changed_at = sim_now(sim);
    if (f->nemesis->end != NULL)
        f->nemesis->end(f, sim);
}

static void begin_fault(struct sim *sim, void *context)
{
    struct swarm_fault *f = context;

    if (f->begun || f->play->healing)
        return;
    f->begun = true;
    f->changed_at = sim_now(sim);
    f->play->outcome->begun[swarm_nemesis_index(f->nemesis)]++;
    f->play->delays += f->time;
    swarm_tell(f->play, "%s of node %u port %u begins", f->nemesis->name, f->rank, f->port);
    unsigned harms = sim_harms(sim);
    f->nemesis->begin(f, sim);
    f->play->harms += sim_harms(sim) != harms;
    if (f->nemesis->longest > 0)
        sim_at(sim, sim_now(sim) + f->time, end_fault, f);
    else
        f->over = true;
}

static bool is_left_out(uint64_t mask, unsigned index)
{
    return (mask & UINT64_C(1) << index) != 0;
}

static void on_frame(struct sim *sim, uint32_t rank, Peer__Head__KindCase kind)
{
    struct swarm_play *play = sim_context(sim);
    struct swarm_world *w = play->world;

    if (play->began == 0 || rank >= 64 || kind >= 32)
        return;
    uint64_t count = ++play->frames[rank][kind];
    for (unsigned i = 0; i < w->faults; i++) {
        struct swarm_fault *f = &w->fault[i];
        if (f->frame == kind && f->rank == rank && f->nth == count && !is_left_out(w->no_fault, i))
            sim_at(sim, sim_now(sim) + f->at, begin_fault, f);
    }
}

/* --- the course of it --- */

static bool after_event(struct sim *sim, void *context)
{
    struct swarm_play *play = context;

    swarm_check_event(play);
    swarm_check_groups(play);
    swarm_check_copies(play);
    if (sim_now(sim) >= play->next_dear) {
        swarm_check_dear(play);
        play->next_dear = sim_now(sim) + 1 * SECONDS;
    }
    return false;
}

/* Whether everything planned has happened; faults that wait for a frame need not happen. */
static bool is_over(struct sim *sim, void *context)
{
    const struct swarm_play *play = context;
    const struct swarm_world *w = play->world;

    if (!swarm_groups_over(play) || !swarm_copies_over(play))
        return false;
    for (unsigned i = 0; i < w->requests; i++)
        if (!w->request[i].seen_ended && !is_left_out(w->no_request, i))
            return false;
    for (unsigned i = 0; i < w->faults; i++) {
        const struct swarm_fault *f = &w->fault[i];
        if (!f->over && (f->begun || f->frame == 0) && !is_left_out(w->no_fault, i))
            return false;
    }
    return true;
}

static void schedule(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->requests; i++) {
        struct swarm_request *r = &w->request[i];
        r->play = play;
        if (is_left_out(w->no_request, i))
            r->left = true;
        else if (r->after == NULL || is_left_out(w->no_request, (unsigned)(r->after - w->request)))
            sim_at(play->sim, play->began + r->at, ask, r);
    }
    for (unsigned i = 0; i < w->faults; i++) {
        struct swarm_fault *f = &w->fault[i];
        f->play = play;
        if (f->frame == 0 && !is_left_out(w->no_fault, i))
            sim_at(play->sim, play->began + f->at, begin_fault, f);
    }
    swarm_open_groups(play);
    swarm_start_copies(play);
}

/* Graphs and products keep what this computes, for the network and its parts, until the process ends. */
static void compute_what_is_kept(const struct torus *t)
{
    for (uint32_t mask = 1; mask < 1u << t->dims; mask++) {
        struct torus part = {.nodes = 1};
        for (unsigned dim = 0; dim < t->dims; dim++)
            if ((mask & 1u << dim) != 0)
                (void)torus_append(&part, t->size[dim], t->wrap[dim], t->graph[dim]);
        for (size_t i = 0; i < algorithm_count(); i++)
            (void)algorithm_accepts(algorithm_at(i), &part, NULL);
    }
}

void swarm_play(struct swarm_world *w, struct swarm_outcome *outcome, bool tell)
{
    struct swarm_play play = {.world = w, .outcome = outcome, .tell = tell};

    compute_what_is_kept(&w->torus);
    const uint64_t used = heap_used();

    w->setup.violated = on_violated;
    w->setup.on_frame = on_frame;
    w->setup.context = &play;
    play.sim = sim_new(&w->setup);
    sim_run_until_whole(play.sim);
    play.began = sim_now(play.sim);
    schedule(&play);
    sim_watch(play.sim, after_event, &play);
    if (!sim_run(play.sim, LONGEST, is_over, &play))
        sim_violated(play.sim, "deadline", "the world does not end");
    swarm_check_end(&play);
    outcome->at = sim_now(play.sim) - play.began;
    outcome->trace = sim_trace(play.sim);
    outcome->frames = sim_frames(play.sim);
    sim_free(play.sim);
    swarm_forget_routes();
    outcome->end = SWARM_HELD;
    if (heap_used() == used)
        return;
    outcome->end = SWARM_VIOLATED;
    (void)snprintf(outcome->invariant, sizeof outcome->invariant, "memory");
    (void)snprintf(outcome->text, sizeof outcome->text,
                   "%" PRId64 " bytes are still allocated at the end",
                   (int64_t)(heap_used() - used));
}
