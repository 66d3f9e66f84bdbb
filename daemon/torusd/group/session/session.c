#include "daemon/torusd/group/session/session.h"

#include <stdio.h>

#include "daemon/torusd/group/calls/call_match.h"
#include "daemon/torusd/group/calls/calls.h"
#include "daemon/torusd/group/late/census.h"
#include "daemon/torusd/group/late/compare.h"
#include "daemon/torusd/group/record/early_frames.h"
#include "daemon/torusd/group/restart/agreement.h"
#include "daemon/torusd/group/session/program_calls.h"
#include "daemon/torusd/group/session/session_lifetime.h"
#include "daemon/torusd/group/session/waits.h"
#include "proto/text.h"

static struct session *session_of(struct engine *engine)
{
    return (struct session *)engine;
}

static void session_admit(struct engine *engine, uint64_t round)
{
    struct session *s = session_of(engine);
    struct error e;

    (void)round;
    s->running = true;
    if (!s->begun) {
        s->begun = true;
        s->group = groups_join(s->groups, s);
        if (session_call_first(s, &e) != 0)
            session_fail(s, &e);
    }
    if (!s->part->agreed)
        agreement_begin(s->part);
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
static int take_early(struct part *p, unsigned port, const struct peer_group_call *mark,
                      const struct peer_message *message, const struct extents *body,
                      uint32_t body_length, struct error *e)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct error why;

    if (p->port[port] < 0 || p->agreed || mark->number / STAGES_A_CALL > CALL_MASK)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of an impossible call (number %u)",
                         s->name, mark->number);
    unsigned own = (unsigned)p->port[port];
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

    if (mark == NULL)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data that belongs to no call", s->name);
    p = find_part(s, mark->part, e);
    if (p != NULL && (mark->number == STAGE_AGREEMENT || !p->agreed))
        return take_early(p, port, mark, message, body, body_length, e);
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
    if (p->port[port] < 0)
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": data through a port that is not in the part", s->name);
    unsigned own = (unsigned)p->port[port];
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

static int session_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                         struct error *e)
{
    (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "group \"%s\": unexpected message \"clear\"",
                     session_of(engine)->name);
}

/* Returns the next frame of a part. Waves come first, and then calls in their order. */
static struct outgoing *next_of(struct part *p, unsigned port)
{
    if (p->agreement.engine != NULL) /* nothing else is sent before the agreement ends */
        return engine_next(p->agreement.engine, port);
    for (struct call *c = p->calls; c != NULL; c = c->next)
        for (unsigned stage = 0; stage < STAGES; stage++) {
            struct outgoing *frame = c->attempt.engine[stage] != NULL
                                         ? engine_next(c->attempt.engine[stage], port)
                                         : NULL;
            if (frame != NULL)
                return frame;
        }
    return NULL;
}

static struct outgoing *session_next(struct engine *engine, unsigned port)
{
    struct session *s = session_of(engine);
    struct outgoing *frame = NULL;

    if (engine_has_lost(engine, port))
        return NULL;
    for (struct part *p = s->part; p != NULL && frame == NULL; p = p->next) {
        if ((p->calls == NULL && p->agreement.engine == NULL) || p->port[port] < 0)
            continue;
        frame = next_of(p, (unsigned)p->port[port]);
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
    return 0;
}
