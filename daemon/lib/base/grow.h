/* Lists that grow: a pointer to the elements, their number, and the number that there is room for. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As GROW(); `list` is the address of the pointer. */
static inline int grow(void *list, size_t count, size_t *room, size_t size)
{
    void *elements, *more;

    if (count < *room)
        return 0;
    memcpy(&elements, list, sizeof elements);
    more = reallocarray(elements, 2 * *room + 16, size);
    if (more == NULL)
        return -1;
    memcpy(list, &more, sizeof more);
    *room = 2 * *room + 16;
    return 0;
}

/* Makes room for one more element of a list with `count` of them; `room` is a size_t. Returns 0, or -1: no memory. */
#define GROW(list, count, room) grow(&(list), (count), &(room), sizeof *(list))
