/* Groups of programs that go on without the nodes that go down: the group fails, its programs shrink it,
 * and every operation gives what it must among those that are left, however often that happens, and
 * whatever else goes down before the new group is open.
 *
 *     test_sim_group_shrink [FIRST_SEED COUNT]     more seeds than ctest runs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/group/record/part.h"
#include "daemon/schedule/damage.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
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

/* The first of those that are dead. */
static uint32_t first_dead(const struct play *p)
{
    uint32_t rank = 0;

    while (!is_dead(p, rank))
        rank++;
    return rank;
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
                                    .shared = seed % 2 == 1,
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

/* A link between two that live is mended, if one that is drawn is cut. */
static void mend_one(struct play *p)
{
    const struct torus *t = sim_torus(p->sim);
    uint32_t rank = any(p, t->nodes);
    unsigned port = any(p, torus_ports(t));
    uint32_t there = torus_neighbour(t, rank, port);

    if (there == TORUS_NO_NODE || is_dead(p, rank) || is_dead(p, there) ||
        damage_has_link(&p->down, rank, port))
        return;
    sim_set_wire(p->sim, rank, port, SIM_WIRE_UP);
    p->down.dead[rank] &= ~(1u << port);
    p->down.dead[there] &= ~(1u << torus_port_opposite(port));
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
        p.setup.calls = 5;
        open_all(&p);
        if (!kill_one(&p)) {
            end(&p);
            continue;
        }
        uint32_t victim = first_dead(&p);
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

static uint32_t times_shrunk(const struct play *p)
{
    uint32_t times = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        times += is_dead(p, rank) ? 0 : sim_program_state(p->programs, rank).shrunk;
    return times;
}

/* All that live have the same group open, which has left out the others. */
static bool are_by_themselves(struct sim *sim, void *context)
{
    const struct play *p = context;
    struct group_info first = {.open = false};

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info;
        if (is_dead(p, rank))
            continue;
        if (groups_list(sim_groups(sim, rank), &info, 1) != 1 || !info.open ||
            (first.open && strcmp(info.id, first.id) != 0))
            return false;
        first = info;
        for (uint32_t node = 0; node < sim_torus(sim)->nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != is_dead(p, node))
                return false;
    }
    return true;
}

/* They go around the links that are cut, and no others. */
static bool use_all_links(struct sim *sim, void *context)
{
    const struct play *p = context;
    char around[100];

    (void)damage_describe(&p->down, around, sizeof around);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info;
        if (!is_dead(p, rank) &&
            (groups_list(sim_groups(sim, rank), &info, 1) != 1 || strcmp(info.around, around) != 0))
            return false;
    }
    return true;
}

static void must_be(struct play *p, bool (*how)(struct sim *sim, void *context), const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, how, p);

    check(p, good, what);
}

/* A node that is up again is no member, and nothing is begun anew for its links. */
static void one_returns(struct play *p)
{
    struct group_info before, after;
    uint32_t first = 0;

    while (is_dead(p, first))
        first++;
    must_be(p, use_all_links, "before a node returns");
    assert_int_equal(groups_list(sim_groups(p->sim, first), &before, 1), 1);
    sim_restart(p->sim, first_dead(p));
    sim_pass(p->sim, 30 * SECONDS);
    must_be(p, use_all_links, "after a node has returned");
    assert_int_equal(groups_list(sim_groups(p->sim, first), &after, 1), 1);
    if (strcmp(before.id, after.id) != 0)
        sim_violated(p->sim, "shrink", "%s begins anew as %s", before.id, after.id);
}

/* A group that has been shrunk goes on around links like any other: it is not shrunk again. A node that is
 * up again is no member. When another one dies, those that are left then go on as before. */
static void links_go_down_under_those_that_are_left(void **state)
{
    uint32_t deaths = 0;

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 3 * seeds; seed++) {
        struct play p = begin(seed, seed % 3 * 3 * MILLISECONDS);
        open_all(&p);
        for (uint32_t left = any(&p, 5) / 2; left > 0; left--)
            cut_one(&p);
        for (uint32_t left = 1 + any(&p, 2); left > 0; left--)
            deaths += kill_one(&p);
        must_be(&p, are_by_themselves, "after deaths");
        const uint32_t shrunk = times_shrunk(&p);
        bool returns = shrunk > 0 && any(&p, 3) == 0, late = any(&p, 2) == 0;
        if (returns && !late)
            sim_restart(p.sim, first_dead(&p));
        for (uint32_t left = 1 + any(&p, 6); left > 0; left--) {
            (void)sim_run(p.sim, any(&p, 40) * MILLISECONDS, have_all, &p);
            if (any(&p, 3) == 0)
                mend_one(&p);
            else
                cut_one(&p);
        }
        must_complete(&p, "after cuts");
        if (returns && late)
            one_returns(&p);
        else if (any(&p, 3) == 0)
            must_be(&p, use_all_links, "later");
        if (times_shrunk(&p) != shrunk)
            sim_violated(p.sim, "shrink", "it has been shrunk again because of a link");
        if (returns) /* else it would be waited for in the next group */
            sim_kill(p.sim, first_dead(&p), SIM_CRASH);
        (void)kill_one(&p);
        must_complete(&p, "after another death");
        end(&p);
    }
    assert_true(seeds < 20 || deaths > 2 * seeds);
}

