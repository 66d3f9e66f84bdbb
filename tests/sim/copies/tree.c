#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/copies/tree.h"
#include "tests/sim/memory.h"

static uint64_t contents_bytes;

uint64_t tree_hash(const uint8_t *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ length;

    while (length >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 31;
        bytes += 8;
        length -= 8;
    }
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

static struct tree_content *content_of_size(uint64_t size)
{
    struct tree_content *content = sim_alloc(sizeof *content + size);

    content->users = 1;
    content->size = size;
    contents_bytes += size;
    return content;
}

struct tree_content *tree_content_draw(uint64_t seed, uint64_t size)
{
    struct tree_content *content = content_of_size(size);
    struct chance c = {seed};

    for (uint64_t at = 0; at < size; at += 8) {
        uint64_t word = chance_word(&c);
        memcpy(content->bytes + at, &word, size - at < 8 ? size - at : 8);
    }
    content->hash = tree_hash(content->bytes, size);
    return content;
}

struct tree_content *tree_content_new(const uint8_t *bytes, uint64_t size)
{
    struct tree_content *content = content_of_size(size);

    if (size > 0)
        memcpy(content->bytes, bytes, size);
    content->hash = tree_hash(content->bytes, size);
    return content;
}

struct tree_content *tree_content_use(struct tree_content *content)
{
    if (content != NULL)
        content->users++;
    return content;
}

void tree_content_release(struct tree_content *content)
{
    if (content == NULL || --content->users > 0)
        return;
    contents_bytes -= content->size;
    free(content);
}

uint64_t tree_contents_bytes(void)
{
    return contents_bytes;
}

/* --- paths --- */

int tree_compare_paths(const char *a, const char *b)
{
    while (*a == *b && *a != '\0')
        a++, b++;
    if (*a == *b)
        return 0;
    int left = *a == '/' ? 1 : *a == '\0' ? 0 : 2 + (unsigned char)*a;
    int right = *b == '/' ? 1 : *b == '\0' ? 0 : 2 + (unsigned char)*b;
    return left - right;
}

bool tree_is_below(const char *path, const char *root)
{
    size_t length = strlen(root);

    return length == 0 ||
           (strncmp(path, root, length) == 0 && (path[length] == '\0' || path[length] == '/'));
}

static char *copy_text(const char *text)
{
    char *copy = sim_alloc(strlen(text) + 1);

    return strcpy(copy, text);
}

char *tree_join(const char *folder, const char *name)
{
    size_t length = strlen(folder), more = strlen(name);
    char *path = sim_alloc(length + more + 2);

    memcpy(path, folder, length);
    if (length > 0 && more > 0)
        path[length++] = '/';
    memcpy(path + length, name, more);
    return path;
}

/* --- trees --- */

static void free_item(struct tree_item *item)
{
    free(item->path);
    free(item->link);
    tree_content_release(item->content);
}

void sim_tree_free(struct sim_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free_item(&tree->item[i]);
    free(tree->item);
    *tree = (struct sim_tree){0};
}

static void append(struct sim_tree *tree, const char *path, const struct tree_item *item)
{
    tree->item = sim_grow(tree->item, tree->count, sizeof *tree->item);
    tree->item[tree->count++] = (struct tree_item){
        .path = copy_text(path),
        .kind = item->kind,
        .modified = item->modified,
        .content = tree_content_use(item->content),
        .link = item->link != NULL ? copy_text(item->link) : NULL,
    };
}

/* The place of the first path that is not before this one. */
static size_t place(const struct sim_tree *tree, const char *path)
{
    size_t low = 0, high = tree->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree_compare_paths(tree->item[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sim_tree_below(struct sim_tree *to, const struct sim_tree *from, const char *root)
{
    size_t length = strlen(root);

    *to = (struct sim_tree){0};
    for (size_t i = place(from, root); i < from->count && tree_is_below(from->item[i].path, root);
         i++) {
        const char *path = from->item[i].path + length;
        append(to, *path == '/' && length > 0 ? path + 1 : path, &from->item[i]);
    }
}

void sim_tree_copy(struct sim_tree *to, const struct sim_tree *from)
{
    sim_tree_below(to, from, "");
}

const struct tree_item *sim_tree_find(const struct sim_tree *tree, const char *path)
{
    size_t i = place(tree, path);

    return i < tree->count && strcmp(tree->item[i].path, path) == 0 ? &tree->item[i] : NULL;
}

void sim_tree_remove(struct sim_tree *tree, const char *path)
{
    size_t first = place(tree, path), end = first;

    while (end < tree->count && tree_is_below(tree->item[end].path, path))
        end++;
    if (end == first)
        return;
    struct sim_tree rest = {0}; /* sim_grow() needs arrays that only grow */
    for (size_t i = 0; i < tree->count; i++) {
        if (i >= first && i < end)
            continue;
        rest.item = sim_grow(rest.item, rest.count, sizeof *rest.item);
        rest.item[rest.count++] = tree->item[i];
    }
    for (size_t i = first; i < end; i++) /* `path` may be one of them */
        free_item(&tree->item[i]);
    free(tree->item);
    *tree = rest;
}

void sim_tree_put(struct sim_tree *tree, const char *path, const struct tree_item *item)
{
    size_t i = place(tree, path);

    if (i < tree->count && strcmp(tree->item[i].path, path) == 0) {
        if (item->kind == SIM_TREE_FOLDER && tree->item[i].kind == SIM_TREE_FOLDER) {
            tree->item[i].modified = item->modified;
            return;
        }
        sim_tree_remove(tree, path);
    }
    append(tree, path, item);
    struct tree_item last = tree->item[tree->count - 1];
    memmove(&tree->item[i + 1], &tree->item[i], (tree->count - 1 - i) * sizeof *tree->item);
    tree->item[i] = last;
}

void sim_tree_put_folder(struct sim_tree *tree, const char *path, uint64_t modified)
{
    sim_tree_put(tree, path, &(struct tree_item){.kind = SIM_TREE_FOLDER, .modified = modified});
}

void sim_tree_put_file(struct sim_tree *tree, const char *path, uint64_t modified,
                       struct tree_content *content)
{
    sim_tree_put(
        tree, path,
        &(struct tree_item){.kind = SIM_TREE_FILE, .modified = modified, .content = content});
}

bool tree_item_equal(const struct tree_item *a, const struct tree_item *b)
{
    if (a->kind != b->kind || a->modified != b->modified)
        return false;
    if (a->kind == SIM_TREE_LINK)
        return strcmp(a->link, b->link) == 0;
    return a->kind != SIM_TREE_FILE || a->content == b->content ||
           (a->content->size == b->content->size && a->content->hash == b->content->hash &&
            memcmp(a->content->bytes, b->content->bytes, a->content->size) == 0);
}

const char *sim_tree_differs(const struct sim_tree *a, const struct sim_tree *b)
{
    size_t i = 0;

    while (i < a->count && i < b->count) {
        int order = tree_compare_paths(a->item[i].path, b->item[i].path);
        if (order != 0)
            return order < 0 ? a->item[i].path : b->item[i].path;
        if (!tree_item_equal(&a->item[i], &b->item[i]))
            return a->item[i].path;
        i++;
    }
    return i < a->count ? a->item[i].path : i < b->count ? b->item[i].path : NULL;
}

/* --- what a copy does --- */

bool tree_left_out(const char *const *pattern, uint32_t patterns, const char *path)
{
    while (*path != '\0') { /* a folder that is left out takes with it what it holds */
        size_t length = strcspn(path, "/");
        for (uint32_t i = 0; i < patterns; i++) {
            const char *name = pattern[i] + 2;
            if (strlen(name) == length && strncmp(name, path, length) == 0) {
                if (pattern[i][0] == '-')
                    return true;
                break;
            }
        }
        path += length + (path[length] == '/');
    }
    return false;
}

static bool is_in_folder(const char *path, const char *folder)
{
    return tree_is_below(path, folder) && path[strlen(folder)] == '/';
}

void sim_tree_overlay(struct sim_tree *target, const struct sim_tree *source,
                      const struct tree_overlay *how)
{
    /* From the end: what is removed with a folder has been removed before. */
    for (size_t i = target->count; how->delete &&i-- > 0;) {
        const char *path = target->item[i].path;
        /* Into a folder only what is below the sources is compared. */
        size_t top = strcspn(path, "/");
        bool concerned = !how->into;
        for (size_t k = 0; k < source->count && !concerned; k++)
            concerned = strncmp(source->item[k].path, path, top) == 0 &&
                        (source->item[k].path[top] == '\0' || source->item[k].path[top] == '/');
        if (*path == '\0' || !concerned || sim_tree_find(source, path) != NULL ||
            tree_left_out(how->pattern, how->patterns, path))
            continue;
        if (i + 1 == target->count || !is_in_folder(target->item[i + 1].path, path))
            sim_tree_remove(target, path); /* otherwise something in it is kept */
    }
    if (how->into && sim_tree_find(target, "") == NULL && source->count > 0)
        sim_tree_put_folder(target, "", 0);
    for (size_t i = 0; i < source->count; i++)
        sim_tree_put(target, source->item[i].path, &source->item[i]);
}

/* Random trees, and random changes of them. */

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
