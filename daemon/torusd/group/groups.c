/* The groups of this node: what programs ask for, and what they are told. Only groups_tick() and
 * exchanges_tick() tell programs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/group/late.h"
#include "daemon/torusd/group/messages.h"
#include "daemon/torusd/group/session.h"
#include "daemon/torusd/group/state.h"

static void free_group(struct group *g)
{
    struct group **at = &g->groups->groups;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    if (g->session != NULL)
        g->session->group = NULL;
    free(g->completed);
    free(g->gone);
    free(g->listed);
    free(g);
}

/* --- what programs ask for --- */

/* Whether a program at this node has a group of this name open, or opens it. */
static bool groups_has(const struct groups *groups, const char *name)
{
    for (const struct group *g = groups->groups; g != NULL; g = g->next)
        if (strcmp(g->name, name) == 0)
            return true;
    return false;
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e);

static int check_name(const struct groups *groups, const char *name, struct error *e)
{
    if (name[0] == '\0' || strlen(name) >= GROUP_NAME_SIZE)
        return error_set(e, ERROR_USAGE, "a group's name must have 1 to %u bytes",
                         GROUP_NAME_SIZE - 1);
    if (!groups_has(groups, name))
        return 0;
    (void)error_set(e, ERROR_REFUSED, "a program at node %u already has group \"%s\" open",
                    groups_rank(groups), name);
    return error_blame_program(e, groups_rank(groups));
}

static int begin_opening(struct group *g, struct error *e)
{
    uint64_t now = router_now(g->groups->router);
    const struct spec spec = {.algorithm = SPEC_AUTO,
                              .operation = OPERATION_GROUP,
                              .barrier = g->name,
                              .members = g->listed,
                              .unchecked = g->unchecked,
                              .grows = g->listed == NULL &&
                                       router_least_minor(g->groups->router) >= GROWS_MINOR,
                              .memory_wait_ns = g->memory_wait_ns,
                              .trace = g->traced,
                              .shrink = g->shrinks,
                              .wait = g->waits,
                              .timeout_ns = g->deadline == ROUTER_NEVER ? 0
                                            : g->deadline > now         ? g->deadline - now
                                                                        : 1};
    const struct exchange_client me = {g, on_ended, g->user};

    g->exchange = exchange_start(g->groups->exchanges, &spec, &me, e);
    return g->exchange != NULL ? 0 : -1;
}

