/* The groups of torusd that a process which leads has open: lanes, each an order of calls on all nodes, and on each
 * part of the torus. There is one, and under MPI_THREAD_MULTIPLE more of them, if communicators need them at the
 * same time (sharing.h). In processes that do not lead there is none. */
#ifndef TORUSD_MPI_LANES_H
#define TORUSD_MPI_LANES_H

#include <torus/group.h>

#define LANES_MOST 2u

/* Opens lane 0, with its parts, in two steps: the second begins when the first has succeeded everywhere, and ends when
 * the second has begun everywhere. A part that links are missing from is refused to all, and does not count. Return
 * 0, or -1 with *error. */
int lanes_open(const char *name, uint32_t timeout_ms, struct torus_error *error);
int lanes_complete(struct torus_error *error);

/* Opens another one, while MPI goes on. It is there when it is kept; till then, and if not, it is to be dropped.
 * Returns 0, or -1 with *error. */
int lanes_open_another(struct torus_error *error);
/* Locked, as all below. */
void lanes_keep_another(void);
void lanes_drop_another(void);

/* How many there are. */
unsigned lanes_count(void);

/* The group of a lane for a part of the torus, or for all of it; NULL: there is none. */
struct torus_group *lanes_part(unsigned lane, uint32_t dimensions);

void lanes_close(void);

/* Before and after an operation of MPI that the torus carries out. Not locked. Once the job has failed, the lanes are
 * closed when the last operation under way has been left. */
void lanes_enter(void);
void lanes_leave(void);

#endif
