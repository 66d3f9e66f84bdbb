/* Groups of programs that go on without the nodes that go down: the group fails, its programs shrink it,
 * and every operation gives what it must among those that are left, however often that happens, and
 * whatever else goes down before the new group is open.
 *
 *     test_sim_group_shrink [FIRST_SEED COUNT]     more seeds than ctest runs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/group/internal.h"
#include "daemon/schedule/damage.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/sim/programs.h"

#define CALLS_MOST 40u

static uint64_t first_seed, seeds = 25 / SIM_SHARE;

static const char *const tori[] = {"4x4", "3x3", "2x3", "5",   "4mx3",  "2x2x2",
                                   "3x5", "2x2", "3",   "2x4", "3mx3m", "7"};

struct play {
    uint64_t seed;
    struct sim *sim;
    struct damage down; /* nodes that are dead, links that are cut */
    struct sim_call call[CALLS_MOST];
    struct sim_programs_setup setup;
    struct sim_programs *programs;
};

static uint32_t any(struct play *p, uint32_t below)
{
    return (uint32_t)chance_below(sim_chance(p->sim), below);
}

static bool is_dead(const struct play *p, uint32_t rank)
{
    return p->down.gone[rank];
}

static uint32_t living(const struct play *p)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        n += !is_dead(p, rank);
    return n;
}

static bool are_open(struct sim *sim, void *context)
{
    const struct play *p = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!is_dead(p, rank) && !sim_program_state(p->programs, rank).open)
            return false;
    return true;
}

/* What a node shows of its group, open or not. */
static void look_at(struct sim *sim, uint32_t rank, bool open)
{
    struct group_info info[2] = {{.open = false}};
    size_t groups = groups_list(sim_groups(sim, rank), info, 2);

    if (groups > 1 || (open && (groups == 0 || !info[0].open)) ||
        (groups == 1 && info[0].open && info[0].missing[0] != '\0'))
        sim_violated(sim, "status", "node %u: %zu groups, %s", rank, groups, info[0].missing);
}

/* All that live have made all calls in a group of their own. */
static bool have_all(struct sim *sim, void *context)
{
    const struct play *p = context;
    const uint32_t nodes = sim_torus(sim)->nodes;

    for (uint32_t rank = 0; rank < nodes; rank++)
        if (sim_alive(sim, rank))
            look_at(sim, rank, false);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (is_dead(p, rank))
            continue;
        if (sim_program_completed(p->programs, rank) < p->setup.calls)
            return false;
        for (uint32_t node = 0; node < nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != is_dead(p, node))
                return false;
    }
    return true;
}

static void check(struct play *p, bool good, const char *what)
{
    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        if (!is_dead(p, rank) && sim_program_error(p->programs, rank)->code != ERROR_NONE)
            sim_violated(p->sim, "shrink", "%s: node %u: %s", what, rank,
                         sim_program_error(p->programs, rank)->text);
    if (!good)
        sim_violated(p->sim, "shrink", "%s", what);
}

static void must_complete(struct play *p, const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, have_all, p);

    check(p, good, what);
}

/* Programs on all nodes, in a group that is open. */
static struct play begin(uint64_t seed, uint64_t pause)
{
    struct play p = {.seed = seed};
    const struct sim_setup setup = {.dims = tori[seed % (sizeof tori / sizeof tori[0])],
                                    .seed = seed,
                                    .latency = 50 * MICROSECONDS,
                                    .rate = 125000000,
                                    .chop = true};

    p.sim = sim_new(&setup);
    sim_run_until_whole(p.sim);
    assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
    p.setup = (struct sim_programs_setup){.name = "g",
                                          .calls = CALLS_MOST,
                                          .seed = seed,
                                          .depth = 1 + any(&p, 8),
                                          .pause = pause,
                                          .unchecked = any(&p, 4) == 0,
                                          .lazy = any(&p, 3) == 0,
                                          .shrinks = true,
                                          .stay = true};
    for (uint32_t i = 0; i < CALLS_MOST; i++)
        p.call[i] = sim_any_call(sim_chance(p.sim), sim_torus(p.sim));
    return p;
}

static void open_all(struct play *p)
{
    p->setup.call = p->call;
    p->programs = sim_programs_new(p->sim, &p->setup);
    check(p, sim_run(p->sim, 60 * SECONDS, are_open, p), "opening");
}

