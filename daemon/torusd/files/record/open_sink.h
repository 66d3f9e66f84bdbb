/* The list of this node's outputs that have work left, one entry for each sink. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "daemon/torusd/files/target/target_record.h"

struct open_sink { /* the first member of a sink */
    struct open_sink *next;
    char id[sizeof((struct target *)0)->id]; /* id of the attempt that uses the sink */
    char next_id[sizeof((struct target *)0)
                     ->id]; /* id that the target has, or that a running job gives it */
};

/* Whether the list from `first` on has a sink of this exchange. */
static inline bool open_sinks_have(const struct open_sink *first, const char *id)
{
    while (first != NULL && strcmp(first->id, id) != 0 && strcmp(first->next_id, id) != 0)
        first = first->next;
    return first != NULL;
}
