/* The calls of a part, in their order.
 *
 * A call starts here when the program has made it and all before it are complete here, but perhaps for
 * the one right before it. So when one to which every member contributes is complete, all members have
 * completed the one before the last and all before that: frames of at most two such calls can come
 * before their call has been made. Of a broadcast nobody hears whether it has arrived, and of a reduce only
 * its root: of such calls GROUP_UNPROVEN_MOST can come too early, with no more bytes than an eager call may
 * have. Before one more a barrier of the group's own is put in, which no program waits for.
 *
 * A small call needs no leave: its engine sends at once, from a copy, and what comes too early is
 * parked (parking.c). A reduce is complete at a member that is not its root when what it has to send is on
 * its way, and it is over everywhere when it is complete at the root. A large call begins when a wave has
 * told that all have called, goes on in rounds that waves keep together, and is complete when the last wave
 * has told that all have all.
 *
 * When a link goes down all calls that are not over everywhere are made again, on other routes: also by
 * members where they are complete, from what they have kept (agreement.c). A large call that is complete
 * somewhere is over everywhere. What a small one sends, or its result if it is a reduction that all get,
 * is kept until a later call tells that it is over. */
#include <string.h>

#include "daemon/group/internal.h"

/* --- what has not ended in time --- */

#define CENSUS_TIME (2 * SECONDS)

static void fail_overdue(const struct call *c, const char *whom)
{
    struct error e;

    (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.3f s%s%s",
                    group_operation_name(c->what.call.operation),
                    (double)c->what.call.timeout_ns / 1e9, *whom != '\0' ? ": " : "", whom);
    session_fail(c->part->session, &e);
}

void calls_overdue(struct call *c, uint64_t now)
{
    if (!c->watch.overdue) {
        c->watch.overdue = true;
        c->watch.deadline = now + CENSUS_TIME;
        census_ask(c->part->session, c);
        return;
    }
    fail_overdue(c, c->watch.all_called ? CENSUS_ALL_CALLED : "");
}

void calls_late(struct call *c, uint64_t now)
{
    c->watch.late_at = now + c->what.call.late_ns;
    census_ask(c->part->session, c);
}

void calls_reported(struct part *p, uint32_t number, bool asked, bool all_called, const char *whom)
{
    struct group *program = p->session->group;
    struct call *c = p->calls;

    while (c != NULL && (uint32_t)c->number != number)
        c = c->next;
    if (c == NULL)
        return;
    c->watch.all_called = all_called;
    if (c->watch.overdue) {
        if (!all_called) /* else it may be about to end */
            fail_overdue(c, whom);
    } else if (c->watch.late_at != ROUTER_NEVER) {
        if (!asked || program == NULL || c->internal || call_is_for_others(c) ||
            group_call_late(program, c, whom))
            c->watch.late_at = ROUTER_NEVER; /* only one program is told */
    }
}

/* --- what two members call differently --- */

bool signatures_differ(const struct part *p, uint32_t ours, uint32_t other_ones, unsigned port,
                       struct error *e)
{
    uint32_t other = part_member(p, torus_neighbour(p->torus, p->rank, port));
    uint32_t own = ours & 15, theirs = other_ones & 15;

    if (ours == other_ones)
        return false;
    if (own == GROUP_LEAVE || theirs == GROUP_LEAVE)
        (void)error_set(e, ERROR_USAGE, "member %u has left the group, member %u calls %s",
                        own == GROUP_LEAVE ? p->own : other, own == GROUP_LEAVE ? other : p->own,
                        group_operation_name(own == GROUP_LEAVE ? theirs : own));
    else if (own != theirs)
        (void)error_set(e, ERROR_USAGE, "member %u calls %s, member %u %s", p->own,
                        group_operation_name(own), other, group_operation_name(theirs));
    else
        (void)error_set(e, ERROR_USAGE,
                        "members %u and %u call %s with different sizes, root, type or operator",
                        p->own < other ? p->own : other, p->own < other ? other : p->own,
                        group_operation_name(own));
    return true;
}

bool call_differs(const struct call *c, const Peer__GroupCall *mark, unsigned port, struct error *e)
{
    return signatures_differ(c->part, c->signature, mark->signature, port, e);
}

/* That is not complete here. */
static uint64_t calls_first(const struct part *p)
{
    return p->calls != NULL ? p->calls->number : p->next_number;
}

int calls_find(const struct part *p, const Peer__GroupCall *mark, struct call **call,
               struct error *e)
{
    uint64_t first = calls_first(p);
    uint64_t ahead = (mark->number / STAGES_A_CALL - first) & CALL_MASK;

