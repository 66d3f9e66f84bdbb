/* How a part begins, what is left of it while its group is restarted, and how it ends. */
#ifndef TORUSD_GROUP_RESTART_PART_LIFETIME_H
#define TORUSD_GROUP_RESTART_PART_LIFETIME_H

#include "daemon/group/record/part.h"

/* The whole of a session (mask 0), or a part of it. NULL with *e: no memory. */
struct part *part_new(struct session *s, uint32_t mask, struct error *e);
void part_free(struct part *p);
/* What depends on the links that are out of order is given up, with all engines; and found again. The
 * calls stay. part_renew() returns 0, or -1 with *e. */
void part_suspend(struct part *p);
int part_renew(struct part *p, struct error *e);

#endif
