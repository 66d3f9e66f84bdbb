/* One connection.
 *
 * Happy path: accepted -> OPEN -> group_open() -> opened() -> calls by the page -> LEAVE.
 *
 * Failure modes: it says nothing: closed after a while (tidying.h). It dies: its group is abandoned.
 * It breaks the rules: the same, and it is told so. Its group fails: it hears that of every call. */
#ifndef TORUSD_PROGRAM_PROGRAM_H
#define TORUSD_PROGRAM_PROGRAM_H

#include "daemon/program/record/program_record.h"

/* A connection, for which it takes the descriptor over. Returns it, or NULL if there is no memory. */
struct program *program_new(struct programs *all, int fd);

#endif
