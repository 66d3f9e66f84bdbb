/* The memories that a program shares with the daemon, in the account of its user. */
#ifndef TORUSD_PROGRAM_SHARED_MEMORIES_H
#define TORUSD_PROGRAM_SHARED_MEMORIES_H

#include "daemon/program/record/program_record.h"

#define MEMORY_UNUSED_MS                                                                           \
    10000u /* that a program may take to allocate more of a memory that it has requested */

/* Counts a memory of so many bytes that it wants. Returns 0, or -1 with *e: its user has too many. */
int program_count_memory(struct program *p, uint64_t size, struct error *e);
/* Gives back a memory of so many bytes, in the account only. */
void program_uncount_memory(struct program *p, uint64_t size);
/* Closes the memory that it is allocating, and gives it back. */
void program_drop_memory(struct program *p);
/* Takes back memory that it has requested and does not allocate. Returns whether some is still awaited. */
bool program_tidy_memory(struct program *p, uint64_t now);

#endif
