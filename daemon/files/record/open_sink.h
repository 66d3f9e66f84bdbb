/* What others know of a sink: the outputs of this node that are not finished with, one after the other. */
#ifndef TORUSD_FILES_RECORD_OPEN_SINK_H
#define TORUSD_FILES_RECORD_OPEN_SINK_H

#include <stdbool.h>
#include <string.h>

#include "daemon/files/target/target_record.h"

struct open_sink { /* the first member of a sink */
    struct open_sink *next;
    char id[sizeof((struct target *)0)->id];      /* of the exchange, */
    char next_id[sizeof((struct target *)0)->id]; /* which the target is to have */
};

/* Whether there is a sink of this exchange among `first` and those behind it. */
static inline bool open_sinks_have(const struct open_sink *first, const char *id)
{
    while (first != NULL && strcmp(first->id, id) != 0 && strcmp(first->next_id, id) != 0)
        first = first->next;
    return first != NULL;
}

#endif
