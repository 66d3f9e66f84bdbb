/* Time limits of programs: for opening a group, and for allocating the memory that they have requested. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Starts to check the time limits every second. */
void programs_watch(struct programs *programs);
