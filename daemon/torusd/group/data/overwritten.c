#include "daemon/torusd/group/data/overwritten.h"

#include <stdlib.h>
#include <string.h>

struct overwritten {
    struct overwritten *next;
    uint8_t *to;
    uint64_t offset, length; /* in bytes, in its owner's block */
    uint64_t first;          /* only in the first of the list: the least offset */
    uint8_t bytes[];
};

int overwritten_save(struct overwritten **list, uint8_t *to, uint64_t offset, uint64_t length,
                     struct error *e)
{
    struct overwritten *o = malloc(sizeof *o + length);

    if (o == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    *o = (struct overwritten){.next = *list, .to = to, .offset = offset, .length = length};
    o->first = *list != NULL && (*list)->first < offset ? (*list)->first : offset;
    memcpy(o->bytes, to, length);
    *list = o;
    return 0;
}

void overwritten_forget(struct overwritten **list, uint64_t bytes)
{
    struct overwritten **at = list;
    uint64_t first = UINT64_MAX;

    if (*list == NULL || (*list)->first >= bytes)
        return;
    while (*at != NULL) {
        struct overwritten *o = *at;
        if (o->offset >= bytes) {
            first = o->offset < first ? o->offset : first;
            at = &o->next;
            continue;
        }
        *at = o->next;
        free(o);
    }
    if (*list != NULL)
        (*list)->first = first;
}

void overwritten_restore(struct overwritten **list)
{
    for (const struct overwritten *o = *list; o != NULL; o = o->next)
        memcpy(o->to, o->bytes, o->length);
    overwritten_forget(list, UINT64_MAX);
}
