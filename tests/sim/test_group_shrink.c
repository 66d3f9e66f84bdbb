/* Groups of programs that go on without nodes that go down: the group fails, its programs shrink it, and every
 * operation gives the right results on the remaining nodes, however often that happens, and whatever else goes down
 * before the new group is open. */
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/group/state.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
#include "tests/support/cmocka.h"

#define CALLS_MOST 40u

struct shrink_play {
    uint64_t seed;
    struct sim *sim;
    struct damage down; /* dead nodes and cut links */
    struct sim_call call[CALLS_MOST];
    struct sim_programs_setup setup;
    struct sim_programs *programs;
};

/* Programs that have shrunk the group. */
struct shrinking {
    const struct shrink_play *play;
    uint32_t programs;
};

static const char *const tori[] = {"4x4", "3x3", "2x3", "5",   "4mx3",  "2x2x2",
                                   "3x5", "2x2", "3",   "2x4", "3mx3m", "7"};

/* A random number below `below`, from the simulator's stream. */
static uint32_t shrink_any(struct shrink_play *p, uint32_t below)
{
    return group_any(p->sim, below);
}

/* Whether the node is dead. */
static bool shrink_is_dead(const struct shrink_play *p, uint32_t rank)
{
    return p->down.gone[rank];
}

/* The number of live nodes. */
static uint32_t shrink_living(const struct shrink_play *p)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        n += !shrink_is_dead(p, rank);
    return n;
}

/* The first dead node. */
static uint32_t shrink_first_dead(const struct shrink_play *p)
{
    uint32_t rank = 0;

    while (!shrink_is_dead(p, rank))
        rank++;
    return rank;
}

static bool are_open(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!shrink_is_dead(p, rank) && !sim_program_state(p->programs, rank).open)
            return false;
    return true;
}

/* How a node reports its group, open or not. */
static void look_at(struct sim *sim, uint32_t rank, bool open)
{
    struct group_info info[2] = {{.open = false}};
    size_t groups = groups_list(sim_groups(sim, rank), info, 2);

    if (groups > 1 || (open && (groups == 0 || !info[0].open)) ||
        (groups == 1 && info[0].open && info[0].missing[0] != '\0'))
        sim_violated(sim, "status", "node %u: %zu groups, %s", rank, groups, info[0].missing);
}

/* Whether all live programs have made all calls in a group of their own. */
static bool shrink_have_all(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;
    const uint32_t nodes = sim_torus(sim)->nodes;

    for (uint32_t rank = 0; rank < nodes; rank++)
        if (sim_alive(sim, rank))
            look_at(sim, rank, false);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (shrink_is_dead(p, rank))
            continue;
        if (sim_program_completed(p->programs, rank) < p->setup.calls)
            return false;
        for (uint32_t node = 0; node < nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != shrink_is_dead(p, node))
                return false;
    }
    return true;
}

/* It is a violation, described by `what`, if a live program was told of a failure or `good` is false. */
static void shrink_check(struct shrink_play *p, bool good, const char *what)
{
    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        if (!shrink_is_dead(p, rank) && sim_program_error(p->programs, rank)->code != ERROR_NONE)
            sim_violated(p->sim, "shrink", "%s: node %u: %s", what, rank,
                         sim_program_error(p->programs, rank)->text);
    if (!good)
        sim_violated(p->sim, "shrink", "%s", what);
}

/* Checks that all live programs complete all calls in time. */
static void shrink_must_complete(struct shrink_play *p, const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, shrink_have_all, p);

    shrink_check(p, good, what);
}

/* Starts programs on all nodes, and waits until their group is open. */
static struct shrink_play shrink_begin(uint64_t seed, uint64_t pause)
{
    struct shrink_play p = {.seed = seed};

    p.sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
    p.setup = (struct sim_programs_setup){.name = "g",
                                          .calls = CALLS_MOST,
                                          .seed = seed,
                                          .depth = 1 + shrink_any(&p, 8),
                                          .pause = pause,
                                          .unchecked = shrink_any(&p, 4) == 0,
                                          .lazy = shrink_any(&p, 3) == 0,
                                          .shrinks = true,
                                          .stay = true};
    for (uint32_t i = 0; i < CALLS_MOST; i++)
        p.call[i] = sim_any_call(sim_chance(p.sim), sim_torus(p.sim));
    return p;
}

