#include "tests/sim/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/program_calls.h"
#include "tests/sim/program_data.h"

static bool node_lives(const struct program *p)
{
    const struct node *node = &p->all->sim->node[p->rank];
    return node->alive && !node->leaving && node->life == p->life;
}

static void leave(struct program *p)
{
    if (p->completed < p->all->set.calls)
        sim_programs_disturb(p->all);
    if (p->under_way > 0)
        sim_programs_fail(p->all);
    group_close(p->group);
    p->group = NULL;
    p->left = true;
}

/* Waits for one of the complete calls: its memory must be unchanged since then. */
static void wait_for_one(struct program *p)
{
    struct sim_made **at = &p->made, **found = NULL;
    unsigned choices = 0;

    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->completed && chance_below(&p->all->chance, ++choices) == 0)
            found = at;
    struct sim_made *m = *found;
    *found = m->next;
    sim_made_check(p, m);
    sim_made_free(m);
    p->unwaited--;
}

static bool can_call(const struct program *p)
{
    return p->calls < p->all->set.calls && p->under_way + p->unwaited < p->all->set.depth;
}

static bool can_leave(const struct program *p)
{
    return p->calls == p->all->set.calls && p->under_way + p->unwaited == 0 && !p->all->set.stay;
}

static void go_on(struct program *p);

static void on_due(struct sim *sim, void *context)
{
    struct program *p = context;
    struct node *node = &sim->node[p->rank];

    p->due = false;
    if (!node_lives(p) || p->group == NULL || !p->open || p->stopped)
        return;
    if (node->frozen) { /* the program can call, but the daemon hears of it later */
        go_on(p);
        return;
    }
    sim_enter(node);
    if (p->unwaited > 0 && (!can_call(p) || chance_below(&p->all->chance, 2) == 0))
        wait_for_one(p);
    else if (can_call(p))
        sim_program_call(p, sim_program_next_call(p));
    else if (can_leave(p))
        leave(p);
    if (p->gives_up && p->group != NULL)
        leave(p);
    sim_leave();
    sim_settle(node);
    if (p->group != NULL && (can_call(p) || p->unwaited > 0 || can_leave(p)))
        go_on(p);
}

static void go_on(struct program *p)
{
    struct sim *sim = p->all->sim;
    uint64_t pause = p->all->set.pause;

    if (p->due)
        return;
    p->due = true;
    if (sim->node[p->rank].frozen && pause < 10 * MILLISECONDS)
        pause = 10 * MILLISECONDS;
    sim_at(sim, sim_now(sim) + (pause > 0 ? chance_below(&p->all->chance, pause) : 0) + 1, on_due,
           p);
}

/* Each program opens the group once, unless it shrinks it. */
static void check_certain(const struct sim_programs *all)
{
    if (all->opened && all->never_opens && !all->set.shrinks)
        sim_violated(all->sim, "opening",
                     "a program has opened the group, and one that could not was "
                     "not told that others may have");
}

static void on_opened(void *context, struct group *group)
{
    struct program *p = context;
    const uint32_t nodes = p->all->torus->nodes;

    if (group_left_out(group) != NULL) {
        p->gone = sim_alloc(nodes * sizeof *p->gone);
        memcpy(p->gone, group_left_out(group), nodes * sizeof *p->gone);
    }
    if (group_members(group) != sim_team_of(p, sim_all_dimensions(p->all->torus)).size)
        sim_violated(p->all->sim, "members", "node %u: %u members", p->rank, group_members(group));
    p->open = p->all->opened = true;
    check_certain(p->all);
    p->all->moved_at = sim_now(p->all->sim);
    go_on(p);
}

static void on_called(void *context, uint64_t name, const struct error *e)
{
    struct program *p = context;
    struct sim_made **at = &p->made;

    while (*at != NULL && ((*at)->index != name || (*at)->completed))
        at = &(*at)->next;
    if (*at == NULL || e != NULL)
        sim_violated(p->all->sim, "calls", "node %u is told of call %llu twice, or of a failure",
                     p->rank, (unsigned long long)name);
    struct sim_made *m = *at;
    sim_made_check(p, m);
    if (m->call.operation == GROUP_BARRIER)
        sim_made_check_all_have_called(p, m);
    sim_made_use_memory(m);
    if (p->all->set.lazy) {
        m->completed = true;
        p->unwaited++;
    } else {
        *at = m->next;
        sim_made_free(m);
    }
    p->under_way--;
    p->completed++;
    p->all->moved_at = sim_now(p->all->sim);
    go_on(p);
}

