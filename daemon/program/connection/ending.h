/* How a connection ends: the program leaves, dies, or breaks the rules. */
#ifndef TORUSD_PROGRAM_CONNECTION_ENDING_H
#define TORUSD_PROGRAM_CONNECTION_ENDING_H

#include "daemon/program/record/program_record.h"

void program_close(struct program *p);
/* It has ended without leaving. */
void program_die(struct program *p);
/* It breaks the rules, or is turned away: is told why, and closed. */
void program_refuse(struct program *p, const struct error *why);
/* The program "of node 3" and what it has done. Refuses it and returns -1. */
int program_break_rules(struct program *p, const char *what);
/* program_send(); a program that does not read is refused. Returns 0, or -1: it is gone. */
int program_answer(struct program *p, const struct program_message *message, const int *fds,
                   unsigned count);

#endif
