/* The calls of a program. */
#ifndef TORUSD_PROGRAM_MESSAGES_CALLS_H
#define TORUSD_PROGRAM_MESSAGES_CALLS_H

#include "daemon/program/record/program_record.h"

/* The doorbell has rung: takes its calls. */
void program_look(struct program *p);

#endif
