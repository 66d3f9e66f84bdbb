/* The speed that the card of an interface has negotiated with the other end of its cable. */
#pragma once

#include <stdint.h>

#define LINK_SPEED_FOLDER "/sys/class/net"

/* Returns the speed in Mbit/s; 0: it is not known, or the interface is virtual, whose speed means nothing. `folder`:
 * LINK_SPEED_FOLDER, except in tests. The driver is asked, which may take milliseconds. */
uint32_t link_speed_mbit(const char *folder, const char *interface);
