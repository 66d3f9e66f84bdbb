/* Random trees, and random changes of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/tree.h"
#include "tests/sim/memory.h"

#define NAME_MOST 24u
#define YEAR_SECONDS UINT64_C(31536000)

static uint64_t draw_time(struct chance *c)
{
    return chance_below(c, 50 * YEAR_SECONDS) * UINT64_C(1000000000) +
           chance_below(c, UINT64_C(1000000000));
}

/* Names of any bytes; some of them are those of patterns. */
static void draw_name(char *name, struct chance *c)
{
    static const char *const known[] = {"cache", "a b", "-x", ".hidden", "%r", "name\n", "*"};

    if (chance_below(c, 4) == 0) {
        (void)snprintf(name, NAME_MOST, "%s", known[chance_below(c, sizeof known / sizeof *known)]);
        return;
    }
    size_t length = 1 + chance_below(c, 8);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)(1 + chance_below(c, 255));
        name[i] = byte == '/' ? '_' : (char)byte;
    }
    name[length] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        name[0] = 'x';
}

/* The path of a random folder of a tree, or its root; malloc'ed. */
static char *any_folder(const struct sim_tree *tree, const char *root, struct chance *c)
{
    const char *chosen = root;
    uint64_t count = 1;

    for (size_t i = 0; i < tree->count; i++)
        if (tree->item[i].kind == SIM_TREE_FOLDER && tree_is_below(tree->item[i].path, root) &&
            strcmp(tree->item[i].path, root) != 0 && chance_below(c, ++count) == 0)
            chosen = tree->item[i].path;
    return tree_join(chosen, "");
}

static uint64_t draw_size(uint64_t most, struct chance *c)
{
    uint64_t size = most > 0 ? chance_magnitude(c, 1, most) : 0;

    return chance_below(c, 10) == 0 ? 0 : size;
}

static void draw_item(struct sim_tree *tree, const char *root, uint64_t most, struct chance *c)
{
    char name[NAME_MOST], link[] = "../somewhere";
    char *folder = any_folder(tree, root, c);
    struct tree_item item = {.kind = SIM_TREE_FILE, .modified = draw_time(c)};

    draw_name(name, c);
    char *path = tree_join(folder, name);
    uint64_t kind = chance_below(c, 40), size = draw_size(most, c), seed = chance_word(c);
    if (kind < 8)
        item.kind = SIM_TREE_FOLDER;
    else if (kind < 11)
        item.kind = SIM_TREE_LINK;
    else if (kind < 12)
        item.kind = SIM_TREE_SOCKET;
    if (item.kind == SIM_TREE_FILE)
        item.content = tree_content_draw(seed, size);
    if (item.kind == SIM_TREE_LINK)
        item.link = link;
    if (sim_tree_find(tree, path) == NULL)
        sim_tree_put(tree, path, &item);
    tree_content_release(item.content);
    free(path);
    free(folder);
}

void sim_tree_draw(struct sim_tree *tree, const char *root, uint32_t files, uint64_t most,
                   struct chance *c)
{
    sim_tree_put_folder(tree, root, draw_time(c));
    for (uint64_t left = files > 0 ? chance_magnitude(c, 1, files) : 0; left > 0; left--)
        draw_item(tree, root, most, c);
}

/* Contents that share most of their bytes with others: some bytes in the middle are new, or it ends elsewhere. */
static struct tree_content *alter(const struct tree_content *old, struct chance *c)
{
    uint64_t size = old->size, kind = chance_below(c, 3), at = chance_below(c, size + 1);
    uint64_t grown = size + (kind == 0 ? 1 + chance_below(c, size / 4 + 10) : 0);
    uint8_t *bytes = sim_alloc(grown);

    memcpy(bytes, old->bytes, size);
    for (uint64_t i = size; i < grown; i++)
        bytes[i] = (uint8_t)chance_word(c);
    if (kind == 1)
        grown = at;
    for (uint64_t i = at; kind == 2 && i < size && i < at + 100; i++)
        bytes[i] ^= (uint8_t)(1 + chance_below(c, 255));
    struct tree_content *content = tree_content_new(bytes, grown);
    free(bytes);
    return content;
}

static void change_one(struct sim_tree *tree, const char *root, struct chance *c)
{
    struct tree_item *chosen = NULL;
    uint64_t count = 0, most = chance_magnitude(c, 1, 10000);

    for (size_t i = 0; i < tree->count; i++)
        if (tree_is_below(tree->item[i].path, root) && strcmp(tree->item[i].path, root) != 0 &&
            chance_below(c, ++count) == 0)
            chosen = &tree->item[i];
    uint64_t kind = chance_below(c, 4);
    if (chosen == NULL || kind == 0) {
        draw_item(tree, root, most, c);
    } else if (kind == 1) {
        char *path = tree_join(chosen->path, "");
        sim_tree_remove(tree, path);
        free(path);
    } else {
        chosen->modified = draw_time(c);
        if (chosen->kind != SIM_TREE_FILE)
            return;
        struct tree_content *content = alter(chosen->content, c);
        tree_content_release(chosen->content);
        chosen->content = content;
    }
}

void sim_tree_change(struct sim_tree *tree, const char *root, uint32_t changes, struct chance *c)
{
    for (uint32_t i = 0; i < changes; i++)
        change_one(tree, root, c);
}
