#include "daemon/torusd/copy/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/copy/agent.h"
#include "daemon/torusd/router/router.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

/* --- how a copy ended, for its client --- */

struct copy_outcomes {
    struct copy_result result; /* points to the rest */
    struct copy_outcome *list;
    uint32_t *absent;
    char first_left_out[256], first_changed[256], first_link_out[256], id[20];
};

static int compare(const void *a, const void *b)
{
    const struct copy_outcome *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void set_end(struct copy_outcome *to, const struct copy_plan *p, const struct copy_end *end)
{
    const struct copy_tree *tree = &p->tree[end->tree];
    const struct error *failed = copy_end_failed(p, end);

    *to = (struct copy_outcome){.node = end->node, .from = tree->reader, .report = end->report};
    if (end->going_length > 0 && (to->going = malloc(end->going_length)) != NULL) {
        memcpy((void *)(uintptr_t)to->going, end->going, end->going_length);
        to->going_length = end->going_length;
    }
    if (failed == NULL)
        return;
    to->error = *failed;
    if (failed == &tree->failed && tree->reader != end->node)
        (void)error_wrap_node(&to->error, tree->reader);
}

static void copy_outcomes_free(struct copy_outcomes *o)
{
    if (o == NULL)
        return;
    for (uint32_t i = 0; o->list != NULL && i < o->result.outcomes; i++)
        free((void *)(uintptr_t)o->list[i].going);
    free(o->list);
    free(o->absent);
    free(o);
}

/* Makes the result of an attempt that is over. Returns it, or NULL without memory; copy_outcomes_free() frees it. */
static struct copy_outcomes *copy_outcomes_new(const struct agent *a, uint64_t began, uint64_t now)
{
    const struct copy_plan *p = &a->plan;
    struct copy_outcomes *o = calloc(1, sizeof *o);

    if (o == NULL)
        return NULL;
    o->list = calloc(p->ends > 0 ? p->ends : 1, sizeof *o->list);
    o->absent = calloc(p->absents > 0 ? p->absents : 1, sizeof *o->absent);
    if (o->list == NULL || o->absent == NULL) {
        copy_outcomes_free(o);
        return NULL;
    }
    for (uint32_t i = 0; i < p->ends; i++)
        set_end(&o->list[i], p, &p->end[i]);
    qsort(o->list, p->ends, sizeof *o->list, compare);
    for (uint32_t i = 0; i < p->absents; i++)
        o->absent[i] = p->absent[i];
    (void)snprintf(o->first_left_out, sizeof o->first_left_out, "%s", p->first_left_out);
    (void)snprintf(o->id, sizeof o->id, "%s", a->id_text);
    o->result = (struct copy_result){.outcome = o->list,
                                     .outcomes = p->ends,
                                     .nanoseconds = elapsed(began, now),
                                     .compare_nanoseconds = elapsed(began, a->compared_at),
                                     .left_out = p->left_out,
                                     .first_left_out = o->first_left_out,
                                     .id = o->id,
                                     .attempts = a->attempt,
                                     .absent = o->absent,
                                     .absents = p->absents,
                                     .bytes_sent = a->moved};
    (void)strcpy(o->first_link_out, p->first_link_out);
    o->result.links_out = p->links_out;
    o->result.first_link_out = o->first_link_out;
    o->result.first_changed = o->first_changed;
    if (a->moved > 0) {
        o->result.by = a->carried;
        o->result.links = a->links;
    }
    for (uint32_t i = 0; i < p->trees; i++) {
        o->result.bytes_all += p->tree[i].stream;
        if (o->result.changed == 0)
            (void)strcpy(o->first_changed, p->tree[i].first_changed);
        o->result.changed += p->tree[i].changes;
    }
    return o;
}

/* --- agents of this node --- */

struct agent *copies_find_agent(const struct copies *c, uint32_t initiator, uint64_t id)
{
    struct agent *a = c->agents;

    while (a != NULL && (a->initiator != initiator || a->id != id))
        a = a->next;
    return a;
}

unsigned copies_count_agents(const struct copies *c)
{
    unsigned n = 0;

    for (const struct agent *a = c->agents; a != NULL; a = a->next)
        n++;
    return n;
}

struct agent *copies_add_agent(struct copies *c, const struct agent_setup *setup, struct error *e)
{
    struct agent *a = agent_new(setup, e);

    if (a == NULL)
        return NULL;
    a->next = c->agents;
    c->agents = a;
    return a;
}

/* The copies that were asked for at this node: their attempts, and the calls to other nodes. */

#define CALL_EVERY (500 * MILLISECONDS)
#define RETRY_FIRST (100 * MILLISECONDS)
#define RETRY_LAST (5 * SECONDS)
#define SHRINK_TIME                                                                                \
    (30 * SECONDS) /* how long attempts without nodes that are down may fail to begin */

void initiator_free(struct copy *copy)
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

/* --- releases --- */

/* Finds a node of an older release than the one that knows something. Returns 0, or -1 with *e. */
static int check_release(const struct copies *c, uint32_t minor, const char *knows, struct error *e)
{
    const struct router *r = c->set.router;
    const struct topology *p = router_topology(r);

    if (router_least_minor(r) >= minor)
        return 0;
    (void)error_set(e, ERROR_REFUSED, "a node runs an older release of torusd, which knows no %s",
                    knows);
    if (router_minor(r) < minor)
        return error_set(e, ERROR_REFUSED,
                         "this node speaks an older peer protocol (protocol_minor), which knows no "
                         "%s",
                         knows);
    for (uint32_t node = 0; node < router_torus(r)->nodes; node++)
        if (p->entry[node].hops < router_torus(r)->nodes && p->entry[node].minor < minor) {
            (void)error_set(e, ERROR_REFUSED,
                            "node %u runs an older release of torusd, which knows no %s: install "
                            "the same release on all nodes",
                            node, knows);
            return error_blame_node(e, node);
        }
    return -1;
}

/* Checks that all nodes know copies, and everything that this one asks for. */
static int check_releases(const struct copies *c, const struct copy_request *r, struct error *e)
{
    const struct {
        bool asked;
        uint32_t minor;
        const char *name;
    } more[] = {
        {true, COPY_MINOR, "copies"},
        {r->skip_changing, COPY_MORE_MINOR,
         "copies that leave out files which change (--changing skip)"},
        {r->delete_most > 0, COPY_MORE_MINOR, "limits of what copies remove (--max-delete)"},
        {r->copy_links, COPY_MORE_MINOR, "copies of what links lead to (--copy-links)"},
        {r->algorithm != NULL, COPY_BY_MINOR, "copies by a named algorithm (--algorithm)"},
    };

    for (unsigned i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].asked && check_release(c, more[i].minor, more[i].name, e) != 0)
            return -1;
    return 0;
}

