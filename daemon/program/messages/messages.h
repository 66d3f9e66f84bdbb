/* Messages of programs: checks each, and handles or refuses it. */
#ifndef TORUSD_PROGRAM_MESSAGES_MESSAGES_H
#define TORUSD_PROGRAM_MESSAGES_MESSAGES_H

#include "daemon/program/record/program_record.h"

/* Takes some messages, so that other work is not delayed. Returns false when there are no more. */
bool program_receive(struct program *p);

#endif
