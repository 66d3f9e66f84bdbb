/* Messages to a program. */
#ifndef TORUSD_PROGRAM_CONNECTION_SEND_H
#define TORUSD_PROGRAM_CONNECTION_SEND_H

#include "daemon/program/record/program_record.h"

/* A message without anything but its kind and number. */
struct program_message program_message_of(enum program_kind kind, uint32_t number);
/* With a descriptor each, if there are any. Returns 0, or -1 if the program does not read. To one that
 * is gone nothing is sent: that it has died, or left, is what is received next. */
int program_send(struct program *p, const struct program_message *message, const int *fds,
                 unsigned count);

#endif
