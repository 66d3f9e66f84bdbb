#include "daemon/tree/digests.h"

bool wanted_add(struct wanted *w, uint64_t index)
{
    uint8_t bytes[10];
    uint64_t value = index - w->next;
    size_t length = 0;

    if (index < w->next)
        return false;
    do {
        bytes[length++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    if (length > sizeof w->bytes - w->length)
        return false;
    for (size_t i = 0; i < length; i++)
        w->bytes[w->length++] = bytes[i];
    w->next = index + 1;
    return true;
}

bool wanted_next(struct wanted_numbers *n, uint64_t *index)
{
    uint64_t value = 0;
    uint8_t byte = 128;

    for (unsigned shift = 0; byte >= 128; shift += 7) {
        if (n->left == 0 || shift > 56)
            return false;
        byte = *n->bytes++;
        n->left--;
        value |= (uint64_t)(byte & 127) << shift;
    }
    if (value >= UINT64_MAX - n->next)
        return false;
    *index = n->next + value;
    n->next = *index + 1;
    return true;
}
