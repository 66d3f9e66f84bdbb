/* Groups of programs: their calls, and their invariants. tests/sim/programs.c checks the results of calls.
 *
 * - A group fails only because of a fault, a timeout, or a program that dies, leaves early or makes other calls than
 *   the rest; not because of a program that is late, or leaves after its last call.
 * - All programs that are told of a failure are told the same error, unless links or nodes have failed: see
 *   must_agree() in invariants.c.
 * - If nothing else is slow or broken, all programs are told within a second of a program's death, and no group
 *   hangs; otherwise not for longer than the faults last, and a while.
 * - If programs make different calls, the group fails: at the latest at one node at least, when the programs have gone.
 *   (Until then all their calls may complete, because no member waits for a reduce_scatter that gives it nothing.)
 * - While the torus is connected, a group that is opened works without the links that are down.
 * - A group whose programs shrink it works on the remaining nodes, whenever nodes die. It avoids links that go down
 *   then: it is not shrunk again.
 * - Early frames fit into the memory that the group has reserved, which is within the node's budget; all memory is
 *   released. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/exchange/attempt.h"
#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/group/state.h"
#include "tests/sim/checks.h"
#include "tests/sim/swarm/groups.h"

#define STANDSTILL (20 * SECONDS)

/* --- their life --- */

static void open_group(struct sim *sim, void *context)
{
    struct swarm_group *g = context;

    g->setup.name = g->name;
    g->setup.call = g->call;
    g->programs = sim_programs_new(sim, &g->setup);
    g->play->outcome->groups++;
    swarm_tell(g->play, "group \"%s\" is opened", g->name);
}

void swarm_open_groups(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++) {
        struct swarm_group *g = &w->group[i];
        g->play = play;
        if ((w->no_group & UINT64_C(1) << i) != 0)
            g->over = true;
        else
            sim_at(play->sim, play->began + g->at, open_group, g);
    }
}

bool swarm_groups_over(const struct swarm_play *play)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++)
        if (!w->group[i].over)
            return false;
    return true;
}

/* --- invariants --- */

static bool is_tight(const struct swarm_play *play)
{
    uint64_t memory = play->world->setup.memory, most = memory - memory / 4; /* of one user */

    return most < play->world->groups * group_memory(&play->world->torus) + 192 * 1024;
}

/* Whether a fault explains that the group has failed. */
static bool may_fail(const struct swarm_play *play, const struct swarm_group *g)
{
    uint64_t now = sim_now(play->sim);

    return now >= sim_harmed_at(play->sim) || now >= sim_programs_disturbed_at(g->programs) ||
           g->hurries || is_tight(play);
}

static bool must_agree(const struct swarm_play *play, const struct swarm_group *g,
                       const struct error *e)
{
    if (play->harms == 0)
        return true;
    /* After some silence both ends of a link know of it, each before it hears from the other. */
    return play->harms == 1 && !sim_slowed(play->sim) && g->faults == 0 && !g->hurries &&
           e->code == ERROR_LINK && swarm_stays_connected(&play->world->torus);
}

/* Whether a program has an error, or is over, at a node where something has just happened. */
static bool has_news(const struct swarm_play *play, const struct swarm_group *g)
{
    for (uint64_t left = sim_touched(play->sim); left != 0; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(left);
        if (sim_program_error(g->programs, rank)->code != ERROR_NONE ||
            sim_program_state(g->programs, rank).over)
            return true;
    }
    return false;
}

static void check_errors(struct swarm_play *play, struct swarm_group *g)
{
    const struct error *first = NULL;
    uint32_t first_rank = 0;

    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        const struct error *e = sim_program_error(g->programs, rank);
        if (e->code == ERROR_NONE)
            continue;
        if (!may_fail(play, g))
            sim_violated(play->sim, "no failure without a fault", "group \"%s\", node %u: %s",
                         g->name, rank, e->text);
        if (play->world->find != NULL && strstr(e->text, play->world->find) != NULL)
            sim_violated(play->sim, "found", "group \"%s\", node %u: %s", g->name, rank, e->text);
        if (!sim_program_state(g->programs, rank).open)
            continue; /* a program that waits for others to open the group may have its own error */
        if (first != NULL && strcmp(first->text, e->text) != 0 && must_agree(play, g, e))
            sim_violated(play->sim, "same error", "node %u is told \"%s\", node %u \"%s\"",
                         first_rank, first->text, rank, e->text);
        if (first == NULL) {
            first = e;
            first_rank = rank;
        }
    }
}

static bool is_calm(const struct swarm_play *play)
{
    return play->harms == 0 && sim_harms(play->sim) == 0 && !sim_slowed(play->sim) &&
           play->delays == 0;
}

