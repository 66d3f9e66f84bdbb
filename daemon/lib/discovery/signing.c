#include "daemon/lib/discovery/signing.h"

#include <sodium.h>
#include <string.h>

#include "proto/borrowed.h"

_Static_assert(crypto_sign_PUBLICKEYBYTES == SIGNING_KEY_SIZE, "Ed25519");
_Static_assert(crypto_scalarmult_BYTES == SEALING_KEY_SIZE, "X25519");
_Static_assert(crypto_scalarmult_SCALARBYTES == SEALING_KEY_SIZE, "X25519");
_Static_assert(crypto_sign_SECRETKEYBYTES == SECRET_KEY_SIZE, "Ed25519");
_Static_assert(crypto_sign_BYTES == SIGNATURE_SIZE, "Ed25519");
_Static_assert(crypto_sign_SEEDBYTES == SEED_SIZE && SEED_SIZE == KEY_SIZE, "Ed25519");

static const char *const labels[] = {
    [SIGNED_HELLO] = "torusd discovery hello",
    [SIGNED_REPORT] = "torusd discovery report",
    [SIGNED_SETUP_MESSAGE] = "torusd discovery letter",
};

/* Derives KEY_SIZE bytes from others of this size. */
static void derive(uint8_t out[KEY_SIZE], const char *label, const uint8_t from[KEY_SIZE])
{
    (void)crypto_generichash(out, KEY_SIZE, (const uint8_t *)label, strlen(label), from, KEY_SIZE);
}

void identity_make(struct identity *identity, const uint8_t seed[SEED_SIZE],
                   uint8_t opening_key[SEALING_KEY_SIZE])
{
    uint8_t signing[SEED_SIZE], opening[SEALING_KEY_SIZE];

    derive(signing, "torusd discovery signing key", seed);
    derive(opening, "torusd discovery opening key", seed);
    (void)crypto_sign_seed_keypair(identity->public_key, identity->secret_key, signing);
    (void)crypto_scalarmult_base(identity->public_key + SIGNING_KEY_SIZE, opening);
    identity->id = host_id_of(identity->public_key);
    if (opening_key != NULL)
        memcpy(opening_key, opening, SEALING_KEY_SIZE);
    sodium_memzero(signing, sizeof signing);
    sodium_memzero(opening, sizeof opening);
}

void discovery_key_make(struct key *derived, const struct key *cluster_key)
{
    derive(derived->bytes, "torusd discovery cluster key", cluster_key->bytes);
    memcpy(derived->id, cluster_key->id, KEY_ID_SIZE);
}

/* Computes what is signed: a digest of the label and the content. */
static void digest(const char *label, const uint8_t *content, size_t size,
                   uint8_t out[crypto_generichash_BYTES])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, crypto_generichash_BYTES);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    (void)crypto_generichash_update(&state, content, size);
    (void)crypto_generichash_final(&state, out, crypto_generichash_BYTES);
}

void signing_mac(const struct key *key, const char *label, const struct signed_part *parts,
                 unsigned count, uint8_t mac[MAC_OF_KEY_SIZE])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, key->bytes, KEY_SIZE, MAC_OF_KEY_SIZE);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t size = parts[i].size;
        uint8_t length[8];
        for (unsigned b = 0; b < sizeof length; b++)
            length[b] = (uint8_t)(size >> (8 * b));
        (void)crypto_generichash_update(&state, length, sizeof length);
        (void)crypto_generichash_update(&state, parts[i].bytes, parts[i].size);
    }
    (void)crypto_generichash_final(&state, mac, MAC_OF_KEY_SIZE);
}

static void mac_of_signed(const struct key *key, enum signed_kind kind, const uint8_t *public_key,
                          const uint8_t *content, size_t size, uint8_t mac[MAC_OF_KEY_SIZE])
{
    const struct signed_part parts[] = {{public_key, PUBLIC_KEY_SIZE}, {content, size}};

    signing_mac(key, labels[kind], parts, 2, mac);
}

void signing_sign(const struct identity *identity, const struct secrets *secrets,
                  enum signed_kind kind, const uint8_t *content, size_t size,
                  struct signed_parts *parts, Discovery__Signed *out)
{
    uint8_t hash[crypto_generichash_BYTES];

    digest(labels[kind], content, size, hash);
    (void)crypto_sign_detached(parts->signature, NULL, hash, sizeof hash, identity->secret_key);
    memcpy(parts->key, identity->public_key, PUBLIC_KEY_SIZE);
    discovery__signed__init(out);
    out->content = borrowed(content, size);
    out->key = borrowed(parts->key, PUBLIC_KEY_SIZE);
    out->signature = borrowed(parts->signature, SIGNATURE_SIZE);
    if (secrets->count == 0)
        return;
    memcpy(parts->key_id, secrets->key[0].id, KEY_ID_SIZE);
    mac_of_signed(&secrets->key[0], kind, identity->public_key, content, size, parts->mac);
    out->key_id = borrowed(parts->key_id, KEY_ID_SIZE);
    out->mac = borrowed(parts->mac, MAC_OF_KEY_SIZE);
}

bool signing_check(enum signed_kind kind, const Discovery__Signed *s, const struct host_id *host)
{
    uint8_t hash[crypto_generichash_BYTES];
    struct host_id signer;
    bool keyed = s->key_id.len == KEY_ID_SIZE && s->mac.len == MAC_OF_KEY_SIZE;

    if (s->key.len != PUBLIC_KEY_SIZE || s->signature.len != SIGNATURE_SIZE ||
        (!keyed && (s->key_id.len != 0 || s->mac.len != 0)))
        return false;
    signer = host_id_of(s->key.data);
    if (!host_id_is(&signer, host))
        return false;
    digest(labels[kind], s->content.data, s->content.len, hash);
    return crypto_sign_verify_detached(s->signature.data, hash, sizeof hash, s->key.data) == 0;
}

enum trust signing_trust(const struct secrets *secrets, enum signed_kind kind,
                         const Discovery__Signed *s)
{
    uint8_t mac[MAC_OF_KEY_SIZE];

    if (s->key_id.len != KEY_ID_SIZE)
        return TRUST_OPEN;
    for (unsigned i = 0; i < secrets->count; i++) {
        mac_of_signed(&secrets->key[i], kind, s->key.data, s->content.data, s->content.len, mac);
        if (sodium_memcmp(mac, s->mac.data, MAC_OF_KEY_SIZE) == 0)
            return TRUST_PROVED;
    }
    return TRUST_OTHER_KEY;
}
