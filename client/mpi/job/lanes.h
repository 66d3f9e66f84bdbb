/* Lanes: the groups of torusd that a leader has open, each with its parts. The whole torus and each part have an
 * order of calls in a lane. There is one lane; under MPI_THREAD_MULTIPLE there is another one if communicators use
 * the torus at the same time (sharing.h). Processes that are not leaders have no lanes. */
#pragma once

#include <torus/group.h>

#define LANES_MOST 2u

/* Open lane 0, and then its parts. lanes_complete() may be called when lanes_open() has succeeded, which means on all
 * nodes. It returns when all leaders have called it. A part whose links are down is not opened on any node, which is
 * not an error. Return 0, or -1 with *error. */
int lanes_open(const char *name, uint32_t timeout_ms, struct torus_error *error);
int lanes_complete(struct torus_error *error);

/* Opens another lane while MPI makes progress. Returns 0, or -1 with *error. Afterwards lanes_keep_another() makes the
 * lane usable, or lanes_close_another() closes it; also after -1. */
int lanes_open_another(struct torus_error *error);

/* For these two functions and the next two the job must be locked. */
void lanes_keep_another(void);
void lanes_close_another(void);

/* Returns the number of open lanes. */
unsigned lanes_count(void);

/* Returns the group of a lane for a part of the torus or the whole torus, or NULL if there is none. */
struct torus_group *lanes_part(unsigned lane, uint32_t dimensions);

/* Closes all lanes and the scratch memory. */
void lanes_close(void);

/* Call these before and after an operation of MPI that the torus carries out; the job must not be locked. If the job
 * has failed, the last lanes_leave() closes the lanes. */
void lanes_enter(void);
void lanes_leave(void);
