/* What a program and the daemon share: the page with its calls and their outcomes, and what either rings. */
#ifndef TORUSD_PROGRAM_SHARED_PAGE_H
#define TORUSD_PROGRAM_SHARED_PAGE_H

#include "daemon/program/record/program_record.h"

/* Makes the page, the doorbell and the notices. Returns 0, or -1 with *e. */
int program_share(struct program *p, struct error *e);
/* Closes and unmaps all that, and its memories. */
void program_unshare(struct program *p);
/* The outcome of a call: e is NULL if it has succeeded. */
void program_call_ended(struct program *p, uint32_t number, const struct error *e);
/* A call waits for others: whom, in words. */
void program_call_late(struct program *p, uint32_t number, const char *whom);
/* The group has failed: so have all calls under way. */
void program_fail(struct program *p, const struct error *e);
/* Makes what the program polls readable. */
void program_notify(struct program *p);

#endif
