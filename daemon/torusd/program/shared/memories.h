/* The memories that a program shares with the daemon, counted for its user. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

#define MEMORY_UNUSED_MS 10000u /* how long a program may make no progress in allocating memory */

/* Counts a memory of `size` bytes. Returns 0, or -1 with *e if its user has too much. */
int program_count_memory(struct program *p, uint64_t size, struct error *e);
/* Uncounts a memory of `size` bytes; does not free it. */
void program_uncount_memory(struct program *p, uint64_t size);
/* Closes and uncounts the memory that the program is allocating. */
void program_drop_memory(struct program *p);
/* Releases memory that was requested and is not allocated in time. `now`: milliseconds of the loop. Returns
 * whether the daemon still waits for an allocation. */
bool program_tidy_memory(struct program *p, uint64_t now);
