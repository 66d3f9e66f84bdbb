/* How a simulated node puts what has arrived in place. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/writer.h"
#include "tests/sim/internal.h"

/* The manifest as a tree: with the contents that have arrived, or are there already. */
static void source_of(const struct tree_writer *w, struct sim_tree *source)
{
    *source = (struct sim_tree){0};
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        const struct sim_entry *entry = &w->manifest.entry[i];
        const struct tree_item *old = tree_writer_present(w, entry);
        struct tree_item item = {
            .kind = entry->kind, .modified = entry->modified, .link = entry->link};
        if (w->entry[i].needed)
            item.content = tree_content_new(w->entry[i].file->bytes, entry->size);
        else if (entry->kind == SIM_TREE_FILE)
            item.content = tree_content_use(old->content);
        sim_tree_put(source, entry->path, &item);
        tree_content_release(item.content);
    }
}

static struct tree_overlay overlay_of(const struct tree_writer *w)
{
    return (struct tree_overlay){.pattern = (const char *const *)w->pattern,
                                 .patterns = w->patterns,
                                 .into = w->into,
                                 .delete = w->delete};
}

uint64_t tree_writer_count_removed(const struct tree_writer *w)
{
    struct tree_overlay how = overlay_of(w);
    struct sim_tree target, source = {0};

    sim_tree_below(&target, &w->disk->tree, w->path);
    for (uint32_t i = 0; i < w->manifest.entries; i++)
        sim_tree_put_folder(&source, w->manifest.entry[i].path, 0);
    size_t before = target.count;
    for (uint32_t i = 0; i < w->manifest.entries; i++) /* what is there, the others do not count */
        before += sim_tree_find(&target, w->manifest.entry[i].path) == NULL;
    before += w->into && sim_tree_find(&target, "") == NULL && source.count > 0;
    sim_tree_overlay(&target, &source, &how);
    uint64_t removed = before - target.count;
    sim_tree_free(&target);
    sim_tree_free(&source);
    return removed;
}

void tree_writer_place_folders(struct tree_writer *w)
{
    if (w->into && w->manifest.entries > 0 && sim_tree_find(&w->disk->tree, w->path) == NULL)
        sim_tree_put_folder(&w->disk->tree, w->path, 0);
    for (uint32_t i = 0; i < w->manifest.entries; i++) {
        char *path = tree_join(w->path, w->manifest.entry[i].path);
        if (w->manifest.entry[i].kind == SIM_TREE_FOLDER)
            sim_tree_put_folder(&w->disk->tree, path, w->manifest.entry[i].modified);
        free(path);
    }
}

void tree_writer_place_file(struct tree_writer *w, const struct sim_entry *entry,
                            const struct staged_file *file)
{
    char *path = tree_join(w->path, entry->path);
    struct tree_content *content = tree_content_new(file->bytes, file->size);

    sim_tree_put_file(&w->disk->tree, path, entry->modified, content);
    tree_content_release(content);
    free(path);
}

bool staged_file_is_complete(const struct staged_file *file)
{
    return sim_spans_bytes(&file->have) == file->size;
}

static void note_finished(struct tree_writer *w)
{
    struct finished_copy *f = sim_alloc(sizeof *f);

    *f = (struct finished_copy){
        .next = w->disk->finished, .target = tree_join(w->path, ""), .report = w->report};
    w->disk->finished = f;
}

int tree_writer_finish(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    struct tree_overlay how = overlay_of(w);
    struct sim_tree target, source;

    tree_writer_rule(w, w->stage == WRITER_KNOWS, "finish() at the wrong time");
    if (tree_disk_check(w->disk, SIM_TREE_FINISH, progress, w->path, e) != 0)
        return tree_writer_fail(w, e);
    for (uint32_t i = 0; i < w->manifest.entries && !w->look_only; i++) {
        if (!w->entry[i].needed || staged_file_is_complete(w->entry[i].file))
            continue;
        tree_writer_rule(w, false, "finish() before everything has arrived");
        return error_set(e, ERROR_PROTOCOL, "%s is not complete", w->entry[i].file->path),
               tree_writer_fail(w, e);
    }
    w->stage = WRITER_FINISHED;
    note_finished(w);
    if (w->look_only)
        return 0;
    sim_tree_below(&target, &w->disk->tree, w->path);
    source_of(w, &source);
    sim_tree_overlay(&target, &source, &how);
    sim_tree_remove(&w->disk->tree, w->path);
    for (size_t i = 0; i < target.count; i++) {
        char *path = tree_join(w->path, target.item[i].path);
        sim_tree_put(&w->disk->tree, path, &target.item[i]);
        free(path);
    }
    sim_tree_free(&target);
    sim_tree_free(&source);
    tree_disk_tidy_staged(w->disk, w->path, true);
    return 0;
}
