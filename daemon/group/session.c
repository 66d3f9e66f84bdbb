/* The engine of a group: it shares the links among the engines of its calls, and gives each what
 * comes for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/internal.h"
#include "proto/text.h"

static struct session *of(struct engine *engine)
{
    return (struct session *)engine;
}

void session_fail(struct session *s, const struct error *e)
{
    (void)engine_fail(&s->base, e);
    s->due = s->all->due = true;
}

/* --- calls that no program makes --- */

static void free_table(struct program_memory *memory)
{
    free(memory);
}

static struct program_memory *new_table(void)
{
    struct program_memory *memory = calloc(1, sizeof *memory + TABLE_BYTES);

    if (memory != NULL)
        *memory = (struct program_memory){(uint8_t *)(memory + 1), TABLE_BYTES, 1, free_table};
    return memory;
}

static int put_in(struct part *p, struct checked *what, uint64_t name, bool internal,
                  struct error *e)
{
    if (call_add(p, what, name, internal) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    return 0;
}

/* The table of a part: one vector of bytes, to which the first member alone contributes. */
static int put_in_table(struct session *s, uint32_t mask, uint64_t name, bool internal,
                        struct error *e)
{
    struct program_memory *memory = new_table();
    struct checked what = {.call = {.operation = GROUP_PART,
                                    .part = mask,
                                    .type = REDUCTION_UINT8,
                                    .operator= REDUCTION_OR,
                                    .size = TABLE_BYTES,
                                    .in_place = true,
                                    .receive = {memory, 0, TABLE_BYTES}},
                           .largest = TABLE_BYTES,
                           .total = TABLE_BYTES};

    if (memory == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    return put_in(s->part, &what, name, internal, e);
}

static int put_in_bare(struct part *p, uint32_t operation, struct error *e)
{
    struct checked what = {.call = {.operation = (enum group_operation)operation}};
    return put_in(p, &what, 0, true, e);
}

/* --- the program --- */

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

/* The part that a program's mask names. */
static uint32_t mask_of(const struct session *s, uint32_t dimensions)
{
    return dimensions == all_dimensions(s) ? 0 : dimensions;
}

static int open_part(struct session *s, const struct group_call *call, uint64_t name,
                     struct error *e)
{
    struct part *p, **end = &s->part;

