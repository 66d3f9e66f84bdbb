/* Lines that a program prints on standard error while it waits for other nodes to open a group. */
#ifndef TORUSD_CLIENT_WAITING_H
#define TORUSD_CLIENT_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/program.h"

struct waiting {
    bool wanted; /* whether lines are to be printed (proto/notices.h) */
    const char *group;
    int64_t began_ms, said_ms; /* on a monotonic clock; said_ms 0: nothing has been printed */
    bool changed;              /* whether the list has changed since then */
    uint32_t
        count; /* nodes that have not opened it, as far as is known; 0: others than known here */
    char list[PROGRAM_TEXT_SIZE];
};

/* Starts the wait for this group. The name is borrowed. */
void waiting_begin(struct waiting *w, const char *group);

/* The daemon has said which nodes are missing: their number, and a list "3, 7". */
void waiting_note(struct waiting *w, uint32_t count, const char *list);

/* Milliseconds until a line may be due; -1: never. */
int waiting_pause(const struct waiting *w);

/* Prints a line, if one is due. */
void waiting_say(struct waiting *w);

#endif
