/* Ids of exchanges. An id has the root's rank, the number of the root's start, and a counter. Messages, logs,
 * clients and the storage use its text, "0-0000004d-5". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/exchange/exchange_types.h"
#include "proto/error.h"

struct exchange_id {
    uint32_t root;
    uint32_t boot;    /* the number of the root's start: the lower half of router_boot() */
    uint32_t counter; /* from 1; 0: this is NO_ID */
    char text[EXCHANGE_ID_SIZE]; /* "": this is NO_ID */
};

#define NO_ID ((struct exchange_id){.counter = 0})

/* Makes an id; `boot` is the lower half of router_boot(). */
struct exchange_id exchange_id_make(uint32_t root, uint32_t boot, uint32_t counter);
/* Reads the text of an id, which must be exactly as this daemon writes it. Returns 0, or -1 with NO_ID in *id. */
int exchange_id_parse(struct exchange_id *id, const char *text);
/* Reads an id in a peer's message; its root must be one of `nodes` nodes. Returns 0, or -1 with *e: an
 * ERROR_PROTOCOL that names the message. */
int exchange_id_read(struct exchange_id *id, const char *text, uint32_t nodes, const char *message,
                     struct error *e);
/* Whether the id is NO_ID, and whether two ids are equal. */
bool exchange_id_is_none(const struct exchange_id *id);
bool exchange_id_equal(const struct exchange_id *id, const struct exchange_id *other);
/* Whether the first id is older than the second one, for ids of one root. False if they are from different
 * starts of the root, whose order is unknown. */
bool exchange_id_is_before(const struct exchange_id *id, const struct exchange_id *other);
/* Returns a hash that is the same at every node. */
uint64_t exchange_id_hash(const struct exchange_id *id);
