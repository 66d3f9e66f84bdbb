/* How a part is made, what is kept of it while its group is restarted, and how it ends. */
#pragma once

#include "daemon/torusd/group/record/part.h"

/* Makes the whole of a session (mask 0) or a part of it; part_free() frees it. Returns NULL with *e
 * (ERROR_MEMORY). */
struct part *part_new(struct session *s, uint32_t mask, struct error *e);
/* Frees a part with its calls; does not take it out of the session's list. */
void part_free(struct part *p);
/* Frees all engines, and everything that depends on which links are down; the calls stay. */
void part_suspend(struct part *p);
/* Finds what part_suspend() has freed, for the links that are down now. Returns 0, or -1 with *e. */
int part_renew(struct part *p, struct error *e);
