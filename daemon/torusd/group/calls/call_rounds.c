#include "daemon/torusd/group/calls/call_rounds.h"

/* Returns how many waves must be heard before the call's data moves. A large uneven exchange has two: the first
 * tells the size of the largest block, and the second that all members have made their plans, so that no large
 * data arrives early. */
static uint64_t gates_of(const struct call *c)
{
    return c->large && c->what.call.operation == GROUP_ALLTOALLV ? 2 : 1;
}

uint64_t call_rounds_settled(const struct call *c)
{
    uint64_t heard =
        c->attempt.engine[STAGE_WAVE] != NULL ? c->attempt.engine[STAGE_WAVE]->rounds_finished : 0;

    return heard > gates_of(c) ? heard - gates_of(c) : 0;
}

static uint64_t in_flight(const struct call *c)
{
    return c->attempt.admitted - call_rounds_settled(c);
}

/* The call before this one, if it is not complete, and its data may be large. */
static const struct call *large_before(const struct call *c)
{
    const struct call *before = NULL;

    for (const struct call *other = c->part->calls; other != c; other = other->next)
        if (!call_is_complete(other))
            before = other;
    return before != NULL && (before->large || before->what.call.operation == GROUP_ALLTOALLV)
               ? before
               : NULL;
}

/* Whether the memory has room for one more round of a large call, beside those of the large call before it, which
 * comes first: the rounds of both that are on their way are a window together. */
static bool has_room(const struct call *c)
{
    const struct call *before = c->large ? large_before(c) : NULL;

    if (before == NULL)
        return true;
    if (before->attempt.engine[STAGE_DATA] == NULL ||
        before->attempt.admitted < before->attempt.rounds)
        return false;
    if (!before->large)
        return true;
    return in_flight(before) * c->attempt.window + (in_flight(c) + 1) * before->attempt.window <=
           (uint64_t)c->attempt.window * before->attempt.window;
}

void call_rounds_admit(struct call *c)
{
    struct engine *wave = c->attempt.engine[STAGE_WAVE], *data = c->attempt.engine[STAGE_DATA];
    uint64_t heard = wave != NULL ? wave->rounds_finished : 0, gates = gates_of(c);

    while (
        data != NULL && c->attempt.admitted < c->attempt.rounds &&
        c->attempt.admitted < data->rounds_finished + c->attempt.window && has_room(c) &&
        (!c->large || (heard >= gates && c->attempt.admitted < heard - gates + c->attempt.window)))
        engine_admit(data, c->attempt.admitted++);
    /* The first waves come before the data. In a large call, the last of these waves starts when this member is
     * ready for data; each later wave starts when this member has finished one more round. */
    while (wave != NULL &&
           ((c->attempt.waved == 0 && !c->large) ||
            (c->large && data != NULL && c->attempt.waved < c->attempt.rounds + gates &&
             c->attempt.waved < data->rounds_finished + gates)))
        engine_admit(wave, c->attempt.waved++);
}

bool call_moves_data(const struct call *c)
{
    return c->what.call.operation == GROUP_ALLTOALLV ? c->attempt.wave.result > 0
                                                     : c->what.total > 0;
}

bool call_rounds_are_over(const struct call *c)
{
    const struct engine *wave = c->attempt.engine[STAGE_WAVE],
                        *data = c->attempt.engine[STAGE_DATA];

    if (wave != NULL && wave->rounds_finished == 0)
        return false;
    if (!call_moves_data(c))
        return wave != NULL;
    if (data == NULL || data->rounds_finished < c->attempt.rounds)
        return false;
    return !c->large || wave->rounds_finished == c->attempt.rounds + gates_of(c);
}
