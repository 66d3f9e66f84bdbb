#include "daemon/discovery/host_id.h"

#include <sodium.h>
#include <stdlib.h>

#define MAC_BYTES 6u

static int compare_macs(const void *a, const void *b)
{
    return memcmp(a, b, MAC_BYTES);
}

void host_id_derive(struct host_id *id, const char *machine, uint8_t (*macs)[6], unsigned count)
{
    static const uint8_t label[] = "torusd discovery host";
    crypto_generichash_state state;

    if (count > 0)
        qsort(macs, count, MAC_BYTES, compare_macs);
    (void)crypto_generichash_init(&state, label, sizeof label - 1, HOST_ID_SIZE);
    (void)crypto_generichash_update(&state, (const uint8_t *)machine, strlen(machine) + 1);
    for (unsigned i = 0; i < count; i++)
        (void)crypto_generichash_update(&state, macs[i], MAC_BYTES);
    (void)crypto_generichash_final(&state, id->bytes, HOST_ID_SIZE);
}
