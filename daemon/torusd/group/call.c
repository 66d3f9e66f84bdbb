#include "daemon/torusd/group/call.h"

#include <stdlib.h>
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "proto/frame.h"

/* The states of a call: which state may follow which, and what holds in each. */

#define S(state) (1u << CALL_##state)
#define OVER(where) (1u << CALL_OVER_##where)
#define NOT_EVERYWHERE (OVER(NOWHERE) | OVER(ELSEWHERE) | OVER(HERE))

enum presence { NONE, MAY, MUST };

/* `next`: the states that may follow. The other fields are the state's invariant. */
static const struct {
    const char *name;
    uint32_t next;
    uint32_t over;         /* where the call can be over, a bit for each enum call_over */
    enum presence engines; /* of engines, and of everything else in call_attempt */
    enum presence blocks;
    enum presence agreed; /* the members of the part agree which calls are over */
    bool under_way;       /* the call is compared with others' calls if it is late */
    bool lasts;           /* the call can be in this state after an event */
    bool kept;            /* the call is in the list of kept calls */
} states[CALL_STATES] = {
    [CALL_SUSPENDED] = {"suspended", S(SUSPENDED) | S(QUEUED) | S(COMPLETE), NOT_EVERYWHERE, NONE,
                        MAY, NONE, false, true, false},
    [CALL_QUEUED] = {"queued", S(OPENING) | S(SUSPENDED), NOT_EVERYWHERE, NONE, MAY, MUST, false,
                     true, false},
    [CALL_OPENING] = {"opening", S(RUNNING) | S(SUSPENDED), NOT_EVERYWHERE, MAY, MAY, MUST, true,
                      true, false},
    [CALL_RUNNING] = {"running", S(COMPLETE) | S(SUSPENDED), NOT_EVERYWHERE, MUST, MAY, MUST, true,
                      true, false},
    [CALL_COMPLETE] = {"complete", S(KEPT), OVER(HERE) | OVER(EVERYWHERE), MAY, MAY, MAY, false,
                       false, false},
    [CALL_KEPT] = {"kept", S(SUSPENDED), OVER(HERE), NONE, MUST, MAY, false, true, true},
};

static const char *state_name(enum call_state state)
{
    return state < CALL_STATES ? states[state].name : "unknown";
}

static void check_change(const struct call *c, enum call_state state)
{
    struct error *broken = &c->part->session->groups->broken;

    if ((states[c->state].next & 1u << state) != 0 || broken->code != ERROR_NONE)
        return;
    (void)error_set(broken, ERROR_PROTOCOL,
                    "group \"%s\": call %llu changes from %s to %s, which its table forbids",
                    c->part->session->name, (unsigned long long)c->number, state_name(c->state),
                    state_name(state));
    log_error("%s: this is a bug", broken->text);
}

/* Frees everything that the attempt used. */
static void call_end_attempt(struct call *c)
{
    struct call_attempt *a = &c->attempt;

    for (unsigned stage = 0; stage < STAGES; stage++)
        engine_free(a->engine[stage]);
    wave_free(&a->wave);
    if (a->planned != NULL)
        planner_put(c->part->planner, a->planned);
    *a = (struct call_attempt){.rounds = 1, .window = 1};
}

/* Orders calls by number. */
static int by_number(const struct call *a, const struct call *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

struct call **call_list(const struct call *c)
{
    return states[c->state].kept ? &c->part->kept : &c->part->calls;
}

void call_enter(struct call *c, enum call_state state)
{
    struct call **from = call_list(c), **to;

    check_change(c, state);
    c->state = state;
    if (state == CALL_COMPLETE)
        engine_note(&c->part->session->base, TRACE_CALL_ENDED, c->what.call.operation,
                    TRACE_CALL(c->part->mask, c->number));
    to = call_list(c);
    if (to != from) {
        DL_DELETE(*from, c);
        DL_INSERT_INORDER(*to, c, by_number);
    }
    if (states[state].engines == NONE)
        call_end_attempt(c);
    if (!states[state].under_way)
        c->watch.compare_at = ROUTER_NEVER;
}

bool call_is_under_way(const struct call *c)
{
    return states[c->state].under_way;
}

/* --- invariants --- */

static int call_violated(const struct call *c, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "group \"%s\": call %llu is %s: %s", c->part->session->name,
                     (unsigned long long)c->number, state_name(c->state), what);
}

static bool presence_agrees(enum presence wanted, bool there)
{
    return wanted == MAY || (wanted == MUST) == there;
}

/* Whether the counts of rounds fit together; without engines they are 0. */
static bool rounds_agree(const struct call *c)
{
    const struct call_attempt *a = &c->attempt;
    const struct engine *wave = a->engine[STAGE_WAVE], *data = a->engine[STAGE_DATA];

    return a->admitted <= a->rounds && (data != NULL ? data->rounds_finished : 0) <= a->admitted &&
           (wave != NULL ? wave->rounds_finished : 0) <= a->waved;
}

