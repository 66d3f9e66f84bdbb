/* Signatures of hosts, and authentication by the cluster key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/base/secrets.h"
#include "daemon/lib/discovery/report.h"
#include "proto/discovery.pb-c.h"

#define SECRET_KEY_SIZE 64u
#define SIGNATURE_SIZE 64u
#define SEED_SIZE 32u
#define MAC_OF_KEY_SIZE 32u

/* The public keys of a host, the secret one for signatures, and the id that follows from the public ones. */
struct identity {
    uint8_t public_key[PUBLIC_KEY_SIZE], secret_key[SECRET_KEY_SIZE];
    struct host_id id;
};

/* What is signed; a signature of one kind is not valid for another. */
enum signed_kind { SIGNED_HELLO, SIGNED_REPORT, SIGNED_SETUP_MESSAGE };

/* What a host has proved to this one about its cluster key; numbered as in discovery.proto. */
enum trust {
    TRUST_OPEN,      /* it has none */
    TRUST_PROVED,    /* it has the same one */
    TRUST_OTHER_KEY, /* it claims another one, or this host has none */
};

/* Derives the keys of a host from SEED_SIZE random bytes. Stores in `opening_key`, unless it is NULL, the secret key
 * that opens setups. */
void identity_make(struct identity *identity, const uint8_t seed[SEED_SIZE],
                   uint8_t opening_key[SEALING_KEY_SIZE]);

/* Derives from the cluster key the key that authenticates hellos, reports and letters. The cluster key cannot be
 * computed from it. Both have the same id. */
void discovery_key_make(struct key *derived, const struct key *cluster_key);

/* The parts of a Signed that its sender computes. */
struct signed_parts {
    uint8_t key[PUBLIC_KEY_SIZE], signature[SIGNATURE_SIZE], mac[MAC_OF_KEY_SIZE],
        key_id[KEY_ID_SIZE];
};

/* Signs the content, and authenticates it by the first of the derived keys, if any. Fills *out, which borrows
 * the content and *parts. */
void signing_sign(const struct identity *identity, const struct secrets *secrets,
                  enum signed_kind kind, const uint8_t *content, size_t size,
                  struct signed_parts *parts, Discovery__Signed *out);

/* Whether all fields have valid lengths, and `host` has signed the content. */
bool signing_check(enum signed_kind kind, const Discovery__Signed *s, const struct host_id *host);

/* Returns what the sender of *s has proved about its cluster key. */
enum trust signing_trust(const struct secrets *secrets, enum signed_kind kind,
                         const Discovery__Signed *s);

/* Computes the code by which a key authenticates `count` byte strings under a label. */
struct signed_part {
    const void *bytes;
    size_t size;
};
void signing_mac(const struct key *key, const char *label, const struct signed_part *parts,
                 unsigned count, uint8_t mac[MAC_OF_KEY_SIZE]);
