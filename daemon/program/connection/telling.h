/* What programs hear while their groups are being opened, if they have asked for that: which nodes have not
 * opened them, as far as this node knows, whenever that has changed. A program that does not read therefore
 * does not fill its socket. */
#ifndef TORUSD_PROGRAM_CONNECTION_TELLING_H
#define TORUSD_PROGRAM_CONNECTION_TELLING_H

#include "daemon/program/record/program_record.h"

/* A program wants to be told whom it waits for. */
void programs_tell(struct programs *all);

#endif