/* Starts programs on all nodes, which open the group. */
static void shrink_open_all(struct shrink_play *p)
{
    p->setup.call = p->call;
    p->programs = sim_programs_new(p->sim, &p->setup);
    shrink_check(p, sim_run(p->sim, 60 * SECONDS, are_open, p), "opening");
}

/* Frees everything. */
static void shrink_end(struct shrink_play *p)
{
    sim_programs_free(p->programs);
    assert_true(sim_run(p->sim, 60 * SECONDS, sim_is_quiet, NULL));
    damage_free(&p->down);
    sim_free(p->sim);
}

/* Kills a node that can be left out, often the first live one. Returns false if there is none. */
static bool shrink_kill_one(struct shrink_play *p)
{
    const uint32_t nodes = sim_torus(p->sim)->nodes;
    uint32_t first = 0;

    while (shrink_is_dead(p, first))
        first++;
    for (unsigned tries = 0; tries < 20; tries++) {
        uint32_t victim = shrink_any(p, 2) == 0 ? first : shrink_any(p, nodes);
        if (!check_may_die(&p->down, victim))
            continue;
        damage_add_node(&p->down, victim);
        sim_kill(p->sim, victim, (enum sim_death)shrink_any(p, 3));
        return true;
    }
    return false;
}

/* Cuts a link without dividing the live nodes. */
static void shrink_cut_one(struct shrink_play *p)
{
    const struct torus *t = sim_torus(p->sim);

    for (unsigned tries = 0; tries < 50; tries++) {
        uint32_t rank = shrink_any(p, t->nodes);
        unsigned port = shrink_any(p, torus_ports(t));
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

/* Draws a link, and restores it if it is cut and both of its nodes live. */
static void shrink_mend_one(struct shrink_play *p)
{
    const struct torus *t = sim_torus(p->sim);
    uint32_t rank = shrink_any(p, t->nodes);
    unsigned port = shrink_any(p, torus_ports(t));
    uint32_t there = torus_neighbour(t, rank, port);

    if (there == TORUS_NO_NODE || shrink_is_dead(p, rank) || shrink_is_dead(p, there) ||
        damage_has_link(&p->down, rank, port))
        return;
    sim_set_wire(p->sim, rank, port, SIM_WIRE_UP);
    p->down.dead[rank] &= ~(1u << port);
    p->down.dead[there] &= ~(1u << torus_port_opposite(t, port));
}

/* For sim_run(): whether that many programs have shrunk the group. `context`: a struct shrinking. */
static bool shrink_have_shrunk(struct sim *sim, void *context)
{
    const struct shrinking *s = context;
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        n +=
            !shrink_is_dead(s->play, rank) && sim_program_state(s->play->programs, rank).shrunk > 0;
    return n >= s->programs;
}

/* How often all live programs together have shrunk the group. */
static uint32_t shrink_times(const struct shrink_play *p)
{
    uint32_t times = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        times += shrink_is_dead(p, rank) ? 0 : sim_program_state(p->programs, rank).shrunk;
    return times;
}

/* Whether all live nodes have the same open group, without the other nodes. */
static bool shrink_are_by_themselves(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;
    struct group_info first = {.open = false};

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info;
        if (shrink_is_dead(p, rank))
            continue;
        if (groups_list(sim_groups(sim, rank), &info, 1) != 1 || !info.open ||
            (first.open && strcmp(info.id, first.id) != 0))
            return false;
        first = info;
        for (uint32_t node = 0; node < sim_torus(sim)->nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != shrink_is_dead(p, node))
                return false;
    }
    return true;
}

/* Waits until that is true; it is a violation, described by `what`, if it does not become true in time. */
static void shrink_must_be(struct shrink_play *p, bool (*how)(struct sim *sim, void *context),
                           const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, how, p);

    shrink_check(p, good, what);
}

SEEDS(25 / SIM_SHARE);

