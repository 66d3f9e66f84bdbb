/* The calls of a part, in their order.
 *
 * A call starts here when the program has made it and all but one of those before it are complete
 * here. So when one to which every member contributes is complete, all members have completed the one
 * before the last: frames of at most two such calls can come before their call has been made. After
 * GROUP_UNPROVEN_MOST others (of a broadcast nobody hears whether it has arrived) a barrier of the
 * group's own is put in, which no program waits for.
 *
 * A small call needs no leave: its engine sends at once, from a copy, and what comes too early is
 * parked (parking.c). A large one begins when a wave has told that all have called, goes on in
 * rounds that waves keep together, and is complete when the last wave has told that all have all. */
#include <stdlib.h>

#include "daemon/group/internal.h"

/* --- making --- */

static uint64_t deadline_of(const struct part *p, const struct group_call *call)
{
    uint64_t now = router_now(p->session->base.set.router);

    return call->timeout_ns > 0 && call->timeout_ns < ROUTER_NEVER - now ? now + call->timeout_ns
                                                                         : ROUTER_NEVER;
}

struct call *call_add(struct part *p, struct checked *what, uint64_t name, bool internal)
{
    struct call *c = calloc(1, sizeof *c);

    if (c == NULL) {
        checked_free(what);
        return NULL;
    }
    c->part = p;
    c->what = *what;
    c->name = name;
    c->internal = internal;
    c->number = p->next_number++;
    c->signature = check_signature(&c->what, p->members, p->session->unchecked);
    p->signature[c->number % SIGNATURES] = c->signature;
    c->deadline = deadline_of(p, &c->what.call);
    c->compare_at = ROUTER_NEVER;
    /* Of an uneven exchange only the first wave tells. */
    c->large = c->what.total > p->limits.eager && what->call.operation != GROUP_ALLTOALLV;
    c->waves = stages_need_wave(p, &c->what);
    c->rounds = 1;
    c->window = 1;
    DL_APPEND(p->calls, c);
    return c;
}

void call_free(struct call *c)
{
    struct part *p = c->part;

    for (unsigned stage = 0; stage < STAGES; stage++)
        engine_free(c->engine[stage]);
    if (c->wave.slab != NULL)
        slab_unref(c->wave.slab);
    if (c->has_blocks) {
        /* Kept until the call after the next is complete: all have it by then. */
        struct slab **copy = &p->copies[c->number % 2];
        if (*copy != NULL)
            slab_unref(*copy);
        *copy = !c->large && c->state == CALL_COMPLETE ? slab_ref(c->blocks.sent) : NULL;
        blocks_free(&c->blocks);
    }
    if (c->planned != NULL)
        planner_put(p->planner, c->planned);
    checked_free(&c->what);
    DL_DELETE(p->calls, c);
    free(c);
}

/* --- what has not ended in time --- */

#define CENSUS_TIME (2 * SECONDS)

