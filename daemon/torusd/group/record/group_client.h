/* The client of a group: a program, and what it is told. */
#pragma once

#include <stdint.h>

#include "proto/error.h"
#include "proto/group_call.h"

struct group;

/* What a client that is no program waits for before it makes a call. */
enum group_client_wait {
    GROUP_CLIENT_READS,  /* reads what it will send */
    GROUP_CLIENT_WRITES, /* writes what it has received */
    GROUP_CLIENT_OTHERS, /* other members */
};

/* The functions are never called from inside a function of group.h. */
struct group_client {
    void *context;
    /* Called once, when all members have opened the group. */
    void (*opened)(void *context, struct group *group);
    /* Called once for each call, but not after ended(); e is NULL if the call has succeeded. The group does not
     * use the call's memory any more, except for references that frames on their way hold. */
    void (*called)(void *context, uint64_t call, const struct error *e);
    /* Called once, as the last function: the group has failed, or could not be opened. Calls under way have
     * failed with the same error. *group is no longer valid. */
    void (*ended)(void *context, const struct error *e);
    /* Called when a call waits for other members, which `text` names; copy it. NULL: the program is not told. */
    void (*late)(void *context, uint64_t call, const char *text);
    /* NULL, or tells why the client makes no call now, for traces. NULL: its calls are those of a program. */
    enum group_client_wait (*waits)(void *context);
};
