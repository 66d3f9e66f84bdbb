/* The socket of programs: each connection is a program that has a group open (proto/program.h). */
#ifndef TORUSD_PROGRAM_SERVER_H
#define TORUSD_PROGRAM_SERVER_H

#include "daemon/program/record/programs_setup.h"

struct programs;

/* Binds and listens. Returns NULL with *e: another daemon serves this socket, no permission, path too
 * long. A socket file that nobody serves is replaced. */
struct programs *programs_open(const struct programs_setup *setup, struct error *e);

/* Leaves all groups, closes; freed when the loop has closed the handles. Memory of programs may be
 * in use for longer. */
void programs_close(struct programs *programs);

#endif
