/* Random copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/copies.h"
#include "tests/sim/internal.h"

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

/* Trees at the readers; often older versions of them, or other trees, at the writers. */
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
