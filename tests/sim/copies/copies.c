#include "tests/sim/copies/copies.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define QUIET_TIME (120 * SECONDS)
#define COPY_TIME (300 * SECONDS)
#define LISTED 8u

static void copy_result(struct sim_copy *c, const struct copy_result *from)
{
    struct copy_result *to = &c->result;
    struct copy_outcome *outcome = sim_alloc(from->outcomes * sizeof *outcome);
    uint32_t *absent = sim_alloc(from->absents * sizeof *absent);

    *to = *from;
    for (uint32_t i = 0; i < from->outcomes; i++)
        outcome[i] = from->outcome[i], outcome[i].going = NULL;
    for (uint32_t i = 0; i < from->absents; i++)
        absent[i] = from->absent[i];
    to->outcome = outcome;
    to->absent = absent;
    to->first_left_out = tree_join(from->first_left_out, "");
    to->first_changed = to->first_link_out = "";
    to->id = tree_join(from->id, "");
}

static bool is_absent(const struct sim_copy *c, uint32_t node)
{
    for (uint32_t i = 0; i < c->result.absents; i++)
        if (c->result.absent[i] == node)
            return true;
    return false;
}

const struct copy_outcome *sim_copy_outcome(const struct sim_copy *c, uint32_t node, uint32_t from)
{
    for (uint32_t i = 0; i < c->result.outcomes; i++)
        if (c->result.outcome[i].node == node && c->result.outcome[i].from == from)
            return &c->result.outcome[i];
    return NULL;
}

/* The numbers of a report are those of a writer there. */
static void check_report(const struct sim_copy *c, const struct sim_copy_place *p,
                         const struct tree_report *report)
{
    const struct finished_copy *f = c->sim->node[p->node].trees.finished;

    while (f != NULL && (strcmp(f->target, p->target) != 0 ||
                         memcmp(&f->report, report, offsetof(struct tree_report, first)) != 0))
        f = f->next;
    if (f == NULL)
        sim_violated(c->sim, "reports", "node %u has not reported that about %s", p->node,
                     p->target);
    if (report->files + report->folders + report->links !=
        report->added + report->changed + report->unchanged)
        sim_violated(c->sim, "reports", "node %u has reported other numbers", p->node);
}

static void check_result(const struct sim_copy *c)
{
    uint64_t least = sim_copy_lacked(c);
    uint32_t told = 0;

    if (sim_has_lied(c->sim))
        return;
    for (uint32_t i = 0; i < c->places; i++) {
        const struct sim_copy_place *p = &c->place[i];
        const struct copy_outcome *o = sim_copy_outcome(c, p->node, p->from);
        bool absent = is_absent(c, p->node) || is_absent(c, p->from);
        if ((o == NULL) != absent)
            sim_violated(c->sim, "outcomes", "the client of node %u is told %s about node %u",
                         c->asked, o == NULL ? "nothing" : "something", p->node);
        told += o != NULL;
        if (o != NULL && o->error.code == ERROR_NONE)
            check_report(c, p, &o->report);
    }
    if (told != c->result.outcomes)
        sim_violated(c->sim, "outcomes", "the client is told about nodes that do not take part");
    if (c->result.absents > 0 && !c->request.shrink)
        sim_violated(c->sim, "outcomes", "nodes are left out, which was not asked for");
    if (c->result.attempts == 0 || c->result.id[0] == '\0')
        sim_violated(c->sim, "outcomes", "a copy without attempts or id");
    if (!c->request.dry_run && !c->request.verify && c->result.bytes_sent < least)
        sim_violated(c->sim, "bytes", "%llu bytes were sent, and a node lacked %llu",
                     (unsigned long long)c->result.bytes_sent, (unsigned long long)least);
}

static void on_ended(void *context, const struct copy_result *result, const struct error *e)
{
    struct sim_copy *c = context;

    if (c->ended || c->left || c->calling || (result == NULL) == (e == NULL))
        sim_violated(c->sim, "told once", "the client of a copy of node %u is told%s", c->asked,
                     c->calling ? " inside a call" : " something strange");
    if (e != NULL && (e->code == ERROR_NONE || e->text[0] == '\0'))
        sim_violated(c->sim, "errors", "a copy has failed without an error");
    c->ended = true;
    c->ended_at = sim_now(c->sim);
    c->copy = NULL;
    if (e != NULL)
        c->error = *e;
    else
        copy_result(c, result);
    uint64_t *countdown = memory_countdown;
    memory_countdown = NULL;
    if (e == NULL)
        check_result(c);
    sim_copy_check_places(c);
    memory_countdown = countdown;
}