struct group *group_open(struct groups *groups, const struct group_options *options,
                         const struct group_client *client, struct error *e)
{
    struct group *g;

    if (check_name(groups, options->name, e) != 0)
        return NULL;
    const bool some = options->members != NULL && options->members[0] != '\0';
    const bool may_lack = options->shrink || some;
    g = calloc(1, sizeof *g);
    if (g != NULL && may_lack)
        g->gone = calloc(groups_torus(groups)->nodes, sizeof *g->gone);
    if (g != NULL && some)
        g->listed = strdup(options->members);
    if (g == NULL || (may_lack && g->gone == NULL) || (some && g->listed == NULL)) {
        if (g != NULL)
            free(g->gone);
        free(g);
        (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
        return NULL;
    }
    g->groups = groups;
    g->client = *client;
    g->process = options->process;
    g->user = options->user;
    (void)strcpy(g->name, options->name);
    g->unchecked = options->unchecked;
    g->memory_wait_ns = options->memory_wait_ns;
    g->traced = options->trace;
    g->shrinks = options->shrink;
    g->waits = options->wait;
    g->deadline =
        options->timeout_ns > 0 ? router_now(groups->router) + options->timeout_ns : ROUTER_NEVER;
    if (g->deadline < options->timeout_ns)
        g->deadline = ROUTER_NEVER; /* the sum overflowed */
    g->next = groups->groups;
    groups->groups = g;
    if (begin_opening(g, e) != 0) {
        free_group(g);
        return NULL;
    }
    return g;
}

int group_call(struct group *g, const struct group_call *call, uint64_t name, struct error *e)
{
    if (!g->open)
        return error_set(e, ERROR_REFUSED, "group \"%s\" is not open", g->name);
    if (g->session == NULL)
        return 0; /* the group has failed; ended() reports that */
    if (session_call(g->session, call, name, e) != 0)
        return -1;
    g->calls++;
    g->groups->totals.calls++;
    return 0;
}

int group_message(struct group *g, const struct member_message *message, uint64_t name,
                  struct error *e)
{
    if (!g->open)
        return error_set(e, ERROR_REFUSED, "group \"%s\" is not open", g->name);
    if (g->session == NULL)
        return 0; /* the group has failed; ended() reports that */
    if (messages_make(g->session, message, name, e) != 0)
        return -1;
    g->calls++;
    g->groups->totals.calls++;
    return 0;
}

const struct group_carrier *group_carried(const struct group *g)
{
    return &g->carried;
}

const struct damage *group_links(const struct group *g)
{
    const struct session *s = g->session;

    return s != NULL && s->part != NULL && s->damaged ? &s->damage : NULL;
}

void group_close(struct group *g)
{
    struct session *s = g->session;
    struct job *x = g->exchange;
    uint32_t rank = groups_rank(g->groups);
    bool open = g->open && s != NULL, calling = open && session_has_calls(s);
    struct error e;

    if (!open)
        (void)error_set(&e, ERROR_CANCELLED,
                        "the program at node %u has given up opening the group", rank);
    else
        (void)error_set(&e, ERROR_CANCELLED,
                        "the program at node %u has closed the group while calls were under way",
                        rank);
    (void)error_blame_program(&e, rank);
    free_group(g);
    if (open && !calling) {
        exchange_release(x);
        session_leave(s);
    } else if (x != NULL) {
        exchange_give_up(x, &e);
    }
}

void group_abandon(struct group *g, const struct error *why)
{
    struct job *x = g->exchange;

    free_group(g);
    if (x != NULL)
        exchange_give_up(x, why);
}

/* --- what programs are told --- */

/* Tells a program what is due. Returns false if the group was freed meanwhile. */
static bool tell_program(struct groups *groups, struct group *g)
{
    const struct group_client client = g->client;
    size_t told = 0;

    if (g->open_due) {
        g->open_due = false;
        g->open = true;
        client.opened(client.context, g);
    }
    if (g->late_due && client.late != NULL)
        client.late(client.context, g->late, g->late_text);
    g->late_due = false;
    for (;;) {
        const struct group *found = groups->groups;
        while (found != NULL && found != g)
            found = found->next;
        if (found == NULL)
            return false;
        if (told == g->completions)
            break;
        if (g->completed[told].from != GROUP_ANY_MEMBER && client.received != NULL)
            client.received(client.context, g->completed[told].name, g->completed[told].from);
        client.called(client.context, g->completed[told++].name, NULL);
    }
    g->completions = 0;
    return true;
}

/* Ends a group. The program's error has the code ERROR_IN_DOUBT if other members may have had the group open. */
static void end_group(struct group *g, const struct error *e)
{
    const struct group_client client = g->client;
    struct error why = *e;

    if (!g->open && !g->open_due && g->exchange != NULL &&
        exchange_all_may_have_entered(g->exchange)) {
        why.code = ERROR_IN_DOUBT;
        (void)error_wrap(&why, "other programs may have had the group open");
    }
    (void)error_wrap(&why, "group \"%s\"", g->name);
    if (!tell_program(g->groups, g))
        return;
    free_group(g);
    client.ended(client.context, &why);
}

/* Whether to open the group again: all nodes had entered it, but its program has not been told so yet. The
 * remaining nodes then enter it again. */
static bool is_to_be_retried(const struct group *g, const struct error *e)
{
    return (g->shrinks || g->waits) && !g->open && !g->open_due && e->code == ERROR_LINK &&
           router_now(g->groups->router) < g->deadline;
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct group *g = context;
    const struct error left = {.code = ERROR_PROTOCOL,
                               .text = "the group ended although its program has not left"};

    (void)result;
    if (e != NULL && is_to_be_retried(g, e)) {
        log_info("group \"%s\": retrying to open it: %s", g->name, e->text);
        g->exchange = NULL;
        g->retry_due = g->groups->due = true;
        return;
    }
    end_group(g, e != NULL ? e : &left);
}

/* --- all groups of the node --- */

struct groups *groups_new(struct router *router, const struct workers *workers)
{
    struct groups *groups = calloc(1, sizeof *groups);

    if (groups == NULL)
        return NULL;
    groups->router = router;
    groups->workers = *workers;
    return groups;
}

struct sessions groups_sessions(struct groups *groups)
{
    return (struct sessions){groups,
                             session_open,
                             session_forget,
                             group_memory(router_torus(groups->router)),
                             group_first_memory(router_torus(groups->router)),
                             group_some_memory(),
                             group_passing_memory()};
}

void groups_attach(struct groups *groups, struct exchanges *exchanges)
{
    groups->exchanges = exchanges;
}

void groups_free(struct groups *groups)
{
    if (groups == NULL)
        return;
    while (groups->groups != NULL)
        free_group(groups->groups);
    groups->closing = true;
    while (groups->sessions != NULL)
        engine_free(&groups->sessions->base);
    free(groups);
}

uint64_t groups_deadline(const struct groups *groups)
{
    uint64_t at = groups->due ? 0 : ROUTER_NEVER;

    for (const struct session *s = groups->sessions; s != NULL; s = s->next) {
        uint64_t one = timers_deadline(s);
        at = one < at ? one : at;
    }
    return at;
}

void groups_tick(struct groups *groups)
{
    uint64_t now = router_now(groups->router);
    struct session *s = groups->sessions;
    struct group *g;

    for (; s != NULL; s = s->next)
        timers_tick(s, now);
    groups->due = false;
    s = groups->sessions;
    while (s != NULL) {
        if (!s->due) {
            s = s->next;
            continue;
        }
        s->due = false;
        if (s->attached)
            s->events.wake(s->events.context); /* the session may have been freed */
        s = groups->sessions;
    }
    g = groups->groups;
    while (g != NULL) {
        struct error e;
        if (g->retry_due) {
            g->retry_due = false;
            if (begin_opening(g, &e) != 0) {
                end_group(g, &e);
                g = groups->groups;
                continue;
            }
        }
        if (!g->open_due && !g->late_due && g->completions == 0) {
            g = g->next;
            continue;
        }
        if (!tell_program(groups, g))
            g = groups->groups; /* the list has changed */
    }
}

const bool *group_left_out(const struct group *g)
{
    return g->members < groups_torus(g->groups)->nodes ? g->gone : NULL;
}

uint32_t group_members(const struct group *g)
{
    return g->members;
}

uint32_t groups_rank(const struct groups *groups)
{
    return router_rank(groups->router);
}

const struct torus *groups_torus(const struct groups *groups)
{
    return router_torus(groups->router);
}

uint32_t group_missing(const struct group *group, char *list, size_t size)
{
    list[0] = '\0';
    if (group->exchange == NULL || group->open)
        return 0;
    return exchange_missing(group->exchange, list, size);
}

size_t groups_list(const struct groups *groups, struct group_info *list, size_t most)
{
    size_t n = 0;

    for (const struct group *g = groups->groups; g != NULL && n < most; g = g->next) {
        const struct session *s = g->session;
        const struct part *part = s != NULL ? s->part : NULL;
        const struct damage *links = group_links(g);
        list[n] = (struct group_info){
            .open = g->open,
            .process = g->process,
            .member = true,
            .calls = g->calls,
            .calls_done = g->calls_done,
            .bytes_sent = g->bytes_sent,
            .bytes_received = g->bytes_received,
            .reserved = g->exchange != NULL ? exchange_reserved(g->exchange) : 0,
        };
        for (const struct part *p = part; p != NULL; p = p->next)
            list[n].early += p->early_bytes;
        if (links != NULL)
            (void)damage_describe(links, list[n].avoids, sizeof list[n].avoids);
        link_rates_of(&list[n].links, links);
        (void)strcpy(list[n].name, g->name);
        if (g->exchange != NULL)
            (void)snprintf(list[n].id, sizeof list[n].id, "%s", exchange_id(g->exchange));
        (void)group_missing(g, list[n].missing, sizeof list[n].missing);
        n++;
    }
    return n;
}

void groups_count(const struct groups *groups, struct groups_counts *counts)
{
    *counts = (struct groups_counts){.calls = groups->totals.calls,
                                     .calls_done = groups->totals.calls_done,
                                     .bytes_sent = groups->totals.bytes_sent,
                                     .bytes_received = groups->totals.bytes_received};
    for (const struct group *g = groups->groups; g != NULL; g = g->next)
        *(g->open ? &counts->open : &counts->opening) += 1;
}

int groups_check(const struct groups *groups, struct error *e)
{
    if (groups->broken.code != ERROR_NONE) {
        *e = groups->broken;
        return -1;
    }
    for (const struct session *s = groups->sessions; s != NULL; s = s->next)
        if (session_check(s, e) != 0)
            return -1;
    return 0;
}
