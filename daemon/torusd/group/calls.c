#include "daemon/torusd/group/calls.h"

#include <utlist.h>

#include "daemon/torusd/group/algorithm_table.h"
#include "daemon/torusd/group/early_frames.h"

/* --- rounds --- */

/* Returns how many waves must be heard before the call's data moves. */
static uint64_t gates_of(const struct call *c)
{
    return call_waves_before_data(c) + (c->attempt.level > 0);
}

uint64_t call_rounds_finished_by_all(const struct call *c)
{
    uint64_t heard =
        c->attempt.engine[STAGE_WAVE] != NULL ? c->attempt.engine[STAGE_WAVE]->rounds_finished : 0;

    return heard > gates_of(c) ? heard - gates_of(c) : 0;
}

static uint64_t in_flight(const struct call *c)
{
    return c->attempt.admitted - call_rounds_finished_by_all(c);
}

/* The call before this one, if it is not complete, and its data may be large. */
static const struct call *large_before(const struct call *c)
{
    const struct call *before = NULL;

    for (const struct call *other = c->part->calls; other != c; other = other->next)
        if (!call_is_complete(other))
            before = other;
    return before != NULL && (before->large || before->what.collective->measured) ? before : NULL;
}

/* Whether the memory has room for one more round of a large call, beside those of the large call before it, which
 * comes first: the rounds of both share one window. */
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

/* Lets the call's engines send the rounds that they may send now. */
static void call_rounds_admit(struct call *c)
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

/* Whether the call has data besides its waves. */
static bool call_moves_data(const struct call *c)
{
    return c->what.collective->measured ? c->attempt.wave_result[0] > 0 : c->what.total > 0;
}

/* Whether all waves and data have arrived, and what others need from this member has been sent. */
static bool call_rounds_are_over(const struct call *c)
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

#define COMPARE_AFTER (250 * MILLISECONDS) /* how long a call may take before members compare it */

/* --- calls --- */

/* Whether the call may be large. An uneven exchange does not know that before its first wave. */
static bool may_be_large(const struct call *c)
{
    return c->large || c->what.collective->measured;
}

/* Large calls overlap only if they combine nothing: then their rounds share the memory for one of them
 * (call_rounds_admit()). */
static bool may_overlap(const struct call *before, const struct call *c)
{
    return !may_be_large(before) || !may_be_large(c) ||
           (!collective_combines(before->what.collective) &&
            !collective_combines(c->what.collective));
}

/* Whether all calls before this one are complete, except perhaps the last one, with which this one may overlap. */
static bool may_start(const struct call *c)
{
    for (const struct call *other = c->part->calls; other != c; other = other->next)
        if (!call_is_complete(other) && (other->number + 1 != c->number || !may_overlap(other, c)))
            return false;
    return c->part->has_table || c->what.call.operation == GROUP_PART;
}

static int check_engines(const struct call *c, struct error *e)
{
    for (unsigned stage = 0; stage < STAGES; stage++) {
        const struct error *failed =
            c->attempt.engine[stage] != NULL ? engine_failed(c->attempt.engine[stage]) : NULL;
        if (failed == NULL)
            continue;
        *e = *failed;
        return error_wrap(e, "%s", group_operation_name(c->what.call.operation));
    }
    return 0;
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << number % 64;
}

bool calls_were_over_everywhere(const struct part *p, uint64_t number)
{
    return (p->everywhere & bit_of(number)) != 0;
}

/* Whether this member is the root of a reduce, to which all members contribute. */
static bool is_reduced_here(const struct call *c)
{
    const struct collective *o = c->what.collective;

    return collective_combines(o) && o->result == RESULT_ROOT &&
           c->what.call.root == c->part->members.own;
}

/* Whether the call is over at all members when it is complete here: all its data has arrived. */
static bool ends_everywhere(const struct call *c)
{
    return c->large || !call_moves_data(c) || is_reduced_here(c);
}

int call_complete(struct call *c, bool everywhere, struct error *e)
{
    struct session *s = c->part->session;
    const bool told = call_is_for_others(c);

    if (blocks_are_there(&c->blocks) && blocks_end(&c->blocks, e) != 0)
        return error_wrap(e, "%s", group_operation_name(c->what.call.operation));
    call_enter(c, CALL_COMPLETE);
    c->over = everywhere ? CALL_OVER_EVERYWHERE : CALL_OVER_HERE;
    if (everywhere)
        c->part->everywhere |= bit_of(c->number);
    else
        c->part->everywhere &= ~bit_of(c->number);
    if (told)
        return 0;
    if (c->what.call.operation == GROUP_PART && part_table_take(c, e) != 0)
        return -1;
    if (c->what.call.operation == GROUP_PART && c->what.call.part == 0 && s->group != NULL)
        group_is_open(s->group);
    if ((uint32_t)c->what.call.operation == GROUP_LEAVE)
        session_is_over(s);
    if (!c->internal && s->group != NULL)
        group_call_complete(s->group, c);
    return 0;
}

