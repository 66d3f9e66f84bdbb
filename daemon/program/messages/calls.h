/* Takes the calls of a program. */
#ifndef TORUSD_PROGRAM_MESSAGES_CALLS_H
#define TORUSD_PROGRAM_MESSAGES_CALLS_H

#include "daemon/program/record/program_record.h"

/* Takes the calls that a program has made, because its doorbell has rung. */
void program_take_calls(struct program *p);

#endif
