#include "daemon/torusd/group/late/census.h"

#include <stdio.h>

#include "daemon/torusd/group/late/late_calls.h"

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

/* --- the result --- */

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

/* Whether this node is in the part that the asker means. */
static bool is_meant(const struct session *s, uint32_t asker, uint32_t part)
{
    const struct torus *t = router_torus(s->base.set.router);
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS];

    torus_coordinates(t, router_rank(s->base.set.router), here);
    torus_coordinates(t, asker, there);
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
    if (p == NULL || !is_meant(s, report->asker, report->part))
        return;
    describe_report(report, whom, sizeof whom);
    late_calls_reported(p, report->number, report->asker == router_rank(s->base.set.router),
                        report->n_missing == 0 && !report->incomplete, whom);
}

static void conclude_census(struct session *s)
{
    struct census *c = &s->census;
    const struct peer_group_report report = {.asker = c->question.asker,
                                             .part = c->question.part,
                                             .number = c->question.number,
                                             .missing = c->missing,
                                             .n_missing = c->count,
                                             .others = c->others,
                                             .incomplete = c->owed > 0};

    c->running = false;
    take_report(s, &report);
}

/* --- question and answer --- */

static bool is_missing(const struct session *s)
{
    const struct peer_group_census *q = &s->census.question;
    const struct part *p = part_find(s, q->part);

    return is_meant(s, q->asker, q->part) &&
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
    if (!s->census.running || s->census.owed > 0)
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
        c->owed |= 1u << s->tree.child[i];
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

void census_ask(struct session *s, const struct call *call)
{
    const struct peer_group_census question = {.asker = router_rank(s->base.set.router),
                                               .part = call->part->mask,
                                               .number = (uint32_t)call->number};

    pass_up(s, &question);
}

/* --- messages --- */

static bool can_be(const struct session *s, uint32_t asker, uint32_t part)
{
    const struct torus *t = router_torus(s->base.set.router);

    return asker < t->nodes && part < 1u << t->dims;
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
    if (!can_be(s, question->asker, question->part))
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
    if (message->id != c->question.id || (c->owed & 1u << port) == 0 ||
        !can_be_missing(s, message->missing, message->n_missing, message->others))
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": an answer to a census that this node has not asked for, or "
                         "that names impossible members",
                         s->name);
    c->owed &= ~(1u << port);
    for (size_t i = 0; i < message->n_missing; i++)
        note_missing(c, message->missing[i]);
    c->others += message->others;
    answer_question(s);
    return 0;
}

int census_reported(struct session *s, const struct peer_group_report *report, struct error *e)
{
    if (!can_be(s, report->asker, report->part) ||
        !can_be_missing(s, report->missing, report->n_missing, report->others))
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": report of a census with nodes or a part that do not exist",
                         s->name);
    take_report(s, report);
    return 0;
}

void census_tick(struct session *s)
{
    s->census.deadline = ROUTER_NEVER;
    conclude_census(s);
}
