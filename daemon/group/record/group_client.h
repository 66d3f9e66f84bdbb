/* Who a program is to its group: what it is told. */
#ifndef TORUSD_GROUP_RECORD_GROUP_CLIENT_H
#define TORUSD_GROUP_RECORD_GROUP_CLIENT_H

#include <stdint.h>

#include "proto/error.h"
#include "proto/group_call.h"

struct group;

/* The program. Its functions are never called from inside a function of group.h. */
struct group_client {
    void *context;
    /* Once: all members have opened it. */
    void (*opened)(void *context, struct group *group);
    /* Each call once: e is NULL if it has succeeded. What it lent is not used any more by then, but
     * for references that frames on their way hold. Not after ended(). */
    void (*called)(void *context, uint64_t call, const struct error *e);
    /* Once, the last of all: it has failed, or could not be opened. The calls under way have failed
     * with the same error. The group is no longer good. */
    void (*ended)(void *context, const struct error *e);
    /* A call waits for other members: which, in a text to be copied. NULL: the program is not told. */
    void (*late)(void *context, uint64_t call, const char *text);
};

#endif