static void end(struct play *p)
{
    sim_programs_free(p->programs);
    assert_true(sim_run(p->sim, 60 * SECONDS, sim_is_quiet, NULL));
    damage_free(&p->down);
    sim_free(p->sim);
}

/* A node dies, often the first that is left, without which the others can do. Returns whether there is
 * one. */
static bool kill_one(struct play *p)
{
    const uint32_t nodes = sim_torus(p->sim)->nodes;
    uint32_t first = 0;

    while (is_dead(p, first))
        first++;
    for (unsigned tries = 0; tries < 20; tries++) {
        uint32_t victim = any(p, 2) == 0 ? first : any(p, nodes);
        if (!check_may_die(&p->down, victim))
            continue;
        damage_add_node(&p->down, victim);
        sim_kill(p->sim, victim, (enum sim_death)any(p, 3));
        return true;
    }
    return false;
}

/* A link whose loss leaves them together. */
static void cut_one(struct play *p)
{
    const struct torus *t = sim_torus(p->sim);

    for (unsigned tries = 0; tries < 50; tries++) {
        uint32_t rank = any(p, t->nodes);
        unsigned port = any(p, torus_ports(t));
        struct damage d;
        if (!damage_has_link(&p->down, rank, port))
            continue;
        assert_int_equal(damage_copy(&d, &p->down, NULL), 0);
        damage_add_link(&d, rank, port);
        bool together = damage_is_connected(&d, NULL) == 0;
        damage_free(&d);
        if (!together)
            continue;
        damage_add_link(&p->down, rank, port);
        sim_set_wire(p->sim, rank, port, SIM_WIRE_CUT);
        return;
    }
}

/* In the middle of calls, once or several times, and links in between. */
static void those_that_are_left_go_on(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct play p = begin(seed, seed % 2 * 5 * MILLISECONDS);
        open_all(&p);
        for (uint32_t left = 1 + any(&p, 3); left > 0; left--) {
            sim_pass(p.sim, any(&p, 30) * MILLISECONDS);
            if (any(&p, 4) == 0)
                cut_one(&p);
            else
                (void)kill_one(&p);
            must_complete(&p, "after a death or a cut");
        }
        end(&p);
    }
}

/* Of those that have shrunk it, the first for which the new group is open; or how many nodes there are. */
static uint32_t first_open(const struct play *p)
{
    uint32_t rank = 0;

    while (rank < sim_torus(p->sim)->nodes && (sim_program_state(p->programs, rank).shrunk == 0 ||
                                               !sim_program_state(p->programs, rank).open))
        rank++;
    return rank;
}

static bool one_is_open(struct sim *sim, void *context)
{
    return first_open(context) < sim_torus(sim)->nodes;
}

/* So many programs have shrunk the group. */
struct shrinking {
    const struct play *play;
    uint32_t programs;
};

static bool have_shrunk(struct sim *sim, void *context)
{
    const struct shrinking *s = context;
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        n += !is_dead(s->play, rank) && sim_program_state(s->play->programs, rank).shrunk > 0;
    return n >= s->programs;
}

/* At any time, when some have shrunk the group, or when one knows that it is open. */
static void wait_for_a_moment(struct play *p)
{
    struct shrinking some = {p, 1 + any(p, living(p))};
    uint32_t kind = any(p, 3);

    if (kind == 0)
        sim_pass(p->sim,
                 any(p, 4) == 0 ? any(p, 5000) * MILLISECONDS : any(p, 1500) * MILLISECONDS);
    else if (kind == 1)
        (void)sim_run(p->sim, 20 * SECONDS, have_shrunk, &some);
    else
        (void)sim_run(p->sim, 20 * SECONDS, one_is_open, p);
    if (any(p, 3) == 0)
        sim_pass(p->sim, any(p, 1000) * MICROSECONDS);
}

/* Others die, or links go down, while programs shrink the group. */
static void more_go_down_meanwhile(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 2 * seeds; seed++) {
        struct play p = begin(seed, (1 + seed % 3 * 300) * MILLISECONDS);
        p.setup.calls = 10;
        open_all(&p);
        (void)kill_one(&p);
        for (uint32_t left = 1 + any(&p, 3); left > 0; left--) {
            wait_for_a_moment(&p);
            if (any(&p, 3) == 0)
                cut_one(&p);
            else
                (void)kill_one(&p);
        }
        must_complete(&p, "when all has gone down");
        end(&p);
    }
}

/* Nodes that return are members of the next group of all nodes; and a group of which all nodes are up is
 * the same as one of all. */
