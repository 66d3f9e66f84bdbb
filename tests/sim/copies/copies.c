#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/copies.h"
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

/* Random copies. */

#define PATH_SIZE 64u

static void add_text(char ***list, uint32_t *count, const char *text)
{
    *list = sim_grow((void *)*list, *count, sizeof **list);
    (*list)[(*count)++] = tree_join(text, "");
}

static void draw_nodes(struct copy_request *r, uint32_t nodes, struct chance *c)
{
    if (chance_below(c, 2) == 0)
        return;
    r->nodes = sim_alloc(nodes * sizeof *r->nodes);
    for (uint32_t node = 0; node < nodes; node++)
        if (node != r->node && chance_below(c, 3) > 0)
            r->nodes[r->nodes_count++] = node;
    if (r->nodes_count > 0)
        return;
    free(r->nodes); /* no node would mean all of them */
    r->nodes = NULL;
}

static void draw_paths(struct copy_request *r, uint32_t number, struct chance *c)
{
    char path[PATH_SIZE];
    bool ranks = r->kind == COPY_SCATTER || (r->kind == COPY_GATHER && chance_below(c, 2) == 0);

    r->into = r->kind != COPY_EXCHANGE && chance_below(c, 3) == 0;
    uint64_t sources = r->into ? 1 + chance_below(c, 3) : 1;
    for (uint64_t i = 0; i < sources; i++) {
        (void)snprintf(path, sizeof path, "/from%u%s/s%u", number, ranks ? "/%r" : "", (unsigned)i);
        add_text(&r->source, &r->sources, path);
    }
    ranks = r->kind == COPY_GATHER || (r->kind != COPY_EXCHANGE && chance_below(c, 3) == 0);
    (void)snprintf(path, sizeof path, "/to%u%s", number, ranks ? "/%r%%" : "");
    r->target = tree_join(path, "");
}

static void draw_options(struct copy_request *r, struct chance *c)
{
    uint64_t what = chance_below(c, 12);

    r->dry_run = what == 0;
    r->verify = what == 1;
    r->as_it_comes = what == 2 || what == 3;
    r->delete = chance_below(c, 2) == 0;
    r->checksum = chance_below(c, 4) == 0;
    r->missing_ok = chance_below(c, 4) == 0;
    uint64_t failure = chance_below(c, 4);
    r->shrink = failure == 0;
    r->wait = failure == 1;
    r->user = 1000 + (uint32_t)chance_below(c, 3);
    if (chance_below(c, 3) == 0)
        add_text(&r->pattern, &r->patterns, "- cache");
    if (chance_below(c, 6) == 0) {
        add_text(&r->pattern, &r->patterns, "+ a b");
        add_text(&r->pattern, &r->patterns, "- name\n");
    }
}

/* Makes trees at the readers, and often older versions of these, or other trees, at the writers. */
static void draw_trees(struct sim *sim, const struct copy_request *r, uint32_t files, uint64_t most,
                       struct chance *c)
{
    uint32_t reader, writer, older = (uint32_t)chance_below(c, 3);

    for (uint32_t i = 0; sim_copy_pair(r, sim->torus.nodes, i, &reader, &writer); i++) {
        struct sim_tree *from = &sim->node[reader].trees.tree;
        for (uint32_t s = 0; s < r->sources; s++) {
            char *path = sim_copy_path(r->source[s], r->kind == COPY_SCATTER ? writer : reader,
                                       r->kind == COPY_EXCHANGE ? writer : SIM_NO_RANK);
            bool is_missing = r->missing_ok && chance_below(c, 3) == 0;
            if (sim_tree_find(from, path) == NULL && !is_missing)
                sim_tree_draw(from, path, files, most, c);
            free(path);
        }
        if (older == 0)
            continue;
        struct sim_tree *to = &sim->node[writer].trees.tree, source = {0};
        char *target = sim_copy_path(r->target, r->kind == COPY_GATHER ? reader : writer,
                                     r->kind == COPY_EXCHANGE ? reader : SIM_NO_RANK);
        if (!r->into && chance_below(c, 2) == 0 &&
            sim_copy_sources(sim, r, reader, writer, &source))
            for (size_t k = 0; k < source.count; k++) {
                char *path = tree_join(target, source.item[k].path);
                sim_tree_put(to, path, &source.item[k]);
                free(path);
            }
        else
            sim_tree_draw(to, target, files / 2, most / 2, c);
        sim_tree_free(&source);
        if (older == 2)
            sim_tree_change(to, target, 1 + (uint32_t)chance_below(c, 5), c);
        free(target);
    }
}

