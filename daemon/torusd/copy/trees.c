#include "daemon/torusd/copy/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/copy/request.h"
#include "daemon/torusd/copy/step_reports.h"

static bool is_read_here(const struct agent *a, const struct copy_tree *tree)
{
    return tree->reader == agent_rank(a) && tree->failed.code == ERROR_NONE;
}

/* Whether this end is here, and nothing has failed so far. */
static bool is_written_here(const struct agent *a, const struct copy_end *end)
{
    return end->node == agent_rank(a) && !a->plan.tree[end->tree].broken &&
           copy_end_failed(&a->plan, end) == NULL;
}

/* --- opening --- */

/* Expands the sources of a tree. Returns a list that free_paths() frees, or NULL. */
static char **expand_sources(const struct copy_request *r, const struct copy_tree *tree)
{
    const uint32_t rank = r->kind == COPY_SCATTER ? tree->writer : tree->reader;
    char **path = calloc(r->sources, sizeof *path);

    for (uint32_t i = 0; path != NULL && i < r->sources; i++)
        path[i] =
            copy_path_expand(r->source[i], rank, r->kind == COPY_EXCHANGE ? &tree->writer : NULL);
    return path;
}

static void free_paths(char **path, uint32_t count)
{
    for (uint32_t i = 0; path != NULL && i < count; i++)
        free(path[i]);
    free((void *)path);
}

/* Notes what is to be told of an open tree. Without memory, other nodes do not hear where the sources are. */
static void take_facts(struct agent *a, struct copy_tree *tree)
{
    const struct tree_facts facts = a->set.trees->facts(tree->r);

    tree->size[TREE_MANIFEST] = facts.size[TREE_MANIFEST];
    tree->stream = facts.stream;
    tree->place = facts.places > 0 ? malloc(facts.places * sizeof *facts.place) : NULL;
    tree->places = tree->place != NULL ? facts.places : 0;
    if (tree->place != NULL)
        memcpy(tree->place, facts.place, facts.places * sizeof *facts.place);
}

static void open_reader(struct agent *a, struct copy_tree *tree)
{
    const struct copy_request *r = &a->request;
    char **path = expand_sources(r, tree);
    const struct tree_read_options options = {.path = (const char *const *)path,
                                              .paths = r->sources,
                                              .into = r->into,
                                              .pattern = (const char *const *)r->pattern,
                                              .patterns = r->patterns,
                                              .digests = r->checksum || r->verify,
                                              .missing_ok = r->missing_ok,
                                              .sizes = r->verify && r->told,
                                              .fast_digests = a->fast_digests,
                                              .copy_links = r->copy_links,
                                              .skip_changing = r->skip_changing};
    bool good = path != NULL;

    for (uint32_t i = 0; good && i < r->sources; i++)
        good = path[i] != NULL;
    if (!good)
        (void)error_set(&tree->failed, ERROR_MEMORY, "out of memory for paths");
    else if (a->set.trees->read_open(a->set.trees->context, &options, &a->progress, &tree->r,
                                     &tree->failed) == 0)
        tree->failed.code = ERROR_NONE;
    else
        tree->r = NULL;
    free_paths(path, r->sources);
    if (tree->r != NULL)
        take_facts(a, tree);
}

static void open_writer(struct agent *a, struct copy_end *end)
{
    const struct copy_request *r = &a->request;
    const uint32_t from = a->plan.tree[end->tree].reader;
    char *path = copy_path_expand(r->target, r->kind == COPY_GATHER ? from : end->node,
                                  r->kind == COPY_EXCHANGE ? &from : NULL);
    const struct tree_write_options options = {.id = a->id_text,
                                               .path = path,
                                               .into = r->into,
                                               .pattern = (const char *const *)r->pattern,
                                               .patterns = r->patterns,
                                               .delete = r->delete,
                                               .delete_root = r->delete_root,
                                               .delete_most = r->delete_most,
                                               .checksum = r->checksum || r->verify,
                                               .as_it_comes = r->as_it_comes,
                                               .look_only = r->dry_run || r->verify,
                                               .sizes = r->verify && r->told,
                                               .skip_changing = r->skip_changing};

    if (path == NULL)
        (void)error_set(&end->error, ERROR_MEMORY, "out of memory for paths");
    else if (a->set.trees->write_open(a->set.trees->context, &options, &end->w, &end->error) == 0)
        end->error.code = ERROR_NONE;
    else
        end->w = NULL;
    if (end->w != NULL)
        end->granularity = a->set.trees->granularity(end->w);
    free(path);
}

