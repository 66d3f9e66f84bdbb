#include "daemon/torusd/program/record/process_limit.h"

#define PROCESS_MOST 32u /* groups that one process may have open */
/* Further connections that are about to open a group, or have just left one. */
#define PROCESS_SPARE 8u

static int too_many(struct error *e)
{
    return error_set(e, ERROR_BUSY, "a process can have at most %u groups open: close some",
                     PROCESS_MOST);
}

int programs_may_open(const struct program *p, struct error *e)
{
    return programs_of_process(p->programs, p->process, PROGRAM_OPENING) < PROCESS_MOST
               ? 0
               : too_many(e);
}

int programs_may_connect(const struct program *p, struct error *e)
{
    return programs_of_process(p->programs, p->process, PROGRAM_STRANGER) <=
                   PROCESS_MOST + PROCESS_SPARE
               ? 0
               : too_many(e);
}
