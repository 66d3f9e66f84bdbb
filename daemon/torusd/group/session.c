#include "daemon/torusd/group/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/group/algorithm_table.h"
#include "daemon/torusd/group/call.h"
#include "daemon/torusd/group/calls.h"
#include "daemon/torusd/group/early_frames.h"
#include "daemon/torusd/group/late.h"
#include "daemon/torusd/group/messages.h"
#include "daemon/torusd/group/relay.h"
#include "daemon/torusd/group/restart.h"
#include "daemon/torusd/group/state.h"
#include "proto/frame.h"
#include "proto/text.h"

/* --- why nothing leaves by a port, for traces --- */

/* Takes what a call waits for, at the ports where that ends sooner than what is known so far: ENGINE_READY ends
 * first. */
static void take_call(const struct call *c, enum engine_wait members, enum engine_wait *port)
{
    const struct engine *data = c->attempt.engine[STAGE_DATA],
                        *wave = c->attempt.engine[STAGE_WAVE];
    const struct engine *engine = data != NULL ? data : wave;
    enum engine_wait wait[TORUS_MAX_PORTS];

    if (engine == NULL)
        return;
    engine_waits(engine, wait);
    for (unsigned p = 0; p < torus_ports(router_torus(c->part->session->base.set.router)); p++) {
        int own = c->part->port[p];
        enum engine_wait why = own >= 0 ? wait[own] : ENGINE_DONE;
        /* Before any data moves, the first wave waits until all members have called. */
        if (own >= 0 && (data == NULL || c->attempt.waved == 0) && c->waves && why != ENGINE_READY)
            why = members;
        if (why < port[p])
            port[p] = why;
    }
}

/* Why this node has no call under way: its program, or what torusd itself does here. */
static enum engine_wait client_waits(const struct session *s)
{
    const struct group_client *client = s->group != NULL ? &s->group->client : NULL;

    if (client == NULL || client->waits == NULL)
        return ENGINE_MEMBERS;
    switch (client->waits(client->context)) {
    case GROUP_CLIENT_READS:
        return ENGINE_SOURCE;
    case GROUP_CLIENT_WRITES:
        return ENGINE_SINK;
    case GROUP_CLIENT_OTHERS:
        break;
    }
    return ENGINE_OTHERS;
}

/* engine_ops.waits */
static void session_waits(const struct engine *engine, enum engine_wait *port)
{
    const struct session *s = (const struct session *)engine;
    bool called = false;

    for (unsigned i = 0; i < torus_ports(router_torus(engine->set.router)); i++)
        port[i] = ENGINE_DONE;
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next) {
            called = called || call_is_under_way(c);
            if (call_is_under_way(c))
                take_call(c, client_waits(s) != ENGINE_MEMBERS ? ENGINE_OTHERS : ENGINE_MEMBERS,
                          port);
        }
    for (unsigned i = 0; !called && i < torus_ports(router_torus(engine->set.router)); i++)
        port[i] = client_waits(s);
}

/* --- how a session is made, suspended, resumed and freed --- */

static void unlink_session(struct session *s)
{
    struct session **at = &s->groups->sessions;

    while (*at != NULL && *at != s)
        at = &(*at)->next;
    if (*at != NULL)
        *at = s->next;
}

/* Suspends a session until it is attached to an exchange again, or forgotten. */
static void suspend_session(struct session *s)
{
    s->attached = s->running = s->due = false;
    s->census = (struct census){0};
    messages_suspend(s);
    for (struct part *p = s->part; p != NULL; p = p->next)
        part_suspend(p);
}

static void dispose_session(struct session *s)
{
    groups_leave(s);
    unlink_session(s);
    messages_free(s);
    while (s->part != NULL) {
        struct part *p = s->part;
        s->part = p->next;
        part_free(p);
    }
    relay_close(s);
    damage_free(&s->damage);
    trace_unref(s->base.set.trace);
    free(s->is_member);
    free(s);
}

static struct session *find_session(const struct groups *groups, const char *id)
{
    struct session *s = groups->sessions;

    while (s != NULL && (s->attached || strcmp(s->id, id) != 0))
        s = s->next;
    return s;
}

