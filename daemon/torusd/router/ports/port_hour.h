/* What the links of a port have counted in the last hour. */
#pragma once

struct port_info;
struct router;

/* Remembers what the port has counted, if the time for that has come. To be called often while its link is up. */
void port_hour_note(struct router *r, unsigned port);
/* Fills hour_ns and what follows it. */
void port_hour_fill(struct router *r, unsigned port, struct port_info *info);