struct copy_request *sim_copy_draw(struct sim *sim, uint32_t number, uint32_t files, uint64_t most,
                                   struct chance *c)
{
    static const enum copy_kind kinds[] = {COPY_TO_ALL, COPY_TO_ALL,  COPY_TO_ALL,
                                           COPY_GATHER, COPY_SCATTER, COPY_EXCHANGE};
    struct copy_request *r = sim_alloc(sizeof *r);

    r->kind = kinds[chance_below(c, sizeof kinds / sizeof *kinds)];
    r->node = (uint32_t)chance_below(c, sim->torus.nodes);
    draw_nodes(r, sim->torus.nodes, c);
    draw_paths(r, number, c);
    draw_options(r, c);
    uint32_t share = r->kind == COPY_EXCHANGE ? sim->torus.nodes : 1;
    draw_trees(sim, r, files / share + 1, most / share + 1, c);
    return r;
}

void sim_copy_change_sources(struct sim *sim, const struct copy_request *r, struct chance *c)
{
    uint32_t reader, writer, pairs = 0;

    while (sim_copy_pair(r, sim->torus.nodes, pairs, &reader, &writer))
        pairs++;
    if (!sim_copy_pair(r, sim->torus.nodes, (uint32_t)chance_below(c, pairs), &reader, &writer))
        return;
    char *path = sim_copy_path(r->source[0], r->kind == COPY_SCATTER ? writer : reader,
                               r->kind == COPY_EXCHANGE ? writer : SIM_NO_RANK);
    sim_tree_change(&sim->node[reader].trees.tree, path, 1 + (uint32_t)chance_below(c, 3), c);
    free(path);
    sim_copies_sources_changed(sim);
}

void sim_copy_draw_free(struct copy_request *r)
{
    for (uint32_t i = 0; i < r->sources; i++)
        free(r->source[i]);
    for (uint32_t i = 0; i < r->patterns; i++)
        free(r->pattern[i]);
    free((void *)r->source);
    free((void *)r->pattern);
    free(r->target);
    free(r->nodes);
    free(r);
}

/* The targets of copies: what they were, and what they shall become. */

char *sim_copy_path(const char *path, uint32_t rank, uint32_t below)
{
    char *out = sim_alloc(12 * strlen(path) + 24), *end = out;

    for (; *path != '\0'; path++) {
        if (*path == '%' && *++path == 'r')
            end += sprintf(end, "%u", rank);
        else
            *end++ = *path;
    }
    *end = '\0';
    if (below != SIM_NO_RANK)
        (void)sprintf(end, "/%u", below);
    return out;
}

static bool takes_part(const struct copy_request *r, uint32_t node)
{
    for (uint32_t i = 0; i < r->nodes_count; i++)
        if (r->nodes[i] == node)
            return true;
    return r->nodes_count == 0 || node == r->node;
}

bool sim_copy_pair(const struct copy_request *r, uint32_t nodes, uint32_t number, uint32_t *reader,
                   uint32_t *writer)
{
    for (*writer = 0; *writer < nodes; ++*writer)
        for (*reader = 0; *reader < nodes; ++*reader) {
            bool from = *reader == r->node, to = *writer == r->node;
            bool pair = r->kind == COPY_EXCHANGE ? true
                        : r->kind == COPY_GATHER ? to && !from
                                                 : from && !to;
            if (pair && takes_part(r, *reader) && takes_part(r, *writer) && number-- == 0)
                return true;
        }
    return false;
}

