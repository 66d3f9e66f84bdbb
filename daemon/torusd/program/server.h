/* The socket of programs: each connection is a program that has a group open (proto/program.h). */
#pragma once

#include "daemon/torusd/program/record/programs_setup.h"

struct programs;

/* Binds and listens. Replaces a socket file that no daemon serves. Returns NULL with *e if another daemon
 * serves this socket, there is no permission, or the path is too long. */
struct programs *programs_open(const struct programs_setup *setup, struct error *e);

/* The access rules have changed: programs that connect from now on are checked by the new ones. */
void programs_rules_changed(const struct programs *programs);

/* Leaves all groups and closes all connections. The memory is freed when the loop has closed the handles;
 * memory of programs may be in use longer. */
void programs_close(struct programs *programs);