/* --- calling --- */

/* Floods a call; without the request it tells that the initiator has given up. */
static void call_all(struct copy *copy, bool gives_up)
{
    const struct router *router = copy->copies->set.router;

    router_flood(copy->copies->set.router, -1,
                 &(struct peer_message){
                     .kind = PEER_COPY_CALL,
                     .copy_call = {.initiator = router_rank(router),
                                   .id = copy->id,
                                   .attempt = copy->attempt,
                                   .number = ++copy->number,
                                   .request = {copy->packed, gives_up ? 0 : copy->packed_length},
                                   .left = router_torus(router)->nodes}});
}

/* Makes the request of an attempt: nodes of an older release may have come or gone since the last one. Returns 0, or -1
 * with copy->error. */
static int make_request(struct copy *copy)
{
    uint8_t *packed;
    size_t length;

    if (check_releases(copy->copies, &copy->request, &copy->error) != 0)
        return -1;
    copy->request.told = router_least_minor(copy->copies->set.router) >= COPY_MORE_MINOR;
    if (copy_request_pack(&copy->request, &packed, &length, &copy->error) != 0)
        return -1;
    free(copy->packed);
    copy->packed = packed;
    copy->packed_length = length;
    return 0;
}

static void begin_attempt(struct copy *copy)
{
    struct copies *c = copy->copies;
    const struct agent_setup setup = {.set = &c->set,
                                      .due = &c->due,
                                      .copy = copy,
                                      .initiator = router_rank(c->set.router),
                                      .id = copy->id,
                                      .attempt = copy->attempt + 1,
                                      .request = &copy->request};

    copy->retry_at = ROUTER_NEVER;
    if (make_request(copy) != 0)
        return;
    copy->agent = copies_add_agent(c, &setup, &copy->error);
    if (copy->agent == NULL)
        return;
    copy->error.code = ERROR_NONE;
    copy->attempt++;
    copy->call_at = 0;
}

