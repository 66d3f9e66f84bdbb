/* Ids of exchanges: root-boot-counter. */
#include "daemon/exchange/record/id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/interface/exchange_types.h"

uint32_t exchange_root_of(const char *id)
{
    return (uint32_t)strtoul(id, NULL, 10);
}

uint64_t exchange_hash(const char *id)
{
    uint64_t value = UINT64_C(14695981039346656037); /* FNV-1a */

    for (const char *c = id; *c != '\0'; c++)
        value = (value ^ (uint8_t)*c) * UINT64_C(1099511628211);
    return value;
}

/* An id is root-boot-counter, by which answers find the root. */
bool exchange_is_id_of(const char *id, uint32_t root)
{
    char again[EXCHANGE_ID_SIZE];
    unsigned rank, boot, counter;

    if (sscanf(id, "%u-%8x-%u", &rank, &boot, &counter) != 3)
        return false;
    (void)snprintf(again, sizeof again, "%u-%08x-%u", rank, boot, counter);
    return rank == root && strcmp(id, again) == 0;
}

bool exchange_is_before(const char *id, const char *other)
{
    unsigned boot[2], counter[2];

    if (sscanf(id, "%*u-%8x-%u", &boot[0], &counter[0]) != 2 ||
        sscanf(other, "%*u-%8x-%u", &boot[1], &counter[1]) != 2)
        return false;
    return boot[0] == boot[1] && counter[0] < counter[1];
}
