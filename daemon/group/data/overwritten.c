#include "daemon/group/data/overwritten.h"

#include <stdlib.h>
#include <string.h>

struct overwritten {
    struct overwritten *next;
    uint8_t *to;
    uint64_t offset, length; /* in bytes, in its owner's block */
    uint8_t bytes[];
};

int overwritten_save(struct overwritten **list, uint8_t *to, uint64_t offset, uint64_t length,
                     struct error *e)
{
    struct overwritten *o = malloc(sizeof *o + length);

    if (o == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    *o = (struct overwritten){.next = *list, .to = to, .offset = offset, .length = length};
    memcpy(o->bytes, to, length);
    *list = o;
    return 0;
}

void overwritten_forget(struct overwritten **list, uint64_t bytes)
{
    struct overwritten **at = list;

    while (*at != NULL) {
        struct overwritten *o = *at;
        if (o->offset >= bytes) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        free(o);
    }
}

void overwritten_restore(struct overwritten **list)
{
    for (const struct overwritten *o = *list; o != NULL; o = o->next)
        memcpy(o->to, o->bytes, o->length);
    overwritten_forget(list, UINT64_MAX);
}
