/* What programs are given time for: to open a group, and to allocate the memory that they have requested. */
#ifndef TORUSD_PROGRAM_CONNECTION_TIDYING_H
#define TORUSD_PROGRAM_CONNECTION_TIDYING_H

#include "daemon/program/record/program_record.h"

/* Looks every second from now on whether there is something to be taken back. */
void programs_watch(struct programs *all);

#endif