void session_forget(void *context, const char *id)
{
    struct session *s = find_session(context, id);

    if (s != NULL)
        dispose_session(s);
}

/* Attaches a session to its exchange's attempt. Returns 0, or -1 with *e. */
static int attach_session(struct session *s, const struct session_setup *setup, struct error *e)
{
    s->base.set.router = setup->router;
    s->base.set.handle = setup->handle;
    s->tree = setup->tree;
    s->events = setup->events;
    s->memory = setup->memory;
    trace_unref(s->base.set.trace);
    s->base.set.trace = trace_ref(setup->trace);
    s->planner = setup->planner;
    damage_free(&s->damage);
    s->damage = (struct damage){0};
    s->damaged = setup->damage != NULL;
    if (s->damaged && damage_copy(&s->damage, setup->damage, e) != 0)
        return -1;
    if (s->is_member != NULL)
        return relay_open(s, e);
    s->shrunk = false;
    for (uint32_t node = 0; s->damaged && node < s->damage.torus.nodes; node++)
        s->shrunk = s->shrunk || s->damage.gone[node];
    return 0;
}

/* Whether the members are the same as before. They must be, because calls refer to members by number. */
static bool has_members(const struct session *s, const struct damage *damage)
{
    const struct damage *d = s->damaged ? &s->damage : NULL;

    if (s->is_member != NULL)
        return true;
    for (uint32_t node = 0; node < router_torus(s->base.set.router)->nodes; node++)
        if ((d != NULL && d->gone[node]) != (damage != NULL && damage->gone[node]))
            return false;
    return true;
}

/* Continues a session that was open. Returns NULL with *e if that is impossible. */
static struct session *resume_session(struct session *s, const struct session_setup *setup,
                                      struct error *e)
{
    if (!has_members(s, setup->damage)) {
        (void)error_set(e, ERROR_PROTOCOL, "the members of group \"%s\" would change", s->name);
        return NULL;
    }
    if (attach_session(s, setup, e) != 0)
        return NULL;
    for (struct part *p = s->part; p != NULL; p = p->next)
        if ((p->mask != 0 && part_check_opening(s, p->mask, e) != 0) || part_renew(p, e) != 0)
            return NULL;
    for (struct part *p = s->part; setup->from_begin && p != NULL; p = p->next)
        part_forget_progress(p);
    s->base.failure.code = ERROR_NONE;
    s->base.lost = 0;
    s->base.rounds = s->base.rounds_finished = 0;
    s->base.counts = (struct engine_counts){0};
    s->attached = true;
    return s;
}

/* Suspends a session that was open; frees one that was not. Called when its exchange's attempt ends. */
static void session_release(struct session *s)
{
    if (s->begun && !s->groups->closing && !s->passive)
        suspend_session(s);
    else
        dispose_session(s);
}

