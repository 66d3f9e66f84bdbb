/* Messages to a program. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Returns a message that has only a kind and a number. */
struct program_message program_message_of(enum program_kind kind, uint32_t number);
/* Sends a message with these descriptors, if there are any. Returns 0, or -1 if the program does not read.
 * Sends nothing to a program that is gone: the next message received from it says that it died or left. */
int program_send(struct program *p, const struct program_message *message, const int *fds,
                 unsigned count);
