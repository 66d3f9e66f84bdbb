/* The cluster keys that a node has, and that its neighbours must have. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "proto/key.h"

#define SECRETS_MOST 2u /* keys accepted at the same time, while they are being changed */

/* Without keys a node connects only to neighbours that have none either. */
struct secrets {
    struct key key[SECRETS_MOST]; /* the preferred one first */
    unsigned count;
    bool encrypt; /* needs a key */
};

/* Adds a key, unless the list has it already, or is full. */
static inline void secrets_add(struct secrets *list, const struct key *key)
{
    for (unsigned i = 0; i < list->count; i++)
        if (memcmp(list->key[i].id, key->id, KEY_ID_SIZE) == 0)
            return;
    if (list->count < SECRETS_MOST)
        list->key[list->count++] = *key;
}
