#include "daemon/lib/base/nominal_rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads a number above 0, without sign or blanks, up to *end. */
static bool parse_number(const char *text, char **end, double *number)
{
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *number = strtod(text, end);
    return *end != text && isfinite(*number) && *number > 0;
}

bool nominal_rate_parse(const char *text, struct nominal_rate *rate)
{
    struct nominal_rate read;
    char *end;

    if (!parse_number(text, &end, &read.send))
        return false;
    read.receive = read.send;
    if (*end == '/' && !parse_number(end + 1, &end, &read.receive))
        return false;
    if (*end != '\0')
        return false;
    *rate = read;
    return true;
}

struct nominal_rate nominal_rate_reversed(struct nominal_rate rate)
{
    return (struct nominal_rate){.send = rate.receive, .receive = rate.send};
}

/* Writes the shortest text that is read as the same number. */
static void format_number(double number, char *text, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, size, "%.*g", digits, number);
        if (strtod(text, NULL) >= number && strtod(text, NULL) <= number)
            return;
    }
}

const char *nominal_rate_format(struct nominal_rate rate, char text[NOMINAL_RATE_TEXT_SIZE])
{
    char send[NOMINAL_RATE_TEXT_SIZE / 2], receive[NOMINAL_RATE_TEXT_SIZE / 2];

    format_number(rate.send, send, sizeof send);
    format_number(rate.receive, receive, sizeof receive);
    if (rate.send >= rate.receive && rate.send <= rate.receive)
        (void)snprintf(text, NOMINAL_RATE_TEXT_SIZE, "%s", send);
    else
        (void)snprintf(text, NOMINAL_RATE_TEXT_SIZE, "%s/%s", send, receive);
    return text;
}