void copy_trees_open(struct agent *a)
{
    const uint32_t rank = agent_rank(a);
    struct error none;

    (void)error_set(&none, ERROR_REFUSED, "this node has no data roots, so it copies no trees");
    for (uint32_t i = 0; i < a->plan.trees; i++)
        if (a->plan.tree[i].reader == rank && a->set.trees == NULL)
            a->plan.tree[i].failed = none;
        else if (a->plan.tree[i].reader == rank)
            open_reader(a, &a->plan.tree[i]);
    for (uint32_t i = 0; i < a->plan.ends; i++)
        if (a->plan.end[i].node == rank && a->set.trees == NULL)
            a->plan.end[i].error = none;
        else if (a->plan.end[i].node == rank)
            open_writer(a, &a->plan.end[i]);
}

/* --- comparing --- */

static void compare(struct agent *a, struct copy_end *end)
{
    const uint8_t *wanted = NULL;
    size_t length = 0;

    const struct copy_tree *tree = &a->plan.tree[end->tree];

    if (a->set.trees->check_places(end->w, tree->place, tree->places, &end->error) != 0 ||
        a->set.trees->compare(end->w, &a->progress, &wanted, &length, &end->error) != 0)
        return;
    end->error.code = ERROR_NONE;
    if (length == 0 || length > step_reports_wanted_most(&a->plan))
        return;
    end->wanted = malloc(length);
    if (end->wanted == NULL)
        return; /* so whole files are sent */
    memcpy(end->wanted, wanted, length);
    end->wanted_length = length;
}

/* Waits until files that were changed just now cannot change again without a trace, here or at the nodes that write. */
static void settle(struct agent *a, uint32_t number)
{
    uint64_t granularity = 1;

    for (uint32_t i = 0; i < a->plan.ends; i++)
        if (a->plan.end[i].tree == number && a->plan.end[i].granularity > granularity)
            granularity = a->plan.end[i].granularity;
    a->set.trees->settle(a->plan.tree[number].r, granularity, &a->progress);
}

void copy_trees_compare(struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees && !a->request.dry_run && !a->request.verify; i++)
        if (is_read_here(a, &a->plan.tree[i]))
            settle(a, i);
    for (uint32_t i = 0; i < a->plan.ends; i++)
        if (is_written_here(a, &a->plan.end[i]))
            compare(a, &a->plan.end[i]);
}

static void digest(struct agent *a, uint32_t number)
{
    struct copy_tree *tree = &a->plan.tree[number];
    const uint8_t **wanted = calloc(a->plan.ends, sizeof *wanted);
    size_t *length = calloc(a->plan.ends, sizeof *length);
    uint32_t answers = 0;

    for (uint32_t i = 0; wanted != NULL && length != NULL && i < a->plan.ends; i++) {
        const struct copy_end *end = &a->plan.end[i];
        if (end->tree != number || end->wanted_length == 0 || end->error.code != ERROR_NONE)
            continue;
        wanted[answers] = end->wanted;
        length[answers++] = end->wanted_length;
    }
    if (wanted == NULL || length == NULL)
        (void)error_set(&tree->failed, ERROR_MEMORY, "out of memory for digests");
    else if (answers > 0 && a->set.trees->digest(tree->r, wanted, length, answers, &a->progress,
                                                 &tree->failed) == 0)
        tree->failed.code = ERROR_NONE;
    if (answers > 0 && tree->failed.code == ERROR_NONE)
        tree->size[TREE_DIGESTS] = a->set.trees->facts(tree->r).size[TREE_DIGESTS];
    free((void *)wanted);
    free(length);
}

void copy_trees_digest(struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++)
        if (is_read_here(a, &a->plan.tree[i]))
            digest(a, i);
}