/* Notes which nodes are members. Returns 0, or -1 with *e. */
static int take_members(struct session *s, const char *members, struct error *e)
{
    const struct router *r = s->base.set.router;

    if (members[0] == '\0')
        return 0;
    s->is_member = calloc(router_torus(r)->nodes, sizeof *s->is_member);
    if (s->is_member == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    if (spec_members_read(members, router_torus(r)->nodes, s->is_member, e) != 0)
        return -1;
    s->passive = !s->is_member[router_rank(r)];
    return 0;
}

/* Makes a new session, or continues one that was open. `ops`: of its engine. Returns NULL with *e if there is
 * no memory, or if the session cannot continue without these links or nodes. */
static struct session *session_new(struct groups *groups, const struct session_setup *setup,
                                   const struct engine_ops *ops, struct error *e)
{
    struct session *s;

    if (setup->restarts) {
        s = find_session(groups, setup->id);
        if (s != NULL)
            return resume_session(s, setup, e);
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
        return NULL;
    }
    s->base.ops = ops;
    s->base.set.router = setup->router;
    s->groups = groups;
    s->attached = true;
    s->unchecked = setup->unchecked;
    s->grows = setup->grows;
    (void)snprintf(s->name, sizeof s->name, "%s", setup->name);
    (void)snprintf(s->id, sizeof s->id, "%s", setup->id);
    s->next = groups->sessions;
    groups->sessions = s;
    const bool attached =
        take_members(s, setup->members, e) == 0 && attach_session(s, setup, e) == 0;
    if (attached && s->passive)
        return s;
    if (attached)
        s->part = part_new(s, 0, e);
    if (s->part == NULL) {
        dispose_session(s);
        return NULL;
    }
    s->part->agreed = !setup->restarts; /* other members may have opened it before */
    return s;
}

/* --- calls of the program, and internal calls --- */

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

/* Makes the first call of all, which opens the whole. Returns 0, or -1 with *e (ERROR_MEMORY). */
static int session_call_first(struct session *s, struct error *e)
{
    return put_in_table(s, 0, 0, true, e);
}

static int put_in_bare(struct part *p, uint32_t operation, struct error *e)
{
    struct checked_call what = {.call = {.operation = (enum group_operation)operation},
                                .collective = collective_find(operation)};
    return put_in(p, &what, 0, true, e);
}

bool session_has_calls(const struct session *s)
{
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next)
            if (!c->internal && !call_is_for_others(c))
                return true;
    return messages_are_under_way(s);
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
    return what->collective->proves || what->total == 0 || what->total > p->undamaged_eager;
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

/* Continues everything in the session as far as possible now. */
static void session_advance(struct session *s)
{
    for (struct part *p = s->part; p != NULL; p = p->next) {
        agreement_advance(p);
        calls_advance(p);
    }
}

/* Checks that all nodes know the operation. */
static int check_minor(const struct session *s, uint32_t operation, struct error *e)
{
    const uint32_t least = router_least_minor(s->base.set.router);
    const uint32_t minor = group_operation_minor(operation);

    if (least >= minor)
        return 0;
    return error_set(
        e, ERROR_REFUSED,
        "%s needs version %u.%u of the peer protocol on all nodes, and a node has %u.%u: "
        "install the same release on all nodes",
        group_operation_name(operation), PROTOCOL_VERSION, minor, PROTOCOL_VERSION, least);
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
    if (check_minor(s, call->operation, e) != 0 || checked_init(&what, call, &p->members, e) != 0)
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

/* Sets *e: other members call something although this member has left. */
static void session_error_left(const struct session *s, const struct peer_group_call *mark,
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
    messages_leave(s);
    session_advance(s);
}

/* --- the engine --- */

static struct session *session_of(struct engine *engine)
{
    return (struct session *)engine;
}

static void session_admit(struct engine *engine, uint64_t round)
{
    struct session *s = session_of(engine);
    struct error e;

    s->running = true;
    if (round > 0 || s->passive) { /* all members have left; or it is not this node's turn */
        s->base.rounds_finished = round + 1;
        s->base.counts.delivered_at = router_now(s->base.set.router);
        session_is_due(s);
        return;
    }
    if (!s->begun) {
        s->begun = true;
        s->group = groups_join(s->groups, s);
        if (session_call_first(s, &e) != 0)
            session_fail(s, &e);
    }
    if (!s->part->agreed)
        agreement_begin(s->part);
    messages_resume(s);
    session_advance(s);
}

static const struct peer_group_call *mark_of(const struct peer_message *message)
{
    if (message->kind == PEER_STEPPED_DATA)
        return message->stepped_data.has_call ? &message->stepped_data.call : NULL;
    if (message->kind == PEER_STREAMED_DATA)
        return message->streamed_data.has_call ? &message->streamed_data.call : NULL;
    return NULL;
}

/* Finds the part of a frame. Returns NULL with *e if it was not opened here. */
static struct part *find_part(struct session *s, uint32_t mask, struct error *e)
{
    struct part *p = part_find(s, mask);

    if (p == NULL)
        (void)error_set(e, ERROR_PROTOCOL, "group \"%s\": data of a part that is not open",
                        s->name);
    return p;
}

/* Handles a frame of the agreement, or one that arrives before its end. */
static int take_early(struct part *p, int port, const struct peer_group_call *mark,
                      const struct peer_message *message, const struct extents *body,
                      uint32_t body_length, struct error *e)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct error why;

    if (port < 0 || p->agreed || mark->number / STAGES_A_CALL > CALL_MASK)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of an impossible call (number %u)",
                         s->name, mark->number);
    const unsigned own = (unsigned)port;
    if (mark->number != STAGE_AGREEMENT || a->engine == NULL) {
        if (early_frames_keep(p, own, message, body, body_length, &why) != 0)
            session_fail(s, &why);
        return 0;
    }
    if (engine_frame(a->engine, own, message, body, body_length, e) != 0)
        return -1;
    agreement_advance(p);
    return 0;
}

