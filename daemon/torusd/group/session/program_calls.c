#include "daemon/torusd/group/session/program_calls.h"

#include "daemon/torusd/group/calls/calls.h"
#include "daemon/torusd/group/calls/part_table.h"
#include "daemon/torusd/group/record/early_frames.h"
#include "daemon/torusd/group/record/part_torus.h"
#include "daemon/torusd/group/restart/agreement.h"
#include "daemon/torusd/group/restart/part_lifetime.h"

static int put_in(struct part *p, struct checked_call *what, uint64_t name, bool internal,
                  struct error *e)
{
    if (call_add(p, what, name, internal) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    return 0;
}

static int put_in_table(struct session *s, uint32_t mask, uint64_t name, bool internal,
                        struct error *e)
{
    struct checked_call what;

    return part_table_call(&what, mask, e) == 0 ? put_in(s->part, &what, name, internal, e) : -1;
}

int session_call_first(struct session *s, struct error *e)
{
    return put_in_table(s, 0, 0, true, e);
}

static int put_in_bare(struct part *p, uint32_t operation, struct error *e)
{
    struct checked_call what = {.call = {.operation = (enum group_operation)operation}};
    return put_in(p, &what, 0, true, e);
}

bool session_has_calls(const struct session *s)
{
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next)
            if (!c->internal && !call_is_for_others(c))
                return true;
    return false;
}

static uint32_t all_dimensions(const struct session *s)
{
    return (1u << router_torus(s->base.set.router)->dims) - 1;
}

/* Returns the part that a program's mask names; 0: the whole. */
static uint32_t mask_of(const struct session *s, uint32_t dimensions)
{
    return dimensions == all_dimensions(s) ? 0 : dimensions;
}

static int open_part(struct session *s, const struct group_call *call, uint64_t name,
                     struct error *e)
{
    struct part *p, **end = &s->part;

    if (call->part == 0 || (call->part & ~all_dimensions(s)) != 0)
        return error_set(e, ERROR_USAGE, "the part has dimensions that the torus does not have");
    if (part_find(s, mask_of(s, call->part)) != NULL)
        return error_set(e, ERROR_REFUSED, "this part of the group is open already");
    if (part_check_opening(s, call->part, e) != 0)
        return -1;
    p = part_new(s, call->part, e);
    if (p == NULL)
        return -1;
    while (*end != NULL)
        end = &(*end)->next;
    *end = p;
    return put_in_table(s, call->part, name, false, e);
}

/* Whether each member that completes such a call knows that all members have made it. */
static bool is_proof(const struct part *p, const struct checked_call *what)
{
    return !group_operation_is_unproven(what->call.operation) || what->total == 0 ||
           what->total > p->undamaged_eager;
}

/* Whether a proof must be inserted before this call: the calls without one have reached the limit of their
 * number, or would exceed that of their bytes. */
static bool needs_proof(const struct part *p, const struct checked_call *what)
{
    return !is_proof(p, what) && (p->unproven == GROUP_UNPROVEN_MOST ||
                                  limits_wire_bytes(what->total) >
                                      limits_wire_bytes(p->undamaged_eager) - p->unproven_bytes);
}

static void forget_unproven(struct part *p)
{
    p->unproven = 0;
    p->unproven_bytes = 0;
}

int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e)
{
    struct checked_call what;
    struct part *p;
    int result;

    if (call->operation == GROUP_PART) {
        result = open_part(s, call, name, e);
        session_advance(s);
        return result;
    }
    p = part_find(s, mask_of(s, call->part));
    if (p == NULL)
        return error_set(e, ERROR_USAGE, "this part of the group is not open");
    if (checked_init(&what, call, &p->members, e) != 0)
        return -1;
    const bool proof = is_proof(p, &what);
    const uint64_t bytes = limits_wire_bytes(what.total);
    if (needs_proof(p, &what)) {
        if (put_in_bare(p, GROUP_PROOF, e) != 0) {
            checked_free(&what);
            return -1;
        }
        forget_unproven(p);
    }
    result = put_in(p, &what, name, false, e);
    if (result == 0 && proof)
        forget_unproven(p);
    if (result == 0 && !proof) {
        p->unproven++;
        p->unproven_bytes += bytes;
    }
    calls_advance(p);
    return result;
}

void session_error_left(const struct session *s, const struct peer_group_call *mark,
                        struct error *e)
{
    (void)error_set(e, ERROR_USAGE, "member %u has left the group, another member calls %s",
                    s->part->members.own, group_operation_name(mark->signature & 15));
}

void session_leave(struct session *s)
{
    struct error e;

    s->left = true;
    s->group = NULL;
    if (put_in_bare(s->part, GROUP_LEAVE, &e) != 0)
        session_fail(s, &e);
    for (const struct part *p = s->part; p != NULL; p = p->next) {
        const struct peer_group_call *mark = early_frames_beyond(p);
        if (mark != NULL) {
            session_error_left(s, mark, &e);
            session_fail(s, &e);
        }
    }
    session_advance(s);
}

void session_advance(struct session *s)
{
    for (struct part *p = s->part; p != NULL; p = p->next) {
        agreement_advance(p);
        calls_advance(p);
    }
}
