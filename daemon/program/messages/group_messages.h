/* A program opens its group, and leaves it; and what it is told of the group. */
#ifndef TORUSD_PROGRAM_MESSAGES_GROUP_MESSAGES_H
#define TORUSD_PROGRAM_MESSAGES_GROUP_MESSAGES_H

#include "daemon/program/record/program_record.h"

/* Each takes one message. They return 0, or -1: the program is gone. */
int program_take_open(struct program *p, const struct program_message *m);
int program_take_leave(struct program *p, const struct program_message *m);

#endif
