/* How many connections and groups one process may have. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Checks that the program's process may open one more group. Returns 0, or -1 with *e. */
int programs_may_open(const struct program *p, struct error *e);
/* Checks that the program's process may have one more connection. Returns 0, or -1 with *e. */
int programs_may_connect(const struct program *p, struct error *e);