bool sim_copy_sources(struct sim *sim, const struct copy_request *r, uint32_t reader,
                      uint32_t writer, struct sim_tree *tree)
{
    const char *path[COPY_SOURCES_MOST];
    const struct tree_read_options o = {.path = path,
                                        .paths = r->sources,
                                        .into = r->into,
                                        .pattern = (const char *const *)r->pattern,
                                        .patterns = r->patterns,
                                        .missing_ok = r->missing_ok};
    struct tree_sources s;
    struct error e;

    for (uint32_t i = 0; i < r->sources; i++)
        path[i] = sim_copy_path(r->source[i], r->kind == COPY_SCATTER ? writer : reader,
                                r->kind == COPY_EXCHANGE ? writer : SIM_NO_RANK);
    bool found = tree_sources_read(&s, &sim->node[reader].trees.tree, &o, &e) == 0;
    *tree = (struct sim_tree){0};
    if (found) {
        sim_tree_copy(tree, &s.tree);
        tree_sources_free(&s);
    }
    for (uint32_t i = 0; i < r->sources; i++)
        free((char *)(uintptr_t)path[i]);
    return found;
}

void sim_copy_note_wanted(struct sim_copy *copy)
{
    const struct copy_request *r = &copy->request;
    const struct tree_overlay how = {.pattern = (const char *const *)r->pattern,
                                     .patterns = r->patterns,
                                     .into = r->into,
                                     .delete = r->delete};

    for (uint32_t i = 0; i < copy->places; i++) {
        struct sim_copy_place *p = &copy->place[i];
        struct sim_tree source;
        if (p->versions == SIM_COPY_VERSIONS)
            sim_fail(copy->sim, "the sources of a copy change too often");
        if (!sim_copy_sources(copy->sim, r, p->from, p->node, &source))
            continue;
        struct sim_tree *wanted = &p->wanted[p->versions];
        sim_tree_copy(wanted, &p->before);
        sim_tree_overlay(wanted, &source, &how);
        sim_tree_free(&source);
        p->versions++;
    }
}

void sim_copy_note_places(struct sim_copy *copy)
{
    const struct copy_request *r = &copy->request;
    uint32_t reader, writer;

    while (sim_copy_pair(r, copy->sim->torus.nodes, copy->places, &reader, &writer)) {
        copy->place = sim_grow(copy->place, copy->places, sizeof *copy->place);
        struct sim_copy_place *p = &copy->place[copy->places++];
        *p = (struct sim_copy_place){.node = writer, .from = reader};
        p->target = sim_copy_path(r->target, r->kind == COPY_GATHER ? reader : writer,
                                  r->kind == COPY_EXCHANGE ? reader : SIM_NO_RANK);
        sim_tree_below(&p->before, &copy->sim->node[writer].trees.tree, p->target);
    }
    sim_copy_note_wanted(copy);
}

void sim_copy_free_places(struct sim_copy *copy)
{
    for (uint32_t i = 0; i < copy->places; i++) {
        struct sim_copy_place *p = &copy->place[i];
        sim_tree_free(&p->before);
        for (uint32_t v = 0; v < p->versions; v++)
            sim_tree_free(&p->wanted[v]);
        free(p->target);
    }
    free(copy->place);
}

/* --- checks --- */

/* Whether each item is one of the target before the copy, or one that the copy puts there, and nothing is missing that
 * both have. */
