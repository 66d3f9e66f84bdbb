#include "daemon/torusd/group/late.h"

#include <stdio.h>

#include "daemon/torusd/group/call.h"
#include "daemon/torusd/group/messages.h"
#include "daemon/torusd/group/relay.h"

#define COMPARE_AGAIN (500 * MILLISECONDS)

#define CENSUS_ALL_CALLED "all have called it"

/* --- comparing calls with neighbours --- */

/* Sends the call to the neighbours in its part. `now`: as router_now(). */
static void compare_send(struct call *c, uint64_t now)
{
    const struct part *p = c->part;
    struct session *s = p->session;
    struct router *router = s->base.set.router;
    struct peer_message message = {.kind = PEER_GROUP_COMPARE,
                                   .group_compare = {.exchange = s->base.set.handle,
                                                     .part = p->mask,
                                                     .number = (uint32_t)c->number,
                                                     .signature = c->signature}};

    c->watch.compare_at = now + COMPARE_AGAIN;
    for (unsigned own = 0; own < torus_ports(p->torus); own++) {
        const unsigned port = p->place != NULL ? p->place->port[own] : own;
        if (torus_neighbour(p->torus, p->rank, own) == TORUS_NO_NODE ||
            engine_has_lost(&s->base, port) ||
            (s->damaged && (s->damage.dead[router_rank(router)] & 1u << port) != 0))
            continue;
        message.group_compare.channel = s->relay != NULL ? p->place->channel + own : 0;
        router_send(router, port, &message);
    }
}

int compare_heard(struct session *s, unsigned port, const struct peer_group_compare *message,
                  struct error *e)
{
    const struct part *p = part_find(s, message->part);
    struct error why;
    bool passed_on;

    if (relay_pass_compare(s, port, message, &passed_on, e) != 0)
        return -1;
    if (passed_on || p == NULL) /* the part is not open here yet */
        return 0;
    const int own = part_port(p, port, message->channel);
    if (own < 0)
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": comparison through a port that is not in the part",
                         s->name);
    uint32_t ago = (uint32_t)p->next_number - message->number, ours;
    if (s->left && ago == 0)
        ours = GROUP_LEAVE; /* in the whole, leaving is a call; a part ends in no other way */
    else if (ago == 0 || ago > SIGNATURES)
        return 0; /* not called here yet, or too long ago */
    else
        ours = p->signature[message->number % SIGNATURES];
    if (signatures_differ(p, ours, message->signature, (unsigned)own, &why))
        session_fail(s, &why);
    return 0;
}

/* --- late calls, after a census has named the nodes that have not made them --- */

/* Fails the session because a call is late. `whom`: text that names the nodes that the call waits for; "":
 * unknown. */
static void late_call_fail(const struct call *c, const char *whom)
{
    struct error e;

    (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.3f s%s%s",
                    group_operation_name(c->what.call.operation),
                    (double)c->what.call.timeout_ns / 1e9, *whom != '\0' ? ": " : "", whom);
    session_fail(c->part->session, &e);
}

/* Handles a census's result, the text `whom`, about the call of this number. A call past its deadline fails,
 * unless all members have made it: then it gets a little more time. Otherwise the program of the node that
 * asked is told. */
static void late_calls_reported(struct part *p, uint32_t number, bool asked, bool all_called,
                                const char *whom)
{
    struct group *program = p->session->group;
    struct call *c = p->calls;

    while (c != NULL && (uint32_t)c->number != number)
        c = c->next;
    if (c == NULL)
        return;
    c->watch.all_called = all_called;
    if (c->watch.overdue) {
        if (!all_called) /* a call that all have made may be about to end */
            late_call_fail(c, whom);
    } else if (c->watch.late_at != ROUTER_NEVER) {
        if (!asked || program == NULL || c->internal || call_is_for_others(c) ||
            group_call_late(program, c, whom))
            c->watch.late_at = ROUTER_NEVER; /* only one program is told */
    }
}

#define ANSWER_TIME (1 * SECONDS) /* nodes that have not answered by then may be stopped */

static bool is_root(const struct session *s)
{
    return s->tree.parent < 0;
}

static void send_message(struct session *s, unsigned port, const struct peer_message *message)
{
    if (!engine_has_lost(&s->base, port))
        router_send(s->base.set.router, port, message);
}

static void send_question(struct session *s, unsigned port,
                          const struct peer_group_census *question)
{
    struct peer_message message = {.kind = PEER_GROUP_CENSUS, .group_census = *question};

    message.group_census.exchange = s->base.set.handle;
    send_message(s, port, &message);
}

