/* Groups of programs that go on without nodes that go down: the group fails, its programs shrink it, and every
 * operation gives the right results on the remaining nodes, however often that happens, and whatever else goes down
 * before the new group is open. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/sim/shrink_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(25 / SIM_SHARE);

/* Nodes die in the middle of calls, once or several times, and links go down in between. */
TEST(those_that_are_left_go_on)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct shrink_play p = shrink_begin(seed, seed % 2 * 5 * MILLISECONDS);
        shrink_open_all(&p);
        for (uint32_t left = 1 + shrink_any(&p, 3); left > 0; left--) {
            sim_pass(p.sim, shrink_any(&p, 30) * MILLISECONDS);
            if (shrink_any(&p, 4) == 0)
                shrink_cut_one(&p);
            else
                (void)shrink_kill_one(&p);
            shrink_must_complete(&p, "after a death or a cut");
        }
        shrink_end(&p);
    }
}

/* The first program that has shrunk the group and knows that the new group is open; or the number of nodes. */
static uint32_t shrink_first_open(const struct shrink_play *p)
{
    uint32_t rank = 0;

    while (rank < sim_torus(p->sim)->nodes && (sim_program_state(p->programs, rank).shrunk == 0 ||
                                               !sim_program_state(p->programs, rank).open))
        rank++;
    return rank;
}

static bool shrink_one_is_open(struct sim *sim, void *context)
{
    return shrink_first_open(context) < sim_torus(sim)->nodes;
}

/* Runs to a random time, until some programs have shrunk the group, or until one knows that the new one is open. */
static void wait_for_a_moment(struct shrink_play *p)
{
    struct shrinking some = {p, 1 + shrink_any(p, shrink_living(p))};
    uint32_t kind = shrink_any(p, 3);

    if (kind == 0)
        sim_pass(p->sim, shrink_any(p, 4) == 0 ? shrink_any(p, 5000) * MILLISECONDS
                                               : shrink_any(p, 1500) * MILLISECONDS);
    else if (kind == 1)
        (void)sim_run(p->sim, 20 * SECONDS, shrink_have_shrunk, &some);
    else
        (void)sim_run(p->sim, 20 * SECONDS, shrink_one_is_open, p);
    if (shrink_any(p, 3) == 0)
        sim_pass(p->sim, shrink_any(p, 1000) * MICROSECONDS);
}

/* More nodes die, or links go down, while programs shrink the group. */
TEST(more_go_down_meanwhile)
{
    for (uint64_t seed = first_seed; seed < first_seed + 2 * seeds; seed++) {
        struct shrink_play p = shrink_begin(seed, (1 + seed % 3 * 300) * MILLISECONDS);
        p.setup.calls = 10;
        shrink_open_all(&p);
        (void)shrink_kill_one(&p);
        for (uint32_t left = 1 + shrink_any(&p, 3); left > 0; left--) {
            wait_for_a_moment(&p);
            if (shrink_any(&p, 3) == 0)
                shrink_cut_one(&p);
            else
                (void)shrink_kill_one(&p);
        }
        shrink_must_complete(&p, "after the last fault");
        shrink_end(&p);
    }
}

/* Nodes that return are members of the next group of all nodes, and a group that may shrink has all nodes if all are
 * up. */
TEST(nodes_come_back)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2; seed++) {
        struct shrink_play p = shrink_begin(seed, 1 * MILLISECONDS);
        shrink_open_all(&p);
        (void)shrink_kill_one(&p);
        shrink_must_complete(&p, "after a death");
        sim_heal(p.sim);
        sim_run_until_whole(p.sim);
        sim_pass(p.sim, shrink_any(&p, 2) * SECONDS);
        for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
            if (!shrink_is_dead(&p, rank) && !sim_program_state(p.programs, rank).member)
                sim_violated(p.sim, "shrink", "node %u: %s", rank,
                             sim_program_error(p.programs, rank)->text);
        sim_programs_free(p.programs);
        assert_true(sim_run(p.sim, 60 * SECONDS, sim_is_quiet, NULL));
        for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
            p.down.gone[rank] = false;
        memset(p.down.dead, 0, sim_torus(p.sim)->nodes * sizeof *p.down.dead);
        shrink_open_all(&p);
        shrink_must_complete(&p, "all of them");
        shrink_end(&p);
    }
}

/* A daemon died, often that of the first node, and is up again before the last program has shrunk the group: the others
 * wait for it, and the group has all nodes. */
