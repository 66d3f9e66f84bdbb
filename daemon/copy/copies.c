/* The copies of one node: those that were asked for here, and what this node does for those of other nodes. */
#include "daemon/copy/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/copy/agent.h"
#include "daemon/copy/calls.h"
#include "daemon/copy/outcome.h"
#include "daemon/router/router.h"
#include "proto/text.h"

#define ASKED_MOST 4u   /* copies that were asked for here */
#define AGENTS_MOST 16u /* copies that this node takes part in */
#define CALL_EVERY (500 * MILLISECONDS)
#define CALL_SILENCE                                                                               \
    (30 * SECONDS) /* without a call, the asker of a group that is not open has given up */
#define RETRY_FIRST (100 * MILLISECONDS)
#define RETRY_LAST (5 * SECONDS)

struct copy {
    struct copy *next;
    struct copies *copies;
    struct copy_client client;
    struct copy_request request;
    uint8_t *packed;
    size_t packed_length;
    uint64_t id, began, deadline;
    uint32_t attempt, number; /* number: of calls */
    uint64_t call_at;         /* when to call again; ROUTER_NEVER: the group is open */
    uint64_t retry_at;        /* when to begin the next attempt; ROUTER_NEVER: one is under way */
    uint64_t pause;           /* before the next attempt */
    struct agent *agent;      /* of this attempt, or NULL */
    struct copy_outcomes *outcomes; /* it is over */
    struct error error;             /* it has failed */
};

struct copies {
    struct copies_setup set;
    struct agent *agents;
    struct copy *asked;
    struct copy_calls calls;
    bool due;
};

struct copies *copies_new(const struct copies_setup *setup)
{
    struct copies *c = calloc(1, sizeof *c);

    if (c == NULL || copy_calls_init(&c->calls, torus_ports(router_torus(setup->router))) != 0) {
        free(c);
        return NULL;
    }
    c->set = *setup;
    shares_set_capacity(setup->shares, SHARE_COPIES,
                        (uint64_t)ASKED_MOST * COPY_SLOTS * COPY_CALL_MOST);
    shares_set_least(setup->shares, SHARE_COPIES, (uint64_t)COPY_SLOTS * COPY_CALL_LEAST);
    return c;
}

static void free_copy(struct copy *copy)
{
    struct copy **at = &copy->copies->asked;

    while (*at != copy)
        at = &(*at)->next;
    *at = copy->next;
    if (copy->agent != NULL)
        copy->agent->copy = NULL;
    copy_request_free(&copy->request);
    copy_outcomes_free(copy->outcomes);
    free(copy->packed);
    free(copy);
}

void copies_free(struct copies *c)
{
    if (c == NULL)
        return;
    while (c->asked != NULL)
        free_copy(c->asked);
    while (c->agents != NULL) {
        struct agent *a = c->agents;
        c->agents = a->next;
        agent_detach(a);
    }
    copy_calls_free(&c->calls);
    free(c);
}

/* --- agents --- */

static struct agent *find_agent(const struct copies *c, uint32_t asker, uint64_t id)
{
    struct agent *a = c->agents;

    while (a != NULL && (a->asker != asker || a->id != id))
        a = a->next;
    return a;
}

static unsigned count_agents(const struct copies *c)
{
    unsigned n = 0;

    for (const struct agent *a = c->agents; a != NULL; a = a->next)
        n++;
    return n;
}

static struct agent *add_agent(struct copies *c, const struct agent_setup *setup, struct error *e)
{
    struct agent *a = agent_new(setup, e);

    if (a == NULL)
        return NULL;
    a->next = c->agents;
    c->agents = a;
    return a;
}

/* --- calling --- */

/* Floods a call; without the request it tells that the asker has given up. */
static void call_all(struct copy *copy, bool gives_up)
{
    const struct router *router = copy->copies->set.router;

    router_flood(copy->copies->set.router, -1,
                 &(struct peer_message){
                     .kind = PEER_COPY_CALL,
                     .copy_call = {.asker = router_rank(router),
                                   .id = copy->id,
                                   .attempt = copy->attempt,
                                   .number = ++copy->number,
                                   .request = {copy->packed, gives_up ? 0 : copy->packed_length},
                                   .left = router_torus(router)->nodes}});
}

