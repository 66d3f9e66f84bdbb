#include "daemon/torusd/net/cipher.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_SIZE 2u
#define HEADER_SIZE crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define MORE crypto_secretstream_xchacha20poly1305_ABYTES /* added to a record */
#define SEALED_MOST (LENGTH_SIZE + CIPHER_RECORD + MORE)
#define IN_SIZE (4u * SEALED_MOST)
#define OUT_USUAL (256u * 1024u) /* more memory than that is freed */

_Static_assert(CIPHER_RECORD + MORE <= UINT16_MAX, "the length of a record");
_Static_assert(CIPHER_KEY_SIZE == crypto_secretstream_xchacha20poly1305_KEYBYTES, "as derived");

struct cipher {
    crypto_secretstream_xchacha20poly1305_state send, receive;
    uint8_t receive_key[CIPHER_KEY_SIZE]; /* used until the peer's header has arrived */
    bool opened;                          /* the peer's header has arrived */
    size_t plain_length;
    uint8_t plain[CIPHER_RECORD]; /* bytes of the record that is being filled */
    uint8_t *out;
    size_t out_length, out_size;
    size_t in_first, in_length; /* received and not opened */
    uint8_t in[IN_SIZE];
};

static int reserve(struct cipher *c, size_t more)
{
    size_t size = c->out_size > 0 ? c->out_size : OUT_USUAL / 2;
    uint8_t *out;

    if (c->out_size - c->out_length >= more)
        return 0;
    while (size - c->out_length < more)
        size *= 2;
    out = realloc(c->out, size);
    if (out == NULL)
        return -1;
    c->out = out;
    c->out_size = size;
    return 0;
}

struct cipher *cipher_new(const struct link_keys *keys)
{
    struct cipher *c = calloc(1, sizeof *c);

    if (c == NULL || reserve(c, HEADER_SIZE) != 0 ||
        crypto_secretstream_xchacha20poly1305_init_push(&c->send, c->out, keys->send) != 0) {
        cipher_free(c);
        return NULL;
    }
    c->out_length = HEADER_SIZE;
    memcpy(c->receive_key, keys->receive, CIPHER_KEY_SIZE);
    return c;
}

void cipher_free(struct cipher *c)
{
    if (c == NULL)
        return;
    free(c->out);
    sodium_memzero(c, sizeof *c);
    free(c);
}

/* --- out --- */

static int seal_record(struct cipher *c, const uint8_t *plain, size_t length)
{
    unsigned long long sealed;
    uint8_t *to;

    if (reserve(c, SEALED_MOST) != 0)
        return -1;
    to = c->out + c->out_length;
    (void)crypto_secretstream_xchacha20poly1305_push(&c->send, to + LENGTH_SIZE, &sealed, plain,
                                                     length, NULL, 0, 0);
    to[0] = (uint8_t)(sealed >> 8);
    to[1] = (uint8_t)sealed;
    c->out_length += LENGTH_SIZE + (size_t)sealed;
    return 0;
}

int cipher_seal(struct cipher *c, const void *bytes, size_t length)
{
    const uint8_t *from = bytes;

    while (length > 0) {
        size_t room = CIPHER_RECORD - c->plain_length, n = length < room ? length : room;
        if (n == CIPHER_RECORD) { /* a full record need not be copied */
            if (seal_record(c, from, n) != 0)
                return -1;
        } else {
            memcpy(c->plain + c->plain_length, from, n);
            c->plain_length += n;
            if (c->plain_length == CIPHER_RECORD) {
                c->plain_length = 0;
                if (seal_record(c, c->plain, CIPHER_RECORD) != 0)
                    return -1;
            }
        }
        from += n;
        length -= n;
    }
    return 0;
}

int cipher_end_record(struct cipher *c)
{
    size_t length = c->plain_length;

    c->plain_length = 0;
    return length == 0 ? 0 : seal_record(c, c->plain, length);
}

uint8_t *cipher_sealed(struct cipher *c, size_t *length)
{
    if (cipher_end_record(c) != 0)
        return NULL;
    *length = c->out_length;
    return c->out;
}

void cipher_written(struct cipher *c)
{
    c->out_length = 0;
    if (c->out_size > OUT_USUAL) {
        free(c->out);
        c->out = NULL;
        c->out_size = 0;
    }
}

/* --- in --- */

uint8_t *cipher_room(struct cipher *c, size_t *size)
{
    if (c->in_first > 0) {
        memmove(c->in, c->in + c->in_first, c->in_length);
        c->in_first = 0;
    }
    *size = IN_SIZE - c->in_length;
    return c->in + c->in_length;
}

void cipher_received(struct cipher *c, size_t length)
{
    c->in_length += length;
}

static void skip(struct cipher *c, size_t length)
{
    c->in_first += length;
    c->in_length -= length;
}

int cipher_open(struct cipher *c, uint8_t *to, size_t *length)
{
    unsigned long long opened;
    const uint8_t *from = c->in + c->in_first;
    unsigned char tag;
    size_t sealed;

    if (!c->opened) {
        if (c->in_length < HEADER_SIZE)
            return 0;
        if (crypto_secretstream_xchacha20poly1305_init_pull(&c->receive, from, c->receive_key) != 0)
            return -1;
        sodium_memzero(c->receive_key, sizeof c->receive_key);
        c->opened = true;
        skip(c, HEADER_SIZE);
        from += HEADER_SIZE;
    }
    if (c->in_length < LENGTH_SIZE)
        return 0;
    sealed = (size_t)from[0] << 8 | from[1];
    if (sealed <= MORE || sealed > CIPHER_RECORD + MORE)
        return -1;
    if (c->in_length < LENGTH_SIZE + sealed)
        return 0;
    if (crypto_secretstream_xchacha20poly1305_pull(&c->receive, to, &opened, &tag,
                                                   from + LENGTH_SIZE, sealed, NULL, 0) != 0)
        return -1;
    skip(c, LENGTH_SIZE + sealed);
    *length = (size_t)opened;
    return 1;
}
