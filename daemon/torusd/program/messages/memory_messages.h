/* Messages about memory that a program shares with the daemon. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Handle one message each. They return 0, or -1: the program is gone. */
int program_take_memory(struct program *p, const struct program_message *m);
int program_take_ready(struct program *p, const struct program_message *m);
/* Frees a memory, or a request whose memory the program could not allocate. */
int program_take_free(struct program *p, const struct program_message *m);
