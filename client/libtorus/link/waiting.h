/* What a program says on standard error while it waits for other nodes to open a group. */
#ifndef TORUSD_CLIENT_WAITING_H
#define TORUSD_CLIENT_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/program.h"

struct waiting {
    bool wanted; /* anything is to be said (proto/notices.h) */
    const char *group;
    int64_t began_ms, said_ms; /* on a monotonic clock; said_ms 0: nothing has been said */
    bool changed;              /* since then */
    uint32_t
        count; /* nodes that have not opened it, as far as is known; 0: others than known here */
    char list[PROGRAM_TEXT_SIZE];
};

/* From now on this group is waited for. The name is borrowed. */
void waiting_begin(struct waiting *w, const char *group);

/* The daemon has said who is missing: so many, "3, 7". */
void waiting_note(struct waiting *w, uint32_t count, const char *list);

/* Milliseconds until there may be something to say; -1: there never is. */
int waiting_pause(const struct waiting *w);

/* Says it, if it is time. */
void waiting_say(struct waiting *w);

#endif
