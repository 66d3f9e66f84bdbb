#include "tests/sim/program_calls.h"

#include "tests/sim/program_data.h"

#define PARTS 256u

void sim_programs_disturb(struct sim_programs *all)
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
void sim_programs_fail(struct sim_programs *all)
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
uint32_t sim_program_next_call(struct program *p)
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
    unsigned kind = (unsigned)chance_below(&all->chance, 10);
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
bool sim_call_may_pass(const struct sim_call *a, const struct sim_call *b)
{
    bool reduces = a->operation == GROUP_ALLREDUCE || a->operation == GROUP_REDUCE_SCATTER ||
                   a->operation == GROUP_REDUCE;

    if (a->operation != b->operation)
        return false;
    if (a->operation == GROUP_ALLTOALLV || a->operation == GROUP_ALLGATHERV)
        return true; /* the resulting sizes may be equal */
    if ((a->operation == GROUP_BROADCAST || a->operation == GROUP_REDUCE ||
         a->operation == GROUP_GATHER) &&
        a->root != b->root)
        return false;
    if (reduces && (a->type != b->type || a->operator!= b->operator))
        return false;
    return a->operation == GROUP_REDUCE_SCATTER || a->size == b->size;
}

/* Without the links that the group avoids, this part is not connected at some node: all programs leave out its
 * calls. */
static void leave_out(struct program *p, uint32_t part)
{
    const struct sim_programs_setup *set = &p->all->set;
    struct sim_made *refused = p->made;

    p->made = refused->next;
    sim_made_free(refused);
    p->under_way--;
    p->completed++;
    for (uint32_t i = 0; i < set->calls; i++)
        if (!p->has_called[i] && set->call[i].part == part) {
            p->has_called[i] = true;
            p->calls++;
            p->completed++;
        }
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

static void is_refused(struct program *p, const struct group_call *call, uint32_t index,
                       const struct error *e)
{
    struct sim_programs *all = p->all;

    if (call->operation == GROUP_PART && e->code == ERROR_LINK && sim_harms(all->sim) > 0) {
        all->left_out |= UINT64_C(1) << call->part % 64;
        leave_out(p, call->part);
        return;
    }
    if ((e->code != ERROR_MEMORY || sim_harms(all->sim) == 0) && !sim_has_lied(all->sim))
        sim_violated(all->sim, "calls", "node %u: call %u is refused: %s", p->rank, index, e->text);
    p->gives_up = true;
}

void sim_program_call(struct program *p, uint32_t index)
{
    struct sim_programs *all = p->all;
    struct sim_made *m = sim_alloc(sizeof *m);
    struct sim_shape s;
    struct group_call call;
    struct error e;

    *m = (struct sim_made){.index = index, .call = all->set.call[index]};
    take_mistake(p, m);
    if (m->call.timeout > 0) /* the mistake may have no effect */
        sim_programs_disturb(all);
    sim_made_prepare(p, m, &s, &call);
    if (all->set.careless && chance_below(&all->chance, 8) == 0)
        call_wrongly(p, &call, sim_team_of(p, call.part).size);
    m->next = p->made;
    p->made = m;
    p->calls++;
    p->under_way++;
    p->has_called[index] = true;
    all->moved_at = sim_now(all->sim);
    if (group_call(p->group, &call, m->index, &e) != 0)
        is_refused(p, &call, m->index, &e);
}
