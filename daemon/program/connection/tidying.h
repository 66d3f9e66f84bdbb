/* Time limits of programs: for opening a group, and for allocating the memory that they have requested. */
#ifndef TORUSD_PROGRAM_CONNECTION_TIDYING_H
#define TORUSD_PROGRAM_CONNECTION_TIDYING_H

#include "daemon/program/record/program_record.h"

/* Starts to check the time limits every second. */
void programs_watch(struct programs *programs);

#endif
