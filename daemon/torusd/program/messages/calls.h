/* Takes the calls of a program. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Takes the calls that a program has made, because its doorbell has rung. */
void program_take_calls(struct program *p);