static int session_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                         const struct extents *body, uint32_t body_length, struct error *e)
{
    struct session *s = session_of(engine);
    const struct peer_group_call *mark = mark_of(message);
    struct part *p;
    struct call *c;
    struct error why;
    bool passed_on;

    if (message->kind == PEER_GROUP_MESSAGE)
        return messages_heard(s, &message->group_message, body, body_length, e);
    if (mark == NULL)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data that belongs to no call", s->name);
    if (relay_pass_frame(s, port, mark->channel, message, body, &passed_on, e) != 0)
        return -1;
    if (passed_on)
        return 0;
    p = find_part(s, mark->part, e);
    const int here = p != NULL ? part_port(p, port, mark->channel) : -1;
    if (p != NULL && (mark->number == STAGE_AGREEMENT || !p->agreed))
        return take_early(p, here, mark, message, body, body_length, e);
    int found = p != NULL ? calls_find(p, mark, &c, &why) : -1;
    if (found > 0) {
        session_fail(s, &why);
        return 0;
    }
    if (found < 0) {
        if (p != NULL)
            *e = why;
        return -1;
    }
    if (here < 0)
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": data through a port that is not in the part", s->name);
    unsigned own = (unsigned)here;
    unsigned stage = mark->number % STAGES_A_CALL;
    if (s->left && c == NULL) {
        session_error_left(s, mark, &why);
        session_fail(s, &why);
        return 0;
    }
    if (c != NULL && call_is_under_way(c) && call_differs(c, mark, own, &why)) {
        session_fail(s, &why);
        return 0;
    }
    if (c == NULL || c->attempt.engine[stage] == NULL) {
        if (early_frames_keep(p, own, message, body, body_length, &why) != 0)
            session_fail(s, &why);
        return 0;
    }
    if (engine_frame(c->attempt.engine[stage], own, message, body, body_length, e) != 0)
        return -1;
    calls_advance(p);
    return 0;
}

/* Finds the call that takes a frame with data from a port of the node, and its engine that does. Sets *own to the port of
 * the part. Returns NULL if there is none now. */
static struct call *find_taker(struct session *s, unsigned port, const struct peer_group_call *mark,
                               unsigned *own, struct engine **engine)
{
    const struct part *p = mark != NULL ? part_find(s, mark->part) : NULL;
    const int here = p != NULL && p->agreed ? part_port(p, port, mark->channel) : -1;
    struct call *c;
    struct error e;

    if (here < 0 || mark->number == STAGE_AGREEMENT || calls_find(p, mark, &c, &e) != 0 ||
        c == NULL || c->attempt.engine[mark->number % STAGES_A_CALL] == NULL)
        return NULL;
    *own = (unsigned)here;
    *engine = c->attempt.engine[mark->number % STAGES_A_CALL];
    return c;
}

static int session_passes(struct engine *engine, unsigned port, const struct peer_message *message)
{
    struct engine *taker;
    unsigned own;

    if (find_taker(session_of(engine), port, mark_of(message), &own, &taker) == NULL)
        return -1;
    return engine_passes(taker, own, message);
}

/* Whether call_differs() would take over what a mark says about the data. */
static bool takes_over(const struct call *c, const struct peer_group_call *mark)
{
    const struct data_kind theirs = {mark->data_type, mark->data_shape};

    return c->compares_data && !data_kind_is_known(&c->data) && data_kind_is_known(&theirs);
}

/* engine_ops.places. Changes nothing. Where a group lacks nodes, frames may have further to go (relay.h). */
static void session_places(struct engine *engine, unsigned port, const struct peer_message *message,
                           uint32_t body_length, uint32_t offset, struct places *places)
{
    struct session *s = session_of(engine);
    const struct peer_group_call *mark = mark_of(message);
    struct engine *taker;
    struct error e;
    unsigned own;
    struct call *c = s->relay == NULL ? find_taker(s, port, mark, &own, &taker) : NULL;

    if (c != NULL && call_is_under_way(c) && !takes_over(c, mark) &&
        !call_differs(c, mark, own, &e))
        engine_places(taker, own, message, body_length, offset, places);
}