static void send_answer(struct session *s)
{
    const struct peer_message message = {.kind = PEER_GROUP_ANSWER,
                                         .group_answer = {.exchange = s->base.set.handle,
                                                          .missing = s->census.missing,
                                                          .n_missing = s->census.count,
                                                          .others = s->census.others,
                                                          .id = s->census.question.id}};

    send_message(s, (unsigned)s->tree.parent, &message);
}

static void send_report(struct session *s, const struct peer_group_report *report)
{
    struct peer_message message = {.kind = PEER_GROUP_REPORT, .group_report = *report};

    message.group_report.exchange = s->base.set.handle;
    for (unsigned i = 0; i < s->tree.children; i++)
        send_message(s, s->tree.child[i], &message);
}

/* --- the result of a census --- */

/* Sets `text` to "node 3 has not called it" or "nodes 3, 7 and 12 more have not called it". */
static void describe_report(const struct peer_group_report *r, char *text, size_t size)
{
    const bool several = r->n_missing > 1 || r->others > 0;
    size_t used = (size_t)snprintf(text, size, "%s", several ? "nodes " : "node ");

    if (r->n_missing == 0) {
        (void)snprintf(text, size, "%s",
                       r->incomplete ? "not all nodes have answered; those that did have called it"
                                     : CENSUS_ALL_CALLED);
        return;
    }
    for (size_t i = 0; i < r->n_missing && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", i > 0 ? ", " : "", r->missing[i]);
    if (r->others > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used, " and %u more", r->others);
    if (used < size)
        (void)snprintf(text + used, size - used, " %s not called it", several ? "have" : "has");
}

/* Whether this node is in the part that the initiator means. */
static bool is_meant(const struct session *s, uint32_t initiator, uint32_t part)
{
    const struct torus *t = router_torus(s->base.set.router);
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS];

    torus_coordinates(t, router_rank(s->base.set.router), here);
    torus_coordinates(t, initiator, there);
    for (unsigned dim = 0; dim < t->dims && part != 0; dim++)
        if ((part & 1u << dim) == 0 && here[dim] != there[dim])
            return false;
    return true;
}

static void take_report(struct session *s, const struct peer_group_report *report)
{
    struct part *p = part_find(s, report->part);
    char whom[200];

    send_report(s, report);
    if (p == NULL || !is_meant(s, report->initiator, report->part))
        return;
    describe_report(report, whom, sizeof whom);
    late_calls_reported(p, report->number, report->initiator == router_rank(s->base.set.router),
                        report->n_missing == 0 && !report->incomplete, whom);
}

static void conclude_census(struct session *s)
{
    struct census *c = &s->census;
    const struct peer_group_report report = {.initiator = c->question.initiator,
                                             .part = c->question.part,
                                             .number = c->question.number,
                                             .missing = c->missing,
                                             .n_missing = c->count,
                                             .others = c->others,
                                             .incomplete = c->awaited > 0};

    c->running = false;
    take_report(s, &report);
}

/* --- question and answer --- */

static bool is_missing(const struct session *s)
{
    const struct peer_group_census *q = &s->census.question;
    const struct part *p = part_find(s, q->part);

    return !s->passive && is_meant(s, q->initiator, q->part) &&
           (p == NULL || (int32_t)((uint32_t)p->next_number - q->number) <= 0);
}

static void note_missing(struct census *c, uint32_t node)
{
    if (c->count < CENSUS_NAMED)
        c->missing[c->count++] = node;
    else
        c->others++;
}

static void answer_question(struct session *s)
{
    if (!s->census.running || s->census.awaited > 0)
        return;
    if (is_root(s)) {
        conclude_census(s);
        return;
    }
    s->census.running = false;
    send_answer(s);
}

/* Starts the census at this node, because its question has arrived. */
static void begin_census(struct session *s, const struct peer_group_census *question)
{
    struct census *c = &s->census;

    *c = (struct census){.running = true, .question = *question, .deadline = ROUTER_NEVER};
    if (is_root(s))
        c->deadline = router_now(s->base.set.router) + ANSWER_TIME;
    if (is_missing(s))
        note_missing(c, router_rank(s->base.set.router));
    for (unsigned i = 0; i < s->tree.children; i++) {
        c->awaited |= 1u << s->tree.child[i];
        send_question(s, s->tree.child[i], question);
    }
    answer_question(s);
}

/* Passes the question on towards the root. */
static void pass_up(struct session *s, const struct peer_group_census *question)
{
    struct peer_group_census numbered = *question;

    if (!is_root(s)) {
        send_question(s, (unsigned)s->tree.parent, question);
    } else if (!s->census.running) {
        numbered.id = s->census.question.id + 1;
        begin_census(s, &numbered);
    }
}

