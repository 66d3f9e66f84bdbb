/* Messages between programs, and calls that a daemon refuses. */
#include "tests/sim/program_data.h"

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

void sim_program_refused(struct program *p, const struct group_call *call, uint32_t index,
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

bool sim_is_message(enum group_operation operation)
{
    return operation == SIM_MESSAGES || operation == SIM_GATHERED;
}

uint32_t sim_message_distance(const struct sim_call *call, uint32_t members)
{
    return 1 + call->root % (members - 1);
}

#define GATHERED_TAGS 1000u /* of SIM_GATHERED, from this one on */

void sim_program_send(struct program *p, struct sim_made *m, const struct group_call *call)
{
    const struct sim_team team = sim_team_of(p, call->part);
    const uint32_t distance = sim_message_distance(&m->call, team.size);
    const bool first = chance_below(&p->all->chance, 2) == 0;
    struct error e;

    m->left = 2;
    for (unsigned i = 0; i < 2 && !p->gives_up; i++) {
        const bool sends = (i == 0) == first;
        const struct member_message message = {
            .sends = sends,
            .peer = !sends && m->call.any && chance_below(&p->all->chance, 2) == 0
                        ? GROUP_ANY_MEMBER
                        : (team.rank + (sends ? distance : team.size - distance)) % team.size,
            .tag = m->call.root,
            .area = sends ? call->send : call->receive,
            .timeout_ns = call->timeout_ns};
        if (group_message(p->group, &message, m->index, &e) != 0)
            sim_program_refused(p, call, m->index, &e);
    }
}

void sim_program_gather(struct program *p, struct sim_made *m, const struct group_call *call)
{
    const struct sim_team team = sim_team_of(p, call->part);
    const bool receives = team.rank == m->call.root;
    struct error e;

    m->left = receives ? team.size - 1 : 1;
    if (receives)
        m->sender = sim_alloc(team.size * sizeof *m->sender);
    for (uint32_t i = 0; i < m->left && !p->gives_up; i++) {
        struct member_message message = {.sends = !receives,
                                         .peer = receives ? GROUP_ANY_MEMBER : m->call.root,
                                         .tag = GATHERED_TAGS + m->index,
                                         .area = receives ? call->receive : call->send,
                                         .timeout_ns = call->timeout_ns};
        message.area.offset += receives ? i * m->call.size : 0;
        message.area.size = m->call.size;
        if (receives)
            m->sender[i] = GROUP_ANY_MEMBER;
        if (group_message(p->group, &message, m->index + i * SIM_MESSAGE_STEP, &e) != 0)
            sim_program_refused(p, call, m->index, &e);
    }
}