static int session_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                         struct error *e)
{
    (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "group \"%s\": unexpected message \"clear\"",
                     session_of(engine)->name);
}

/* Returns the next frame of an engine of a part for this port of the node, by which several channels may leave. */
static struct outgoing *next_of_engine(const struct part *p, struct engine *engine, unsigned port)
{
    struct outgoing *frame = NULL;

    if (engine == NULL || p->port[port] < 0)
        return NULL;
    if (p->session->relay == NULL)
        return engine_next(engine, (unsigned)p->port[port]);
    for (unsigned own = 0; frame == NULL && own < torus_ports(p->torus); own++)
        if (p->place->port[own] == port && torus_neighbour(p->torus, p->rank, own) != TORUS_NO_NODE)
            frame = engine_next(engine, own);
    return frame;
}

/* Returns the next frame of a part. Waves come first, and then calls in their order. */
static struct outgoing *next_of(struct part *p, unsigned port)
{
    struct outgoing *frame = NULL;

    if (p->agreement.engine != NULL) /* nothing else is sent before the agreement ends */
        return next_of_engine(p, p->agreement.engine, port);
    for (struct call *c = p->calls; frame == NULL && c != NULL; c = c->next)
        for (unsigned stage = 0; frame == NULL && stage < STAGES; stage++)
            frame = next_of_engine(p, c->attempt.engine[stage], port);
    return frame;
}

static struct outgoing *session_next(struct engine *engine, unsigned port)
{
    struct session *s = session_of(engine);
    struct outgoing *frame;

    if (engine_has_lost(engine, port))
        return NULL;
    frame = relay_next(s, port);
    for (struct part *p = s->part; p != NULL && frame == NULL; p = p->next) {
        if ((p->calls == NULL && p->agreement.engine == NULL) || p->port[port] < 0)
            continue;
        frame = next_of(p, port);
        agreement_advance(p); /* sending may have completed the agreement */
        calls_advance(p);
    }
    return frame;
}

static void session_wake(struct engine *engine)
{
    session_advance(session_of(engine));
}

static void session_describe(const struct engine *engine, char *text, size_t size)
{
    const struct session *s = (const struct session *)engine;
    (void)snprintf(text, size, "group \"%s\"", s->name);
}

static int session_message(struct engine *engine, unsigned port, const struct peer_message *message,
                           struct error *e)
{
    if (message->kind == PEER_GROUP_CENSUS)
        return census_heard(session_of(engine), port, &message->group_census, e);
    if (message->kind == PEER_GROUP_COMPARE)
        return compare_heard(session_of(engine), port, &message->group_compare, e);
    if (message->kind == PEER_GROUP_REPORT)
        return census_reported(session_of(engine), &message->group_report, e);
    return census_answered(session_of(engine), port, &message->group_answer, e);
}

static void session_free(struct engine *engine)
{
    session_release(session_of(engine));
}

static const struct engine_ops session_ops = {
    .free = session_free,
    .admit = session_admit,
    .frame = session_frame,
    .clear = session_clear,
    .next = session_next,
    .passes = session_passes,
    .places = session_places,
    .wake = session_wake,
    .message = session_message,
    .describe = session_describe,
    .waits = session_waits,
};

struct engine *session_open(void *context, const struct session_setup *setup, struct error *e)
{
    struct session *s = session_new(context, setup, &session_ops, e);

    return s != NULL ? &s->base : NULL;
}

/* --- what must hold after each event --- */

int session_check(const struct session *s, struct error *e)
{
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* a failed session is not kept consistent */
    for (const struct part *p = s->part; p != NULL; p = p->next) {
        if (!early_frames_agree(p))
            return error_set(e, ERROR_PROTOCOL,
                             "group \"%s\": the early frames are not as counted: %llu %s", s->name,
                             (unsigned long long)p->early_bytes,
                             text_plural(p->early_bytes, "byte", "bytes"));
        if (calls_check(p, e) != 0)
            return -1;
    }
    return messages_check(s, e);
}