    *call = NULL;
    if (mark->number / STAGES_A_CALL > CALL_MASK || mark->number % STAGES_A_CALL >= STAGES)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of a call that cannot be (%u)",
                         p->session->name, mark->number);
    if (ahead >= GROUP_WINDOW) {
        (void)error_set(e, ERROR_USAGE,
                        "members call differently: one calls %s, which has ended at member %u as "
                        "another operation",
                        group_operation_name(mark->signature & 15), p->own);
        return 1;
    }
    for (struct call *c = p->calls; c != NULL; c = c->next)
        if (c->number == first + ahead)
            *call = c;
    return 0;
}

/* --- going on --- */

/* Of an uneven exchange it is not known before the first wave. */
static bool may_be_large(const struct call *c)
{
    return c->large || c->what.call.operation == GROUP_ALLTOALLV;
}

/* All before it are complete, but perhaps for the last, unless both are large. */
static bool may_start(const struct call *c)
{
    for (const struct call *other = c->part->calls; other != c; other = other->next)
        if (!call_is_complete(other) &&
            (other->number + 1 != c->number || (may_be_large(other) && may_be_large(c))))
            return false;
    return c->part->decided || c->what.call.operation == GROUP_PART;
}

/* Waves that have to be heard before its data moves. Of an uneven exchange the first tells what is to
 * be planned; the last says that all have planned it, so that nothing large has to be parked. */
static uint64_t gates_of(const struct call *c)
{
    return c->large && c->what.call.operation == GROUP_ALLTOALLV ? 2 : 1;
}

/* Of its data, that all have finished, as a large call's waves tell. */
static uint64_t rounds_settled(const struct call *c)
{
    uint64_t heard =
        c->attempt.engine[STAGE_WAVE] != NULL ? c->attempt.engine[STAGE_WAVE]->rounds_finished : 0;

    return heard > gates_of(c) ? heard - gates_of(c) : 0;
}

/* Its engines send what they may by now. */
static void admit(struct call *c)
{
    struct engine *wave = c->attempt.engine[STAGE_WAVE], *data = c->attempt.engine[STAGE_DATA];
    uint64_t heard = wave != NULL ? wave->rounds_finished : 0, gates = gates_of(c);

    while (
        data != NULL && c->attempt.admitted < c->attempt.rounds &&
        c->attempt.admitted < data->rounds_finished + c->attempt.window &&
        (!c->large || (heard >= gates && c->attempt.admitted < heard - gates + c->attempt.window)))
        engine_admit(data, c->attempt.admitted++);
    /* The gates first: of a large call, the last of them when its data could be taken in here. Each
     * other round when one of the data has been finished here. */
    while (wave != NULL &&
           ((c->attempt.waved == 0 && !c->large) ||
            (c->large && data != NULL && c->attempt.waved < c->attempt.rounds + gates &&
             c->attempt.waved < data->rounds_finished + gates)))
        engine_admit(wave, c->attempt.waved++);
}

/* Whether there is anything but the waves. */
static bool moves(const struct call *c)
{
    return c->what.call.operation == GROUP_ALLTOALLV ? c->attempt.wave.result > 0
                                                     : c->what.total > 0;
}

