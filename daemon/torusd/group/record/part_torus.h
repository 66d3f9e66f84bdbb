/* Which nodes and links of the whole torus a part has. */
#pragma once

#include "daemon/torusd/group/record/part.h"

/* Sets p->torus, p->rank and p->port, in p->place, of a part whose mask is not 0. */
void part_cut_out(struct part *p, const struct torus *whole, uint32_t node);
/* Sets p->damage if the part is damaged. Returns 0, or -1 with *e (ERROR_MEMORY). */
int part_take_damage(struct part *p, struct error *e);
/* Checks that such parts can be opened: the members of each part of these dimensions reach each other over
 * links of their part. All nodes get the same result. Returns 0, or -1 with *e. */
int part_check_opening(const struct session *s, uint32_t mask, struct error *e);
