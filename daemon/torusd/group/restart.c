#include "daemon/torusd/group/restart.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/group/call.h"
#include "daemon/torusd/group/calls.h"
#include "daemon/torusd/group/early_frames.h"
#include "daemon/torusd/group/state.h"
#include "proto/text.h"

/* --- calls: they are suspended, members say how far each is, and those not over everywhere are made again --- */

/* Suspends a call, and records for the agreement how far it was. */
static void suspend_call(struct call *c)
{
    const struct engine *data = c->attempt.engine[STAGE_DATA];

    c->watch.overdue = false;
    if (c->part->agreed) { /* otherwise the values from when the first link went down still hold */
        c->suspended.whole = data != NULL && data->rounds_finished == c->attempt.rounds;
        c->suspended.finished = c->suspended.finished_by_all = c->skip;
        if (c->large && data != NULL) {
            c->suspended.finished += data->rounds_finished * c->attempt.round_bytes;
            c->suspended.finished_by_all += call_rounds_finished_by_all(c) * c->attempt.round_bytes;
        }
    }
    call_enter(c, CALL_SUSPENDED);
}

/* Suspends all calls of the part, and frees their engines. */
static void calls_suspend(struct part *p)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->calls, c, next) {
        struct error e;
        if (!call_is_complete(c))
            suspend_call(c);
        else if (call_retire(c, &e) != 0)
            call_free(c); /* a member that needs this call fails */
    }
}

/* Returns the call of this number if it is not over here, or NULL. */
static const struct call *find_call(const struct part *p, uint64_t number)
{
    const struct call *c = p->calls;

    while (c != NULL && c->number != number)
        c = c->next;
    return c;
}

/* Sets *agreed to what this member knows of its calls. */
static void calls_report(const struct part *p, struct agreed *agreed)
{
    const uint64_t first = calls_first(p), half = AGREEMENT_CALLS / 2;

    agreed->first = first;
    for (uint64_t n = first > half ? first - half : 0; n < first + half; n++) {
        const struct call *c = find_call(p, n);
        uint64_t i = n % AGREEMENT_CALLS;
        if (c != NULL) {
            agreed->finished_by_all[i] = c->suspended.finished_by_all;
            if (call_is_for_others(c)) /* it is being made again, and is over here */
                agreed->over[i] = OVER_SOMEWHERE;
        } else if (n < p->next_number) {
            agreed->over[i] = calls_were_over_everywhere(p, n) ? OVER_EVERYWHERE : OVER_SOMEWHERE;
        }
    }
}

/* Ends a call that is over at all members, because all its data was here when the link went down. */
static int end_here(struct call *c, struct error *e)
{
    if (c->what.total > 0 && !c->suspended.whole)
        return error_set(e, ERROR_PROTOCOL,
                         "other members say that %s is over everywhere, but not all of its data "
                         "has arrived here",
                         group_operation_name(c->what.call.operation));
    return call_complete(c, true, e);
}

/* Prepares the call's blocks for another attempt, which sends the copy of the data again if there is one. */
static void renew_blocks(struct call *c)
{
    struct blocks *b = &c->blocks;

    overwritten_forget(&b->overwritten, c->skip);
    overwritten_restore(&b->overwritten);
    if (call_is_for_others(c) || (b->copied && !call_spreads_result(c) && c->skip == 0))
        blocks_rewind(b, c->skip);
    else
        blocks_free(b);
}

/* Makes a call again like a new one, except for what all members have already. */
static int make_again(struct call *c, uint64_t finished_by_all, struct error *e)
{
    if (finished_by_all > c->suspended.finished)
        return error_set(e, ERROR_PROTOCOL,
                         "other members say that more of %s is over than has arrived here",
                         group_operation_name(c->what.call.operation));
    c->skip = finished_by_all;
    call_choose_size(c);
    if (c->what.call.operation == GROUP_PART && !call_is_for_others(c))
        memset(c->what.call.receive.memory->data, 0, TABLE_BYTES);
    if (blocks_are_there(&c->blocks))
        renew_blocks(c);
    call_enter(c, CALL_QUEUED);
    return 0;
}

/* Takes those kept calls out of the list that must be made again for other members. */
static void take_out_kept(struct part *p, const struct agreed *agreed)
{
    struct call *c, *next;

    DL_FOREACH_SAFE (p->kept, c, next)
        if (c->number >= agreed->first &&
            agreed->over[c->number % AGREEMENT_CALLS] != OVER_EVERYWHERE)
            call_enter(c, CALL_SUSPENDED);
}

