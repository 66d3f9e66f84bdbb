/* How many connections and groups one process may have. */
#ifndef TORUSD_PROGRAM_RECORD_PROCESS_LIMIT_H
#define TORUSD_PROGRAM_RECORD_PROCESS_LIMIT_H

#include "daemon/program/record/program_record.h"

/* Check that the program's process may open one more group, or have one more connection. Return 0, or -1 with
 * *e. */
int programs_may_open(const struct program *p, struct error *e);
int programs_may_connect(const struct program *p, struct error *e);

#endif
