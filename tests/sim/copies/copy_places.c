/* The targets of copies: what they were, and what they shall become. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/copies.h"
#include "tests/sim/internal.h"

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