/* Whether what the call may have under way is reserved. */
static bool memory_agrees(const struct part *p, const struct call *c)
{
    const bool has_data = c->attempt.engine[STAGE_DATA] != NULL;

    if (!p->session->grows || !has_data)
        return true;
    return c->large ? c->attempt.admitted == 0 || c->attempt.level >= p->level
                    : p->mask == 0 || p->has_memory;
}

static int check_one(const struct part *p, const struct call *c, bool kept, struct error *e)
{
    const struct call_attempt *a = &c->attempt;

    if (c->part != p || kept != states[c->state].kept)
        return call_violated(c, e, "it is in the wrong list");
    if (!states[c->state].lasts)
        return call_violated(c, e, "it cannot stay in that state");
    if (!presence_agrees(states[c->state].agreed, p->agreed))
        return call_violated(
            c, e, p->agreed ? "its members agree already" : "its members do not agree yet");
    if ((states[c->state].over & 1u << c->over) == 0)
        return call_violated(c, e, "its state does not allow where it is over");
    if (!presence_agrees(states[c->state].engines,
                         a->engine[STAGE_WAVE] != NULL || a->engine[STAGE_DATA] != NULL))
        return call_violated(c, e, "its engines do not fit the state");
    if (!presence_agrees(states[c->state].blocks, blocks_are_there(&c->blocks)))
        return call_violated(c, e, "its blocks do not fit the state");
    if (blocks_are_there(&c->blocks) && c->blocks.kept != (c->over == CALL_OVER_HERE))
        return call_violated(c, e,
                             "whether received data is discarded does not fit where it is over");
    if (states[c->state].under_way != (c->watch.compare_at != ROUTER_NEVER))
        return call_violated(c, e, "whether it is compared with others does not fit the state");
    if (!memory_agrees(p, c))
        return call_violated(c, e, "its memory is not reserved");
    if (!rounds_agree(c))
        return call_violated(c, e, "its rounds are outside of their window");
    if (c->state == CALL_SUSPENDED && c->suspended.finished_by_all > c->suspended.finished)
        return call_violated(c, e, "others have more of it than has arrived here");
    return 0;
}

int calls_check(const struct part *p, struct error *e)
{
    uint32_t under_way = 0, large = 0, combines = 0;

    for (const struct call *c = p->calls; c != NULL; c = c->next) {
        if (check_one(p, c, false, e) != 0)
            return -1;
        if (c->number >= (c->next != NULL ? c->next->number : p->next_number))
            return call_violated(c, e, "it is out of order");
        under_way += call_is_under_way(c);
        large += call_is_under_way(c) && c->large;
        combines += call_is_under_way(c) && c->large && collective_combines(c->what.collective);
    }
    for (const struct call *c = p->kept; c != NULL; c = c->next) {
        if (check_one(p, c, true, e) != 0)
            return -1;
        if (c->number >= (c->next != NULL ? c->next->number : p->next_number))
            return call_violated(c, e, "it is out of order");
    }
    if (under_way > 2 || (large > 1 && combines > 0))
        return error_set(
            e, ERROR_PROTOCOL,
            "group \"%s\": %u calls are under way, %u of them large, more than a part may have",
            p->session->name, under_way, large);
    return 0;
}

/* Returns the time in this many nanoseconds; 0: never. */
static uint64_t time_after(const struct part *p, uint64_t nanoseconds)
{
    uint64_t now = router_now(p->session->base.set.router);

    return nanoseconds > 0 && nanoseconds < ROUTER_NEVER - now ? now + nanoseconds : ROUTER_NEVER;
}

void call_mark_data(const struct call *c, struct peer_group_call *mark)
{
    const bool is_known = data_kind_is_known(&c->data);

    mark->data_type = c->data.type;
    mark->data_shape = c->data.shape;
    mark->data_member = is_known && c->data_member != c->part->members.own ? c->data_member + 1 : 0;
}

/* Stores what is known about the call's data, in the call and in what it sends from now on. */
static void call_set_data(struct call *c, const struct data_kind *data, uint32_t member)
{
    c->data = *data;
    c->data_member = member;
    for (unsigned stage = 0; stage < STAGES; stage++)
        call_mark_data(c, &c->attempt.mark[stage]);
}

struct call *call_add(struct part *p, struct checked_call *what, uint64_t name, bool internal)
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
    c->state = p->agreed ? CALL_QUEUED : CALL_SUSPENDED;
    c->number = p->next_number++;
    c->signature =
        checked_signature(&c->what, p->members.count, p->session->unchecked, p->internal_calls);
    c->compares_data = router_least_minor(p->session->base.set.router) >= DATA_KIND_MINOR;
    if (c->compares_data)
        call_set_data(c, &c->what.call.data, p->members.own);
    p->internal_calls += internal;
    p->signature[c->number % SIGNATURES] = c->signature;
    c->watch.deadline = time_after(p, c->what.call.timeout_ns);
    c->watch.late_at = time_after(p, c->what.call.late_ns);
    c->watch.compare_at = ROUTER_NEVER;
    call_choose_size(c);
    call_end_attempt(c);
    DL_APPEND(p->calls, c);
    engine_note(&p->session->base, TRACE_CALL_BEGUN, c->what.call.operation,
                TRACE_CALL(p->mask, c->number));
    return c;
}

