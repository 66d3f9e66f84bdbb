/* Lets packets from cable to cable pass the firewalls of Docker and firewalld, which drop what is forwarded. A chain of
 * our own could not do that: a packet that one chain accepts goes on to the chains of others. So a rule at the
 * beginning of theirs (Docker's DOCKER-USER is made for that) jumps to a chain of ours in their table, which accepts
 * packets that leave by a cable. Needs the program nft. */
#pragma once

#include <net/if.h>

#define FIREWALL_CHAIN "TORUS-ROUTED"

/* Adds the rules for these interfaces where one of the firewalls is, and rules are missing, in their chain or in ours. Does nothing without
 * nft. Logs a warning if nft refuses. */
void firewall_pass(char interface[][IFNAMSIZ], unsigned count);

/* Removes all rules and chains that firewall_pass() has added, in this process or a former one. */
void firewall_remove(void);
