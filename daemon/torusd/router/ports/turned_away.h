/* Logs refused connections, but only a few of a flood. */
#pragma once

#include <stdint.h>

struct port;
struct router;

/* A connection from `address`, which this node has not dialled, was refused at this port. */
void turned_away_note(struct router *r, unsigned port, const char *address, const char *reason);

/* Logs how many connections were refused without a line of their own, when that is due. */
void turned_away_tell(struct router *r, unsigned port, uint64_t now);

/* When turned_away_tell() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t turned_away_deadline(const struct port *port);
