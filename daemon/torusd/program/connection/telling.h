/* Tells programs whose groups are being opened, if they have asked for it, which nodes have not opened them, as
 * far as this node knows. A program is told only when the answer has changed, so that the socket of a program
 * that does not read does not fill up. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Starts telling programs, because one has asked which nodes it waits for. */
void programs_tell(struct programs *programs);
