/* Copies of trees: which worlds have some, and their invariants. tests/sim/copies compares the targets.
 *
 * - A copy ends in time.
 * - It fails, as a whole or at a node, only because of a fault, a short timeout, a source that changes, or because there
 *   is no memory for it now.
 * - When everything works again nothing is left of it, and a new copy succeeds. */
#include "tests/sim/swarm/copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/group/state.h"
#include "tests/sim/internal.h"

#define FILES 24u
#define GRACE (15 * SECONDS)
#define REST_TIME (120 * SECONDS)

void swarm_draw_copies(struct swarm_world *w)
{
    struct chance c = chance_stream(w->seed, STREAM_COPIES, 0);
    unsigned copies = chance_below(&c, 3) > 0 ? 0 : (unsigned)chance_magnitude(&c, 1, SWARM_COPIES);
    unsigned faults = chance_below(&c, 2) == 0 ? 0 : (unsigned)chance_magnitude(&c, 1, 4);

    bool tight = chance_below(&c, 10) == 0;
    if (!tight && copies > 0) /* of several users; a quarter is left */
        w->setup.memory += (copies + 1) * group_memory(&w->torus) * 2;
    for (unsigned i = 0; i < copies; i++) {
        struct chance own = chance_stream(w->seed, STREAM_COPIES, 1 + i);
        struct swarm_copy *copy = &w->copy[w->copies++];
        copy->at = chance_magnitude(&own, 1, 2 * SECONDS);
        copy->asked_node = (uint32_t)(chance_word(&own) % w->torus.nodes);
        uint64_t leaves = chance_magnitude(&own, 1 * MILLISECONDS, 5 * SECONDS);
        uint64_t changes = chance_magnitude(&own, 1 * MILLISECONDS, 5 * SECONDS);
        copy->leaves = chance_below(&own, 6) == 0 ? leaves : 0;
        copy->changes = chance_below(&own, 6) == 0 ? changes : 0;
        uint64_t shortest = chance_magnitude(&own, 1 * MILLISECONDS, 2 * SECONDS);
        uint64_t longest = chance_magnitude(&own, 30 * SECONDS, 60 * SECONDS);
        copy->hurries = chance_below(&own, 8) == 0;
        copy->timeout = copy->hurries ? shortest : longest;
    }
    for (unsigned i = 0; i < faults && copies > 0 && w->faults < SWARM_FAULTS; i++) {
        struct chance own = chance_stream(w->seed, STREAM_COPY_FAULTS, i);
        struct swarm_fault *f = &w->fault[w->faults++];
        swarm_draw_fault(f, w, NEMESIS_ANY, &own);
        f->frame = 0;
        f->at = w->copy[chance_below(&own, copies)].at +
                chance_magnitude(&own, 10 * MICROSECONDS, 2 * SECONDS);
    }
}

void swarm_print_copies(const struct swarm_world *w)
{
    for (unsigned i = 0; i < w->copies; i++) {
        const struct swarm_copy *copy = &w->copy[i];
        if ((w->no_copy & UINT64_C(1) << i) != 0)
            continue;
        (void)fprintf(stderr,
                      "  copy %u: +%.6f s, node %u, leaves +%.6f s, changes +%.6f s, timeout %.3f "
                      "s%s\n",
                      i, (double)copy->at / 1e9, copy->asked_node, (double)copy->leaves / 1e9,
                      (double)copy->changes / 1e9, (double)copy->timeout / 1e9,
                      copy->hurries ? ", hurries" : "");
    }
}

static unsigned number_of(const struct swarm_copy *copy)
{
    return (unsigned)(copy - copy->play->world->copy);
}

static void leave(struct sim *sim, void *context)
{
    struct swarm_copy *copy = context;

    if (copy->asked == NULL || copy->asked->copy == NULL || sim_frozen(sim, copy->asked_node))
        return;
    swarm_tell(copy->play, "the client of copy %u leaves", number_of(copy));
    sim_copy_cancel(copy->asked);
}

static void change(struct sim *sim, void *context)
{
    struct swarm_copy *copy = context;
    struct chance c =
        chance_stream(copy->play->world->seed, STREAM_COPY_TREES, 100 + number_of(copy));

    if (copy->request == NULL || copy->over)
        return;
    swarm_tell(copy->play, "sources of copy %u change", number_of(copy));
    copy->changed = true;
    sim_copy_change_sources(sim, copy->request, &c);
}

