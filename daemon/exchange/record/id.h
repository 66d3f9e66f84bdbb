/* Ids of exchanges: root-boot-counter. */
#ifndef TORUSD_EXCHANGE_RECORD_ID_H
#define TORUSD_EXCHANGE_RECORD_ID_H

#include <stdbool.h>
#include <stdint.h>

/* The node that has given this id. */
uint32_t exchange_root_of(const char *id);
uint64_t exchange_hash(const char *id);
/* Whether it is a well-formed id that this node can have given. */
bool exchange_is_id_of(const char *id, uint32_t root);
/* Whether the first of two ids of one root is the older one; of two starts of a root nobody can tell. */
bool exchange_is_before(const char *id, const char *other);

#endif