static char **copy_texts(char *const *from, uint32_t count)
{
    char **to = sim_alloc(count * sizeof *to);

    for (uint32_t i = 0; i < count; i++)
        to[i] = tree_join(from[i], "");
    return to;
}

struct sim_copy *sim_copy_start(struct sim *sim, uint32_t asked, const struct copy_request *request)
{
    struct sim_copy *c = sim_alloc(sizeof *c);
    const struct copy_client client = {c, on_ended};
    struct node *node = &sim->node[asked];

    *c = (struct sim_copy){.next = sim->copies,
                           .sim = sim,
                           .asked = asked,
                           .request = *request,
                           .asked_at = sim_now(sim),
                           .harms = sim_harms(sim)};
    c->request.source = copy_texts(request->source, request->sources);
    c->request.pattern = copy_texts(request->pattern, request->patterns);
    c->request.target = tree_join(request->target, "");
    c->request.nodes = NULL;
    if (request->nodes_count > 0) {
        c->request.nodes = sim_alloc(request->nodes_count * sizeof *request->nodes);
        memcpy(c->request.nodes, request->nodes, request->nodes_count * sizeof *request->nodes);
    }
    sim->copies = c;
    sim_copy_note_places(c);
    c->calling = true;
    sim_enter(node);
    c->copy = copy_start(core_copies(node->core), request, &client, &c->error);
    sim_leave();
    c->calling = false;
    if (c->copy == NULL) {
        c->ended = true;
        c->ended_at = sim_now(sim);
    }
    sim_settle(node);
    return c;
}

void sim_copy_cancel(struct sim_copy *c)
{
    struct node *node = &c->sim->node[c->asked];
    struct error e = {0};

    if (c->copy == NULL)
        return;
    struct copy *copy = c->copy;
    c->copy = NULL;
    c->left = true;
    sim_enter(node);
    c->in_time = copy_stop(copy, &e) && c->harms == sim_harms(c->sim);
    if (!c->in_time && e.code == ERROR_NONE)
        copy_cancel(copy);
    sim_leave();
    sim_settle(node);
}

static bool has_ended(struct sim *sim, void *context)
{
    const struct sim_copy *c = context;

    return c->ended || c->left;
}

void sim_copy_run(struct sim_copy *c, uint64_t most)
{
    struct copy_progress progress;

    if (sim_run(c->sim, most, has_ended, c))
        return;
    copy_progress(c->copy, &progress);
    sim_violated(c->sim, "ends", "a copy of node %u does not end: phase %u, %llu bytes, %s",
                 c->asked, (unsigned)progress.phase, (unsigned long long)progress.bytes,
                 progress.waits_for);
}

struct sim_copy *sim_copy_whole(struct sim *sim, uint32_t asked, const struct copy_request *request)
{
    struct sim_copy *c = sim_copy_start(sim, asked, request);

    sim_copy_run(c, COPY_TIME);
    return c;
}

struct sim_copy *sim_copy_to_all(struct sim *sim, uint32_t asked, const char *source,
                                 const char *target)
{
    char *sources[] = {(char *)(uintptr_t)source};
    const struct copy_request request = {.kind = COPY_TO_ALL,
                                         .node = asked,
                                         .source = sources,
                                         .sources = 1,
                                         .target = (char *)(uintptr_t)target};

    return sim_copy_start(sim, asked, &request);
}

