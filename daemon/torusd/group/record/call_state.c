/* The states of a call: which state may follow which, and what holds in each. */
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/group/record/call.h"

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
void call_end_attempt(struct call *c)
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
        return call_violated(c, e, "it cannot be over where it is said to be over");
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
    if (!rounds_agree(c))
        return call_violated(c, e, "its rounds are outside of their window");
    if (c->state == CALL_SUSPENDED && c->suspended.settled > c->suspended.finished)
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
        combines += call_is_under_way(c) && c->large && call_combines(c);
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
