#include "proto/sha256.h"

#include <sodium.h>

void sha256_text(const void *bytes, size_t length, char text[SHA256_TEXT_SIZE])
{
    unsigned char digest[crypto_hash_sha256_BYTES];

    _Static_assert(2 * sizeof digest + 1 == SHA256_TEXT_SIZE, "two digits a byte");
    (void)crypto_hash_sha256(digest, bytes, length);
    (void)sodium_bin2hex(text, SHA256_TEXT_SIZE, digest, sizeof digest);
}
