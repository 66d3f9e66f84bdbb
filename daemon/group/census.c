/* Who has not made a call that has not ended in time: the node that notices asks the root, up the
 * group's tree; the root asks all, down the tree; the answers come up again, and the root fails the
 * group with the names. */
#include <stdio.h>
#include <string.h>

#include "daemon/group/internal.h"

#define ANSWER_TIME (1 * SECONDS) /* who has not answered by then may be stopped */

static bool is_root(const struct session *s)
{
    return s->tree.parent < 0;
}

static void send_question(struct session *s, unsigned port, const Peer__GroupCensus *question)
{
    Peer__GroupCensus message = *question;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = s->base.set.handle;
    head.kind_case = PEER__HEAD__KIND_GROUP_CENSUS;
    head.group_census = &message;
    if (!engine_has_lost(&s->base, port))
        router_send(s->base.set.router, port, &head);
}

static void send_answer(struct session *s)
{
    Peer__GroupAnswer message = PEER__GROUP_ANSWER__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = s->base.set.handle;
    message.missing = s->census.missing;
    message.n_missing = s->census.count;
    message.others = s->census.others;
    head.kind_case = PEER__HEAD__KIND_GROUP_ANSWER;
    head.group_answer = &message;
    router_send(s->base.set.router, (unsigned)s->tree.parent, &head);
}

/* Whether this node is in the part that the asker means, and has not made the call. */
static bool is_missing(const struct session *s)
{
    const Peer__GroupCensus *q = &s->census.question;
    const struct torus *t = router_torus(s->base.set.router);
    const struct part *p = part_find(s, q->part);
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS];

    torus_coordinates(t, router_rank(s->base.set.router), here);
    torus_coordinates(t, q->asker, there);
    for (unsigned dim = 0; dim < t->dims && q->part != 0; dim++)
        if ((q->part & 1u << dim) == 0 && here[dim] != there[dim])
            return false;
    return p == NULL || (int32_t)((uint32_t)p->next_number - q->number) <= 0;
}

static void note_missing(struct census *c, uint32_t node)
{
    if (c->count < CENSUS_NAMED)
        c->missing[c->count++] = node;
    else
        c->others++;
}

/* "node 3", "nodes 3, 7 and 12 more" */
static void name_missing(const struct census *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", c->count > 1 ? "nodes " : "node ");

    for (uint32_t i = 0; i < c->count && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", i > 0 ? ", " : "", c->missing[i]);
    if (c->others > 0 && used < size)
        (void)snprintf(text + used, size - used, " and %u more", c->others);
}

/* The root knows. */
static void conclude(struct session *s)
{
    const struct census *c = &s->census;
    double seconds = (double)c->question.timeout_ms / 1e3;
    const char *operation = group_operation_name(c->question.signature & 15);
    char names[120];
    struct error e;

    name_missing(c, names, sizeof names);
    if (c->count > 0)
        (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.3f s: %s %s not called it",
                        operation, seconds, names, c->count > 1 ? "have" : "has");
    else if (c->owed > 0)
        (void)error_set(
            &e, ERROR_TIMEOUT,
            "%s has not ended within %.3f s: not all nodes answer, none that does is late",
            operation, seconds);
    else
        (void)error_set(&e, ERROR_TIMEOUT, "%s has not ended within %.3f s: all have called it",
                        operation, seconds);
    session_fail(s, &e);
}

static void answer(struct session *s)
{
    if (s->census.owed > 0)
        return;
    if (is_root(s))
        conclude(s);
    else
        send_answer(s);
}

/* The question comes down to this node. */
static void begin(struct session *s, const Peer__GroupCensus *question)
{
    struct census *c = &s->census;

    c->running = true;
    c->question = *question;
    c->deadline = is_root(s) ? router_now(s->base.set.router) + ANSWER_TIME : ROUTER_NEVER;
    if (is_missing(s))
        note_missing(c, router_rank(s->base.set.router));
    for (unsigned i = 0; i < s->tree.children; i++) {
        c->owed |= 1u << s->tree.child[i];
        send_question(s, s->tree.child[i], question);
    }
    answer(s);
}

/* On its way to the root. */
static void pass_up(struct session *s, const Peer__GroupCensus *question)
{
    if (s->census.asked || s->census.running)
        return;
    s->census.asked = true;
    if (is_root(s))
        begin(s, question);
    else
        send_question(s, (unsigned)s->tree.parent, question);
}

void census_ask(struct session *s, const struct call *call)
{
    Peer__GroupCensus question = PEER__GROUP_CENSUS__INIT;

    question.asker = router_rank(s->base.set.router);
    question.part = call->part->mask;
    question.number = (uint32_t)call->number;
    question.signature = call->signature;
    question.timeout_ms = call->what.call.timeout_ns / MILLISECONDS;
    pass_up(s, &question);
}

int census_heard(struct session *s, unsigned port, const Peer__GroupCensus *question,
                 struct error *e)
{
    const struct torus *t = router_torus(s->base.set.router);

    if (question->asker >= t->nodes || question->part >= 1u << t->dims)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": a census of what cannot be", s->name);
    if ((int)port != s->tree.parent)
        pass_up(s, question);
    else if (!s->census.running)
        begin(s, question);
    return 0;
}

int census_answered(struct session *s, unsigned port, const Peer__GroupAnswer *message,
                    struct error *e)
{
    struct census *c = &s->census;
    uint32_t nodes = router_torus(s->base.set.router)->nodes;

    if ((c->owed & 1u << port) == 0 || message->n_missing > nodes || message->others > nodes)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": an answer that is not expected",
                         s->name);
    c->owed &= ~(1u << port);
    for (size_t i = 0; i < message->n_missing; i++)
        note_missing(c, message->missing[i] < nodes ? message->missing[i] : 0);
    c->others += message->others;
    answer(s);
    return 0;
}

void census_tick(struct session *s)
{
    s->census.deadline = ROUTER_NEVER;
    conclude(s);
}
