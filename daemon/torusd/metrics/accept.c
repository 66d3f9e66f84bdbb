#include "daemon/torusd/metrics/accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACES " \t"

/* Returns the weight of the parameters of a media type, ";version=1.0.0;q=0.5"; 1 if they have none. */
static double weight_of(const char *parameters, const char *end)
{
    for (const char *at = parameters; at < end; at++) {
        if (*at != ';')
            continue;
        const char *name = at + 1 + strspn(at + 1, SPACES);
        if (end - name > 2 && (name[0] == 'q' || name[0] == 'Q') && name[1] == '=') {
            const double weight = name[2] >= '0' && name[2] <= '9' ? strtod(name + 2, NULL) : 0;
            return weight <= 1 ? weight : 1;
        }
    }
    return 1;
}

static bool begins_with(const char *text, const char *end, const char *beginning)
{
    const size_t length = strlen(beginning);

    return (size_t)(end - text) >= length && strncasecmp(text, beginning, length) == 0;
}

bool accept_openmetrics(const char *header)
{
    double openmetrics = -1, text = -1;

    for (const char *at = header; at != NULL && *at != '\0';) {
        at += strspn(at, SPACES ",");
        const char *end = at + strcspn(at, ",");
        const char *type = at + strcspn(at, ";," SPACES);
        const double weight = weight_of(type, end);
        if (begins_with(at, type, "application/openmetrics-text"))
            openmetrics = weight > openmetrics ? weight : openmetrics;
        else if (begins_with(at, type, "text/"))
            text = weight > text ? weight : text;
        at = end;
    }
    if (openmetrics < 0)
        return text < 0;
    return openmetrics > 0 && openmetrics >= text;
}