static bool is_complete(const struct call *c)
{
    const struct engine *wave = c->attempt.engine[STAGE_WAVE],
                        *data = c->attempt.engine[STAGE_DATA];

    if (wave != NULL && wave->rounds_finished == 0)
        return false;
    if (!moves(c))
        return wave != NULL;
    if (data == NULL || data->rounds_finished < c->attempt.rounds)
        return false;
    return !c->large || wave->rounds_finished == c->attempt.rounds + gates_of(c);
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

/* The table of this part's algorithms has come. */
static int take_table(struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    uint32_t mask = c->what.call.part;
    struct part *p = part_find(s, mask);

    if (decisions_unpack(&p->decisions, c->what.call.receive.memory->data, p->torus, e) != 0)
        return -1;
    p->decided = true;
    s->due = s->all->due = true; /* its calls may have waited for that */
    return 0;
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << number % 64;
}

/* This member is the root of a reduce, to which all members contribute. */
static bool is_reduced_here(const struct call *c)
{
    return c->what.call.operation == GROUP_REDUCE && c->what.call.root == c->part->own;
}

/* Whether it is over at all members when it is complete here: all its data is where it belongs. */
static bool ends_everywhere(const struct call *c)
{
    return c->large || !moves(c) || is_reduced_here(c);
}

/* `everywhere`: it is over at all members. */
static int complete(struct call *c, bool everywhere, struct error *e)
{
    struct session *s = c->part->session;
    const bool told = call_is_for_others(c);

    if (blocks_are_there(&c->blocks) && blocks_check(&c->blocks, e) != 0)
        return error_wrap(e, "%s", group_operation_name(c->what.call.operation));
    call_enter(c, CALL_COMPLETE);
    c->over = everywhere ? CALL_OVER_EVERYWHERE : CALL_OVER_HERE;
    if (everywhere)
        c->part->everywhere |= bit_of(c->number);
    else
        c->part->everywhere &= ~bit_of(c->number);
    if (told)
        return 0;
    if (c->what.call.operation == GROUP_PART && take_table(c, e) != 0)
        return -1;
    if (c->what.call.operation == GROUP_PART && c->what.call.part == 0 && s->group != NULL)
        group_is_open(s->group);
    if ((uint32_t)c->what.call.operation == GROUP_LEAVE)
        session_is_over(s);
    if (!c->internal && s->group != NULL)
        group_call_complete(s->group, c);
    return 0;
}

/* The first member makes the table that all of them take. Returns 1; 0 if schedules are being counted; or -1. */
static int make_table(struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    const struct predict_costs costs = exchanges_costs(s->all->exchanges);
    struct part *p = part_find(s, c->what.call.part);
    struct decisions made;
    int result = decisions_make(&made, p->planner, p->torus, &costs, e);

    if (result <= 0)
        return result;
    decisions_log(&made, s->name);
    if (decisions_pack(&made, c->what.call.receive.memory->data, e) != 0)
        return -1;
    c->blocks.ready = true;
    engine_wake(c->attempt.engine[STAGE_DATA]);
    return 1;
}

static int start(struct call *c, struct error *e)
{
    unsigned port;
    const Peer__GroupCall *other =
        parked_differs(c->part, (uint32_t)(c->number & CALL_MASK), c->signature, &port);

    if (other != NULL && call_differs(c, other, port, e))
        return -1;
    call_enter(c, CALL_OPENING);
    c->watch.compare_at = router_now(c->part->session->base.set.router) + COMPARE_AFTER;
    return 0;
}

/* Returns 0, or -1 with *e. */
static int open_call(struct call *c, struct error *e)
{
    const bool makes_table =
        c->what.call.operation == GROUP_PART && c->part->own == 0 && !call_spreads(c);
    const bool first = c->attempt.engine[STAGE_DATA] == NULL;
    int open = stages_open(c, e);

    if (open > 0 && makes_table) {
        if (first)
            c->blocks.ready = false;
        open = make_table(c, e);
    }
    if (open > 0)
        call_enter(c, CALL_RUNNING);
    return open < 0 ? -1 : 0;
}

/* Returns 0, or -1 with *e: the session fails. */
static int advance(struct call *c, struct error *e)
{
    if (call_is_queued(c) && may_start(c) && start(c, e) != 0)
        return -1;
    if (call_is_opening(c) && open_call(c, e) != 0)
        return -1;
    if (!call_is_under_way(c))
        return 0;
    admit(c);
    if (blocks_are_there(&c->blocks) && c->blocks.undo != NULL)
        blocks_settle(&c->blocks, c->skip + rounds_settled(c) * c->attempt.round_bytes);
    if (check_engines(c, e) != 0)
        return -1;
    return !call_is_opening(c) && is_complete(c) ? complete(c, ends_everywhere(c), e) : 0;
}

/* Whether its end tells that all members have made it. */
static bool tells(const struct call *c)
{
    return c->waves || is_reduced_here(c) || !check_is_unproven(c->what.call.operation);
}

/* All members have completed the calls before this one. */
static void forget_before(struct part *p, uint64_t number)
{
    while (p->kept != NULL && p->kept->number < number)
        call_free(p->kept);
}

void calls_forget(struct part *p)
{
    forget_before(p, UINT64_MAX);
}

/* It is complete: kept, unless it is over everywhere. Returns 0, or -1 with *e. */
static int retire(struct call *c, struct error *e)
{
    if (tells(c) && c->number > 0)
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

/* Returns 0, or -1 with *e. */
static int retire_all(struct part *p, struct error *e)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->calls, c, next)
        if (call_is_complete(c) && retire(c, e) != 0)
            return -1;
    return 0;
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
            if (advance(c, &e) != 0) {
                session_fail(s, &e);
                return;
            }
            again = again || c->state != before || c->attempt.waved != waved ||
                    c->attempt.admitted != admitted;
        }
        if (retire_all(p, &e) != 0) {
            session_fail(s, &e);
            return;
        }
    }
}

/* --- when a link has gone down --- */