void sim_copies_sources_changed(struct sim *sim)
{
    for (struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        if (!c->ended)
            sim_copy_note_wanted(c);
}

void sim_copies_settle(struct sim *sim)
{
    for (struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        c->settled |= c->ended;
}

void sim_copy_must_succeed(const struct sim_copy *c)
{
    if (!c->ended || c->error.code != ERROR_NONE)
        sim_violated(c->sim, "succeeds", "the copy of node %u has failed: %s", c->asked,
                     c->ended ? c->error.text : "it has not ended");
    for (uint32_t i = 0; i < c->result.outcomes; i++)
        if (c->result.outcome[i].error.code != ERROR_NONE)
            sim_violated(c->sim, "succeeds", "the copy of node %u has failed at node %u: %s",
                         c->asked, c->result.outcome[i].node, c->result.outcome[i].error.text);
}

void sim_copy_must_fail(const struct sim_copy *c, enum error_code code)
{
    if (!c->ended || c->error.code != code)
        sim_violated(c->sim, "fails", "the copy of node %u has not failed with \"%s\": %s",
                     c->asked, error_name(code),
                     c->error.code != ERROR_NONE ? c->error.text
                     : c->ended                  ? "success"
                                                 : "it has not ended");
}

uint64_t sim_copy_lacked(const struct sim_copy *c)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < c->result.outcomes; i++) {
        const struct copy_outcome *o = &c->result.outcome[i];
        if (o->error.code == ERROR_NONE && o->report.bytes_missing > most)
            most = o->report.bytes_missing;
    }
    return most;
}

bool sim_copy_is_listed(const struct sim_copy *copy)
{
    struct copy_info info[LISTED];
    const size_t count = copies_list(core_copies(copy->sim->node[copy->asked].core), info, LISTED);

    for (size_t i = 0; i < count; i++)
        if (info[i].asker == copy->asked && strcmp(info[i].target, copy->request.target) == 0)
            return true;
    return false;
}

bool sim_copies_are_quiet(struct sim *sim, void *unused)
{
    struct copy_info info[LISTED];

    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        const struct tree_disk *trees = &sim->node[rank].trees;
        if (!sim_alive(sim, rank))
            continue;
        if (trees->readers > 0 || trees->writers_open > 0 ||
            copies_list(core_copies(sim->node[rank].core), info, LISTED) > 0)
            return false;
    }
    return sim_is_quiet(sim, unused);
}

static void name_busy(struct sim *sim)
{
    struct copy_info info[LISTED];
    struct group_info group;

    for (uint32_t rank = 0; rank < sim->torus.nodes; rank++) {
        const struct tree_disk *trees = &sim->node[rank].trees;
        if (!sim_alive(sim, rank))
            continue;
        if (copies_list(core_copies(sim->node[rank].core), info, LISTED) > 0)
            sim_violated(sim, "quiet", "node %u still takes part in copy %s, phase %u", rank,
                         info[0].id, (unsigned)info[0].progress.phase);
        if (trees->readers > 0 || trees->writers_open > 0)
            sim_violated(sim, "quiet", "node %u has %u readers and %u writers open", rank,
                         trees->readers, trees->writers_open);
        if (groups_list(sim_groups(sim, rank), &group, 1) > 0)
            sim_violated(sim, "quiet", "node %u still has the group \"%s\"", rank, group.name);
    }
    sim_violated(sim, "quiet", "exchanges or memory are left");
}

void sim_copies_check(struct sim *sim)
{
    for (int i = 0; i < 2; i++) { /* messages in transit may still give a node work */
        sim_pass(sim, 100 * MILLISECONDS);
        if (!sim_run(sim, QUIET_TIME, sim_copies_are_quiet, NULL))
            name_busy(sim);
    }
    for (const struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        if ((c->ended || c->left) && !c->settled)
            sim_copy_check_places(c);
}

void sim_copies_lose_node(struct sim *sim, uint32_t rank)
{
    for (struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        if (c->asked == rank && c->copy != NULL) {
            c->copy = NULL;
            c->left = true;
        }
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
    free((void *)texts);
}

void sim_copies_free(struct sim *sim)
{
    while (sim->copies != NULL) {
        struct sim_copy *c = sim->copies;
        sim->copies = c->next;
        sim_copy_free_places(c);
        free_texts(c->request.source, c->request.sources);
        free_texts(c->request.pattern, c->request.patterns);
        free(c->request.target);
        free(c->request.nodes);
        free((void *)(uintptr_t)c->result.outcome);
        free((void *)(uintptr_t)c->result.absent);
        free((void *)(uintptr_t)c->result.first_left_out);
        free((void *)(uintptr_t)c->result.id);
        free(c);
    }
}
