/* Lines that a program prints on standard error while it waits for other nodes to open a group. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/program.h"

struct waiting {
    bool wanted; /* lines are printed at all (proto/notices.h) */
    const char *group;
    int64_t began_ms, printed_ms; /* on clock_ms(); printed_ms 0: no line has been printed */
    bool changed;                 /* the list has changed since the last line */
    uint32_t count; /* known nodes that have not opened the group; 0: only unknown nodes */
    char list[PROGRAM_TEXT_SIZE];
};

/* Starts the wait for this group. The name must stay valid as long as *w is used. */
void waiting_begin(struct waiting *w, const char *group);

/* Stores the daemon's report of missing nodes: their number, and a list "3, 7". */
void waiting_update(struct waiting *w, uint32_t count, const char *list);

/* Returns milliseconds until the next line may be due; -1: never. */
int waiting_pause(const struct waiting *w);

/* Prints a line if one is due. */
void waiting_print(struct waiting *w);
