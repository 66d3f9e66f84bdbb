#include "daemon/lib/discovery/seal.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/borrowed.h"
#include "proto/discovery.pb-c.h"
#include "proto/text.h"
#include "proto/unpack.h"

#define UNPACKED_MOST (DISCOVERY_SETUP_MOST + 16384u)
#define SETUP_LABEL "torusd discovery setup"
#define CLOSED_TEXT                                                                                \
    "this host was set up before, and cannot read its cluster key now, so it accepts no setup "    \
    "('torusd-setup --open' there makes it a new host again)"

_Static_assert(crypto_box_PUBLICKEYBYTES == REPLY_KEY_SIZE, "X25519");
_Static_assert(crypto_box_SECRETKEYBYTES == REPLY_KEY_SIZE, "X25519");
_Static_assert(REPLY_KEY_SIZE == SEALING_KEY_SIZE, "X25519");

void reply_keys_make(struct reply_keys *keys)
{
    (void)crypto_scalarmult_base(keys->public_key, keys->secret_key);
}

/* Authenticates a setup by a cluster key. */
static void setup_mac(const struct setup_frame *frame, const Discovery__Setup *setup,
                      const struct key *key, uint8_t mac[MAC_OF_KEY_SIZE])
{
    const uint8_t apply = setup->apply != 0;
    const struct signed_part parts[] = {{frame->id, SETUP_ID_SIZE},
                                        {frame->from->bytes, HOST_ID_SIZE},
                                        {frame->to->bytes, HOST_ID_SIZE},
                                        {setup->nonce.data, setup->nonce.len},
                                        {&apply, 1},
                                        {setup->bytes.data, setup->bytes.len},
                                        {setup->reply_key.data, setup->reply_key.len}};

    signing_mac(key, SETUP_LABEL, parts, sizeof parts / sizeof parts[0], mac);
}

/* Seals bytes, which it overwrites and frees, for a public key (X25519). */
static uint8_t *seal(uint8_t *bytes, size_t bytes_size, const uint8_t *public_key, size_t *size)
{
    uint8_t *sealed = malloc(bytes_size + crypto_box_SEALBYTES);

    if (sealed != NULL && crypto_box_seal(sealed, bytes, bytes_size, public_key) != 0) {
        free(sealed);
        sealed = NULL;
    }
    *size = bytes_size + crypto_box_SEALBYTES;
    sodium_memzero(bytes, bytes_size);
    free(bytes);
    return sealed;
}

uint8_t *seal_setup(const struct setup_frame *frame, const struct secrets *secrets,
                    const uint8_t public_key[PUBLIC_KEY_SIZE], const struct reply_keys *keys,
                    bool apply, const void *bytes, size_t bytes_size, size_t *size, struct error *e)
{
    Discovery__Setup setup = DISCOVERY__SETUP__INIT;
    Discovery__Proof proof[SECRETS_MOST], *proofs[SECRETS_MOST];
    uint8_t mac[SECRETS_MOST][MAC_OF_KEY_SIZE], *packed, *sealed = NULL;

    setup.nonce = borrowed(frame->nonce, NONCE_SIZE);
    setup.apply = apply;
    setup.bytes = borrowed(bytes, bytes_size);
    setup.reply_key = borrowed(keys->public_key, REPLY_KEY_SIZE);
    for (unsigned i = 0; i < secrets->count; i++) {
        setup_mac(frame, &setup, &secrets->key[i], mac[i]);
        discovery__proof__init(&proof[i]);
        proof[i].key_id = borrowed(secrets->key[i].id, KEY_ID_SIZE);
        proof[i].mac = borrowed(mac[i], MAC_OF_KEY_SIZE);
        proofs[i] = &proof[i];
    }
    setup.n_proofs = secrets->count;
    setup.proofs = proofs;
    *size = discovery__setup__get_packed_size(&setup);
    packed = malloc(*size);
    if (packed != NULL) {
        (void)discovery__setup__pack(&setup, packed);
        sealed = seal(packed, *size, public_key + SIGNING_KEY_SIZE, size);
    }
    if (sealed == NULL)
        (void)error_set(e, ERROR_MEMORY,
                        "out of memory for the setup, or the host has an invalid public key");
    return sealed;
}

static bool is_proved(const struct setup_frame *frame, const struct secrets *secrets,
                      const Discovery__Setup *setup)
{
    uint8_t mac[MAC_OF_KEY_SIZE];

    for (unsigned i = 0; i < secrets->count; i++) {
        setup_mac(frame, setup, &secrets->key[i], mac);
        for (size_t n = 0; n < setup->n_proofs && n < SECRETS_MOST; n++)
            if (setup->proofs[n]->mac.len == MAC_OF_KEY_SIZE &&
                sodium_memcmp(mac, setup->proofs[n]->mac.data, MAC_OF_KEY_SIZE) == 0)
                return true;
    }
    return false;
}

/* Whether the setup is authenticated by one of the cluster keys, or none is needed. */
static int check_proof(const struct setup_frame *frame, const struct opener *opener,
                       const Discovery__Setup *setup, struct error *e)
{
    if (opener->secrets.count == 0)
        return opener->open ? 0 : error_set(e, ERROR_REFUSED, CLOSED_TEXT);
    if (is_proved(frame, &opener->secrets, setup))
        return 0;
    return error_set(e, ERROR_REFUSED,
                     setup->n_proofs == 0
                         ? "this host has a cluster key, and accepts no setup without it"
                         : "this host has another cluster key than the sender of the setup");
}

