/* Groups that shrink while they are being opened: nodes and links that go down then, and roots that disagree. */
#include "daemon/torusd/group/state.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
#include "tests/sim/shrink_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(25 / SIM_SHARE);

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
TEST(a_link_goes_down_as_it_opens)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct shrink_play p = shrink_begin(seed, 1 * MILLISECONDS);
        p.setup.calls = 3;
        shrink_open_all(&p);
        if (shrink_kill_one(&p)) {
            struct shrinking all = {&p, shrink_living(&p)};
            char id[EXCHANGE_ID_SIZE] = "";
            shrink_check(&p, sim_run(p.sim, 60 * SECONDS, shrink_have_shrunk, &all),
                         "after a death");
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
        assert_non_null(strstr(sim_program_error(p.programs, rank)->text, "would change"));
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
TEST(it_fails_as_it_opens)
{
    const struct sim_setup setup = {.dims = "2", .seed = 1, .latency = 50 * MICROSECONDS};
    const struct group_options options = {.name = "g", .shrink = true};
    struct sim *sim = sim_new(&setup);
    struct node *node = &sim->node[0];
    struct error e, why = {.code = ERROR_IO, .text = "because"};

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
    sim_free(sim);
}