/* Makes the calls again that are not over at all members. Returns 0, or -1 with *e if that is impossible. */
static int calls_resume(struct part *p, const struct agreed *agreed, struct error *e)
{
    const uint64_t first = agreed->first, here = calls_first(p);
    struct call *c, *next;

    if (first > here || here - first > AGREEMENT_CALLS / 2)
        return error_set(e, ERROR_PROTOCOL, "members disagree about which calls are over");
    take_out_kept(p, agreed);
    for (uint64_t n = first; n < here; n++)
        if (agreed->over[n % AGREEMENT_CALLS] != OVER_EVERYWHERE && find_call(p, n) == NULL)
            return error_set(e, ERROR_PROTOCOL,
                             "member %u no longer has a call that must be made again",
                             p->members.own);
    DL_FOREACH_SAFE (p->calls, c, next) {
        bool known = c->number - first < AGREEMENT_CALLS / 2;
        uint64_t over = known ? agreed->over[c->number % AGREEMENT_CALLS] : OVER_NOWHERE;
        uint64_t finished_by_all = known ? agreed->finished_by_all[c->number % AGREEMENT_CALLS] : 0;
        if (!call_is_for_others(c))
            c->over = over == OVER_SOMEWHERE ? CALL_OVER_ELSEWHERE : CALL_OVER_NOWHERE;
        if (over == OVER_EVERYWHERE ? end_here(c, e) != 0 : make_again(c, finished_by_all, e) != 0)
            return -1;
    }
    return calls_retire(p, e);
}

/* --- the agreement --- */

static int start_agreement(struct part *p, struct error *e)
{
    struct agreement *a = &p->agreement;
    struct agreed here = {0};

    calls_report(p, &here);
    here.first = ~here.first;
    a->mark = (struct peer_group_call){.number = STAGE_AGREEMENT, .part = p->mask};
    a->wave = (struct wave){.bytes = sizeof here, .told = sizeof here, .result = &a->result};
    a->engine = wave_open(&a->wave, p, &a->mark, &here, 1, e);
    if (a->engine == NULL)
        return -1;
    a->engine->rounds = 1;
    part_tell_lost(p, a->engine);
    engine_admit(a->engine, 0);
    return early_frames_give(p, STAGE_AGREEMENT, a->engine, e);
}

void agreement_begin(struct part *p)
{
    struct error e;

    if (start_agreement(p, &e) != 0)
        session_fail(p->session, &e);
    agreement_advance(p);
}

/* Ends an agreement that is under way, if there is one. */
static void agreement_free(struct part *p)
{
    struct agreement *a = &p->agreement;

    engine_free(a->engine);
    wave_free(&a->wave);
    *a = (struct agreement){0};
}

/* Continues a part that was not opened anywhere, so no call was carried out there. Calls that wait in it may
 * have become large, or small. */
static void resume_unopened(struct part *p)
{
    struct agreed nothing = {0};
    struct error e;

    calls_report(p, &nothing);
    if (calls_resume(p, &nothing, &e) != 0)
        session_fail(p->session, &e);
    p->agreed = true;
}

/* Continues in the parts. Members of the whole know which parts were opened: the call that opened a part is
 * over somewhere, so all members have made it, and members may have called something in the part. */
static void continue_parts(struct session *s, const struct agreed *agreed)
{
    for (struct part *p = s->part->next; p != NULL; p = p->next) {
        bool opened = p->has_table;
        if (p->agreed)
            continue; /* the part is new */
        for (const struct call *c = s->part->calls; c != NULL && !opened; c = c->next)
            opened = c->what.call.operation == GROUP_PART && c->what.call.part == p->mask &&
                     c->number - agreed->first < AGREEMENT_CALLS / 2 &&
                     agreed->over[c->number % AGREEMENT_CALLS] != OVER_NOWHERE;
        if (opened)
            agreement_begin(p);
        else
            resume_unopened(p);
    }
}

static unsigned made_again(const struct part *p)
{
    unsigned n = 0;

    for (const struct call *c = p->calls; c != NULL; c = c->next)
        n += !c->internal;
    return n;
}

