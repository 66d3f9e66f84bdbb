/* The cluster keys that a node has, and that its neighbours must have. */
#ifndef TORUSD_ROUTER_INTERFACE_SECRETS_H
#define TORUSD_ROUTER_INTERFACE_SECRETS_H

#include <stdbool.h>

#include "proto/key.h"

#define SECRETS_MOST 2u /* keys accepted at the same time, while they are being changed */

/* Without keys a node connects only to neighbours that have none either. */
struct secrets {
    struct key key[SECRETS_MOST]; /* the preferred one first */
    unsigned count;
    bool encrypt; /* needs a key */
};

#endif
