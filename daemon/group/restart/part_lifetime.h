/* How a part is made, what is kept of it while its group is restarted, and how it ends. */
#ifndef TORUSD_GROUP_RESTART_PART_LIFETIME_H
#define TORUSD_GROUP_RESTART_PART_LIFETIME_H

#include "daemon/group/record/part.h"

/* Makes the whole of a session (mask 0) or a part of it; part_free() frees it. Returns NULL with *e
 * (ERROR_MEMORY). */
struct part *part_new(struct session *s, uint32_t mask, struct error *e);
void part_free(struct part *p);
/* part_suspend() frees all engines and everything that depends on the links that are down; calls stay.
 * part_renew() finds that again; it returns 0, or -1 with *e. */
void part_suspend(struct part *p);
int part_renew(struct part *p, struct error *e);

#endif