static bool is_between(const struct sim_tree *there, const struct sim_copy_place *p)
{
    for (size_t i = 0; i < there->count; i++) {
        const struct tree_item *item = &there->item[i];
        const struct tree_item *was = sim_tree_find(&p->before, item->path);
        /* A folder gets its time when what it holds is complete. */
        bool known = (was != NULL && tree_item_equal(was, item)) || item->kind == SIM_TREE_FOLDER;
        for (uint32_t v = 0; v < p->versions && !known; v++) {
            const struct tree_item *will = sim_tree_find(&p->wanted[v], item->path);
            known = will != NULL && tree_item_equal(will, item);
        }
        if (!known)
            return false;
    }
    for (size_t i = 0; i < p->before.count; i++) {
        const char *path = p->before.item[i].path;
        if (p->versions > 0 && sim_tree_find(&p->wanted[0], path) != NULL &&
            sim_tree_find(there, path) == NULL)
            return false;
    }
    return true;
}

static bool is_wanted(const struct sim_tree *there, const struct sim_copy_place *p)
{
    for (uint32_t v = 0; v < p->versions; v++)
        if (sim_tree_differs(there, &p->wanted[v]) == NULL)
            return true;
    return false;
}

static bool looks_only(const struct sim_copy *copy)
{
    return copy->request.dry_run || copy->request.verify;
}

/* Whether other copies explain the state of a target: one of them has put its trees there. */
static bool is_of_another(const struct sim_copy *copy, const struct sim_copy_place *p,
                          const struct sim_tree *there)
{
    for (const struct sim_copy *other = copy->sim->copies; other != NULL; other = other->next)
        for (uint32_t i = 0; i < other->places; i++) {
            const struct sim_copy_place *q = &other->place[i];
            if (other != copy && q->node == p->node && strcmp(q->target, p->target) == 0 &&
                !looks_only(other) &&
                (is_wanted(there, q) || (other->request.as_it_comes && is_between(there, q))))
                return true;
        }
    return false;
}

/* Whether the state of a target agrees with what the client has been told. */
static bool agrees(const struct sim_copy *copy, const struct sim_copy_place *p,
                   const struct copy_outcome *o, const struct sim_tree *there)
{
    bool unchanged = sim_tree_differs(there, &p->before) == NULL;

    if (looks_only(copy))
        return unchanged;
    if (o != NULL && o->error.code == ERROR_NONE)
        return is_wanted(there, p);
    if (copy->request.as_it_comes)
        return is_between(there, p);
    if (copy->in_time || (o != NULL && copy->result.attempts == 1)) /* it has failed there */
        return unchanged;
    return unchanged || is_wanted(there, p);
}

static const char *describe(const struct sim_copy *copy, const struct copy_outcome *o)
{
    if (copy->error.code != ERROR_NONE)
        return copy->error.text;
    if (o == NULL)
        return copy->ended ? "nothing about it" : "nothing yet";
    return o->error.code == ERROR_NONE ? "it is in place" : o->error.text;
}

void sim_copy_check_places(const struct sim_copy *copy)
{
    struct sim *sim = copy->sim;

    for (uint32_t i = 0; i < copy->places && !sim_has_lied(sim); i++) {
        const struct sim_copy_place *p = &copy->place[i];
        const struct copy_outcome *o = sim_copy_outcome(copy, p->node, p->from);
        struct sim_tree there;
        sim_tree_below(&there, &sim->node[p->node].trees.tree, p->target);
        if (!agrees(copy, p, o, &there) && !is_of_another(copy, p, &there)) {
            const char *path = p->versions > 0 ? sim_tree_differs(&there, &p->wanted[0]) : NULL;
            const char *before = sim_tree_differs(&there, &p->before);
            sim_violated(sim, "all or nothing",
                         "copy of node %u, target %s of node %u: \"%s\" is not as wanted, \"%s\" "
                         "not as before; its client was told: %s",
                         copy->asked, p->target, p->node, path != NULL ? path : "nothing",
                         before != NULL ? before : "nothing", describe(copy, o));
        }
        sim_tree_free(&there);
    }
}