static void nodes_come_back(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2; seed++) {
        struct play p = begin(seed, 1 * MILLISECONDS);
        open_all(&p);
        (void)kill_one(&p);
        must_complete(&p, "after a death");
        sim_heal(p.sim);
        sim_run_until_whole(p.sim);
        sim_pass(p.sim, any(&p, 2) * SECONDS);
        for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
            if (!is_dead(&p, rank) && !sim_program_state(p.programs, rank).member)
                sim_violated(p.sim, "shrink", "node %u: %s", rank,
                             sim_program_error(p.programs, rank)->text);
        sim_programs_free(p.programs);
        assert_true(sim_run(p.sim, 60 * SECONDS, sim_is_quiet, NULL));
        for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
            p.down.gone[rank] = false;
        memset(p.down.dead, 0, sim_torus(p.sim)->nodes * sizeof *p.down.dead);
        open_all(&p);
        must_complete(&p, "all of them");
        end(&p);
    }
}

/* A daemon that died, of the first node often, is up again before the last of the others has shrunk the
 * group: it is waited for, and the group has all nodes. */
static void a_node_comes_back_meanwhile(void **state)
{
    uint32_t played = 0;

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct play p = begin(seed, 10 * SECONDS);
        uint32_t victim = 0;
        p.setup.calls = 5;
        open_all(&p);
        if (!kill_one(&p)) {
            end(&p);
            continue;
        }
        while (!is_dead(&p, victim))
            victim++;
        sim_pass(p.sim, any(&p, 8000) * MILLISECONDS);
        if (!one_is_open(p.sim, &p)) {
            sim_restart(p.sim, victim);
            sim_program_shrink(p.programs, victim);
            damage_free(&p.down);
            assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
            check(&p, sim_run(p.sim, 100 * SECONDS, one_is_open, &p), "when one is back");
            /* Unless the last one has shrunk it before the links were up. */
            if (!sim_program_is_without(p.programs, first_open(&p), victim)) {
                must_complete(&p, "with the one that is back");
                played++;
            }
        }
        end(&p);
    }
    assert_true(seeds < 20 || played > seeds / 4);
}

struct told {
    bool opened, ended;
    uint32_t members;
    bool without;
};

static void on_opened(void *context, struct group *group)
{
    struct told *told = context;

    told->opened = true;
    told->members = group_members(group);
    told->without = group_gone(group) != NULL && group_gone(group)[1];
}

static void on_called(void *context, uint64_t name, const struct error *e)
{
    (void)context, (void)name, (void)e;
}

static void on_ended(void *context, const struct error *e)
{
    struct told *told = context;

    (void)e;
    told->ended = true;
}

/* In the same turn: the program is told of its members all the same. */
static void it_fails_as_it_opens(void **state)
{
    const struct sim_setup setup = {.dims = "2", .seed = 1, .latency = 50 * MICROSECONDS};
    const struct group_options options = {.name = "g", .shrink = true};
    struct sim *sim = sim_new(&setup);
    struct node *node = &sim->node[0];
    struct error e, why = {ERROR_IO, "because"};

    (void)state;
    sim_run_until_whole(sim);
    sim_kill(sim, 1, SIM_CRASH);
    sim_pass(sim, 10 * SECONDS);
    for (unsigned turn = 0; turn < 2; turn++) { /* in the first one schedules are counted */
        struct told told = {.opened = false};
        const struct group_client client = {&told, on_opened, on_called, on_ended};
        struct groups *groups = sim_groups(sim, 0);
        sim_enter(node);
        struct group *group = group_open(groups, &options, &client, &e);
        assert_non_null(group);
        if (turn == 1) {
            assert_true(groups->sessions->part->decided);
            session_fail(groups->sessions, &why);
        }
        sim_leave();
        sim_settle(node);
        sim_pass(sim, 1 * SECONDS);
        assert_true(told.opened);
        assert_true(told.without);
        assert_int_equal(told.members, 1);
        if (turn == 0) {
            sim_enter(node);
            group_close(group);
            sim_leave();
            sim_settle(node);
            sim_pass(sim, 1 * SECONDS);
        } else {
            assert_true(told.ended);
        }
    }
    sim_free(sim);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_are_left_go_on),
        cmocka_unit_test(more_go_down_meanwhile),
        cmocka_unit_test(nodes_come_back),
        cmocka_unit_test(a_node_comes_back_meanwhile),
        cmocka_unit_test(it_fails_as_it_opens),
    };

    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