static void check_progress(struct swarm_play *play, struct swarm_group *g)
{
    uint64_t now = sim_now(play->sim), moved = sim_programs_moved_at(g->programs);
    bool open = true;
    uint64_t limit = STANDSTILL + g->setup.pause + play->delays;

    if (now < moved + 1 * SECONDS)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        open = open && sim_program_state(g->programs, rank).open;
    limit += open ? 0 : g->setup.timeout;
    if (play->world->rated) /* its bytes wait behind those of exchanges that load slow links */
        limit += SWARM_LOAD_TIMEOUT;
    if (now <= moved + limit)
        return;
    char text[200] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < play->world->torus.nodes && used < sizeof text; rank++) {
        struct sim_program_state p = sim_program_state(g->programs, rank);
        used += (size_t)snprintf(text + used, sizeof text - used, " %u/%u%s", p.completed, p.calls,
                                 p.member ? "" : "-");
    }
    sim_violated(play->sim, "standstill", "group \"%s\"%s: nothing has happened for %.1f s:%s",
                 g->name, sim_programs_mistaken(g->programs) ? ", mistaken" : "",
                 (double)(now - moved) / 1e9, text);
}

/* All programs hear soon that a program has died, or has left running calls. */
static void check_told_soon(struct swarm_play *play, struct swarm_group *g)
{
    uint64_t transfer = play->world->setup.rate > 0 ? 1 * SECONDS : 0;
    uint64_t due = sim_programs_failed_at(g->programs);

    if (due == UINT64_MAX || !is_calm(play) ||
        sim_now(play->sim) <= due + 1 * SECONDS + 40 * play->world->setup.latency + transfer)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        if (sim_program_state(g->programs, rank).member)
            sim_violated(play->sim, "told soon",
                         "group \"%s\": the program at node %u has not been told", g->name, rank);
}

static void check_over(struct swarm_play *play, struct swarm_group *g)
{
    uint32_t nodes = play->world->torus.nodes, done;

    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!sim_program_state(g->programs, rank).over)
            return;
    g->over = true;
    done = sim_programs_done(g->programs);
    for (uint32_t rank = 0; rank < nodes; rank++)
        play->outcome->calls += sim_program_completed(g->programs, rank);
    if (done == nodes)
        play->outcome->groups_done++;
    else
        play->outcome->groups_failed++;
    swarm_tell(play, "group \"%s\" is over: %u of %u programs have made all calls", g->name, done,
               nodes);
    g->passed = done == nodes && sim_programs_mistaken(g->programs);
    if (done < nodes && !may_fail(play, g))
        sim_violated(play->sim, "no failure without a fault", "group \"%s\" is over too early",
                     g->name);
}

/* The id of a group, while its program is there. */
static void note_id(struct swarm_play *play, struct swarm_group *g)
{
    if ((sim_touched(play->sim) & 1) == 0 || !sim_alive(play->sim, 0))
        return;
    for (const struct group *use = sim_groups(play->sim, 0)->groups; use != NULL; use = use->next)
        if (strcmp(use->name, g->name) == 0 && use->exchange != NULL)
            (void)strcpy(g->id, exchange_id(use->exchange));
}

/* Checks at the end, when no events are left. */
void swarm_check_mistake(struct swarm_play *play, const struct swarm_group *g)
{
    if (!g->passed)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        const struct attempt *x = sim_alive(play->sim, rank)
                                      ? attempt_find_text(sim_exchanges(play->sim, rank), g->id)
                                      : NULL;
        if (x == NULL || x->state == EXCHANGE_FAILED)
            return; /* it may have been forgotten */
    }
    sim_violated(play->sim, "mistakes", "group \"%s\": nobody has noticed the mistake", g->name);
}

/* Returns what the session of a group must have reserved. */
static uint64_t memory_of(const struct session *s, const struct torus *whole)
{
    if (!s->grows)
        return group_memory(whole);
    uint64_t bytes = group_first_memory(whole);
    for (const struct part *p = s->part; p != NULL; p = p->next) {
        bytes += part_rounds_memory(p, p->level) - part_rounds_memory(p, GROUP_ROUNDS_LAST);
        bytes += p->has_memory ? part_calls_memory(p) : 0;
    }
    return bytes;
}

static void check_memory(struct swarm_play *play)
{
    const uint64_t most = group_memory(&play->world->torus);

    for (uint64_t left = sim_touched(play->sim); left != 0; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(left);
        uint64_t reserved = 0;
        if (!sim_alive(play->sim, rank))
            continue;
        for (const struct group *g = sim_groups(play->sim, rank)->groups; g != NULL; g = g->next) {
            const struct part *p = g->session != NULL ? g->session->part : NULL;
            uint64_t early = 0;
            reserved += p != NULL ? memory_of(g->session, &play->world->torus) : 0;
            for (; p != NULL; p = p->next)
                early += p->early_bytes;
            if (early > most)
                sim_violated(play->sim, "bounds", "group \"%s\" keeps %" PRIu64 " bytes at node %u",
                             g->name, early, rank);
        }
        if (reserved > exchanges_reserved(sim_exchanges(play->sim, rank)))
            sim_violated(play->sim, "bounds", "groups use memory that node %u has not reserved",
                         rank);
    }
}

void swarm_check_groups(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++) {
        struct swarm_group *g = &w->group[i];
        if (g->programs == NULL || g->over)
            continue;
        bool news = has_news(play, g);
        note_id(play, g);
        if (news)
            check_errors(play, g);
        check_told_soon(play, g);
        check_progress(play, g);
        if (news)
            check_over(play, g);
    }
    if (w->groups > 0)
        check_memory(play);
}
