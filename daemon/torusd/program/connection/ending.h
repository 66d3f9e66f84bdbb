/* How a connection ends: the program leaves, dies, or breaks the rules. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Closes a connection. If the program still has a group, it leaves it. */
void program_close(struct program *p);
/* Ends the connection of a program that died without leaving. */
void program_die(struct program *p);
/* Tells a program why it is refused, and closes its connection. */
void program_refuse(struct program *p, const struct error *why);
/* Refuses a program that has broken the rules; `what` follows "the program of node 3". Returns -1. */
int program_break_rules(struct program *p, const char *what);
/* Sends like program_send(), and refuses a program that does not read. Returns 0, or -1: the program is gone. */
int program_answer(struct program *p, const struct program_message *message, const int *fds,
                   unsigned count);
