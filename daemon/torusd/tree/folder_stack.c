#include "daemon/torusd/tree/folder_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/tree/attributes_of.h"

int folder_stack_push(struct folder_stack *stack, struct metadata_rules *rules,
                      const struct entry *entry, const char *path, struct error *e)
{
    struct metadata_place place = {.file = -1};
    bool refused = false;

    if (stack->count == stack->room) {
        size_t room = 2 * stack->room + 16;
        struct folder_level *more = reallocarray(stack->level, room, sizeof *more);
        if (more == NULL)
            return tree_at_failed(stack->at, path, "changed", ENOMEM, e);
        stack->level = more;
        stack->room = room;
    }
    place.folder = tree_at_parent(stack->at, path, &place.name);
    int result =
        place.folder < 0 ? place.folder : attributes_of_differ(rules, &place, entry, &refused);
    if (result == 1)
        result = attributes_of_set(rules, &place, entry, &refused);
    if (result < 0)
        return tree_at_failed(stack->at, path, "given its attributes", -result, e);
    if (refused)
        atomic_fetch_add(&rules->not_attributed, 1);
    struct folder_level *level = &stack->level[stack->count++];
    *level = (struct folder_level){strlen(path), *entry, rules};
    level->entry.attributes = NULL;
    level->entry.attributes_length = 0;
    memcpy(stack->path, path, level->length + 1);
    return 0;
}

static int leave_one(struct folder_stack *stack, struct error *e)
{
    struct folder_level *level = &stack->level[--stack->count];
    struct metadata_place place = {.file = -1, .no_attributes = true};
    struct stat st;
    bool mount;

    stack->path[level->length] = '\0';
    place.folder = tree_at_parent(stack->at, stack->path, &place.name);
    int result =
        place.folder < 0 ? place.folder : tree_at_status(place.folder, place.name, &st, &mount);
    if (result == 0 && !S_ISDIR(st.st_mode))
        result = -ENOTDIR;
    if (result == 0)
        result = metadata_set(level->rules, &place, &st, &level->entry);
    return result == 0 ? 0 : tree_at_failed(stack->at, stack->path, "changed", -result, e);
}

int folder_stack_leave(struct folder_stack *stack, const char *path, struct error *e)
{
    while (stack->count > 0) {
        size_t length = stack->level[stack->count - 1].length;
        if (path != NULL &&
            (length == 0 || (strncmp(path, stack->path, length) == 0 && path[length] == '/')))
            return 0;
        if (leave_one(stack, e) != 0)
            return -1;
    }
    return 0;
}

void folder_stack_free(struct folder_stack *stack)
{
    free(stack->level);
    stack->level = NULL;
    stack->count = stack->room = 0;
}
