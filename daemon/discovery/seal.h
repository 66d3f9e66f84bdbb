/* The contents of setups and results, sealed for the host that may read them. */
#ifndef TORUSD_DISCOVERY_SEAL_H
#define TORUSD_DISCOVERY_SEAL_H

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/setup.h"

#define NONCE_SIZE 32u
#define REPLY_KEY_SIZE 32u

/* What a setup is about; its authentication covers all of it. */
struct setup_frame {
    const uint8_t *id; /* SETUP_ID_SIZE bytes */
    const struct host_id *from, *to;
    const uint8_t *nonce; /* NONCE_SIZE bytes, of the receiver's challenge */
};

/* The key pair for one result. */
struct reply_keys {
    uint8_t public_key[REPLY_KEY_SIZE], secret_key[REPLY_KEY_SIZE];
};

/* Makes the key pair from REPLY_KEY_SIZE random bytes in `secret_key`. */
void reply_keys_make(struct reply_keys *keys);

/* Seals a setup for the host with this public key (Ed25519). Returns *size malloc'ed bytes, or NULL with
 * *e: no memory, or the key is invalid. */
uint8_t *seal_setup(const struct setup_frame *frame, const struct secrets *secrets,
                    const uint8_t *public_key, const struct reply_keys *keys, bool apply,
                    const uint8_t *bytes, size_t bytes_size, size_t *size, struct error *e);

struct opened_setup {
    bool apply;
    uint8_t *bytes; /* malloc'ed */
    size_t size;
    uint8_t reply_key[REPLY_KEY_SIZE];
};

/* Opens a setup for this host, and checks its challenge and its authentication by a cluster key, which a host needs
 * unless it is open. Returns 0 with *opened, or -1 with *e. */
int open_setup(const struct setup_frame *frame, const struct discovery *d, const uint8_t *sealed,
               size_t size, struct opened_setup *opened, struct error *e);

/* Seals an answer for the sender of a setup. Returns *size malloc'ed bytes, or NULL: no memory. */
uint8_t *seal_result(const uint8_t *nonce, const uint8_t *reply_key,
                     const struct setup_answer *answer, size_t *size);

/* Opens an answer. Returns 0 with *answer, whose output is in *storage, to be freed; or -1 with *e. */
int open_result(const uint8_t *nonce, const struct reply_keys *keys, const uint8_t *sealed,
                size_t size, struct setup_answer *answer, uint8_t **storage, struct error *e);

#endif