void call_choose_size(struct call *c)
{
    const bool uneven = c->what.collective->measured, large = c->what.total > c->part->limits.eager;

    c->large = large && !uneven; /* only the first wave tells how large an uneven exchange is */
    c->waves = large || uneven || c->what.total == 0;
}

void call_free(struct call *c)
{
    DL_DELETE(*call_list(c), c);
    call_end_attempt(c);
    if (blocks_are_there(&c->blocks))
        blocks_free(&c->blocks);
    checked_free(&c->what);
    free(c);
}

bool call_spreads_result(const struct call *c)
{
    const struct collective *o = c->what.collective;

    return c->over != CALL_OVER_NOWHERE && collective_combines(o) && o->result == RESULT_SAME;
}

bool signatures_differ(const struct part *p, uint32_t our_signature, uint32_t their_signature,
                       unsigned port, struct error *e)
{
    uint32_t other = members_at(&p->members, torus_neighbour(p->torus, p->rank, port));
    uint32_t own = our_signature & 15, theirs = their_signature & 15;

    if (our_signature == their_signature)
        return false;
    if (own == GROUP_LEAVE || theirs == GROUP_LEAVE)
        (void)error_set(e, ERROR_USAGE, "member %u has left the group, member %u calls %s",
                        own == GROUP_LEAVE ? p->members.own : other,
                        own == GROUP_LEAVE ? other : p->members.own,
                        group_operation_name(own == GROUP_LEAVE ? theirs : own));
    else if (own != theirs)
        (void)error_set(e, ERROR_USAGE, "member %u calls %s, member %u %s", p->members.own,
                        group_operation_name(own), other, group_operation_name(theirs));
    else
        (void)error_set(e, ERROR_USAGE,
                        "members %u and %u call %s with different sizes, root, type or operator",
                        p->members.own < other ? p->members.own : other,
                        p->members.own < other ? other : p->members.own, group_operation_name(own));
    return true;
}

/* What one member knows of the data of a call. */
struct told {
    struct data_kind data;
    uint32_t member;
};

/* Returns the name of the type for an error. */
static const char *type_text(uint32_t type)
{
    const char *name = reduction_type_name(type);

    return name != NULL ? name : "another type";
}

/* Whether what two members have told of their data differs, and if so, sets *e to say so. */
static bool data_differs(const struct told *a, const struct told *b, const char *operation,
                         struct error *e)
{
    if (a->member > b->member)
        return data_differs(b, a, operation, e);
    if (a->data.type != b->data.type && a->data.type != 0 && b->data.type != 0) {
        (void)error_set(e, ERROR_USAGE,
                        "member %u calls %s with elements of type %s, member %u with %s", a->member,
                        operation, type_text(a->data.type), b->member, type_text(b->data.type));
        return true;
    }
    if (a->data.shape != b->data.shape && a->data.shape != 0 && b->data.shape != 0) {
        (void)error_set(e, ERROR_USAGE, "members %u and %u call %s with arrays of different shapes",
                        a->member, b->member, operation);
        return true;
    }
    return false;
}

/* Compares what the mark says about the data. A call whose own data is unknown takes it over, so that it reaches all
 * members that the data of this one reaches. */
static bool mark_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                         struct error *e)
{
    const struct part *p = c->part;
    const struct told ours = {c->data, c->data_member};
    struct told theirs = {{mark->data_type, mark->data_shape}, mark->data_member - 1};

    if (!c->compares_data || !data_kind_is_known(&theirs.data))
        return false;
    if (mark->data_member == 0 || theirs.member >= p->members.count)
        theirs.member = members_at(&p->members, torus_neighbour(p->torus, p->rank, port));
    if (data_kind_is_known(&ours.data))
        return data_differs(&ours, &theirs, group_operation_name(c->what.call.operation), e);
    call_set_data(c, &theirs.data, theirs.member);
    return false;
}

bool call_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e)
{
    const bool same_operation = ((c->signature ^ mark->signature) & 15) == 0;

    /* Compares first what says more: the signature only shows that something differs. */
    return (same_operation && mark_differs(c, mark, port, e)) ||
           signatures_differ(c->part, c->signature, mark->signature, port, e);
}

uint64_t calls_first(const struct part *p)
{
    return p->calls != NULL ? p->calls->number : p->next_number;
}

int calls_find(const struct part *p, const struct peer_group_call *mark, struct call **call,
               struct error *e)
{
    uint64_t first = calls_first(p);
    uint64_t ahead = (mark->number / STAGES_A_CALL - first) & CALL_MASK;

    *call = NULL;
    if (mark->number / STAGES_A_CALL > CALL_MASK || mark->number % STAGES_A_CALL >= STAGES)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of an impossible call (number %u)",
                         p->session->name, mark->number);
    if (ahead >= GROUP_WINDOW) {
        (void)error_set(e, ERROR_USAGE,
                        "members call differently: one member calls %s, but member %u has made "
                        "another call in its place",
                        group_operation_name(mark->signature & 15), p->members.own);
        return 1;
    }
    for (struct call *c = p->calls; c != NULL; c = c->next)
        if (c->number == first + ahead)
            *call = c;
    return 0;
}
