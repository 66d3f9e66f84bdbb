/* What crosses an encrypted link: records of a libsodium secretstream (XChaCha20-Poly1305), one stream
 * in each direction.
 *
 *     header of the stream | record | record ...        record: u16 length | ciphertext
 *
 * big-endian; a record holds at most CIPHER_RECORD bytes. What is damaged, left out, repeated or from
 * another stream does not open. Knows nothing of sockets. */
#ifndef TORUSD_NET_TCP_CIPHER_H
#define TORUSD_NET_TCP_CIPHER_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/router/links/handshake.h"

#define CIPHER_RECORD (16u * 1024u)

struct cipher;

/* Copies the keys. Returns NULL if there is no memory. */
struct cipher *cipher_new(const struct link_keys *keys);
void cipher_free(struct cipher *c); /* NULL does nothing */

/* --- out --- */

/* Takes bytes to be sent; they are copied. Returns 0, or -1 if there is no memory: the stream is
 * broken. */
int cipher_seal(struct cipher *c, const void *bytes, size_t length);
/* Ends the record that is being filled: the peer can open it as soon as what has been taken is there.
 * Returns 0, or -1 if there is no memory. */
int cipher_end_record(struct cipher *c);
/* All that is to be written, what was taken since cipher_written() included; borrowed until then. NULL
 * if there is no memory. */
uint8_t *cipher_sealed(struct cipher *c, size_t *length);
/* All of it has been. */
void cipher_written(struct cipher *c);

/* --- in --- */

/* Where the next bytes of the connection are to be put. */
uint8_t *cipher_room(struct cipher *c, size_t *size);
/* So many bytes have been put there. */
void cipher_received(struct cipher *c, size_t length);
/* Opens the next record into `to`, which has room for CIPHER_RECORD bytes. Returns 1 with *length, 0 if
 * it has not come as a whole, or -1 if it is not what the peer has sealed. */
int cipher_open(struct cipher *c, uint8_t *to, size_t *length);

#endif
