#include "client/cli/doctor/known_facts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fact_text(const char *facts, const char *name, char value[FACT_SIZE])
{
    const size_t length = strlen(name);

    value[0] = '\0';
    for (const char *line = facts, *end; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (strncmp(line, name, length) != 0 || line[length] != ' ')
            continue;
        const size_t size = (size_t)(end - line) - length - 1;
        const size_t kept = size < FACT_SIZE ? size : FACT_SIZE - 1;
        memcpy(value, line + length + 1, kept);
        value[kept] = '\0';
        return true;
    }
    return false;
}

bool fact_is(const char *facts, const char *name, const char *value)
{
    char found[FACT_SIZE];

    return fact_text(facts, name, found) && strcmp(found, value) == 0;
}

bool fact_number(const char *facts, const char *name, uint64_t *number)
{
    char text[FACT_SIZE], *end;

    *number = 0;
    if (!fact_text(facts, name, text) || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *number = value;
    return true;
}

const char *fact_name(const char *format, ...)
{
    static char names[4][96];
    static unsigned next;
    char *name = names[next++ % 4];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(name, sizeof names[0], format, arguments);
    va_end(arguments);
    return name;
}
