/* Messages of programs: each is checked, and handled or refused. */
#ifndef TORUSD_PROGRAM_MESSAGES_MESSAGES_H
#define TORUSD_PROGRAM_MESSAGES_MESSAGES_H

#include "daemon/program/record/program_record.h"

/* Takes messages, but not all in one turn. Returns false when there are no more. */
bool program_receive(struct program *p);

#endif
