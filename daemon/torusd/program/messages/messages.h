/* Messages of programs: checks each, and handles or refuses it. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Takes some messages, so that other work is not delayed. Returns false when there are no more. */
bool program_receive(struct program *p);
