/* Messages with which a program opens and leaves its group, and those that tell it of the group. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Handle one message each. They return 0, or -1: the program is gone. */
int program_take_open(struct program *p, const struct program_message *m);
int program_take_leave(struct program *p, const struct program_message *m);