/* --- asking --- */

static unsigned count_asked(const struct copies *c)
{
    unsigned n = 0;

    for (const struct copy *copy = c->asked; copy != NULL; copy = copy->next)
        n++;
    return n;
}

/* An algorithm cannot avoid links as the routes do that the group finds. */
static int check_links(const struct copies *c, const struct copy_request *r, struct error *e)
{
    const struct topology *topology = router_topology(c->set.router);

    if (r->algorithm == NULL || r->wait || !topology_new_fault(topology, NULL, e))
        return 0;
    return error_wrap(e,
                      "algorithm %s needs every link; without --algorithm the copy avoids those "
                      "that are down",
                      r->algorithm);
}

static int check_start(const struct copies *c, const struct copy_request *request, struct error *e)
{
    if (copy_request_check(request, router_torus(c->set.router), e) != 0 ||
        check_releases(c, request, e) != 0 || check_links(c, request, e) != 0)
        return -1;
    if (count_asked(c) >= COPY_ASKED_MOST || copies_count_agents(c) >= COPY_AGENTS_MOST)
        return error_set(e, ERROR_BUSY,
                         "this node is busy with other copies (at most %u at once): try again when "
                         "one has ended",
                         COPY_ASKED_MOST);
    return 0;
}

struct copy *copy_start(struct copies *c, const struct copy_request *request,
                        const struct copy_client *client, struct error *e)
{
    struct copy *copy;

    if (check_start(c, request, e) != 0)
        return NULL;
    copy = calloc(1, sizeof *copy);
    if (copy == NULL || copy_request_copy(&copy->request, request, e) != 0) {
        if (copy == NULL)
            (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
        free(copy);
        return NULL;
    }
    copy->copies = c;
    copy->client = *client;
    copy->began = copy->begun_at = router_now(c->set.router);
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
    initiator_free(copy);
    return NULL;
}

void copy_progress(const struct copy *copy, struct copy_progress *progress)
{
    if (copy->agent != NULL)
        agent_progress(copy->agent, progress);
    else
        *progress = (struct copy_progress){.phase = COPY_CALLING};
    if (progress->phase == COPY_CALLING && copy->obstacle[0] != '\0')
        (void)snprintf(progress->waits_for, sizeof progress->waits_for, "%s", copy->obstacle);
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

bool copy_stop(struct copy *copy, struct error *e)
{
    if (copy->agent != NULL && copy->agent->is_late)
        return false;
    (void)error_set(e, ERROR_CANCELLED, "%s",
                    copy->was_late ? "cancelled, but an earlier attempt may have put the copy in "
                                     "place at some nodes"
                                   : "cancelled");
    copy_cancel(copy);
    return true;
}

void copy_cancel(struct copy *copy)
{
    const struct error cancelled = {.code = ERROR_CANCELLED, .text = "the copy has been cancelled"};

    end_attempt(copy, &cancelled);
    initiator_free(copy);
}

/* --- time --- */

/* Lets another attempt follow. The pause is random, so that copies which keep each other from beginning do not do so
 * again and again. */
static void retry_later(struct copy *copy)
{
    uint64_t word;

    router_random(copy->copies->set.router, &word, sizeof word);
    copy->retry_at = router_now(copy->copies->set.router) + copy->pause + word % copy->pause;
    copy->pause = 2 * copy->pause < RETRY_LAST ? 2 * copy->pause : RETRY_LAST;
}

/* An attempt of a copy that was asked for here has failed: decides whether another one follows. */
static void take_failure(struct copy *copy, const struct error *e, bool is_final)
{
    const uint64_t now = router_now(copy->copies->set.router);
    const bool retries =
        copy->request.wait || (copy->request.shrink && now < copy->begun_at + SHRINK_TIME);

    copy->was_late = copy->was_late || copy->agent->is_late;
    copy->agent = NULL;
    copy->call_at = ROUTER_NEVER;
    if (retries && !is_final && e->code == ERROR_LINK && now < copy->deadline) {
        log_info("copy %016" PRIx64 ": attempt %u has failed, retrying: %s", copy->id,
                 copy->attempt, e->text);
        retry_later(copy);
        return;
    }
    copy->error = *e;
}

/* Tells the copy of an agent how far it is. */
void initiator_tell(struct agent *a)
{
    struct copy *copy = a->copy;

    if (copy == NULL)
        return;
    if (a->opened) {
        copy->call_at = ROUTER_NEVER;
        copy->obstacle[0] = '\0';
        copy->begun_at = router_now(copy->copies->set.router);
    }
    if (a->step == STEP_OVER) {
        copy->outcomes = copy_outcomes_new(a, copy->began, router_now(copy->copies->set.router));
        if (copy->outcomes == NULL)
            (void)error_set(&copy->error, ERROR_MEMORY,
                            "the copy has ended, but there is no memory for its result");
    } else if (a->step == STEP_ENDING) {
        take_failure(copy, &a->error, a->is_final);
    } else {
        return;
    }
    copy->agent = NULL;
    a->copy = NULL;
}

void initiator_refused(struct copies *c, const struct peer_copy_refusal *refusal)
{
    struct copy *copy = c->asked;
    struct error e;

    while (copy != NULL && copy->id != refusal->id)
        copy = copy->next;
    if (copy == NULL || copy->attempt != refusal->attempt || copy->agent == NULL ||
        copy->agent->opened)
        return;
    const bool busy = refusal->code == ERROR_BUSY;
    (void)error_set(&e, refusal->code, "%s", refusal->reason);
    (void)error_wrap_node(&e, refusal->node);
    if (busy || (refusal->code == ERROR_LINK && (copy->request.shrink || copy->request.wait)))
        (void)snprintf(copy->obstacle, sizeof copy->obstacle, "node %u (%s)", refusal->node,
                       refusal->reason);
    else
        copy->error = e;
    if (!busy && copy->error.code == ERROR_NONE)
        return;
    end_attempt(copy, &e); /* a copy that waited for a busy node would keep others busy */
    if (busy)
        retry_later(copy);
    c->due = true;
}

static void set_timeout(struct copy *copy)
{
    struct copy_progress progress;

    copy_progress(copy, &progress);
    if (copy->was_late || (copy->agent != NULL && copy->agent->is_late))
        (void)error_set(&copy->error, ERROR_TIMEOUT,
                        "the copy has not ended in its time; it may be in place at some nodes");
    else if (progress.waits_for[0] != '\0')
        (void)error_set(&copy->error, ERROR_TIMEOUT,
                        "the copy has not begun in its time: it has waited for %s",
                        progress.waits_for);
    else
        (void)error_set(&copy->error, ERROR_TIMEOUT,
                        "the copy has not ended in its time; what has arrived stays for the next "
                        "copy to the same target");
}

void initiator_tick(struct copy *copy, uint64_t now)
{
    if (copy->error.code == ERROR_NONE && copy->outcomes == NULL && now >= copy->deadline) {
        set_timeout(copy);
        end_attempt(copy, &copy->error);
    }
    if (copy->error.code != ERROR_NONE || copy->outcomes != NULL)
        return;
    if (now >= copy->retry_at &&
        copies_find_agent(copy->copies, router_rank(copy->copies->set.router), copy->id) != NULL)
        copy->retry_at = now + RETRY_FIRST; /* the last attempt still closes its trees */
    else if (now >= copy->retry_at)
        begin_attempt(copy);
    if (copy->agent != NULL && now >= copy->call_at) {
        copy->call_at = now + CALL_EVERY;
        call_all(copy, false);
    }
}

/* Tells the client of a copy that is over. Returns false if it is not over. */
bool initiator_tell_client(struct copy *copy)
{
    const struct copy_client client = copy->client;
    struct copy_outcomes *outcomes = copy->outcomes;
    const struct error e = copy->error;

    if (outcomes == NULL && e.code == ERROR_NONE)
        return false;
    copy->outcomes = NULL;
    initiator_free(copy);
    client.ended(client.context, outcomes != NULL ? &outcomes->result : NULL,
                 outcomes != NULL ? NULL : &e);
    copy_outcomes_free(outcomes);
    return true;
}

uint64_t initiator_deadline(const struct copy *copy)
{
    uint64_t at = copy->deadline;

    at = copy->call_at < at ? copy->call_at : at;
    return copy->retry_at < at ? copy->retry_at : at;
}