    if (call->part == 0 || (call->part & ~all_dimensions(s)) != 0)
        return error_set(e, ERROR_USAGE, "a part of dimensions that the torus does not have");
    if (part_find(s, mask_of(s, call->part)) != NULL)
        return error_set(e, ERROR_REFUSED, "this part of the group is open already");
    if (part_may_be(s, call->part, e) != 0)
        return -1;
    p = part_new(s, call->part, e);
    if (p == NULL)
        return -1;
    while (*end != NULL)
        end = &(*end)->next;
    *end = p;
    return put_in_table(s, call->part, name, false, e);
}

/* Whether every member that completes such a call knows that all have made it. */
static bool is_proof(const struct part *p, const struct checked *what)
{
    return !check_is_unproven(what->call.operation) || what->total == 0 ||
           what->total > p->first_eager;
}

/* Whether a proof has to be put in before this call: as many others have none as may come early, or more
 * bytes would. */
static bool needs_proof(const struct part *p, const struct checked *what)
{
    return !is_proof(p, what) &&
           (p->unproven == GROUP_UNPROVEN_MOST ||
            part_wire_bytes(what->total) > part_wire_bytes(p->first_eager) - p->unproven_bytes);
}

static void forget_unproven(struct part *p)
{
    p->unproven = 0;
    p->unproven_bytes = 0;
}

int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e)
{
    struct checked what;
    struct part *p;
    int result;

    if (call->operation == GROUP_PART) {
        result = open_part(s, call, name, e);
        session_advance(s);
        return result;
    }
    p = part_find(s, mask_of(s, call->part));
    if (p == NULL)
        return error_set(e, ERROR_USAGE, "no such part of the group is open");
    if (check_call(&what, call, p->members, p->own, e) != 0)
        return -1;
    const bool proof = is_proof(p, &what);
    const uint64_t bytes = part_wire_bytes(what.total);
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

static void say_left(const struct session *s, const Peer__GroupCall *mark, struct error *e)
{
    (void)error_set(e, ERROR_USAGE, "member %u has left the group, another one calls %s",
                    s->part->own, group_operation_name(mark->signature & 15));
}

void session_leave(struct session *s)
{
    struct error e;

    s->left = true;
    s->group = NULL;
    if (put_in_bare(s->part, GROUP_LEAVE, &e) != 0)
        session_fail(s, &e);
    for (const struct part *p = s->part; p != NULL; p = p->next) {
        const Peer__GroupCall *mark = parked_beyond(p);
        if (mark != NULL) {
            say_left(s, mark, &e);
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

/* --- the engine --- */

static void session_admit(struct engine *engine, uint64_t round)
{
    struct session *s = of(engine);
    struct error e;

    (void)round;
    s->running = true;
    if (!s->begun) {
        s->begun = true;
        s->group = groups_join(s->all, s);
        if (put_in_table(s, 0, 0, true, &e) != 0)
            session_fail(s, &e);
    }
    if (!s->part->agreed)
        agreement_begin(s->part);
    session_advance(s);
}

void session_is_over(struct session *s)
{
    s->over = true;
    s->base.rounds_finished = 1;
    s->base.counts.delivered_at = router_now(s->base.set.router);
    s->due = s->all->due = true;
}

static const Peer__GroupCall *mark_of(const Peer__Head *head)
{
    if (head->kind_case == PEER__HEAD__KIND_STEPPED_DATA)
        return head->stepped_data->call;
    return head->kind_case == PEER__HEAD__KIND_STREAMED_DATA ? head->streamed_data->call : NULL;
}

/* A part that has not been opened here yet. */
static struct part *find_part(struct session *s, uint32_t mask, struct error *e)
{
    struct part *p = part_find(s, mask);

    if (p == NULL)
        (void)error_set(e, ERROR_PROTOCOL, "group \"%s\": data of a part that is not open",
                        s->name);
    return p;
}

/* What comes for the agreement, or before it. */
static int take_early(struct part *p, unsigned port, const Peer__GroupCall *mark,
                      const Peer__Head *head, const struct extents *body, uint32_t body_length,
                      struct error *e)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct error why;

    if (p->port[port] < 0 || p->agreed || mark->number / STAGES_A_CALL > CALL_MASK)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of a call that cannot be (%u)",
                         s->name, mark->number);
    unsigned own = (unsigned)p->port[port];
    if (mark->number != STAGE_AGREEMENT || a->engine == NULL) {
        if (park(p, own, head, body, body_length, &why) != 0)
            session_fail(s, &why);
        return 0;
    }
    if (engine_frame(a->engine, own, head, body, body_length, e) != 0)
        return -1;
    agreement_advance(p);
    return 0;
}

static int session_frame(struct engine *engine, unsigned port, const Peer__Head *head,
                         const struct extents *body, uint32_t body_length, struct error *e)
{
    struct session *s = of(engine);
    const Peer__GroupCall *mark = mark_of(head);
    struct part *p;
    struct call *c;
    struct error why;

    if (mark == NULL)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data without a call", s->name);
    p = find_part(s, mark->part, e);
    if (p != NULL && (mark->number == STAGE_AGREEMENT || !p->agreed))
        return take_early(p, port, mark, head, body, body_length, e);
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
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of a part without this port",
                         s->name);
    unsigned own = (unsigned)p->port[port];
    unsigned stage = mark->number % STAGES_A_CALL;
    if (s->left && c == NULL) {
        say_left(s, mark, &why);
        session_fail(s, &why);
        return 0;
    }
    if (c != NULL && call_is_under_way(c) && call_differs(c, mark, own, &why)) {
        session_fail(s, &why);
        return 0;
    }
    if (c == NULL || c->attempt.engine[stage] == NULL) {
        if (park(p, own, head, body, body_length, &why) != 0)
            session_fail(s, &why);
        return 0;
    }
    if (engine_frame(c->attempt.engine[stage], own, head, body, body_length, e) != 0)
        return -1;
    calls_advance(p);
    return 0;
}

static int session_clear(struct engine *engine, unsigned port, const Peer__Clear *clear,
                         struct error *e)
{
    (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "group \"%s\": a clear", of(engine)->name);
}

/* Waves first, and what is called first. */
static struct outgoing *next_of(struct part *p, unsigned port)
{
    if (p->agreement.engine != NULL) /* nothing else is sent before */
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
    struct session *s = of(engine);
    struct outgoing *frame = NULL;

    if (engine_has_lost(engine, port))
        return NULL;
    for (struct part *p = s->part; p != NULL && frame == NULL; p = p->next) {
        if ((p->calls == NULL && p->agreement.engine == NULL) || p->port[port] < 0)
            continue;
        frame = next_of(p, (unsigned)p->port[port]);
        agreement_advance(p); /* sending may have been all that was left */
        calls_advance(p);
    }
    return frame;
}

static void session_wake(struct engine *engine)
{
    session_advance(of(engine));
}

static void session_describe(const struct engine *engine, char *text, size_t size)
{
    const struct session *s = (const struct session *)engine;
    (void)snprintf(text, size, "group \"%s\"", s->name);
}

static void unlink_session(struct session *s)
{
    struct session **at = &s->all->sessions;

    while (*at != NULL && *at != s)
        at = &(*at)->next;
    if (*at != NULL)
        *at = s->next;
}

/* Until it is attached to an exchange again, or forgotten. */
static void suspend(struct session *s)
{
    s->attached = s->running = s->due = false;
    s->census = (struct census){0};
    for (struct part *p = s->part; p != NULL; p = p->next)
        part_suspend(p);
}

static void dispose(struct session *s)
{
    groups_part_with(s);
    unlink_session(s);
    while (s->part != NULL) {
        struct part *p = s->part;
        s->part = p->next;
        part_free(p);
    }
    damage_free(&s->damage);
    free(s);
}

static void session_free(struct engine *engine)
{
    struct session *s = of(engine);

    if (s->begun && !s->all->closing)
        suspend(s);
    else
        dispose(s);
}

static struct session *find(const struct groups *all, const char *id)
{
    struct session *s = all->sessions;

    while (s != NULL && (s->attached || strcmp(s->id, id) != 0))
        s = s->next;
    return s;
}

void session_forget(void *context, const char *id)
{
    struct session *s = find(context, id);

    if (s != NULL)
        dispose(s);
}

static int session_message(struct engine *engine, unsigned port, const Peer__Head *head,
                           struct error *e)
{
    if (head->kind_case == PEER__HEAD__KIND_GROUP_CENSUS)
        return census_heard(of(engine), port, head->group_census, e);
    if (head->kind_case == PEER__HEAD__KIND_GROUP_COMPARE)
        return compare_heard(of(engine), port, head->group_compare, e);
    if (head->kind_case == PEER__HEAD__KIND_GROUP_REPORT)
        return census_reported(of(engine), head->group_report, e);
    return census_answered(of(engine), port, head->group_answer, e);
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
};

/* As the exchange's attempt has it. Returns 0, or -1 with *e. */
static int attach(struct session *s, const struct session_setup *setup, struct error *e)
{
    s->base.set.router = setup->router;
    s->base.set.handle = setup->handle;
    s->tree = setup->tree;
    s->events = setup->events;
    s->planner = setup->planner;
    damage_free(&s->damage);
    s->damage = (struct damage){0};
    s->damaged = setup->damage != NULL;
    if (s->damaged && damage_copy(&s->damage, setup->damage, e) != 0)
        return -1;
    s->shrunk = false;
    for (uint32_t node = 0; s->damaged && node < s->damage.torus.nodes; node++)
        s->shrunk = s->shrunk || s->damage.gone[node];
    return 0;
}

/* Its calls count members by number. */
static bool has_members(const struct session *s, const struct damage *damage)
{
    const struct damage *d = s->damaged ? &s->damage : NULL;

    for (uint32_t node = 0; node < router_torus(s->base.set.router)->nodes; node++)
        if ((d != NULL && d->gone[node]) != (damage != NULL && damage->gone[node]))
            return false;
    return true;
}

/* It has been open, and goes on. */
static struct engine *resume(struct session *s, const struct session_setup *setup, struct error *e)
{
    if (!has_members(s, setup->damage)) {
        (void)error_set(e, ERROR_PROTOCOL, "group \"%s\" would go on with other members", s->name);
        return NULL;
    }
    if (attach(s, setup, e) != 0)
        return NULL;
    for (struct part *p = s->part; p != NULL; p = p->next)
        if ((p->mask != 0 && part_may_be(s, p->mask, e) != 0) || part_renew(p, e) != 0)
            return NULL;
    s->base.failure.code = ERROR_NONE;
    s->base.lost = 0;
    s->base.rounds = s->base.rounds_finished = 0;
    s->base.counts = (struct engine_counts){0};
    s->attached = true;
    return &s->base;
}

struct engine *session_open(void *context, const struct session_setup *setup, struct error *e)
{
    struct groups *all = context;
    struct session *s;

    if (setup->goes_on) {
        s = find(all, setup->id);
        if (s != NULL)
            return resume(s, setup, e);
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
        return NULL;
    }
    s->base.ops = &session_ops;
    s->all = all;
    s->attached = true;
    s->unchecked = setup->unchecked;
    (void)snprintf(s->name, sizeof s->name, "%s", setup->name);
    (void)snprintf(s->id, sizeof s->id, "%s", setup->id);
    s->next = all->sessions;
    all->sessions = s;
    if (attach(s, setup, e) == 0)
        s->part = part_new(s, 0, e);
    if (s->part == NULL) {
        dispose(s);
        return NULL;
    }
    s->part->agreed = !setup->goes_on; /* others may have opened it before */
    return &s->base;
}

/* --- time --- */

uint64_t session_deadline(const struct session *s)
{
    uint64_t at = s->census.running ? s->census.deadline : ROUTER_NEVER;

    if (s->base.failure.code != ERROR_NONE || !s->running)
        return ROUTER_NEVER;
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next) {
            at = c->watch.deadline < at ? c->watch.deadline : at;
            at = c->watch.late_at < at ? c->watch.late_at : at;
            at = c->watch.compare_at < at ? c->watch.compare_at : at;
        }
    return at;
}

void session_tick(struct session *s, uint64_t now)
{
    if (!s->running)
        return;
    if (s->census.running && now >= s->census.deadline)
        census_tick(s);
    for (struct part *p = s->part; p != NULL; p = p->next)
        for (struct call *c = p->calls; c != NULL && s->base.failure.code == ERROR_NONE;
             c = c->next) {
            if (now >= c->watch.deadline)
                calls_overdue(c, now);
            if (now >= c->watch.late_at && !c->watch.overdue)
                calls_late(c, now);
            if (now >= c->watch.compare_at)
                compare_send(c, now);
        }
}

/* --- what must hold after each event --- */

int session_check(const struct session *s, struct error *e)
{
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* it has stopped where it was */
    for (const struct part *p = s->part; p != NULL; p = p->next) {
        if (!parked_agrees(p))
            return error_set(e, ERROR_PROTOCOL, "group \"%s\": %llu %s parked, or not", s->name,
                             (unsigned long long)p->parked_bytes,
                             text_plural(p->parked_bytes, "byte is", "bytes are"));
        if (calls_check(p, e) != 0)
            return -1;
    }
    return 0;
}