static int start_call(struct call *c, struct error *e)
{
    const uint32_t number = (uint32_t)(c->number & CALL_MASK);
    const struct early_frame *early = NULL;
    struct peer_group_call mark;
    unsigned port;

    while ((early = early_frames_next(c->part, early, number, &mark, &port)) != NULL)
        if (call_differs(c, &mark, port, e))
            return -1;
    if (c->what.call.operation == GROUP_PART)
        part_table_begin(c);
    call_enter(c, CALL_OPENING);
    c->watch.compare_at = router_now(c->part->session->base.set.router) + COMPARE_AFTER;
    return 0;
}

/* Opens the call's engines. Returns 0, or -1 with *e. */
static int open_call(struct call *c, struct error *e)
{
    const bool makes_table = part_table_is_made_here(c);
    const bool first = c->attempt.engine[STAGE_DATA] == NULL;
    int open = call_engines_open(c, e);

    if (open > 0 && makes_table) {
        if (first)
            c->blocks.ready = false;
        open = part_table_make(c, e);
    }
    if (open > 0)
        call_enter(c, CALL_RUNNING);
    return open < 0 ? -1 : 0;
}

/* Continues a call as far as possible now. Returns 0, or -1 with *e: the caller fails the session. */
static int advance_call(struct call *c, struct error *e)
{
    if (call_is_queued(c) && may_start(c) && start_call(c, e) != 0)
        return -1;
    if (call_is_opening(c) && open_call(c, e) != 0)
        return -1;
    if (!call_is_under_way(c))
        return 0;
    if (c->large && call_engines_level(c, e) != 0)
        return -1;
    call_rounds_admit(c);
    if (c->blocks.overwritten != NULL)
        overwritten_forget(&c->blocks.overwritten,
                           c->skip + call_rounds_finished_by_all(c) * c->attempt.round_bytes);
    if (check_engines(c, e) != 0)
        return -1;
    return !call_is_opening(c) && call_rounds_are_over(c) ? call_complete(c, ends_everywhere(c), e)
                                                          : 0;
}

/* Whether the end of the call tells that all members have made it. */
static bool call_proves(const struct call *c)
{
    return c->waves || is_reduced_here(c) || c->what.collective->proves;
}

/* Frees kept calls before this number, because all members have completed them. */
static void forget_before(struct part *p, uint64_t number)
{
    while (p->kept != NULL && p->kept->number < number)
        call_free(p->kept);
}

void calls_forget(struct part *p)
{
    forget_before(p, UINT64_MAX);
}

int call_retire(struct call *c, struct error *e)
{
    if (call_proves(c) && c->number > 0)
        forget_before(c->part, c->number - 1);
    if (c->over == CALL_OVER_EVERYWHERE) {
        call_free(c);
        return 0;
    }
    if (blocks_keep(&c->blocks, e) != 0)
        return -1;
    program_memory_unref(c->what.call.send.memory);
    program_memory_unref(c->what.call.receive.memory);
    c->what.call.send.memory = c->what.call.receive.memory = NULL;
    call_enter(c, CALL_KEPT);
    return 0;
}

int calls_retire(struct part *p, struct error *e)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->calls, c, next)
        if (call_is_complete(c) && call_retire(c, e) != 0)
            return -1;
    return 0;
}

/* Gives memory for rounds back when no large call needs it. */
static void give_rounds(struct part *p)
{
    for (const struct call *c = p->calls; c != NULL; c = c->next)
        if (c->large)
            return;
    part_give_rounds(p);
}

void calls_advance(struct part *p)
{
    struct session *s = p->session;
    struct call *c;
    struct error e;
    bool again = true;

    if (!s->running || !p->agreed)
        return;
    while (again && s->base.failure.code == ERROR_NONE) {
        again = false;
        for (c = p->calls; c != NULL; c = c->next) {
            enum call_state before = c->state;
            uint64_t waved = c->attempt.waved, admitted = c->attempt.admitted;
            if (advance_call(c, &e) != 0) {
                session_fail(s, &e);
                return;
            }
            again = again || c->state != before || c->attempt.waved != waved ||
                    c->attempt.admitted != admitted;
        }
        if (calls_retire(p, &e) != 0) {
            session_fail(s, &e);
            return;
        }
    }
    if (s->grows && p->level != GROUP_ROUNDS_LAST)
        give_rounds(p);
}
