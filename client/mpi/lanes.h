/* The groups of torusd that a process which leads has open: lanes, each an order of calls on all nodes, and on each
 * part of the torus. In processes that do not lead there is none. */
#ifndef TORUSD_MPI_LANES_H
#define TORUSD_MPI_LANES_H

#include <torus/group.h>

/* Opens lane 0, with its parts, in two steps: the second begins when the first has succeeded everywhere, and ends when
 * the second has begun everywhere. A part that links are missing from is refused to all, and does not count. Return
 * 0, or -1 with *error. */
int lanes_open(const char *name, uint32_t timeout_ms, struct torus_error *error);
int lanes_complete(struct torus_error *error);

/* The group of a lane for a part of the torus, or for all of it; NULL: there is none. */
struct torus_group *lanes_part(unsigned lane, uint32_t dimensions);

/* That of memory which calls on lane 0 do not copy; NULL: none. */
struct torus_group *lanes_of_memory(void);

void lanes_close(void);

#endif
