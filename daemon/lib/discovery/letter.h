/* Letters: signed messages from one host to another, which the hosts between them pass on. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* Fills a letter about a setup for another host; it borrows the arguments. */
void letter_begin(const struct discovery *d, Discovery__Letter *letter, const struct host_id *to,
                  const uint8_t setup[SETUP_ID_SIZE]);

/* Signs a letter, and sends it on its way. It is lost if its receiver is not reachable. */
void letter_send(struct discovery *d, const Discovery__Letter *letter);

/* Passes a letter on to the neighbour on the way to its receiver. */
void letter_pass_on(struct discovery *d, Discovery__Relay *relay);

/* Send parts of a transfer: those that are missing, and the first ones. */
void letter_send_chunks(struct discovery *d, const struct host_id *to,
                        const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size,
                        const Discovery__Missing *missing);
void letter_send_first(struct discovery *d, const struct host_id *to,
                       const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size);

struct blob;
/* Asks for the chunks of *b that are missing. */
void letter_send_missing(struct discovery *d, const struct host_id *to,
                         const uint8_t setup[SETUP_ID_SIZE], struct blob *b);

/* Adds a chunk to *b, and asks for more if none is on its way. Returns whether the blob is whole. */
bool letter_take_chunk(struct discovery *d, const struct host_id *from,
                       const uint8_t setup[SETUP_ID_SIZE], struct blob *b, size_t most,
                       const Discovery__Chunk *chunk);
