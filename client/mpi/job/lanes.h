/* Lanes: the groups of torusd that a leading process has open. A lane is one order of calls on
 * all nodes, and one on each part of the torus. There is one lane, and under MPI_THREAD_MULTIPLE
 * more if communicators need them at the same time (sharing.h). Processes that do not lead have
 * none. */
#ifndef TORUSD_MPI_LANES_H
#define TORUSD_MPI_LANES_H

#include <torus/group.h>

#define LANES_MOST 2u

/* Open lane 0 and its parts in two steps: the second step begins when the first has succeeded
 * everywhere, and ends when the second has begun everywhere. If the torus lacks the
 * links of a part, no process gets that part; this is no error. Return 0, or -1 with *error. */
int lanes_open(const char *name, uint32_t timeout_ms, struct torus_error *error);
int lanes_complete(struct torus_error *error);

/* Opens another lane while MPI makes progress. The lane can be used once it is kept; before
 * that, it may only be dropped. Returns 0, or -1 with *error. */
int lanes_open_another(struct torus_error *error);
/* The job must be locked, as for all functions below. */
void lanes_keep_another(void);
void lanes_drop_another(void);

/* How many lanes there are. */
unsigned lanes_count(void);

/* The group of a lane for a part of the torus, or for the whole torus; NULL: there is none. */
struct torus_group *lanes_part(unsigned lane, uint32_t dimensions);

void lanes_close(void);

/* To be called before and after an operation of MPI that the torus carries out; the job must not
 * be locked. Once the job has failed, the lanes are closed when the last operation under way has
 * been left. */
void lanes_enter(void);
void lanes_leave(void);

#endif
