#include "daemon/lib/discovery/host_id.h"

#include <sodium.h>

struct host_id host_id_of(const uint8_t public_key[PUBLIC_KEY_SIZE])
{
    static const uint8_t label[] = "torusd discovery host id";
    struct host_id id;

    (void)crypto_generichash(id.bytes, HOST_ID_SIZE, public_key, PUBLIC_KEY_SIZE, label,
                             sizeof label - 1);
    return id;
}

char *host_id_text(const struct host_id *id, char text[HOST_ID_TEXT_SIZE])
{
    return sodium_bin2hex(text, HOST_ID_TEXT_SIZE, id->bytes, HOST_ID_SIZE);
}

bool host_id_parse(struct host_id *id, const char *text)
{
    size_t size;

    return strlen(text) == HOST_ID_TEXT_SIZE - 1 &&
           sodium_hex2bin(id->bytes, HOST_ID_SIZE, text, strlen(text), NULL, &size, NULL) == 0 &&
           size == HOST_ID_SIZE;
}
