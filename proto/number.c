#include "proto/number.h"

int number_parse(const char *text, uint32_t most, uint32_t *number, struct error *e)
{
    uint64_t value = 0;
    const char *c = text;

    while (*c >= '0' && *c <= '9' && value <= most)
        value = 10 * value + (uint64_t)(*c++ - '0');
    if (c == text || *c != '\0' || value > most)
        return error_set(e, ERROR_USAGE, "'%.40s' is not a number from 0 to %u", text, most);
    *number = (uint32_t)value;
    return 0;
}
