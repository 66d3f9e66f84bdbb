/* What happens in groups and sessions: programs and exchanges are told later, by groups_tick(). */
#include "daemon/torusd/group/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/group/call.h"

void group_is_open(struct group *g)
{
    g->open_due = g->groups->due = true;
}

bool group_call_late(struct group *g, const struct call *c, const char *whom)
{
    if (g->late_due)
        return false;
    g->late = c->name;
    (void)snprintf(g->late_text, sizeof g->late_text, "%s", whom);
    g->late_due = g->groups->due = true;
    return true;
}

void group_message_complete(struct group *g, const struct completion *done, uint64_t bytes_sent,
                            uint64_t bytes_received)
{
    struct error e;

    if (g->completions == g->room) {
        size_t room = g->room == 0 ? 16 : 2 * g->room;
        struct completion *completed = reallocarray(g->completed, room, sizeof *completed);
        if (completed == NULL) {
            (void)error_set(&e, ERROR_MEMORY, "out of memory for a call");
            session_fail(g->session, &e);
            return;
        }
        g->completed = completed;
        g->room = room;
    }
    g->completed[g->completions++] = *done;
    g->calls_done++;
    g->bytes_sent += bytes_sent;
    g->bytes_received += bytes_received;
    g->groups->totals.calls_done++;
    g->groups->totals.bytes_sent += bytes_sent;
    g->groups->totals.bytes_received += bytes_received;
    g->groups->due = true;
}

void group_call_complete(struct group *g, const struct call *c)
{
    const struct completion done = {c->name, GROUP_ANY_MEMBER};

    group_message_complete(g, &done, c->blocks.bytes_out, c->blocks.bytes_in);
}

struct group *groups_join(struct groups *groups, struct session *s)
{
    struct group *g = groups->groups;

    while (g != NULL && (g->session != NULL || g->open || strcmp(g->name, s->name) != 0))
        g = g->next;
    if (g != NULL) {
        g->session = s;
        g->members = s->part->members.count;
        if (s->shrunk && g->gone != NULL)
            memcpy(g->gone, s->damage.gone, router_torus(groups->router)->nodes * sizeof *g->gone);
        for (uint32_t node = 0; s->is_member != NULL && node < router_torus(groups->router)->nodes;
             node++)
            g->gone[node] = !s->is_member[node];
    }
    return g;
}

void groups_leave(struct session *s)
{
    if (s->group != NULL)
        s->group->session = NULL;
    s->group = NULL;
}

void session_is_due(struct session *s)
{
    s->due = s->groups->due = true;
}

void session_fail(struct session *s, const struct error *e)
{
    (void)engine_fail(&s->base, e);
    session_is_due(s);
}

void session_is_over(struct session *s)
{
    s->over = true;
    s->base.rounds_finished = 1;
    s->base.counts.delivered_at = router_now(s->base.set.router);
    session_is_due(s);
}
