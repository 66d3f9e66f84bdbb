#include "daemon/torusd/exchange/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct exchange_id exchange_id_make(uint32_t root, uint32_t boot, uint32_t counter)
{
    struct exchange_id id = {.root = root, .boot = boot, .counter = counter};

    (void)snprintf(id.text, sizeof id.text, "%" PRIu32 "-%08" PRIx32 "-%" PRIu32, root, boot,
                   counter);
    return id;
}

int exchange_id_parse(struct exchange_id *id, const char *text)
{
    uint32_t root, boot, counter;

    *id = NO_ID;
    if (sscanf(text, "%" SCNu32 "-%8" SCNx32 "-%" SCNu32, &root, &boot, &counter) != 3 ||
        counter == 0)
        return -1;
    *id = exchange_id_make(root, boot, counter);
    if (strcmp(id->text, text) == 0)
        return 0;
    *id = NO_ID; /* such as "+1-4d-1", or numbers that are too large */
    return -1;
}

int exchange_id_read(struct exchange_id *id, const char *text, uint32_t nodes, const char *message,
                     struct error *e)
{
    if (exchange_id_parse(id, text) != 0)
        return error_set(e, ERROR_PROTOCOL, "%s about \"%.60s\", which is not an exchange id",
                         message, text);
    if (id->root >= nodes)
        return error_set(e, ERROR_PROTOCOL, "%s about exchange %s, whose root does not exist",
                         message, id->text);
    return 0;
}

bool exchange_id_is_none(const struct exchange_id *id)
{
    return id->counter == 0;
}

bool exchange_id_equal(const struct exchange_id *id, const struct exchange_id *other)
{
    return id->root == other->root && id->boot == other->boot && id->counter == other->counter;
}

bool exchange_id_is_before(const struct exchange_id *id, const struct exchange_id *other)
{
    return id->boot == other->boot && id->counter < other->counter;
}

uint64_t exchange_id_hash(const struct exchange_id *id)
{
    uint64_t value = UINT64_C(14695981039346656037); /* FNV-1a of the text */

    for (const char *c = id->text; *c != '\0'; c++)
        value = (value ^ (uint8_t)*c) * UINT64_C(1099511628211);
    return value;
}
