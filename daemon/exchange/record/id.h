/* Ids of exchanges: which root has given them, in which of its starts, and how many it had given before. Their text,
 * "0-0000004d-5", is what messages, logs, clients and the storage have. */
#ifndef TORUSD_EXCHANGE_RECORD_ID_H
#define TORUSD_EXCHANGE_RECORD_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/exchange/interface/exchange_types.h"
#include "proto/error.h"

struct exchange_id {
    uint32_t root;
    uint32_t boot;               /* of the root: the lower half of router_boot() */
    uint32_t counter;            /* from 1; 0: this is no id */
    char text[EXCHANGE_ID_SIZE]; /* "": this is no id */
};

#define NO_ID ((struct exchange_id){.counter = 0})

struct exchange_id exchange_id_make(uint32_t root, uint32_t boot, uint32_t counter);
/* Reads the text of an id, exactly as it is made. Returns 0, or -1 with NO_ID in *id. */
int exchange_id_parse(struct exchange_id *id, const char *text);
/* The same of what a peer says in a message, about an exchange whose root is one of `nodes`. Returns 0, or -1 with
 * *e, an ERROR_PROTOCOL that names the message. */
int exchange_id_read(struct exchange_id *id, const char *text, uint32_t nodes, const char *message,
                     struct error *e);
bool exchange_id_is_none(const struct exchange_id *id);
bool exchange_id_equal(const struct exchange_id *id, const struct exchange_id *other);
/* Whether the first of two ids of one root is the older one; of two starts of a root nobody can tell. */
bool exchange_id_is_before(const struct exchange_id *id, const struct exchange_id *other);
/* The same at every node. */
uint64_t exchange_id_hash(const struct exchange_id *id);

#endif