static int take_setup(const struct setup_frame *frame, const struct opener *opener,
                      const Discovery__Setup *setup, struct opened_setup *opened, struct error *e)
{
    if (setup->nonce.len != NONCE_SIZE || setup->reply_key.len != REPLY_KEY_SIZE ||
        setup->bytes.len > DISCOVERY_SETUP_MOST)
        return error_set(e, ERROR_PROTOCOL, "the setup is invalid");
    if (sodium_memcmp(setup->nonce.data, frame->nonce, NONCE_SIZE) != 0)
        return error_set(e, ERROR_REFUSED, "the setup answers another challenge: it is a replay");
    if (check_proof(frame, opener, setup, e) != 0)
        return -1;
    opened->bytes = malloc(setup->bytes.len + 1);
    if (opened->bytes == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the setup");
    if (setup->bytes.len > 0)
        memcpy(opened->bytes, setup->bytes.data, setup->bytes.len);
    opened->size = setup->bytes.len;
    opened->apply = setup->apply;
    memcpy(opened->reply_key, setup->reply_key.data, REPLY_KEY_SIZE);
    return 0;
}

/* Opens sealed bytes. Returns *opened malloc'ed bytes, or NULL. */
static uint8_t *unseal(const uint8_t *sealed, size_t size, const uint8_t *public_key,
                       const uint8_t *secret_key, size_t *opened)
{
    uint8_t *bytes = size >= crypto_box_SEALBYTES ? malloc(size) : NULL;

    if (bytes != NULL && crypto_box_seal_open(bytes, sealed, size, public_key, secret_key) != 0) {
        free(bytes);
        bytes = NULL;
    }
    *opened = size - crypto_box_SEALBYTES;
    return bytes;
}

int open_setup(const struct setup_frame *frame, const struct opener *opener, const uint8_t *sealed,
               size_t size, struct opened_setup *opened, struct error *e)
{
    uint8_t public_key[SEALING_KEY_SIZE];
    Discovery__Setup *setup;
    size_t bytes_size;
    uint8_t *bytes;
    int result = -1;

    (void)crypto_scalarmult_base(public_key, opener->opening_key);
    bytes = unseal(sealed, size, public_key, opener->opening_key, &bytes_size);
    if (bytes == NULL)
        return error_set(e, ERROR_PROTOCOL, "the setup was sealed for another host");
    setup = unpack_bounded(&discovery__setup__descriptor, bytes, bytes_size, UNPACKED_MOST);
    if (setup == NULL) {
        (void)error_set(e, ERROR_PROTOCOL, "the setup cannot be read");
    } else {
        result = take_setup(frame, opener, setup, opened, e);
        sodium_memzero(setup->bytes.data, setup->bytes.len);
        unpack_free(setup);
    }
    sodium_memzero(bytes, bytes_size);
    free(bytes);
    return result;
}

static size_t at_most(size_t size, size_t most)
{
    return size < most ? size : most;
}

uint8_t *seal_result(const uint8_t *reply_key, const struct setup_answer *answer, size_t *size)
{
    Discovery__Result result = DISCOVERY__RESULT__INIT;
    uint8_t *packed;

    result.status = answer->status;
    if (answer->e.code != ERROR_NONE)
        result.error = borrowed_text(answer->e.text);
    result.output = borrowed(answer->output, at_most(answer->size, DISCOVERY_OUTPUT_MOST));
    result.errors = borrowed(answer->errors, at_most(answer->errors_size, DISCOVERY_ERRORS_MOST));
    *size = discovery__result__get_packed_size(&result);
    packed = malloc(*size);
    if (packed == NULL)
        return NULL;
    (void)discovery__result__pack(&result, packed);
    return seal(packed, *size, reply_key, size);
}

int read_result(const Discovery__Result *result, struct setup_answer *answer, char **storage,
                struct error *e)
{
    char text[sizeof answer->e.text];

    if (result->output.len > DISCOVERY_OUTPUT_MOST || result->errors.len > DISCOVERY_ERRORS_MOST)
        return error_set(e, ERROR_PROTOCOL, "the answer to the setup is invalid");
    *answer = (struct setup_answer){
        .status = result->status, .size = result->output.len, .errors_size = result->errors.len};
    if (result->error[0] != '\0')
        (void)error_set(&answer->e, ERROR_REFUSED, "%s",
                        text_printable(text, sizeof text, result->error));
    *storage = calloc(1, result->output.len + result->errors.len + 2);
    if (*storage == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the answer to the setup");
    if (result->output.len > 0)
        memcpy(*storage, result->output.data, result->output.len);
    if (result->errors.len > 0)
        memcpy(*storage + result->output.len + 1, result->errors.data, result->errors.len);
    answer->output = *storage;
    answer->errors = *storage + result->output.len + 1;
    return 0;
}

int open_result(const struct reply_keys *keys, const uint8_t *sealed, size_t size,
                struct setup_answer *answer, char **storage, struct error *e)
{
    Discovery__Result *message = NULL;
    size_t bytes_size;
    uint8_t *bytes = unseal(sealed, size, keys->public_key, keys->secret_key, &bytes_size);
    int result;

    if (bytes != NULL)
        message = unpack_bounded(&discovery__result__descriptor, bytes, bytes_size, UNPACKED_MOST);
    free(bytes);
    if (message == NULL)
        return error_set(e, ERROR_PROTOCOL, "the answer to the setup cannot be read");
    result = read_result(message, answer, storage, e);
    unpack_free(message);
    return result;
}
