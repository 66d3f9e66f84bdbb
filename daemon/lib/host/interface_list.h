/* The interfaces that the kernel lists. */
#pragma once

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>

struct interface {
    const char *name; /* without blanks and slashes */
    int index;
    bool is_up, physical;
    const uint32_t *mtu, *carrier_changes; /* NULL: not told; the same for the next two */
    const uint8_t *carrier;
    const uint8_t *address; /* 6 bytes */
    bool has_stats;
    struct rtnl_link_stats64 stats; /* up to tx_compressed */
};

/* Calls each() for the interfaces; all is valid during the call. Returns 0, or -1 if the kernel does not tell all of
 * them. */
int interfaces_list(void (*each)(const struct interface *interface, void *context), void *context);