/* That all have entered is known here: as what, which is the same for all, whatever goes down then. */
static void note_session(const struct play *p, uint32_t rank, char id[EXCHANGE_ID_SIZE])
{
    const struct session *s = sim_groups(p->sim, rank)->sessions;

    if (s == NULL || !s->begun)
        return;
    if (id[0] != '\0' && strcmp(id, s->id) != 0)
        sim_violated(p->sim, "shrink", "node %u is in %s, another one in %s", rank, s->id, id);
    (void)snprintf(id, EXCHANGE_ID_SIZE, "%s", s->id);
}

/* Just when it opens: some have heard that all are there, others have not. */
static void a_link_goes_down_as_it_opens(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct play p = begin(seed, 1 * MILLISECONDS);
        p.setup.calls = 3;
        open_all(&p);
        if (kill_one(&p)) {
            struct shrinking all = {&p, living(&p)};
            char id[EXCHANGE_ID_SIZE] = "";
            check(&p, sim_run(p.sim, 60 * SECONDS, have_shrunk, &all), "after a death");
            sim_pass(p.sim, any(&p, 2000) * MICROSECONDS);
            for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
                if (!is_dead(&p, rank))
                    note_session(&p, rank, id);
            cut_one(&p);
            must_complete(&p, "after a cut");
            for (uint32_t rank = 0; id[0] != '\0' && rank < sim_torus(p.sim)->nodes; rank++)
                if (!is_dead(&p, rank))
                    note_session(&p, rank, id);
            if (times_shrunk(&p) != living(&p))
                sim_violated(p.sim, "shrink", "it has been shrunk again because of a link");
        }
        end(&p);
    }
}

/* Of node 0: in a group that goes on it leaves out node 4, too. */
static unsigned leave_out_another(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                                  size_t *length)
{
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);

    (void)sim, (void)port;
    assert_non_null(head);
    if (rank == 0 && head->kind_case == PEER__HEAD__KIND_PREPARE &&
        head->prepare->resumes[0] != '\0') {
        uint32_t *missing = sim_alloc(2 * sizeof *missing);
        missing[0] = 4;
        missing[1] = 5;
        free(head->prepare->missing);
        head->prepare->missing = missing;
        head->prepare->n_missing = 2;
        uint8_t *lie = lie_frame(head, *bytes + body, *length - body, length);
        free(*bytes);
        *bytes = lie;
    }
    peer__head__free_unpacked(head, NULL);
    return 1;
}

static bool all_are_told(struct sim *sim, void *context)
{
    const struct play *p = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!is_dead(p, rank) && sim_program_error(p->programs, rank)->code == ERROR_NONE)
            return false;
    return true;
}

/* Calls under way number the members that there were. */
static void a_root_names_other_members(void **state)
{
    static const struct sim_call calls[] = {{.operation = GROUP_BARRIER}};
    const struct sim_setup setup = {
        .dims = "2x3", .seed = 1, .latency = 50 * MICROSECONDS, .on_bytes = leave_out_another};
    struct play p = {.sim = sim_new(&setup)};

    (void)state;
    sim_run_until_whole(p.sim);
    assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
    p.setup = (struct sim_programs_setup){
        .name = "g", .call = calls, .calls = 1, .depth = 1, .shrinks = true, .stay = true};
    p.programs = sim_programs_new(p.sim, &p.setup);
    must_be(&p, are_by_themselves, "opening");
    damage_add_node(&p.down, 5);
    sim_kill(p.sim, 5, SIM_CRASH);
    must_be(&p, are_by_themselves, "after a death");
    sim_set_lying(p.sim, 0, true);
    sim_set_wire(p.sim, 0, torus_port(1, 1), SIM_WIRE_CUT);
    assert_true(sim_run(p.sim, 60 * SECONDS, all_are_told, &p));
    for (uint32_t rank = 0; rank < 5; rank++)
        assert_non_null(strstr(sim_program_error(p.programs, rank)->text, "with other members"));
    end(&p);
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
        const struct group_client client = {
            .context = &told, .opened = on_opened, .called = on_called, .ended = on_ended};
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
        cmocka_unit_test(links_go_down_under_those_that_are_left),
        cmocka_unit_test(a_link_goes_down_as_it_opens),
        cmocka_unit_test(a_root_names_other_members),
        cmocka_unit_test(it_fails_as_it_opens),
    };

    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