/* The program is told which members a running call waits for. */
static void on_late(void *context, uint64_t name, const char *whom)
{
    struct program *p = context;
    const struct sim_made *m = p->made;

    while (m != NULL && (m->index != name || m->completed))
        m = m->next;
    if (m == NULL || m->call.late == 0)
        sim_violated(p->all->sim, "calls", "node %u is told whom call %llu waits for", p->rank,
                     (unsigned long long)name);
    p->late_times++;
    (void)snprintf(p->late, sizeof p->late, "%s", whom);
}

static void on_open(struct sim *sim, void *context);

static void shrink(struct program *p)
{
    struct sim_programs *all = p->all;

    while (p->made != NULL) {
        struct sim_made *m = p->made;
        p->made = m->next;
        sim_made_free(m);
    }
    memset(p->has_called, 0, all->set.calls * sizeof *p->has_called);
    p->calls = p->under_way = p->unwaited = p->completed = 0;
    p->open = false;
    free(p->gone);
    p->gone = NULL;
    p->shrunk++;
    sim_at(all->sim,
           sim_now(all->sim) +
               (all->set.pause > 0 ? chance_below(&all->chance, all->set.pause) : 0),
           on_open, p);
}

static void on_ended(void *context, const struct error *e)
{
    struct program *p = context;

    p->told_at = p->all->moved_at = sim_now(p->all->sim);
    p->group = NULL;
    p->all->never_opens |= !p->open && e->code != ERROR_IN_DOUBT;
    check_certain(p->all);
    if (p->all->set.shrinks && p->open && e->code == ERROR_LINK)
        shrink(p);
    else
        p->error = *e; /* a program that shrinks a group hears of no links before it is open */
}

static void on_open(struct sim *sim, void *context)
{
    struct program *p = context;
    struct node *node = &sim->node[p->rank];
    const struct group_client client = {p, on_opened, on_called, on_ended, on_late, NULL};
    const struct group_options options = {.name = p->all->set.name,
                                          .user = 1000 + p->rank % 3,
                                          .timeout_ns = p->all->set.timeout,
                                          .unchecked = p->all->set.unchecked,
                                          .trace = p->all->set.trace,
                                          .shrink = p->shrunk > 0};

    if (p->dead)
        return;
    if (!node->alive || (p->shrunk > 0 && p->life != node->life)) {
        p->dead = true;
        sim_programs_disturb(p->all);
        return;
    }
    if (node->frozen) {
        sim_at(sim, sim_now(sim) + 10 * MILLISECONDS, on_open, p);
        return;
    }
    p->life = node->life;
    sim_enter(node);
    p->group = group_open(core_groups(node->core), &options, &client, &p->error);
    sim_leave();
    if (p->group == NULL) {
        p->told_at = sim_now(sim);
        sim_programs_disturb(p->all);
    }
    sim_settle(node);
}

struct sim_programs *sim_programs_new(struct sim *sim, const struct sim_programs_setup *setup)
{
    struct sim_programs *all = sim_alloc(sizeof *all);

    *all = (struct sim_programs){.sim = sim, .set = *setup, .torus = sim_torus(sim)};
    all->next = sim->programs;
    sim->programs = all;
    all->chance = chance_stream(setup->seed, 77, 0);
    all->program = sim_alloc(all->torus->nodes * sizeof *all->program);
    all->disturbed_at = all->failed_at = UINT64_MAX;
    all->moved_at = sim_now(sim);
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
        all->program[rank] =
            (struct program){.all = all, .rank = rank, .has_called = sim_alloc(setup->calls + 1)};
        sim_at(sim,
               sim_now(sim) + (setup->pause > 0 ? chance_below(&all->chance, setup->pause) : 0),
               on_open, &all->program[rank]);
    }
    return all;
}

void sim_programs_free(struct sim_programs *all)
{
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
        struct program *p = &all->program[rank];
        if (p->group != NULL && node_lives(p))
            sim_program_die(all, rank);
        while (p->made != NULL) {
            struct sim_made *m = p->made;
            p->made = m->next;
            sim_made_free(m);
        }
        p->dead = true;
    }
}

void sim_programs_forget(struct sim *sim)
{
    while (sim->programs != NULL) {
        struct sim_programs *all = sim->programs;
        sim->programs = all->next;
        for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
            free(all->program[rank].has_called);
            free(all->program[rank].gone);
            free(all->program[rank].instead);
        }
        free(all->program);
        free(all->sum);
        free(all);
    }
}

static bool is_over(const struct program *p)
{
    bool done = p->calls == p->all->set.calls && p->under_way == 0 && p->all->set.stay && p->open;
    return done || p->left || p->dead || p->error.code != ERROR_NONE ||
           (p->life > 0 && !node_lives(p));
}

