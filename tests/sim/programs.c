#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/arithmetic.h"
#include "tests/sim/internal.h"
#include "tests/sim/program_data.h"
#include "tests/sim/program_internal.h"
#include "tests/sim/programs.h"

static void sim_programs_disturb(struct sim_programs *all);

static void sim_programs_fail(struct sim_programs *all);

static uint32_t sim_program_next_call(struct program *p);

static void sim_program_call(struct program *p, uint32_t index);

static bool sim_call_may_pass(const struct sim_call *a, const struct sim_call *b);

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

    while (*at != NULL && ((*at)->index != name % SIM_MESSAGE_STEP || (*at)->completed))
        at = &(*at)->next;
    if (*at == NULL || e != NULL)
        sim_violated(p->all->sim, "calls", "node %u is told of call %llu twice, or of a failure",
                     p->rank, (unsigned long long)name);
    struct sim_made *m = *at;
    if (--m->left > 0)
        return;
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

/* The program is told who has sent a message that it receives from any member. */
static void on_received(void *context, uint64_t name, uint32_t from)
{
    struct program *p = context;
    const struct sim_made *m = p->made;

    while (m != NULL && (m->index != name % SIM_MESSAGE_STEP || m->completed))
        m = m->next;
    if (m == NULL)
        sim_violated(p->all->sim, "calls", "node %u is told who has sent a message of call %llu",
                     p->rank, (unsigned long long)name);
    else if (m->sender != NULL)
        m->sender[name / SIM_MESSAGE_STEP] = from;
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
    const struct group_client client = {p,       on_opened, on_called,  on_ended,
                                        on_late, NULL,      on_received};
    const struct group_options options = {
        .name = p->all->set.name,
        .user = 1000 + p->rank % 3,
        .timeout_ns = p->all->set.timeout,
        .unchecked = p->all->set.unchecked,
        .trace = p->all->set.trace,
        .members = p->all->set.lists != NULL ? p->all->set.lists[p->rank] : p->all->set.members,
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
    const struct spec spec = {.members = setup->members != NULL ? setup->members : ""};

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
        all->program[rank].dead = !spec_is_member(&spec, rank);
        if (all->program[rank].dead)
            continue;
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

#define PARTS 256u

/* Call these when a program does something that may fail the group, or that fails it. */
static void sim_programs_disturb(struct sim_programs *all)
{
    all->disturbances++;
    if (all->disturbed_at > sim_now(all->sim))
        all->disturbed_at = sim_now(all->sim);
}

/* The sequence of calls that a call belongs to. */
static uint32_t order_of(const struct sim_call *call)
{
    return call->operation == GROUP_PART ? 0 : call->part;
}

/* Notes that the program's group must fail now. */
static void sim_programs_fail(struct sim_programs *all)
{
    if (all->failed_at > sim_now(all->sim))
        all->failed_at = sim_now(all->sim);
}

static bool has_part(const struct program *p, uint32_t part)
{
    const struct sim_programs_setup *set = &p->all->set;

    for (uint32_t i = 0; i < set->calls; i++)
        if (set->call[i].operation == GROUP_PART && set->call[i].part == part)
            return p->has_called[i];
    return part == 0;
}

/* The next call to make: the first, or the next one of any part. Returns `calls` if there is none. */
static uint32_t sim_program_next_call(struct program *p)
{
    const struct sim_programs_setup *set = &p->all->set;
    bool seen[PARTS] = {0};
    uint32_t found = set->calls;
    unsigned choices = 0;

    for (uint32_t i = 0; i < set->calls; i++) {
        uint32_t order = order_of(&set->call[i]);
        if (p->has_called[i] || seen[order])
            continue;
        seen[order] = true;
        if (!set->shuffle)
            return i;
        if (has_part(p, order) && chance_below(&p->all->chance, ++choices) == 0)
            found = i;
    }
    return found;
}

/* Invalid calls are refused, without any other effect. */
static void call_wrongly(struct program *p, const struct group_call *right, uint32_t members)
{
    struct sim_programs *all = p->all;
    struct group_call call = *right;
    unsigned kind = (unsigned)chance_below(&all->chance, 12);
    struct error e;

    if (kind == 0) {
        call.operation = (enum group_operation)(20 + chance_below(&all->chance, 100));
    } else if (kind == 1) {
        call.operation = GROUP_BROADCAST;
        call.root = members;
    } else if (kind == 2) {
        call.operation = GROUP_ALLTOALL;
        call.in_place = false;
        call.size = call.receive.memory->size;
    } else if (kind == 3) {
        call.operation = GROUP_ALLREDUCE;
        call.type = REDUCTION_FLOAT32;
        call.operator= REDUCTION_XOR;
    } else if (kind == 4) {
        call.operation = GROUP_PART;
        call.part = 1u << all->torus->dims;
    } else if (kind == 5) {
        call.operation = GROUP_REDUCE;
        call.root = members;
    } else if (kind == 7) { /* at no member */
        call.operation = GROUP_GATHER;
        call.root = members;
    } else if (kind == 8) { /* elsewhere than at the root, or into no memory */
        call.operation = GROUP_GATHER;
        call.in_place = true;
        call.size = call.receive.memory->size + 1;
    } else if (kind == 9) { /* at no member */
        call.operation = GROUP_SCATTER;
        call.root = members;
    } else if (kind == 10) { /* elsewhere than at the root, or from no memory */
        call.operation = GROUP_SCATTER;
        call.in_place = true;
        call.size = call.receive.memory->size + 1;
    } else if (kind == 6) { /* elsewhere than at the root, or into no memory */
        call.operation = GROUP_REDUCE;
        call.in_place = true;
        call.size = call.receive.memory->size + 1;
    } else {
        call.receive.offset = call.receive.memory->size + 1;
        call.operation = GROUP_ALLGATHER;
    }
    if (all->disturbances == 0 && sim_harms(all->sim) == 0 && p->error.code == ERROR_NONE &&
        group_call(p->group, &call, UINT64_MAX, &e) == 0)
        sim_violated(all->sim, "wrong calls", "node %u: one of kind %u is accepted", p->rank, kind);
}

/* Whether the group may succeed if one program makes one of these calls and the others make the other. */
static bool sim_call_may_pass(const struct sim_call *a, const struct sim_call *b)
{
    bool reduces = a->operation == GROUP_ALLREDUCE || a->operation == GROUP_REDUCE_SCATTER ||
                   a->operation == GROUP_REDUCE;

    if (a->operation != b->operation)
        return false;
    if (a->operation == GROUP_ALLTOALLV || a->operation == GROUP_ALLGATHERV)
        return true; /* the resulting sizes may be equal */
    if ((sim_is_rooted(a->operation) || sim_is_message(a->operation)) && a->root != b->root)
        return false;
    if (reduces && (a->type != b->type || a->operator!= b->operator))
        return false;
    return a->operation == GROUP_REDUCE_SCATTER || a->size == b->size;
}

/* The call that the program makes by mistake instead of this one. */
static void take_mistake(struct program *p, struct sim_made *m)
{
    struct sim_programs *all = p->all;

    if (p->mistake.operation == 0 || m->call.operation == GROUP_PART)
        return;
    p->mistake.part = m->call.part;
    p->mistake.root %=
        sim_team_of(p, m->call.part != 0 ? m->call.part : sim_all_dimensions(all->torus)).size;
    sim_programs_disturb(all);
    m->call = p->mistake;
    if (p->instead == NULL)
        p->instead = sim_alloc(all->set.calls * sizeof *p->instead);
    p->instead[m->index] = m->call;
    p->mistake.operation = 0;
}

/* Makes this call. */
static void sim_program_call(struct program *p, uint32_t index)
{
    struct sim_programs *all = p->all;
    struct sim_made *m = sim_alloc(sizeof *m);
    struct sim_shape s;
    struct group_call call;
    struct error e;

    *m = (struct sim_made){.index = index, .left = 1, .call = all->set.call[index]};
    take_mistake(p, m);
    if (m->call.timeout > 0) /* the mistake may have no effect */
        sim_programs_disturb(all);
    sim_made_prepare(p, m, &s, &call);
    if (all->set.careless && !sim_is_message(m->call.operation) &&
        chance_below(&all->chance, 8) == 0)
        call_wrongly(p, &call, sim_team_of(p, call.part).size);
    m->next = p->made;
    p->made = m;
    p->calls++;
    p->under_way++;
    p->has_called[index] = true;
    all->moved_at = sim_now(all->sim);
    if (m->call.operation == SIM_MESSAGES)
        sim_program_send(p, m, &call);
    else if (m->call.operation == SIM_GATHERED)
        sim_program_gather(p, m, &call);
    else if (group_call(p->group, &call, m->index, &e) != 0)
        sim_program_refused(p, &call, m->index, &e);
}

/* Random calls for programs. */

enum group_operation sim_any_operation(struct chance *c)
{
    enum group_operation operation;

    do
        operation = GROUP_ALLTOALL + (enum group_operation)chance_below(c, GROUP_OPERATIONS - 1);
    while (operation == GROUP_PART || !group_operation_exists(operation));
    return operation;
}

bool sim_may_be_in_place(enum group_operation operation)
{
    return operation == GROUP_ALLGATHER || operation == GROUP_ALLGATHERV ||
           operation == GROUP_ALLREDUCE ||
           (sim_is_rooted(operation) && operation != GROUP_BROADCAST);
}

struct sim_call sim_any_call(struct chance *c, const struct torus *t)
{
    static const uint64_t sizes[] = {0, 1, 3, 8, 64, 65, 1000, 4096, 5000, 20000};
    uint64_t size = sizes[chance_below(c, sizeof sizes / sizeof *sizes)];
    struct sim_call call = {
        .operation = sim_any_operation(c),
        .type = (enum reduction_type)(1 + chance_below(c, REDUCTION_TYPES - 1)),
        .operator=(enum reduction_operator)(1 + chance_below(c, REDUCTION_OPERATORS - 1)),
        .size = chance_below(c, 25) == 0 ? 20000 + chance_below(c, 60000) : size,
        .root = (uint32_t)chance_below(c, t->nodes),
    };

    if (!reduction_allowed(call.type, call.operator))
        call.operator= REDUCTION_SUM;
    call.in_place = chance_below(c, 3) == 0 && sim_may_be_in_place(call.operation);
    return call;
}
