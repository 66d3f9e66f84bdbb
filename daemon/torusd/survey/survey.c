#include "daemon/torusd/survey/survey.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/torusd/router/flood_limit.h"
#include "daemon/torusd/router/router.h"
#include "daemon/torusd/survey/bounds.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

#define PAUSE                                                                                      \
    (500 * MILLISECONDS) /* from the begin of a survey to that of the next one of its kind */
#define TRIES 3u         /* at the begin, after a quarter, and after three quarters of its time */

/* What a query costs: the answers about hosts are larger, and take system calls. */
static const unsigned cost[SURVEY_KINDS] = {
    [SURVEY_STATE] = 1, [SURVEY_TRACE] = 3, [SURVEY_HOST] = 4};
static const struct flood_rules rules = {.kept = 32, .rate = 16, .burst = 32, .initiator = 8};

/* How long an answer may be given again. A state is always of this moment: it has the clock of the machine. */
static const uint64_t fresh[SURVEY_KINDS] = {[SURVEY_STATE] = 0, [SURVEY_HOST] = 2 * SECONDS};

/* This node's last answer. */
struct own_answer {
    uint8_t *bytes;
    size_t length;
    uint64_t at;
    bool known, asked; /* asked: the source will tell */
};

/* The survey of one kind that this node makes. */
struct run {
    bool active, recount;
    uint64_t id[TRIES];
    unsigned tries;
    uint64_t began, retry_at, ends;
    uint64_t pause_until; /* no survey begins before */
    uint32_t missing;     /* nodes that can be reached, and have not answered */
    struct collected collected;
    struct survey_request *waiting; /* for the end of this survey, or for its begin */
};

struct survey {
    struct router *router;
    struct survey_source source;
    struct flood_limit heard; /* queries */
    struct own_answer own[SURVEY_KINDS];
    struct run run[SURVEY_KINDS];
};

static const struct torus *torus_of(const struct survey *s)
{
    return router_torus(s->router);
}

struct survey *survey_new(struct router *router)
{
    struct survey *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->router = router;
    if (flood_limit_init(&s->heard, &rules, torus_ports(router_torus(router))) != 0) {
        free(s);
        return NULL;
    }
    return s;
}

void survey_free(struct survey *s)
{
    if (s == NULL)
        return;
    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++) {
        free(s->own[kind].bytes);
        collected_end(&s->run[kind].collected);
    }
    flood_limit_free(&s->heard);
    free(s);
}

void survey_set_source(struct survey *s, const struct survey_source *source)
{
    s->source = *source;
}

/* --- answering --- */

/* Sends a part of an answer back along the path of the query, which was fast just now. If that link is down, another
 * one that leads to the initiator is taken. Drops the part if there is none, or if too much waits there. */
static void send_part(struct survey *s, const struct flooded *query,
                      const struct peer_survey_answer *part)
{
    const struct topology *p = router_topology(s->router);
    unsigned port = query->port;

    if (!topology_link_up(p, router_rank(s->router), port)) {
        if (p->entry[query->initiator].hops >= torus_of(s)->nodes)
            return;
        port = p->via[query->initiator];
    }
    if (!router_is_full(s->router, port))
        router_send(s->router, port,
                    &(struct peer_message){.kind = PEER_SURVEY_ANSWER, .survey_answer = *part});
}

/* Sets *part to one of the parts of this node's answer to a query. Returns false if there are no more. */
static bool own_part(const struct survey *s, enum survey_kind kind, uint32_t number,
                     struct peer_survey_answer *part)
{
    const struct own_answer *own = &s->own[kind];
    const size_t at = (size_t)number * SURVEY_PART, rest = own->length - at;
    const size_t parts = own->length > 0 ? (own->length + SURVEY_PART - 1) / SURVEY_PART : 1;

    if (number >= parts)
        return false;
    part->node = router_rank(s->router);
    part->part = number;
    part->parts = (uint32_t)parts;
    part->bytes = (struct peer_bytes){own->bytes + at, rest < SURVEY_PART ? rest : SURVEY_PART};
    part->left = torus_of(s)->nodes;
    return true;
}

/* The run that a part of an answer belongs to, or NULL. */
static struct run *run_of(struct survey *s, uint64_t id)
{
    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++)
        for (unsigned i = 0; s->run[kind].active && i < s->run[kind].tries; i++)
            if (s->run[kind].id[i] == id)
                return &s->run[kind];
    return NULL;
}

static bool is_reachable(const struct survey *s, uint32_t rank)
{
    const struct topology *p = router_topology(s->router);

    return rank == router_rank(s->router) ||
           (p->entry[rank].hops < torus_of(s)->nodes && !topology_node_down(p, rank));
}