void copy_trees_find_missing(struct agent *a)
{
    const uint32_t most = step_reports_spans_most(&a->plan);

    for (uint32_t i = 0; i < a->plan.ends; i++) {
        struct copy_end *end = &a->plan.end[i];
        if (!is_written_here(a, end))
            continue;
        if (a->set.trees->missing(end->w, most, &a->progress, &end->span, &end->spans,
                                  &end->error) == 0)
            end->error.code = ERROR_NONE;
        else
            end->spans = 0;
    }
}

/* --- the end --- */

/* Notes which files have changed, to be told. Returns 0, or -1 with *e. */
static int take_changes(struct agent *a, struct copy_tree *tree, struct error *e)
{
    const struct tree_facts facts = a->set.trees->facts(tree->r);

    if (facts.changes > step_reports_changes_most(&a->plan))
        return error_set(e, ERROR_IO,
                         "%u files were changed while they were being copied, such as %s: copy "
                         "again when they are at rest",
                         facts.changes, facts.first_changed);
    tree->changed = calloc(facts.changes + 1, sizeof *tree->changed);
    if (tree->changed == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    if (facts.changes > 0)
        memcpy(tree->changed, facts.changed, facts.changes * sizeof *facts.changed);
    tree->changes = facts.changes;
    (void)snprintf(tree->first_changed, sizeof tree->first_changed, "%s", facts.first_changed);
    return 0;
}

void copy_trees_check(struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        struct copy_tree *tree = &a->plan.tree[i];
        if (is_read_here(a, tree) &&
            a->set.trees->check(tree->r, &a->progress, &tree->failed) == 0 &&
            (!a->request.skip_changing || take_changes(a, tree, &tree->failed) == 0))
            tree->failed.code = ERROR_NONE;
    }
}

/* Puts a tree in place, except files that have changed at its reader. Returns 0, or -1 with *e. */
static int finish(struct agent *a, struct copy_end *end)
{
    const struct copy_tree *tree = &a->plan.tree[end->tree];

    if (tree->changes > 0 &&
        a->set.trees->leave(end->w, tree->changed, tree->changes, &end->error) != 0)
        return -1;
    return a->set.trees->finish(end->w, &a->progress, &end->error);
}

/* Notes what would be removed, as many whole paths as can be told. Without memory there are none: the report has their
 * number. */
static void take_going(struct agent *a, struct copy_end *end)
{
    const uint8_t *paths = NULL;
    size_t length = a->set.trees->going(end->w, &paths);

    length =
        length <= step_reports_going_most(&a->plan) ? length : step_reports_going_most(&a->plan);
    while (length > 0 && paths[length - 1] != 0)
        length--;
    free(end->going);
    end->going = length > 0 ? malloc(length) : NULL;
    end->going_length = end->going != NULL ? length : 0;
    if (end->going != NULL)
        memcpy(end->going, paths, length);
}

bool copy_trees_are_open(const struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++)
        if (a->plan.tree[i].r != NULL)
            return true;
    for (uint32_t i = 0; i < a->plan.ends; i++)
        if (a->plan.end[i].w != NULL)
            return true;
    return false;
}

void copy_trees_close(struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        if (a->plan.tree[i].r != NULL)
            a->set.trees->read_close(a->plan.tree[i].r);
        a->plan.tree[i].r = NULL;
    }
    for (uint32_t i = 0; i < a->plan.ends; i++) {
        if (a->plan.end[i].w != NULL)
            a->set.trees->write_close(a->plan.end[i].w);
        a->plan.end[i].w = NULL;
    }
}

void copy_trees_finish(struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.ends; i++) {
        struct copy_end *end = &a->plan.end[i];
        if (end->node != agent_rank(a) || end->w == NULL)
            continue;
        if (is_written_here(a, end) && finish(a, end) == 0)
            end->error.code = ERROR_NONE;
        if (end->error.code != ERROR_NONE)
            continue;
        a->set.trees->report(end->w, &end->report);
        if (a->request.dry_run)
            take_going(a, end);
    }
    /* Closed before the others are told, so that a user who hears that the copy is done can unmount the disk. */
    copy_trees_close(a);
}