/* Nodes die in the middle of calls, once or several times, and links go down in between. */
SEED_TEST(seeds, those_that_are_left_go_on)
{
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
SEED_TEST(2 * seeds, more_go_down_meanwhile)
{
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

/* Nodes that return are members of the next group of all nodes, and a group that may shrink has all nodes if all are
 * up. */
SEED_TEST(seeds / 2, nodes_come_back)
{
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
            /* The group is whole again, unless its last program shrank it before the links were up. */
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

/* Groups that shrink while they are being opened: nodes and links that go down then, and roots that disagree. */

/* Notes the id under which a node knows that all have entered. It must be the same at all nodes, whatever goes down
 * then. */
static void note_session(const struct shrink_play *p, uint32_t rank, char id[EXCHANGE_ID_SIZE])
{
    const struct session *s = sim_groups(p->sim, rank)->sessions;

    if (s == NULL || !s->begun)
        return;
    if (id[0] != '\0' && strcmp(id, s->id) != 0)
        sim_violated(p->sim, "shrink", "node %u is in %s, another one in %s", rank, s->id, id);
    (void)snprintf(id, EXCHANGE_ID_SIZE, "%s", s->id);
}

/* A fault just when the group opens: some programs have heard that all are there, others have not. */
SEED_TEST(4 * seeds, a_link_goes_down_as_it_opens)
{
    struct shrink_play p = shrink_begin(seed, 1 * MILLISECONDS);
    p.setup.calls = 3;
    shrink_open_all(&p);
    if (shrink_kill_one(&p)) {
        struct shrinking all = {&p, shrink_living(&p)};
        char id[EXCHANGE_ID_SIZE] = "";
        shrink_check(&p, sim_run(p.sim, 60 * SECONDS, shrink_have_shrunk, &all), "after a death");
        sim_pass(p.sim, shrink_any(&p, 2000) * MICROSECONDS);
        for (uint32_t rank = 0; rank < sim_torus(p.sim)->nodes; rank++)
            if (!shrink_is_dead(&p, rank))
                note_session(&p, rank, id);
        shrink_cut_one(&p);
        shrink_must_complete(&p, "after a cut");
        for (uint32_t rank = 0; id[0] != '\0' && rank < sim_torus(p.sim)->nodes; rank++)
            if (!shrink_is_dead(&p, rank))
                note_session(&p, rank, id);
        if (shrink_times(&p) != shrink_living(&p))
            sim_violated(p.sim, "shrink", "it has been shrunk again because of a link");
    }
    shrink_end(&p);
}

/* A report of node 0 that lies: it also leaves out node 4, in a group that goes on. */
static unsigned leave_out_another(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                                  size_t *length)
{
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);

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
    const struct shrink_play *p = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!shrink_is_dead(p, rank) && sim_program_error(p->programs, rank)->code == ERROR_NONE)
            return false;
    return true;
}

/* Running calls number the members of the group before. */
TEST(a_root_names_other_members)
{
    static const struct sim_call calls[] = {{.operation = GROUP_BARRIER}};
    const struct sim_setup setup = {
        .dims = "2x3", .seed = 1, .latency = 50 * MICROSECONDS, .on_bytes = leave_out_another};
    struct shrink_play p = {.sim = sim_new(&setup)};

    sim_run_until_whole(p.sim);
    assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
    p.setup = (struct sim_programs_setup){
        .name = "g", .call = calls, .calls = 1, .depth = 1, .shrinks = true, .stay = true};
    p.programs = sim_programs_new(p.sim, &p.setup);
    shrink_must_be(&p, shrink_are_by_themselves, "opening");
    damage_add_node(&p.down, 5);
    sim_kill(p.sim, 5, SIM_CRASH);
    shrink_must_be(&p, shrink_are_by_themselves, "after a death");
    sim_set_lying(p.sim, 0, true);
    sim_set_wire(p.sim, 0, torus_port(sim_torus(p.sim), 1, 1), SIM_WIRE_CUT);
    assert_true(sim_run(p.sim, 60 * SECONDS, all_are_told, &p));
    for (uint32_t rank = 0; rank < 5; rank++)
        assert_contains(sim_program_error(p.programs, rank)->text, "would change");
    shrink_end(&p);
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
    told->without = group_left_out(group) != NULL && group_left_out(group)[1];
}

static void on_called(void *context, uint64_t name, const struct error *e)
{
}

static void on_ended(void *context, const struct error *e)
{
    struct told *told = context;

    told->ended = true;
}

/* Both happen in the same turn of the loop: the program is told of its members nevertheless. */
SIM_TEST(SIM_WHOLE(.dims = "2", .seed = 1, .latency = 50 * MICROSECONDS), it_fails_as_it_opens)
{
    const struct group_options options = {.name = "g", .shrink = true};
    struct node *node = &sim->node[0];
    struct error e, why = {.code = ERROR_IO, .text = "because"};

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
            assert_true(groups->sessions->part->has_table);
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
}