/* Asks the root about a call that is late here. late_calls_reported() gets the result, unless the call has
 * ended. */
static void census_ask(struct session *s, const struct call *call)
{
    const struct peer_group_census question = {.initiator = router_rank(s->base.set.router),
                                               .part = call->part->mask,
                                               .number = (uint32_t)call->number};

    pass_up(s, &question);
}

/* --- messages --- */

static bool can_be(const struct session *s, uint32_t initiator, uint32_t part)
{
    const struct torus *t = router_torus(s->base.set.router);

    return initiator < t->nodes && part < 1u << t->dims;
}

static bool can_be_missing(const struct session *s, const uint32_t *missing, size_t count,
                           uint32_t others)
{
    uint32_t nodes = router_torus(s->base.set.router)->nodes;

    if (count > CENSUS_NAMED || others > nodes)
        return false;
    for (size_t i = 0; i < count; i++)
        if (missing[i] >= nodes)
            return false;
    return true;
}

int census_heard(struct session *s, unsigned port, const struct peer_group_census *question,
                 struct error *e)
{
    if (!can_be(s, question->initiator, question->part))
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": census of a node or part that does not exist", s->name);
    if ((int)port != s->tree.parent) {
        pass_up(s, question);
        return 0;
    }
    if (question->id <= s->census.question.id)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": census %u arrived after census %u",
                         s->name, question->id, s->census.question.id);
    begin_census(s, question);
    return 0;
}

int census_answered(struct session *s, unsigned port, const struct peer_group_answer *message,
                    struct error *e)
{
    struct census *c = &s->census;

    if (message->id < c->question.id)
        return 0; /* the root has stopped waiting for this answer */
    if (message->id != c->question.id || (c->awaited & 1u << port) == 0 ||
        !can_be_missing(s, message->missing, message->n_missing, message->others))
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": an answer to a census that this node has not asked for, or "
                         "that names impossible members",
                         s->name);
    c->awaited &= ~(1u << port);
    for (size_t i = 0; i < message->n_missing; i++)
        note_missing(c, message->missing[i]);
    c->others += message->others;
    answer_question(s);
    return 0;
}

int census_reported(struct session *s, const struct peer_group_report *report, struct error *e)
{
    if (!can_be(s, report->initiator, report->part) ||
        !can_be_missing(s, report->missing, report->n_missing, report->others))
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": report of a census with nodes or a part that do not exist",
                         s->name);
    take_report(s, report);
    return 0;
}

/* Root: stops waiting for nodes that have not answered before the deadline. */
static void census_tick(struct session *s)
{
    s->census.deadline = ROUTER_NEVER;
    conclude_census(s);
}

#define CENSUS_TIME (2 * SECONDS)

/* --- time limits --- */

/* Handles a call whose deadline has passed: asks which members have not made it, and fails it if nobody answers. */
static void call_overdue(struct call *c, uint64_t now)
{
    if (!c->watch.overdue) {
        c->watch.overdue = true;
        c->watch.deadline = now + CENSUS_TIME;
        census_ask(c->part->session, c);
        return;
    }
    late_call_fail(c, c->watch.all_called ? CENSUS_ALL_CALLED : "");
}

/* Handles a call that is late: asks repeatedly which members it waits for, until some node knows. */
static void call_late(struct call *c, uint64_t now)
{
    c->watch.late_at = now + c->what.call.late_ns;
    census_ask(c->part->session, c);
}

uint64_t timers_deadline(const struct session *s)
{
    uint64_t at = s->census.running ? s->census.deadline : ROUTER_NEVER;

    if (s->base.failure.code != ERROR_NONE || !s->running)
        return ROUTER_NEVER;
    const uint64_t message = messages_deadline(s);
    at = message < at ? message : at;
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next) {
            at = c->watch.deadline < at ? c->watch.deadline : at;
            at = c->watch.late_at < at ? c->watch.late_at : at;
            at = c->watch.compare_at < at ? c->watch.compare_at : at;
        }
    return at;
}

void timers_tick(struct session *s, uint64_t now)
{
    if (!s->running)
        return;
    if (s->census.running && now >= s->census.deadline)
        census_tick(s);
    messages_tick(s, now);
    for (struct part *p = s->part; p != NULL; p = p->next)
        for (struct call *c = p->calls; c != NULL && s->base.failure.code == ERROR_NONE;
             c = c->next) {
            if (now >= c->watch.deadline)
                call_overdue(c, now);
            if (now >= c->watch.late_at && !c->watch.overdue)
                call_late(c, now);
            if (now >= c->watch.compare_at)
                compare_send(c, now);
        }
}
