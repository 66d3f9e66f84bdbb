/* The contents of setups and results, sealed for the host that may read them. */
#pragma once

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/signing.h"

#define DISCOVERY_OUTPUT_MOST (64u * 1024u) /* bytes of output of a setup's command */
#define DISCOVERY_ERRORS_MOST 8192u         /* bytes that it prints on standard error */

#define REPLY_KEY_SIZE 32u

/* The end of a setup. With e.code ERROR_NONE the command has run, otherwise it has not, or its result is not known. */
struct setup_answer {
    struct error e;
    uint32_t status; /* exit status of the command */
    const void *output;
    size_t size;
    const void *errors; /* what the command has printed on standard error */
    size_t errors_size;
};

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

/* Seals a setup for the host with these public keys, with a proof for each of the cluster keys. Returns *size malloc'ed
 * bytes, or NULL with *e: no memory, or the key is invalid. */
uint8_t *seal_setup(const struct setup_frame *frame, const struct secrets *secrets,
                    const uint8_t public_key[PUBLIC_KEY_SIZE], const struct reply_keys *keys,
                    bool apply, const void *bytes, size_t bytes_size, size_t *size,
                    struct error *e);

/* What a host opens setups with. */
struct opener {
    uint8_t opening_key[SEALING_KEY_SIZE];
    struct secrets secrets; /* the cluster keys */
    bool open; /* without cluster keys: the host is new, and takes setups from everybody */
};

struct opened_setup {
    bool apply;
    uint8_t *bytes; /* malloc'ed */
    size_t size;
    uint8_t reply_key[REPLY_KEY_SIZE];
};

/* Opens a setup, and checks its challenge and its authentication by a cluster key, which a host needs unless it is
 * open. Returns 0 with *opened, or -1 with *e. */
int open_setup(const struct setup_frame *frame, const struct opener *opener, const uint8_t *sealed,
               size_t size, struct opened_setup *opened, struct error *e);

/* Seals an answer for the sender of a setup. Returns *size malloc'ed bytes, or NULL: no memory. */
uint8_t *seal_result(const uint8_t *reply_key, const struct setup_answer *answer, size_t *size);

/* Opens an answer, or reads one that is not sealed. Return 0 with *answer, whose output and errors are in *storage (to
 * be freed) with a '\0' at the end of each; or -1 with *e. */
int open_result(const struct reply_keys *keys, const uint8_t *sealed, size_t size,
                struct setup_answer *answer, char **storage, struct error *e);
int read_result(const Discovery__Result *result, struct setup_answer *answer, char **storage,
                struct error *e);
