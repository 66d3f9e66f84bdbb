/* Connections that were refused: of a flood of them, only so many are logged. */
#ifndef TORUSD_ROUTER_PORTS_TURNED_AWAY_H
#define TORUSD_ROUTER_PORTS_TURNED_AWAY_H

#include <stdint.h>

struct port;
struct router;

/* A connection from `address` that somebody else has made was refused at this port. */
void turned_away_note(struct router *r, unsigned port, const char *address, const char *reason);

/* Says how many were refused without being logged, when it is time to. */
void turned_away_tell(struct router *r, unsigned port, uint64_t now);

/* When turned_away_tell() must be called next, or ROUTER_NEVER. */
uint64_t turned_away_deadline(const struct port *port);

#endif
