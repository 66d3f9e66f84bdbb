/* The copies of one node: what it takes part in, and those that were asked for here. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/torusd/copy/internal.h"
#include "daemon/torusd/router/router.h"
#include "proto/elapsed.h"
#include "proto/text.h"

#define CALL_SILENCE                                                                               \
    (30 * SECONDS) /* without a call, the initiator of a group that is not open has given up */

static const struct flood_rules call_rules = {.kept = 64, .rate = 32, .burst = 64, .initiator = 16};

struct copies *copies_new(const struct copies_setup *setup)
{
    struct copies *c = calloc(1, sizeof *c);

    if (c == NULL ||
        flood_limit_init(&c->calls, &call_rules, torus_ports(router_torus(setup->router))) != 0) {
        free(c);
        return NULL;
    }
    c->set = *setup;
    shares_set_capacity(setup->shares, SHARE_COPIES,
                        (uint64_t)COPY_ASKED_MOST * COPY_SLOTS * COPY_CALL_MOST);
    shares_set_least(setup->shares, SHARE_COPIES, (uint64_t)COPY_SLOTS * COPY_CALL_LEAST);
    return c;
}

void copies_free(struct copies *c)
{
    if (c == NULL)
        return;
    while (c->asked != NULL)
        initiator_free(c->asked);
    while (c->agents != NULL) {
        struct agent *a = c->agents;
        c->agents = a->next;
        agent_detach(a);
    }
    flood_limit_free(&c->calls);
    free(c);
}

/* --- time --- */

/* Whether the agent waits for calls of another node. */
static bool waits_for_calls(const struct agent *a)
{
    return a->copy == NULL && a->initiator != a->rank && !a->opened && a->step != STEP_ENDING;
}

/* Counts bytes while they move, because an agent that fails forgets them. */
static void count_bytes(struct copies *c, struct agent *a)
{
    const uint64_t bytes = a->step == STEP_MOVE_STREAMS ? a->moving.bytes : a->moved;

    if (bytes <= a->counted)
        return;
    c->counts.bytes += bytes - a->counted;
    a->counted = bytes;
}

static void tick_agents(struct copies *c, uint64_t now)
{
    const struct error silent = {.code = ERROR_TIMEOUT,
                                 .text = "the node that was asked for the copy "
                                         "does not call any more"};
    struct agent **at = &c->agents;

    while (*at != NULL) {
        struct agent *a = *at;
        if (waits_for_calls(a) && elapsed(a->heard_at, now) >= CALL_SILENCE)
            agent_give_up(a, &silent);
        agent_advance(a);
        count_bytes(c, a);
        initiator_tell(a);
        if (a->step == STEP_ENDING && a->refuses) {
            a->refuses = false;
            responder_refuse(c, a->initiator, a->id, a->attempt, &a->error);
        }
        if (a->step == STEP_OVER)
            agent_leave(a);
        if (agent_is_gone(a)) {
            *(a->error.code == ERROR_NONE ? &c->counts.ended : &c->counts.failed) += 1;
            *at = a->next;
            agent_free(a);
        } else {
            at = &a->next;
        }
    }
}

uint64_t copies_deadline(const struct copies *c)
{
    uint64_t at = c->due ? 0 : ROUTER_NEVER;

    for (const struct agent *a = c->agents; a != NULL; a = a->next)
        if (waits_for_calls(a) && a->heard_at + CALL_SILENCE < at)
            at = a->heard_at + CALL_SILENCE;
    for (const struct copy *copy = c->asked; copy != NULL; copy = copy->next)
        at = initiator_deadline(copy) < at ? initiator_deadline(copy) : at;
    return at;
}

void copies_tick(struct copies *c)
{
    const uint64_t now = router_now(c->set.router);
    struct copy *copy;

    c->due = false;
    for (copy = c->asked; copy != NULL; copy = copy->next)
        initiator_tick(copy, now);
    tick_agents(c, now);
    for (copy = c->asked; copy != NULL;)
        copy = initiator_tell_client(copy) ? c->asked : copy->next; /* the list may have changed */
}

int copies_check(const struct copies *c, struct error *e)
{
    uint64_t reserved = 0;

    for (const struct agent *a = c->agents; a != NULL; a = a->next) {
        reserved += (uint64_t)COPY_SLOTS * a->call_bytes;
        if (a->copy != NULL && a->copy->agent != a)
            return error_set(e, ERROR_PROTOCOL, "copy %s has another agent", a->id_text);
        if (a->step == STEP_ENDING ? a->group != NULL : a->asked_for_group && a->group == NULL)
            return error_set(e, ERROR_PROTOCOL, "copy %s: its step and its group do not agree",
                             a->id_text);
        if (a->step < STEP_ENDING && a->job_runs && a->job_step != a->step)
            return error_set(e, ERROR_PROTOCOL, "copy %s: a job of an earlier step still runs",
                             a->id_text);
    }
    if (reserved != shares_total(c->set.shares, SHARE_COPIES))
        return error_set(e, ERROR_PROTOCOL,
                         "the memory that copies reserved differs from the count");
    return 0;
}

/* --- status --- */

void copies_count(const struct copies *c, struct copies_counts *counts)
{
    *counts = c->counts;
    counts->under_way = copies_count_agents(c);
}

static void list_one(struct copy_info *info, uint32_t initiator, uint64_t id, const char *target)
{
    *info = (struct copy_info){.asker = initiator};
    copy_id_text(id, info->id);
    (void)text_printable(info->target, sizeof info->target, target);
}

/* Whether a copy waits for its next attempt. */
static bool is_between_attempts(const struct copies *c, const struct copy *copy)
{
    return copy->agent == NULL && copy->outcomes == NULL && copy->error.code == ERROR_NONE &&
           copies_find_agent(c, router_rank(c->set.router), copy->id) == NULL;
}

size_t copies_list(const struct copies *c, struct copy_info *list, size_t most)
{
    size_t n = 0;

    for (const struct agent *a = c->agents; a != NULL && n < most; a = a->next) {
        struct copy_info *info = &list[n++];
        list_one(info, a->initiator, a->id, a->request.target);
        if (a->copy != NULL)
            copy_progress(a->copy, &info->progress);
        else
            agent_progress(a, &info->progress);
    }
    for (const struct copy *copy = c->asked; copy != NULL && n < most; copy = copy->next)
        if (is_between_attempts(c, copy)) {
            struct copy_info *info = &list[n++];
            list_one(info, router_rank(c->set.router), copy->id, copy->request.target);
            copy_progress(copy, &info->progress);
        }
    return n;
}
