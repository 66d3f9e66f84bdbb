#include "daemon/torusd/tree/digests.h"

/* Writes a number in groups of 7 bits. Returns how many bytes that takes. */
static size_t put_groups(uint8_t bytes[10], uint64_t value)
{
    size_t length = 0;

    do {
        bytes[length++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    return length;
}

static bool take_groups(struct wanted_numbers *n, uint64_t *value)
{
    uint8_t byte = 128;

    *value = 0;
    for (unsigned shift = 0; byte >= 128; shift += 7) {
        if (n->left == 0 || shift > 56)
            return false;
        byte = *n->bytes++;
        n->left--;
        *value |= (uint64_t)(byte & 127) << shift;
    }
    return true;
}

bool wanted_add(struct wanted *w, uint64_t index, uint64_t size)
{
    uint8_t bytes[20];

    if (index < w->next)
        return false;
    size_t length = put_groups(bytes, index - w->next);
    if (w->sizes)
        length += put_groups(bytes + length, size);
    if (length > sizeof w->bytes - w->length)
        return false;
    for (size_t i = 0; i < length; i++)
        w->bytes[w->length++] = bytes[i];
    w->next = index + 1;
    return true;
}

bool wanted_next(struct wanted_numbers *n, uint64_t *index, uint64_t *size)
{
    uint64_t value;

    *size = 0;
    if (!take_groups(n, &value) || value >= UINT64_MAX - n->next ||
        (n->sizes && !take_groups(n, size)))
        return false;
    *index = n->next + value;
    n->next = *index + 1;
    return true;
}
