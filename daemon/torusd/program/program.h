/* One connection.
 *
 * Happy path: accepted -> OPEN -> group_open() -> opened() -> calls by the page -> LEAVE.
 *
 * Failure modes: a program that says nothing is closed after a while (tidying.h). If it dies, its group is
 * abandoned. If it breaks the rules, its group is abandoned too, and the program is told why. If its group
 * fails, the program is told that for every call. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Creates the connection, and takes the descriptor over. Returns NULL if there is no memory. */
struct program *program_new(struct programs *programs, int fd);
