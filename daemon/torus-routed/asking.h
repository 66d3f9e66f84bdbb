/* Asks the kernel which routes it takes: others may come before those that the installer has put there. */
#pragma once

#include "daemon/lib/host/kernel_route.h"
#include "daemon/torus-routed/installer.h"

struct asking {
    const struct installer *installer;
    struct kernel_routes kernel;
    bool works;
    char network[FAMILIES][INET6_ADDRSTRLEN + 4]; /* of all hosts */
    unsigned diverted;          /* hosts to which the kernel takes another route */
    struct kernel_answer first; /* the route to the first of them */
};

/* Prepares to ask. The caller calls asking_end(). */
void asking_begin(struct asking *a, const struct installer *installer);
void asking_end(struct asking *a);

/* Returns whether the kernel takes another route to a host than the one that was set, and which. A route that drops
 * packets is not asked for: the answer would be an error, whoever drops them. */
bool asking_diverted(struct asking *a, uint32_t to, struct kernel_answer *answer);