static void begin_attempt(struct copy *copy)
{
    struct copies *c = copy->copies;
    const struct agent_setup setup = {.set = &c->set,
                                      .due = &c->due,
                                      .copy = copy,
                                      .asker = router_rank(c->set.router),
                                      .id = copy->id,
                                      .attempt = copy->attempt + 1,
                                      .request = &copy->request};

    copy->retry_at = ROUTER_NEVER;
    copy->agent = add_agent(c, &setup, &copy->error);
    if (copy->agent == NULL)
        return;
    copy->error.code = ERROR_NONE;
    copy->attempt++;
    copy->call_at = 0;
}

/* A call of another node, which is new. */
static void take_call(struct copies *c, const struct peer_copy_call *call)
{
    struct agent *a = find_agent(c, call->asker, call->id);
    const struct error over = {.code = ERROR_CANCELLED,
                               .text = "the node that was asked for the "
                                       "copy has given up this attempt"};
    struct agent_setup setup = {.set = &c->set,
                                .due = &c->due,
                                .asker = call->asker,
                                .id = call->id,
                                .attempt = call->attempt};
    struct copy_request request;
    struct error e;

    if (a != NULL) {
        a->heard_at = router_now(c->set.router);
        if (call->attempt > a->attempt || (call->request.len == 0 && !a->opened))
            agent_give_up(a, &over); /* a later call begins the new attempt */
        return;
    }
    if (call->request.len == 0 || count_agents(c) >= AGENTS_MOST)
        return;
    if (copy_request_unpack(&request, call->request.data, call->request.len, &e) != 0 ||
        copy_request_check(&request, router_torus(c->set.router)->nodes, &e) != 0) {
        log_warning("a copy of node %u is not begun here: %s", call->asker, e.text);
        return;
    }
    setup.request = &request;
    if (add_agent(c, &setup, &e) == NULL)
        log_warning("a copy of node %u is not begun here yet: %s", call->asker, e.text);
    copy_request_free(&request);
}

int copies_call_heard(struct copies *c, unsigned port, const struct peer_copy_call *call,
                      struct error *e)
{
    const struct torus *t = router_torus(c->set.router);
    struct peer_message onward = {.kind = PEER_COPY_CALL, .copy_call = *call};

    if (call->asker >= t->nodes || call->left == 0 || call->left > t->nodes || call->attempt == 0 ||
        call->request.len > COPY_REQUEST_MOST)
        return error_set(e, ERROR_PROTOCOL, "a call of a copy that no node can have made");
    if (call->asker == router_rank(c->set.router) ||
        !copy_calls_take(&c->calls, port, call, router_now(c->set.router)))
        return 0;
    onward.copy_call.left--;
    for (unsigned to = 0; to < torus_ports(t) && onward.copy_call.left > 0; to++)
        if (to != port && !router_is_full(c->set.router, to))
            router_send(c->set.router, to, &onward);
    take_call(c, call);
    return 0;
}

/* --- asking --- */

/* Finds a node of an older release. Returns 0, or -1 with *e: it knows no copies. */
static int check_releases(const struct copies *c, struct error *e)
{
    const struct router *r = c->set.router;
    const struct topology *p = router_topology(r);

    if (router_least_minor(r) >= COPY_MINOR)
        return 0;
    (void)error_set(e, ERROR_REFUSED,
                    "a node runs an older release of torusd, which knows no copies");
    if (router_minor(r) < COPY_MINOR)
        return error_set(e, ERROR_REFUSED,
                         "this node speaks an older peer protocol (protocol_minor), which knows no "
                         "copies");
    for (uint32_t node = 0; node < router_torus(r)->nodes; node++)
        if (p->entry[node].hops < router_torus(r)->nodes && p->entry[node].minor < COPY_MINOR) {
            (void)error_set(e, ERROR_REFUSED,
                            "node %u runs an older release of torusd, which knows no copies: "
                            "install the same release on all nodes",
                            node);
            return error_blame_node(e, node);
        }
    return -1;
}

static unsigned count_asked(const struct copies *c)
{
    unsigned n = 0;

    for (const struct copy *copy = c->asked; copy != NULL; copy = copy->next)
        n++;
    return n;
}