static void keep_part(struct survey *s, const struct peer_survey_answer *part)
{
    struct run *run = run_of(s, part->id);

    if (run != NULL &&
        collected_add(&run->collected, part, elapsed(run->began, router_now(s->router))))
        run->recount = true;
}

static void give_answer(struct survey *s, enum survey_kind kind)
{
    struct peer_survey_answer part;

    for (unsigned i = 0; i < s->heard.ports * rules.kept; i++) {
        struct flooded *query = &s->heard.message[i];
        if (!query->unanswered || query->kind != kind)
            continue;
        query->unanswered = false;
        part = (struct peer_survey_answer){.initiator = query->initiator, .id = query->id};
        for (uint32_t n = 0; own_part(s, kind, n, &part); n++)
            send_part(s, query, &part);
    }
    if (!s->run[kind].active)
        return;
    part = (struct peer_survey_answer){.id = s->run[kind].id[0]};
    for (uint32_t n = 0; own_part(s, kind, n, &part); n++)
        keep_part(s, &part);
}

void survey_tell(struct survey *s, enum survey_kind kind, const uint8_t *bytes, size_t length)
{
    struct own_answer *own = &s->own[kind];
    const size_t kept = length <= SURVEY_ANSWER_MOST ? length : 0;
    uint8_t *copy = malloc(kept > 0 ? kept : 1);

    own->asked = false;
    if (copy == NULL)
        return; /* the initiator asks once more */
    if (kept > 0)
        memcpy(copy, bytes, kept);
    free(own->bytes);
    *own = (struct own_answer){
        .bytes = copy, .length = kept, .at = router_now(s->router), .known = true};
    give_answer(s, kind);
}

/* Gives this node's answer to all that wait for it, now or when the source has made it. */
static void answer(struct survey *s, enum survey_kind kind)
{
    struct own_answer *own = &s->own[kind];

    if (own->known && elapsed(own->at, router_now(s->router)) < fresh[kind]) {
        give_answer(s, kind);
    } else if (!own->asked && s->source.ask != NULL) {
        own->asked = true;
        s->source.ask(s->source.context, kind);
    }
}

/* --- hearing --- */

int survey_query_heard(struct survey *s, unsigned port, const struct peer_survey_query *query,
                       struct error *e)
{
    const struct torus *t = torus_of(s);
    struct peer_message onward = {.kind = PEER_SURVEY_QUERY, .survey_query = *query};

    if (query->initiator >= t->nodes || query->left == 0 || query->left > t->nodes)
        return error_set(e, ERROR_PROTOCOL, "invalid survey: no node can have begun it");
    if (query->kind >= SURVEY_KINDS || query->initiator == router_rank(s->router))
        return 0;
    const struct flooded message = {.id = query->id,
                                    .initiator = query->initiator,
                                    .kind = query->kind,
                                    .cost = cost[query->kind],
                                    .answers_left = (uint64_t)t->nodes * SURVEY_PARTS_MOST,
                                    .unanswered = true};
    if (flood_limit_take(&s->heard, port, &message, router_now(s->router)) == NULL)
        return 0;
    answer(s, (enum survey_kind)
                  query->kind); /* first, while its queues are as they are without the survey */
    onward.survey_query.left--;
    for (unsigned to = 0; to < torus_ports(t) && onward.survey_query.left > 0; to++)
        if (to != port && !router_is_full(s->router, to))
            router_send(s->router, to, &onward);
    return 0;
}

int survey_answer_heard(struct survey *s, const struct peer_survey_answer *part, struct error *e)
{
    const struct torus *t = torus_of(s);
    struct peer_survey_answer onward = *part;
    struct flooded *heard;

    if (part->initiator >= t->nodes || part->node >= t->nodes || part->parts == 0 ||
        part->parts > SURVEY_PARTS_MOST || part->part >= part->parts ||
        part->bytes.len > SURVEY_PART || part->left == 0 || part->left > t->nodes)
        return error_set(e, ERROR_PROTOCOL, "invalid answer to a survey: no node can have sent it");
    if (part->initiator == router_rank(s->router)) {
        if (part->node != part->initiator)
            keep_part(s, part);
        return 0;
    }
    heard = flood_limit_answer(&s->heard, part->initiator, part->id);
    if (heard == NULL)
        return 0;
    onward.left--;
    if (onward.left > 0)
        send_part(s, heard, &onward);
    return 0;
}

void survey_topology(struct survey *s)
{
    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++)
        s->run[kind].recount = true;
}

/* --- asking --- */

static void ask_all(struct survey *s, enum survey_kind kind)
{
    struct run *run = &s->run[kind];
    uint64_t id;

    router_random(s->router, &id, sizeof id);
    run->id[run->tries++] = id;
    answer(s, kind); /* first, while its queues are as they are without the survey */
    router_flood(s->router, -1,
                 &(struct peer_message){.kind = PEER_SURVEY_QUERY,
                                        .survey_query = {.initiator = router_rank(s->router),
                                                         .id = id,
                                                         .kind = kind,
                                                         .left = torus_of(s)->nodes}});
}

