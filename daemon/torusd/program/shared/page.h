/* Memory and descriptors that a program shares with the daemon: the page with calls and their outcomes, the
 * doorbell and the notices. */
#pragma once

#include "daemon/torusd/program/record/program_record.h"

/* Makes the page, the doorbell and the notices. Returns 0, or -1 with *e. */
int program_share(struct program *p, struct error *e);
/* Closes and unmaps the page, the doorbell, the notices, and the program's memories. */
void program_unshare(struct program *p);
/* Tells a program that a call has ended; e is NULL if it has succeeded. */
void program_call_ended(struct program *p, uint32_t number, const struct error *e);
/* Tells a program which members a call waits for, as text. */
void program_call_late(struct program *p, uint32_t number, const char *whom);
/* Fails all calls under way, because the group has failed. */
void program_fail(struct program *p, const struct error *e);
/* Makes the descriptor that the program polls readable. */
void program_notify(struct program *p);