void calls_overdue(struct call *c, uint64_t now)
{
    struct error e;

    if (!c->overdue) {
        c->overdue = true;
        c->deadline = now + CENSUS_TIME;
        census_ask(c->part->session, c);
        return;
    }
    (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.1f s",
                    group_operation_name(c->what.call.operation),
                    (double)c->what.call.timeout_ns / 1e9);
    session_fail(c->part->session, &e);
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

int calls_find(const struct part *p, const Peer__GroupCall *mark, struct call **call,
               struct error *e)
{
    uint32_t first = p->calls != NULL ? p->calls->number : p->next_number;
    uint32_t ahead = (mark->number / STAGES_A_CALL - first) & CALL_MASK;

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

/* All but one of those before it are complete, not two of them are large, and that one is not so old
 * that others may be further ahead of it than GROUP_WINDOW. */
static bool may_start(const struct call *c)
{
    const struct call *oldest = c;
    unsigned before = 0;

    for (const struct call *other = c->part->calls; other != c; other = other->next)
        if (other->state != CALL_COMPLETE) {
            if (before++ == 0)
                oldest = other;
            if (may_be_large(other) && may_be_large(c))
                return false;
        }
    return before <= 1 && c->number - oldest->number < GROUP_UNPROVEN_MOST &&
           (c->part->decided || c->what.call.operation == GROUP_PART);
}

/* Waves that have to be heard before its data moves. Of an uneven exchange the first tells what is to
 * be planned; the last says that all have planned it, so that nothing large has to be parked. */
static uint64_t gates_of(const struct call *c)
{
    return c->large && c->what.call.operation == GROUP_ALLTOALLV ? 2 : 1;
}

/* Its engines send what they may by now. */
static void admit(struct call *c)
{
    struct engine *wave = c->engine[STAGE_WAVE], *data = c->engine[STAGE_DATA];
    uint64_t heard = wave != NULL ? wave->rounds_finished : 0, gates = gates_of(c);

    while (data != NULL && c->admitted < c->rounds &&
           c->admitted < data->rounds_finished + c->window &&
           (!c->large || (heard >= gates && c->admitted < heard - gates + c->window)))
        engine_admit(data, c->admitted++);
    /* The gates first: of a large call, the last of them when its data could be taken in here. Each
     * other round when one of the data has been finished here. */
    while (wave != NULL && ((c->waved == 0 && !c->large) ||
                            (c->large && data != NULL && c->waved < c->rounds + gates &&
                             c->waved < data->rounds_finished + gates)))
        engine_admit(wave, c->waved++);
}

/* Whether there is anything but the waves. */
static bool moves(const struct call *c)
{
    return c->what.call.operation == GROUP_ALLTOALLV ? c->wave.result > 0 : c->what.total > 0;
}

static bool is_complete(const struct call *c)
{
    const struct engine *wave = c->engine[STAGE_WAVE], *data = c->engine[STAGE_DATA];

    if (wave != NULL && wave->rounds_finished == 0)
        return false;
    if (!moves(c))
        return wave != NULL;
    if (data == NULL || data->rounds_finished < c->rounds)
        return false;
    return !c->large || wave->rounds_finished == c->rounds + gates_of(c);
}

static int check_engines(const struct call *c, struct error *e)
{
    for (unsigned stage = 0; stage < STAGES; stage++) {
        const struct error *failed =
            c->engine[stage] != NULL ? engine_failed(c->engine[stage]) : NULL;
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

static int complete(struct call *c, struct error *e)
{
    struct session *s = c->part->session;

    if (c->has_blocks && blocks_check(&c->blocks, e) != 0)
        return error_wrap(e, "%s", group_operation_name(c->what.call.operation));
    c->state = CALL_COMPLETE;
    if (c->what.call.operation == GROUP_PART && take_table(c, e) != 0)
        return -1;
    if (c->what.call.operation == GROUP_PART && c->what.call.part == 0 && s->group != NULL)
        group_is_open(s->group);
    if ((uint32_t)c->what.call.operation == GROUP_LEAVE) {
        s->base.rounds_finished = 1;
        s->base.counts.delivered_at = router_now(s->base.set.router);
        s->due = s->all->due = true;
    }
    if (!c->internal && s->group != NULL)
        group_call_complete(s->group, c);
    return 0;
}

/* The first member makes the table that all of them take. */
static int make_table(struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    const struct predict_costs costs = exchanges_costs(s->all->exchanges);
    struct part *p = part_find(s, c->what.call.part);
    struct decisions made;
    int result;

    if (c->part->own != 0 || c->blocks.ready || !c->has_blocks)
        return 0;
    result = decisions_make(&made, p->planner, p->torus, &costs, e);
    if (result <= 0)
        return result;
    decisions_log(&made, s->name);
    if (decisions_pack(&made, c->what.call.receive.memory->data, e) != 0)
        return -1;
    c->blocks.ready = true;
    engine_wake(c->engine[STAGE_DATA]);
    return 0;
}

static int start(struct call *c, struct error *e)
{
    unsigned port;
    const Peer__GroupCall *other =
        parked_differs(c->part, c->number & CALL_MASK, c->signature, &port);

    if (other != NULL && call_differs(c, other, port, e))
        return -1;
    c->state = CALL_PLANNING;
    c->compare_at = router_now(c->part->session->base.set.router) + COMPARE_AFTER;
    return 0;
}

/* Returns 0, or -1 with *e: the session fails. */
static int advance(struct call *c, struct error *e)
{
    if (c->state == CALL_QUEUED && may_start(c) && start(c, e) != 0)
        return -1;
    if (c->state == CALL_PLANNING || c->state == CALL_RUNNING) {
        int result = stages_open(c, e);
        if (result < 0)
            return -1;
        if (c->state == CALL_PLANNING && c->what.call.operation == GROUP_PART)
            c->blocks.ready = c->part->own != 0;
        c->state = CALL_RUNNING;
        if (c->what.call.operation == GROUP_PART && make_table(c, e) != 0)
            return -1;
        admit(c);
        if (check_engines(c, e) != 0)
            return -1;
        if (is_complete(c))
            return complete(c, e);
    }
    return 0;
}

bool calls_agree(const struct part *p)
{
    uint32_t going = 0, large = 0;

    for (const struct call *c = p->calls; c != NULL; c = c->next) {
        if (c->number >= (c->next != NULL ? c->next->number : p->next_number))
            return false;
        if (c->state == CALL_PLANNING || c->state == CALL_RUNNING) {
            going++;
            large += c->large;
        } else if (c->state == CALL_QUEUED && c->engine[STAGE_DATA] != NULL) {
            return false;
        }
    }
    return going <= 2 && large <= 1;
}

void calls_advance(struct part *p)
{
    struct session *s = p->session;
    struct call *c, *next;
    struct error e;
    bool again = true;

    while (again && s->base.failure.code == ERROR_NONE) {
        again = false;
        for (c = p->calls; c != NULL; c = c->next) {
            enum call_state before = c->state;
            uint64_t waved = c->waved, admitted = c->admitted;
            if (advance(c, &e) != 0) {
                session_fail(s, &e);
                return;
            }
            again = again || c->state != before || c->waved != waved || c->admitted != admitted;
        }
        DL_FOREACH_SAFE (p->calls, c, next)
            if (c->state == CALL_COMPLETE)
                call_free(c);
    }
}