void agreement_advance(struct part *p)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct agreed agreed;
    const struct error *failed;
    struct error e;

    if (a->engine == NULL || s->base.failure.code != ERROR_NONE)
        return;
    failed = engine_failed(a->engine);
    if (failed != NULL) {
        session_fail(s, failed);
        return;
    }
    if (a->engine->rounds_finished == 0)
        return;
    agreed = a->result;
    agreed.first = ~agreed.first;
    agreement_free(p);
    if (p->mask == 0)
        continue_parts(s, &agreed);
    if (calls_resume(p, &agreed, &e) != 0) {
        session_fail(s, &e);
        return;
    }
    p->agreed = true;
    log_debug("group \"%s\", part 0x%x: %u %s from call %llu on", s->name, p->mask, made_again(p),
              text_plural(made_again(p), "call continues", "calls continue"),
              (unsigned long long)agreed.first);
    if (p->mask == 0 && s->over)
        session_is_over(s);
    calls_advance(p);
}

/* --- parts --- */

/* Finds the tree of waves and short vectors. Returns 0, or -1 with *e. */
static int find_tree(struct part *p, struct error *e)
{
    uint32_t root = reduction_root(p->torus);

    if (members_at(&p->members, root) == TORUS_NO_NODE)
        root = p->members.node[0];
    return p->finds_routes ? reduction_build_around(&p->tree, &p->damage, root, p->rank, e)
                           : reduction_build_single(&p->tree, p->torus, root, p->rank, e);
}

struct part *part_new(struct session *s, uint32_t mask, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    uint32_t node = router_rank(s->base.set.router);
    struct part *p = calloc(1, sizeof *p);

    if (p == NULL)
        return (void)error_set(e, ERROR_MEMORY, "out of memory for a group"), NULL;
    p->session = s;
    p->mask = mask;
    if (s->relay != NULL || mask != 0) {
        p->place = calloc(1, sizeof *p->place);
        if (p->place == NULL)
            goto no_memory;
    }
    if (s->relay != NULL) {
        if (part_take_members(p, e) != 0) {
            part_free(p);
            return NULL;
        }
    } else if (mask == 0) {
        p->torus = whole;
        p->rank = node;
        p->planner = s->planner;
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            p->port[port] = (int8_t)port;
    } else {
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            p->port[port] = -1;
        part_cut_out(p, whole, node);
        if (part_make_planner(p, e) != 0) {
            part_free(p);
            return NULL;
        }
    }
    p->agreed = true;
    /* In a group of some nodes this is the same whatever its network is. */
    p->undamaged_eager = part_undamaged_eager(p);
    p->level = s->grows ? GROUP_ROUNDS_LAST : 0;
    if (part_take_damage(p, e) != 0 ||
        members_init(&p->members, p->torus->nodes, p->rank, s->shrunk ? s->damage.gone : NULL, e) !=
            0 ||
        find_tree(p, e) != 0) {
        part_free(p);
        return NULL;
    }
    part_set_limits(p);
    return p;
no_memory:
    part_free(p);
    (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
    return NULL;
}

/* Frees the routes and trees that were found. */
static void free_routes(struct part *p)
{
    reduction_free(&p->tree);
    p->tree = (struct reduction_trees){0};
    if (p->has_trees)
        reduction_free(&p->trees);
    p->has_trees = false;
    if (p->detour != NULL)
        planner_put_detour(p->planner, p->detour);
    if (p->both_ways != NULL)
        planner_put_detour(p->planner, p->both_ways);
    p->detour = p->both_ways = NULL;
    damage_free(&p->damage);
    p->damage = (struct damage){0};
    p->finds_routes = false;
}

void part_suspend(struct part *p)
{
    agreement_free(p);
    calls_suspend(p);
    early_frames_free(p);
    free_routes(p);
    p->agreed = false;
}

int part_renew(struct part *p, struct error *e)
{
    free_routes(p); /* of an attempt that did not start */
    if (p->session->relay != NULL && part_take_members(p, e) != 0)
        return -1;
    if (part_take_damage(p, e) != 0 || find_tree(p, e) != 0)
        return -1;
    part_set_limits(p);
    return 0;
}

void part_forget_progress(struct part *p)
{
    for (struct call *c = p->calls; c != NULL; c = c->next)
        if (c->blocks.layout != LAYOUT_VECTOR)
            c->suspended.finished_by_all = 0;
}

void part_free(struct part *p)
{
    agreement_free(p);
    while (p->calls != NULL)
        call_free(p->calls);
    calls_forget(p);
    early_frames_free(p);
    free_routes(p);
    members_free(&p->members);
    if (p->place != NULL && p->planner != NULL)
        planner_free(p->planner);
    free(p->place);
    free(p);
}