/* Ends the survey, without telling those who wait. */
static void end_run(struct run *run)
{
    collected_end(&run->collected);
    run->active = false;
}

static void begin_run(struct survey *s, enum survey_kind kind)
{
    struct run *run = &s->run[kind];
    const uint64_t now = router_now(s->router), timeout = run->waiting->timeout;

    if (collected_begin(&run->collected, torus_of(s)->nodes) != 0) {
        run->pause_until = now + PAUSE; /* there may be memory then */
        return;
    }
    run->active = run->recount = true;
    run->tries = 0;
    run->began = now;
    run->retry_at = now + timeout / 4;
    run->ends = now + timeout;
    run->pause_until = now + PAUSE;
    ask_all(s, kind);
}

int survey_start(struct survey *s, enum survey_kind kind, uint64_t timeout,
                 struct survey_request *request, struct error *e)
{
    if (torus_of(s)->nodes > SURVEY_NODES_MOST)
        return error_set(e, ERROR_REFUSED, "a network of more than %u nodes has no surveys",
                         SURVEY_NODES_MOST);
    if (router_least_minor(s->router) < (kind == SURVEY_TRACE ? SURVEY_TRACE_MINOR : SURVEY_MINOR))
        return error_set(e, ERROR_REFUSED,
                         "a node runs an older release of torusd, which knows no %s: finish the "
                         "upgrade ('torusctl status' on each machine shows its release)",
                         kind == SURVEY_TRACE ? "traces" : "surveys");
    request->kind = kind;
    request->timeout = timeout;
    LL_PREPEND(s->run[kind].waiting, request);
    return 0;
}

void survey_forget(struct survey *s, struct survey_request *request)
{
    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++)
        if (s->run[kind].waiting != NULL)
            LL_DELETE(s->run[kind].waiting, request);
}

static void count_missing(const struct survey *s, struct run *run)
{
    run->recount = false;
    run->missing = 0;
    for (uint32_t rank = 0; rank < torus_of(s)->nodes; rank++) {
        struct survey_node node = {.outcome = SURVEY_SILENT};
        collected_view(&run->collected, rank, &node);
        if (node.outcome == SURVEY_SILENT && is_reachable(s, rank))
            run->missing++;
    }
}

/* Tells everybody who waits, and ends the survey. */
static void finish_run(struct survey *s, struct run *run, uint64_t now)
{
    const uint32_t nodes = torus_of(s)->nodes;
    struct survey_node *list = calloc(nodes, sizeof *list);
    struct survey_request *waiting = run->waiting;

    if (list == NULL)
        return; /* in the next tick, perhaps */
    for (uint32_t rank = 0; rank < nodes; rank++) {
        collected_view(&run->collected, rank, &list[rank]);
        if (list[rank].outcome == SURVEY_SILENT && !is_reachable(s, rank))
            list[rank].outcome = SURVEY_UNREACHABLE;
    }
    run->waiting = NULL;
    while (waiting != NULL) {
        struct survey_request *next = waiting->next;
        waiting->done(waiting->context, list, elapsed(run->began, now));
        waiting = next;
    }
    free(list);
    end_run(run);
}

static uint64_t deadline_of(const struct run *run)
{
    if (!run->active)
        return run->waiting != NULL ? run->pause_until : ROUTER_NEVER;
    if (run->recount)
        return 0;
    return run->tries < TRIES ? run->retry_at : run->ends;
}

uint64_t survey_deadline(const struct survey *s)
{
    uint64_t first = ROUTER_NEVER;

    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++) {
        const uint64_t at = deadline_of(&s->run[kind]);
        first = at < first ? at : first;
    }
    return first;
}

static void tick_run(struct survey *s, enum survey_kind kind, uint64_t now)
{
    struct run *run = &s->run[kind];

    if (!run->active && run->waiting != NULL && now >= run->pause_until)
        begin_run(s, kind);
    if (!run->active)
        return;
    if (run->recount)
        count_missing(s, run);
    if (run->waiting == NULL) {
        end_run(run);
    } else if (run->missing == 0 || now >= run->ends) {
        finish_run(s, run, now);
    } else if (run->tries < TRIES && now >= run->retry_at) {
        run->retry_at = run->ends - (run->ends - run->began) / 4;
        ask_all(s, kind);
    }
}

void survey_tick(struct survey *s)
{
    const uint64_t now = router_now(s->router);

    for (unsigned kind = 0; kind < SURVEY_KINDS; kind++)
        tick_run(s, (enum survey_kind)kind, now);
}