TEST(a_node_comes_back_meanwhile)
{
    uint32_t played = 0;

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct shrink_play p = shrink_begin(seed, 10 * SECONDS);
        p.setup.calls = 5;
        shrink_open_all(&p);
        if (!shrink_kill_one(&p)) {
            shrink_end(&p);
            continue;
        }
        uint32_t victim = shrink_first_dead(&p);
        sim_pass(p.sim, shrink_any(&p, 8000) * MILLISECONDS);
        if (!shrink_one_is_open(p.sim, &p)) {
            sim_restart(p.sim, victim);
            sim_program_shrink(p.programs, victim);
            damage_free(&p.down);
            assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
            shrink_check(&p, sim_run(p.sim, 100 * SECONDS, shrink_one_is_open, &p),
                         "when one is back");
            /* Unless the last program has shrunk the group before the links were up. */
            if (!sim_program_is_without(p.programs, shrink_first_open(&p), victim)) {
                shrink_must_complete(&p, "with the one that is back");
                played++;
            }
        }
        shrink_end(&p);
    }
    assert_true(seeds < 20 || played > seeds / 4);
}

/* Checks that the groups avoid the cut links, and no others. */
static bool use_all_links(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;
    char around[100];

    (void)damage_describe(&p->down, around, sizeof around);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info;
        if (!shrink_is_dead(p, rank) &&
            (groups_list(sim_groups(sim, rank), &info, 1) != 1 || strcmp(info.avoids, around) != 0))
            return false;
    }
    return true;
}

/* A node that is up again is not a member, and the group is not restarted for its links. */
static void one_returns(struct shrink_play *p)
{
    struct group_info before, after;
    uint32_t first = 0;

    while (shrink_is_dead(p, first))
        first++;
    shrink_must_be(p, use_all_links, "before a node returns");
    assert_int_equal(groups_list(sim_groups(p->sim, first), &before, 1), 1);
    sim_restart(p->sim, shrink_first_dead(p));
    sim_pass(p->sim, 30 * SECONDS);
    shrink_must_be(p, use_all_links, "after a node has returned");
    assert_int_equal(groups_list(sim_groups(p->sim, first), &after, 1), 1);
    if (strcmp(before.id, after.id) != 0)
        sim_violated(p->sim, "shrink", "%s is retried as %s", before.id, after.id);
}

/* A group that was shrunk avoids links like any other group: it is not shrunk again for them. A node that is up again
 * is not a member. When another node dies, the remaining ones go on as before. */
TEST(links_go_down_under_those_that_are_left)
{
    uint32_t deaths = 0;

    for (uint64_t seed = first_seed; seed < first_seed + 3 * seeds; seed++) {
        struct shrink_play p = shrink_begin(seed, seed % 3 * 3 * MILLISECONDS);
        shrink_open_all(&p);
        for (uint32_t left = shrink_any(&p, 5) / 2; left > 0; left--)
            shrink_cut_one(&p);
        for (uint32_t left = 1 + shrink_any(&p, 2); left > 0; left--)
            deaths += shrink_kill_one(&p);
        shrink_must_be(&p, shrink_are_by_themselves, "after deaths");
        const uint32_t shrunk = shrink_times(&p);
        bool returns = shrunk > 0 && shrink_any(&p, 3) == 0, late = shrink_any(&p, 2) == 0;
        if (returns && !late)
            sim_restart(p.sim, shrink_first_dead(&p));
        for (uint32_t left = 1 + shrink_any(&p, 6); left > 0; left--) {
            (void)sim_run(p.sim, shrink_any(&p, 40) * MILLISECONDS, shrink_have_all, &p);
            if (shrink_any(&p, 3) == 0)
                shrink_mend_one(&p);
            else
                shrink_cut_one(&p);
        }
        shrink_must_complete(&p, "after cuts");
        if (returns && late)
            one_returns(&p);
        else if (shrink_any(&p, 3) == 0)
            shrink_must_be(&p, use_all_links, "later");
        if (shrink_times(&p) != shrunk)
            sim_violated(p.sim, "shrink", "it has been shrunk again because of a link");
        if (returns) /* otherwise the next group would wait for it */
            sim_kill(p.sim, shrink_first_dead(&p), SIM_CRASH);
        (void)shrink_kill_one(&p);
        shrink_must_complete(&p, "after another death");
        shrink_end(&p);
    }
    assert_true(seeds < 20 || deaths > 2 * seeds);
}