static int check_start(const struct copies *c, const struct copy_request *request, struct error *e)
{
    if (copy_request_check(request, router_torus(c->set.router)->nodes, e) != 0 ||
        check_releases(c, e) != 0)
        return -1;
    if (count_asked(c) >= ASKED_MOST || count_agents(c) >= AGENTS_MOST)
        return error_set(e, ERROR_BUSY,
                         "this node is busy with other copies (at most %u at once): try again when "
                         "one has ended",
                         ASKED_MOST);
    return 0;
}

struct copy *copy_start(struct copies *c, const struct copy_request *request,
                        const struct copy_client *client, struct error *e)
{
    struct copy *copy;

    if (check_start(c, request, e) != 0)
        return NULL;
    copy = calloc(1, sizeof *copy);
    if (copy == NULL || copy_request_pack(request, &copy->packed, &copy->packed_length, e) != 0 ||
        copy_request_copy(&copy->request, request, e) != 0) {
        if (copy == NULL)
            (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
        else
            free(copy->packed);
        free(copy);
        return NULL;
    }
    copy->copies = c;
    copy->client = *client;
    copy->began = router_now(c->set.router);
    copy->deadline = request->timeout_ns > 0 ? copy->began + request->timeout_ns : ROUTER_NEVER;
    copy->pause = RETRY_FIRST;
    copy->call_at = copy->retry_at = ROUTER_NEVER;
    router_random(c->set.router, &copy->id, sizeof copy->id);
    copy->next = c->asked;
    c->asked = copy;
    begin_attempt(copy);
    if (copy->agent != NULL)
        return copy;
    *e = copy->error;
    free_copy(copy);
    return NULL;
}

void copy_progress(const struct copy *copy, struct copy_progress *progress)
{
    if (copy->agent != NULL)
        agent_progress(copy->agent, progress);
    else
        *progress = (struct copy_progress){.phase = COPY_CALLING};
}

/* Ends the attempt that is under way. */
static void end_attempt(struct copy *copy, const struct error *why)
{
    if (copy->agent == NULL)
        return;
    if (!copy->agent->opened)
        call_all(copy, true);
    copy->agent->copy = NULL;
    agent_give_up(copy->agent, why);
    copy->agent = NULL;
    copy->call_at = ROUTER_NEVER;
}

void copy_cancel(struct copy *copy)
{
    const struct error cancelled = {.code = ERROR_CANCELLED, .text = "the copy has been cancelled"};

    end_attempt(copy, &cancelled);
    free_copy(copy);
}

/* --- time --- */

/* An attempt of a copy that was asked for here has failed: decides whether another one follows. */
static void take_failure(struct copy *copy, const struct error *e)
{
    const uint64_t now = router_now(copy->copies->set.router);

    copy->agent = NULL;
    copy->call_at = ROUTER_NEVER;
    if ((copy->request.shrink || copy->request.wait) && e->code == ERROR_LINK &&
        now < copy->deadline) {
        log_info("copy %016" PRIx64 ": attempt %u has failed, retrying: %s", copy->id,
                 copy->attempt, e->text);
        copy->retry_at = now + copy->pause;
        copy->pause = 2 * copy->pause < RETRY_LAST ? 2 * copy->pause : RETRY_LAST;
        return;
    }
    copy->error = *e;
}

/* Tells the copy of an agent what has become of it. */
static void tell_copy(struct agent *a)
{
    struct copy *copy = a->copy;

    if (copy == NULL)
        return;
    if (a->opened)
        copy->call_at = ROUTER_NEVER;
    if (a->step == STEP_OVER) {
        copy->outcomes = copy_outcomes_new(a, copy->began, router_now(copy->copies->set.router));
        if (copy->outcomes == NULL)
            (void)error_set(&copy->error, ERROR_MEMORY,
                            "the copy has ended, but there is no memory for its result");
    } else if (a->step == STEP_ENDING) {
        take_failure(copy, &a->error);
    } else {
        return;
    }
    copy->agent = NULL;
    a->copy = NULL;
}

static void tick_agents(struct copies *c, uint64_t now)
{
    const struct error silent = {.code = ERROR_TIMEOUT,
                                 .text = "the node that was asked for the copy "
                                         "does not call any more"};
    struct agent **at = &c->agents;

    while (*at != NULL) {
        struct agent *a = *at;
        if (a->copy == NULL && a->asker != a->rank && !a->opened &&
            now - a->heard_at >= CALL_SILENCE)
            agent_give_up(a, &silent);
        agent_advance(a);
        tell_copy(a);
        if (a->step == STEP_OVER)
            agent_leave(a);
        if (agent_is_gone(a)) {
            *at = a->next;
            agent_free(a);
        } else {
            at = &a->next;
        }
    }
}

static void set_timeout(struct copy *copy)
{
    struct copy_progress progress;

    copy_progress(copy, &progress);
    if (progress.waits_for[0] != '\0')
        (void)error_set(&copy->error, ERROR_TIMEOUT,
                        "the copy has not begun in its time: it has waited for nodes %s",
                        progress.waits_for);
    else
        (void)error_set(&copy->error, ERROR_TIMEOUT,
                        "the copy has not ended in its time; what has arrived stays for the next "
                        "copy to the same target");
}

static void tick_copy(struct copy *copy, uint64_t now)
{
    if (copy->error.code == ERROR_NONE && copy->outcomes == NULL && now >= copy->deadline) {
        set_timeout(copy);
        end_attempt(copy, &copy->error);
    }
    if (copy->error.code != ERROR_NONE || copy->outcomes != NULL)
        return;
    if (now >= copy->retry_at &&
        find_agent(copy->copies, router_rank(copy->copies->set.router), copy->id) != NULL)
        copy->retry_at = now + RETRY_FIRST; /* the last attempt still closes its trees */
    else if (now >= copy->retry_at)
        begin_attempt(copy);
    if (copy->agent != NULL && now >= copy->call_at) {
        copy->call_at = now + CALL_EVERY;
        call_all(copy, false);
    }
}

/* Tells the client of a copy that is over. Returns false if it is not over. */
static bool tell_client(struct copy *copy)
{
    const struct copy_client client = copy->client;
    struct copy_outcomes *outcomes = copy->outcomes;
    const struct error e = copy->error;

    if (outcomes == NULL && e.code == ERROR_NONE)
        return false;
    copy->outcomes = NULL;
    free_copy(copy);
    client.ended(client.context, outcomes != NULL ? &outcomes->result : NULL,
                 outcomes != NULL ? NULL : &e);
    copy_outcomes_free(outcomes);
    return true;
}

uint64_t copies_deadline(const struct copies *c)
{
    uint64_t at = c->due ? 0 : ROUTER_NEVER;

    for (const struct agent *a = c->agents; a != NULL; a = a->next)
        if (a->copy == NULL && a->asker != a->rank && !a->opened && a->step != STEP_ENDING &&
            a->heard_at + CALL_SILENCE < at)
            at = a->heard_at + CALL_SILENCE;
    for (const struct copy *copy = c->asked; copy != NULL; copy = copy->next) {
        at = copy->deadline < at ? copy->deadline : at;
        at = copy->call_at < at ? copy->call_at : at;
        at = copy->retry_at < at ? copy->retry_at : at;
    }
    return at;
}

void copies_tick(struct copies *c)
{
    const uint64_t now = router_now(c->set.router);
    struct copy *copy;

    c->due = false;
    for (copy = c->asked; copy != NULL; copy = copy->next)
        tick_copy(copy, now);
    tick_agents(c, now);
    for (copy = c->asked; copy != NULL;)
        copy = tell_client(copy) ? c->asked : copy->next; /* the list may have changed */
}

/* --- status --- */

size_t copies_list(const struct copies *c, struct copy_info *list, size_t most)
{
    size_t n = 0;

    for (const struct agent *a = c->agents; a != NULL && n < most; a = a->next) {
        struct copy_info *info = &list[n++];
        *info = (struct copy_info){.asker = a->asker};
        (void)snprintf(info->id, sizeof info->id, "%s", a->id_text);
        (void)text_printable(info->target, sizeof info->target, a->request.target);
        agent_progress(a, &info->progress);
    }
    return n;
}