/* How far it has come is kept for the agreement. */
static void suspend(struct call *c)
{
    const struct engine *data = c->attempt.engine[STAGE_DATA];

    c->watch.overdue = false;
    if (c->part->agreed) { /* else what it was when the first link went down still holds */
        c->suspended.whole = data != NULL && data->rounds_finished == c->attempt.rounds;
        c->suspended.finished = c->suspended.settled = c->skip;
        if (c->large && data != NULL) {
            c->suspended.finished += data->rounds_finished * c->attempt.round_bytes;
            c->suspended.settled += rounds_settled(c) * c->attempt.round_bytes;
        }
    }
    if (c->state != CALL_SUSPENDED)
        call_enter(c, CALL_SUSPENDED);
}

void calls_suspend(struct part *p)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->calls, c, next) {
        struct error e;
        if (!call_is_complete(c))
            suspend(c);
        else if (retire(c, &e) != 0)
            call_free(c); /* whoever needs it fails */
    }
}

/* The call of this number, if it is not over here. */
static const struct call *find(const struct part *p, uint64_t number)
{
    const struct call *c = p->calls;

    while (c != NULL && c->number != number)
        c = c->next;
    return c;
}

void calls_say(const struct part *p, struct agreed *agreed)
{
    const uint64_t first = calls_first(p), half = AGREEMENT_CALLS / 2;

    agreed->first = first;
    for (uint64_t n = first > half ? first - half : 0; n < first + half; n++) {
        const struct call *c = find(p, n);
        uint64_t i = n % AGREEMENT_CALLS;
        if (c != NULL) {
            agreed->settled[i] = c->suspended.settled;
            if (call_is_for_others(c)) /* it was being made again, and is still over here */
                agreed->over[i] = OVER_SOMEWHERE;
        } else if (n < p->next_number) {
            agreed->over[i] = (p->everywhere & bit_of(n)) != 0 ? OVER_EVERYWHERE : OVER_SOMEWHERE;
        }
    }
}

/* It is over everywhere, as all its data was here when the link went down. */
static int end_here(struct call *c, struct error *e)
{
    if (c->what.total > 0 && !c->suspended.whole)
        return error_set(e, ERROR_PROTOCOL,
                         "%s is said to be over everywhere, but not all of it has come",
                         group_operation_name(c->what.call.operation));
    return complete(c, true, e);
}

/* What was sent is sent again if it is still there. */
static void renew_blocks(struct call *c)
{
    struct blocks *b = &c->blocks;

    blocks_settle(b, c->skip);
    blocks_restore(b);
    if (call_is_for_others(c) || (b->copied && !call_spreads(c) && c->skip == 0))
        blocks_again(b);
    else
        blocks_free(b);
}

/* It is made like a new one, but for what is settled. */
static int make_again(struct call *c, uint64_t settled, struct error *e)
{
    if (settled > c->suspended.finished)
        return error_set(e, ERROR_PROTOCOL, "more of %s is said to be over than has come",
                         group_operation_name(c->what.call.operation));
    c->skip = settled;
    call_choose_size(c);
    if (c->what.call.operation == GROUP_PART && !call_is_for_others(c))
        memset(c->what.call.receive.memory->data, 0, TABLE_BYTES);
    if (blocks_are_there(&c->blocks))
        renew_blocks(c);
    call_enter(c, CALL_QUEUED);
    return 0;
}

/* What is kept, and not over everywhere, is made again for others. */
static void take_out_kept(struct part *p, const struct agreed *agreed)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->kept, c, next)
        if (c->number >= agreed->first &&
            agreed->over[c->number % AGREEMENT_CALLS] != OVER_EVERYWHERE)
            call_enter(c, CALL_SUSPENDED);
}

int calls_resume(struct part *p, const struct agreed *agreed, struct error *e)
{
    const uint64_t first = agreed->first, here = calls_first(p);
    struct call *c, *next;

    if (first > here || here - first > AGREEMENT_CALLS / 2)
        return error_set(e, ERROR_PROTOCOL, "members do not agree which calls are over");
    take_out_kept(p, agreed);
    for (uint64_t n = first; n < here; n++)
        if (agreed->over[n % AGREEMENT_CALLS] != OVER_EVERYWHERE && find(p, n) == NULL)
            return error_set(e, ERROR_PROTOCOL,
                             "a call is to be made again that member %u does not have any more",
                             p->own);
    DL_FOREACH_SAFE (p->calls, c, next) {
        bool known = c->number - first < AGREEMENT_CALLS / 2;
        uint64_t over = known ? agreed->over[c->number % AGREEMENT_CALLS] : OVER_NOWHERE;
        uint64_t settled = known ? agreed->settled[c->number % AGREEMENT_CALLS] : 0;
        if (!call_is_for_others(c))
            c->over = over == OVER_SOMEWHERE ? CALL_OVER_ELSEWHERE : CALL_OVER_NOWHERE;
        if (over == OVER_EVERYWHERE ? end_here(c, e) != 0 : make_again(c, settled, e) != 0)
            return -1;
    }
    return retire_all(p, e);
}