static bool are_over(struct sim *sim, void *context)
{
    struct sim_programs *all = context;

    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        if (!is_over(&all->program[rank]))
            return false;
    return true;
}

bool sim_programs_run(struct sim_programs *all, uint64_t most)
{
    return sim_run(all->sim, most, are_over, all);
}

uint32_t sim_programs_done(const struct sim_programs *all)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        n += all->program[rank].completed == all->set.calls;
    return n;
}

uint32_t sim_programs_failed(const struct sim_programs *all)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        n += all->program[rank].error.code != ERROR_NONE;
    return n;
}

uint32_t sim_program_completed(const struct sim_programs *all, uint32_t rank)
{
    return all->program[rank].completed;
}

const struct error *sim_program_error(const struct sim_programs *all, uint32_t rank)
{
    return &all->program[rank].error;
}

uint32_t sim_program_late(const struct sim_programs *p, uint32_t rank, const char **whom)
{
    *whom = p->program[rank].late;
    return p->program[rank].late_times;
}

uint64_t sim_program_told_at(const struct sim_programs *all, uint32_t rank)
{
    return all->program[rank].told_at;
}

struct sim_program_state sim_program_state(const struct sim_programs *all, uint32_t rank)
{
    const struct program *p = &all->program[rank];

    return (struct sim_program_state){
        .open = p->open,
        .member = p->group != NULL && node_lives(p),
        .stopped = p->stopped,
        .over = is_over(p),
        .shrunk = p->shrunk,
        .calls = p->calls,
        .completed = p->completed,
    };
}

uint64_t sim_programs_disturbed_at(const struct sim_programs *all)
{
    return all->disturbed_at;
}

unsigned sim_programs_disturbances(const struct sim_programs *all)
{
    return all->disturbances;
}

static const struct sim_call *what_is_called(const struct sim_programs *all, uint32_t rank,
                                             uint32_t index)
{
    const struct sim_call *instead = all->program[rank].instead;
    return instead != NULL && instead[index].operation != 0 ? &instead[index]
                                                            : &all->set.call[index];
}

/* Programs with a mistake in the same call may by chance make the same call. */
bool sim_programs_mistaken(const struct sim_programs *all)
{
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        for (uint32_t i = 0; i < all->set.calls && all->program[rank].instead != NULL; i++) {
            const struct sim_call *call = what_is_called(all, rank, i);
            const struct sim_team team = sim_team_of(
                &all->program[rank], call->part != 0 ? call->part : sim_all_dimensions(all->torus));
            for (uint32_t k = 0; k < team.size; k++)
                if (!sim_call_may_pass(call, what_is_called(all, team.node[k], i)))
                    return true;
        }
    return false;
}

uint64_t sim_programs_failed_at(const struct sim_programs *all)
{
    return all->failed_at;
}

uint64_t sim_programs_moved_at(const struct sim_programs *all)
{
    return all->moved_at;
}

void sim_program_leave(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];
    struct node *node = &all->sim->node[rank];

    if (p->group == NULL || !node_lives(p) || node->frozen)
        return;
    sim_enter(node);
    leave(p);
    sim_leave();
    sim_settle(node);
}

void sim_program_stop(struct sim_programs *all, uint32_t rank)
{
    all->program[rank].stopped = true;
}

void sim_program_go_on(struct sim_programs *all, uint32_t rank)
{
    all->program[rank].stopped = false;
    go_on(&all->program[rank]);
}

void sim_program_die(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];
    struct node *node = &all->sim->node[rank];
    struct error e;

    p->dead = true;
    if (!p->left && p->error.code == ERROR_NONE)
        sim_programs_disturb(all);
    if (p->group == NULL || !node_lives(p))
        return;
    (void)error_set(&e, ERROR_CANCELLED, "the program at node %u has died", rank);
    sim_enter(node);
    group_abandon(p->group, &e);
    sim_leave();
    p->group = NULL;
    if (p->open) /* otherwise another program may still open it at its node */
        sim_programs_fail(all);
    sim_settle(node);
}

void sim_program_shrink(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];

    p->life = all->sim->node[rank].life;
    p->group = NULL;
    shrink(p);
}

void sim_program_mistake(struct sim_programs *all, uint32_t rank, const struct sim_call *call)
{
    all->program[rank].mistake = *call;
}

bool sim_program_is_without(const struct sim_programs *all, uint32_t rank, uint32_t node)
{
    const struct program *p = &all->program[rank];

    return p->gone != NULL && p->gone[node];
}

bool sim_programs_left_out(const struct sim_programs *p, uint32_t part)
{
    return (p->left_out & UINT64_C(1) << part % 64) != 0;
}
