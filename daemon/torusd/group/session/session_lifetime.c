#include "daemon/torusd/group/session/session_lifetime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/group/record/part_torus.h"
#include "daemon/torusd/group/restart/part_lifetime.h"

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
    for (struct part *p = s->part; p != NULL; p = p->next)
        part_suspend(p);
}

static void dispose_session(struct session *s)
{
    groups_leave(s);
    unlink_session(s);
    while (s->part != NULL) {
        struct part *p = s->part;
        s->part = p->next;
        part_free(p);
    }
    damage_free(&s->damage);
    trace_unref(s->base.set.trace);
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
    trace_unref(s->base.set.trace);
    s->base.set.trace = trace_ref(setup->trace);
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

/* Whether the members are the same as before. They must be, because calls refer to members by number. */
static bool has_members(const struct session *s, const struct damage *damage)
{
    const struct damage *d = s->damaged ? &s->damage : NULL;

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
    s->base.failure.code = ERROR_NONE;
    s->base.lost = 0;
    s->base.rounds = s->base.rounds_finished = 0;
    s->base.counts = (struct engine_counts){0};
    s->attached = true;
    return s;
}

void session_release(struct session *s)
{
    if (s->begun && !s->groups->closing)
        suspend_session(s);
    else
        dispose_session(s);
}

struct session *session_new(struct groups *groups, const struct session_setup *setup,
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
    s->groups = groups;
    s->attached = true;
    s->unchecked = setup->unchecked;
    (void)snprintf(s->name, sizeof s->name, "%s", setup->name);
    (void)snprintf(s->id, sizeof s->id, "%s", setup->id);
    s->next = groups->sessions;
    groups->sessions = s;
    if (attach_session(s, setup, e) == 0)
        s->part = part_new(s, 0, e);
    if (s->part == NULL) {
        dispose_session(s);
        return NULL;
    }
    s->part->agreed = !setup->restarts; /* other members may have opened it before */
    return s;
}
