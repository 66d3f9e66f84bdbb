/* The encryption of a link: records of a libsodium secretstream (XChaCha20-Poly1305), one stream in each
 * direction.
 *
 *     header of the stream | record | record ...        record: u16 length | ciphertext
 *
 * Lengths are big-endian; a record holds at most CIPHER_RECORD bytes. A record that is damaged, repeated,
 * out of order, or from another stream cannot be opened. Knows nothing of sockets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/torusd/router/handshake.h"

#define CIPHER_RECORD (16u * 1024u)

struct cipher;

/* Copies the keys. Returns NULL if there is no memory. */
struct cipher *cipher_new(const struct link_keys *keys);
void cipher_free(struct cipher *c); /* NULL does nothing */

/* --- out --- */

/* Encrypts bytes to be sent, which are copied. Returns 0, or -1 if there is no memory: the stream is
 * broken. */
int cipher_seal(struct cipher *c, const void *bytes, size_t length);
/* Ends the record that is being filled, so that the peer can open it as soon as it has arrived. Returns 0,
 * or -1 if there is no memory. */
int cipher_end_record(struct cipher *c);
/* Returns all bytes to be written, including those taken since cipher_written(), with their number in
 * *length; borrowed until cipher_written(). NULL if there is no memory. */
uint8_t *cipher_sealed(struct cipher *c, size_t *length);
/* To be called when all bytes of cipher_sealed() have been written. */
void cipher_written(struct cipher *c);

/* --- in --- */

/* Returns where to put the next bytes of the connection, and in *size how many fit. */
uint8_t *cipher_room(struct cipher *c, size_t *size);
/* To be called when `length` bytes have been put into cipher_room(). */
void cipher_received(struct cipher *c, size_t length);
/* Decrypts the next record into `to`, which has room for CIPHER_RECORD bytes. Returns 1 with *length, 0 if
 * the record has not arrived completely, or -1 if it is not a record that the peer has encrypted. */
int cipher_open(struct cipher *c, uint8_t *to, size_t *length);