static void start(struct sim *sim, void *context)
{
    struct swarm_copy *copy = context;
    const struct swarm_world *w = copy->play->world;
    struct chance c = chance_stream(w->seed, STREAM_COPY_TREES, number_of(copy));

    if (!sim_alive(sim, copy->asked_node)) {
        copy->over = true;
        return;
    }
    if (sim_frozen(sim, copy->asked_node)) {
        sim_at(sim, sim_now(sim) + 10 * MILLISECONDS, start, copy);
        return;
    }
    /* Not more than the links can carry in a moderate time. */
    uint64_t most = w->setup.rate > 0 && w->setup.rate < 20000000 ? w->setup.rate / 1000 : 20000;
    copy->request = sim_copy_draw(sim, number_of(copy), FILES, most, &c);
    copy->request->timeout_ns = copy->timeout;
    copy->due = sim_now(sim) + copy->timeout + GRACE;
    copy->asked = sim_copy_start(sim, copy->asked_node, copy->request);
    copy->play->outcome->copies++;
    swarm_tell(copy->play, "node %u is asked for copy %u, of kind %u, node %u%s%s%s%s%s%s%s",
               copy->asked_node, number_of(copy), (unsigned)copy->request->kind,
               copy->request->node, copy->request->nodes_count > 0 ? ", some nodes" : "",
               copy->request->dry_run ? ", dry run" : "", copy->request->verify ? ", verify" : "",
               copy->request->as_it_comes ? ", as it comes" : "",
               copy->request->delete ? ", delete" : "", copy->request->shrink ? ", shrinks" : "",
               copy->request->wait ? ", waits" : "");
    if (copy->leaves > 0)
        sim_at(sim, sim_now(sim) + copy->leaves, leave, copy);
    if (copy->changes > 0)
        sim_at(sim, sim_now(sim) + copy->changes, change, copy);
}

void swarm_start_copies(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->copies; i++) {
        struct swarm_copy *copy = &w->copy[i];
        copy->play = play;
        if ((w->no_copy & UINT64_C(1) << i) != 0)
            copy->over = true;
        else
            sim_at(play->sim, play->began + copy->at, start, copy);
    }
}

bool swarm_copies_over(const struct swarm_play *play)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->copies; i++)
        if (!w->copy[i].over)
            return false;
    return true;
}

/* Whether the failure has a cause. */
static bool may_fail(const struct swarm_play *play, const struct swarm_copy *copy,
                     const struct error *e)
{
    return copy->hurries || copy->changed || sim_now(play->sim) >= sim_harmed_at(play->sim) ||
           (e->code == ERROR_TIMEOUT && sim_slowed(play->sim)) || e->code == ERROR_BUSY ||
           e->code == ERROR_MEMORY;
}

static void check_error(const struct swarm_play *play, const struct swarm_copy *copy,
                        const struct error *e)
{
    if (e->code == ERROR_NONE)
        return;
    if (play->world->find != NULL && strstr(e->text, play->world->find) != NULL)
        sim_violated(play->sim, "found", "copy %u: %s", number_of(copy), e->text);
    if (!may_fail(play, copy, e))
        sim_violated(play->sim, "no failure without a fault", "copy %u: %s", number_of(copy),
                     e->text);
}

static void check_ended(struct swarm_play *play, struct swarm_copy *copy)
{
    const struct sim_copy *c = copy->asked;
    bool failed = c->error.code != ERROR_NONE;

    copy->over = true;
    swarm_tell(play, "copy %u %s: %s", number_of(copy), c->left ? "has no client" : "has ended",
               c->error.text);
    if (c->left)
        return;
    check_error(play, copy, &c->error);
    for (uint32_t i = 0; i < c->result.outcomes; i++) {
        const struct copy_outcome *o = &c->result.outcome[i];
        check_error(play, copy, &o->error);
        failed |= o->error.code != ERROR_NONE;
        if (o->error.code != ERROR_NONE)
            swarm_tell(play, "copy %u has failed at node %u: %s", number_of(copy), o->node,
                       o->error.text);
    }
    if (failed)
        play->outcome->copies_failed++;
    else
        play->outcome->copies_done++;
    play->outcome->copies_retried += !failed && c->result.attempts > 1;
}

void swarm_check_copies(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->copies; i++) {
        struct swarm_copy *copy = &w->copy[i];
        if (copy->over || copy->asked == NULL)
            continue;
        if (copy->asked->ended || copy->asked->left)
            check_ended(play, copy);
        else if (sim_now(play->sim) > copy->due + play->delays)
            sim_violated(play->sim, "deadline", "copy %u does not end", i);
    }
}

/* Whether there is too little memory for the group of a copy. */
static bool is_tight(const struct swarm_play *play)
{
    return play->world->setup.memory / 2 < group_memory(&play->world->torus);
}

void swarm_end_copies(struct swarm_play *play)
{
    struct swarm_world *w = play->world;
    unsigned asked = 0;

    for (unsigned i = 0; i < w->copies; i++) {
        asked += w->copy[i].asked != NULL;
        if (w->copy[i].request != NULL)
            sim_copy_draw_free(w->copy[i].request);
        w->copy[i].request = NULL;
    }
    if (asked == 0 || sim_has_lied(play->sim) || is_tight(play))
        return;
    sim_copies_check(play->sim);
    uint32_t rank = (uint32_t)(w->seed % w->torus.nodes);
    struct chance c = chance_stream(w->seed, STREAM_COPY_TREES, 1000);
    sim_tree_draw(&play->sim->node[rank].trees.tree, "/last", FILES, 1000, &c);
    struct sim_copy *last = sim_copy_to_all(play->sim, rank, "/last", "/last");
    sim_copy_run(last, REST_TIME);
    sim_copy_must_succeed(last);
    sim_copies_check(play->sim);
}
