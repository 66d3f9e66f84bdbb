#include "client/cli/terminal/arguments.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/number.h"
#include "proto/text.h"

#define MOST INT64_MAX  /* the largest integer in JSON */
#define MOST_MICROS 1e9 /* keeps products with all counts finite */

/* Reads decimal digits. Returns their number, or -1 if the value is above `most`. */
static int digits(const char *text, uint64_t most, uint64_t *number)
{
    uint64_t value = 0;
    int n = 0;

    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        uint64_t digit = (uint64_t)(text[n] - '0');
        if (digit > most || value > (most - digit) / 10)
            return -1;
        value = value * 10 + digit;
    }
    *number = value;
    return n;
}

static bool unit_known(const char *unit)
{
    char one[16];
    uint64_t bytes;

    return snprintf(one, sizeof one, "1%s", unit) < (int)sizeof one &&
           text_parse_bytes(one, &bytes) == 0;
}

int parse_size(const char *text, uint64_t *bytes, struct error *e)
{
    size_t first = strspn(text, "0123456789");

    if (text[0] == '-')
        return error_set(e, ERROR_USAGE, "a size cannot be negative: '%.40s'", text);
    if (first == 0)
        return error_set(e, ERROR_USAGE,
                         "'%.40s' is not a size: give a whole number, such as 4096, 64KiB or 1MB",
                         text);
    if (text_parse_bytes(text, bytes) == 0 && *bytes <= MOST)
        return 0;
    /* Either the unit is unknown, or the number is too large. */
    if (!unit_known(text + first))
        return error_set(e, ERROR_USAGE,
                         "'%.40s' is not a size: the units are B, K or KiB (1024), M or MiB, G or "
                         "GiB, KB (1000), MB and GB",
                         text);
    return error_set(e, ERROR_USAGE, "'%.40s' is too large: at most %lld bytes", text,
                     (long long)MOST);
}

int parse_item(const char **text, char *item, size_t size, struct error *e)
{
    size_t length = strcspn(*text, ",");

    if (length >= size)
        return error_set(e, ERROR_USAGE,
                         "'%.40s...' is too long: %zu characters, at most %zu are possible", *text,
                         length, size - 1);
    memcpy(item, *text, length);
    item[length] = '\0';
    *text = (*text)[length] == ',' ? *text + length + 1 : NULL;
    return 0;
}

/* Reads "FROM-TO": the sizes FROM, 4 x FROM, 16 x FROM and so on, and TO. */
static int parse_range(char *text, char *dash, uint64_t *sizes, size_t most, size_t *count,
                       struct error *e)
{
    uint64_t from, to;

    *dash = '\0';
    if (parse_size(text, &from, e) != 0 || parse_size(dash + 1, &to, e) != 0)
        return -1;
    if (from == 0 || from > to)
        return error_set(
            e, ERROR_USAGE,
            "'%.40s-%.40s' is not a range: give a size above 0, and then a larger size", text,
            dash + 1);
    for (;; from = from > to / 4 ? to : 4 * from) {
        if (*count == most)
            return error_set(e, ERROR_USAGE, "more than %zu sizes", most);
        sizes[(*count)++] = from;
        if (from == to)
            return 0;
    }
}

int parse_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count, struct error *e)
{
    char one[64], *dash;

    for (*count = 0; text != NULL;) {
        if (parse_item(&text, one, sizeof one, e) != 0)
            return -1;
        dash = strchr(one, '-');
        if (dash != NULL && dash != one) {
            if (parse_range(one, dash, sizes, most, count, e) != 0)
                return -1;
            continue;
        }
        if (*count == most)
            return error_set(e, ERROR_USAGE, "more than %zu sizes", most);
        if (parse_size(one, &sizes[(*count)++], e) != 0)
            return -1;
    }
    return 0;
}

int parse_named(const char *text, const char *const *names, size_t *index, struct error *e)
{
    char known[256] = "";

    for (size_t i = 0; i == 0 || names[i] != NULL; i++) {
        size_t used = strlen(known);
        if (names[i] == NULL)
            continue;
        if (strcmp(text, names[i]) == 0) {
            *index = i;
            return 0;
        }
        (void)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", names[i]);
    }
    return error_set(e, ERROR_USAGE, "'%.40s' is not one of %s", text, known);
}

int parse_dimensions(const char *text, unsigned most, uint32_t *dimensions, struct error *e)
{
    char one[16];
    uint32_t number;

    for (*dimensions = 0; text != NULL; *dimensions |= UINT32_C(1) << number)
        if (parse_item(&text, one, sizeof one, e) != 0 ||
            parse_number(one, most - 1, &number, e) != 0)
            return -1;
    return 0;
}

int parse_seconds(const char *text, uint64_t *milliseconds, struct error *e)
{
    uint64_t whole = 0, fraction = 0;
    int n = digits(text, UINT32_MAX, &whole), decimals = 0;

    if (n > 0 && text[n] == '.') {
        decimals = digits(text + n + 1, 999, &fraction);
        n += 1 + decimals;
        if (decimals == 1)
            fraction *= 100;
        else if (decimals == 2)
            fraction *= 10;
        else if (decimals != 3)
            n = 0;
    }
    if (n <= 0 || text[n] != '\0')
        return error_set(e, ERROR_USAGE,
                         "'%.40s' is not a time: give seconds, such as 30 or 0.5, at most %u", text,
                         UINT32_MAX);
    if (whole == 0 && fraction == 0)
        return error_set(e, ERROR_USAGE,
                         "a time of 0 seconds is not possible: give more, or omit it");
    *milliseconds = whole * 1000 + fraction;
    return 0;
}

int parse_micros(const char *text, double *micros, struct error *e)
{
    char *end = NULL;

    /* strtod() also reads blanks, signs, hexadecimal, infinity and nan. */
    if (strspn(text, "0123456789.eE+-") == strlen(text) && strchr("+-", text[0]) == NULL)
        *micros = strtod(text, &end);
    if (end == NULL || end == text || *end != '\0' || *micros > MOST_MICROS)
        return error_set(e, ERROR_USAGE,
                         "'%.40s' is not a time: give microseconds, such as 75 or 0.011, at most "
                         "%g",
                         text, MOST_MICROS);
    return 0;
}

int parse_number(const char *text, uint32_t most, uint32_t *number, struct error *e)
{
    return number_parse(text, most, number, e);
}

int parse_repeat(const char *text, uint32_t *repeat, struct error *e)
{
    if (parse_number(text, TORUS_REPEAT_MAX, repeat, e) != 0)
        return -1;
    return *repeat > 0 ? 0 : error_set(e, ERROR_USAGE, "at least 1 is needed");
}

int parse_mode(const char *text, enum torus_mode *mode, struct error *e)
{
    static const enum torus_mode modes[] = {TORUS_MODE_STEPPED, TORUS_MODE_STREAMING};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(text, torus_mode_name(modes[i])) == 0) {
            *mode = modes[i];
            return 0;
        }
    }
    return error_set(e, ERROR_USAGE, "'%.40s' is neither stepped nor streaming", text);
}

int parse_on_failure(const char *text, bool *shrink, bool *wait, struct error *e)
{
    static const char *const names[] = {"fail", "shrink", "wait", NULL};
    size_t i = 0;

    if (parse_named(text, names, &i, e) != 0)
        return -1;
    *shrink = i == 1;
    *wait = i == 2;
    return 0;
}

int refuse(const struct refusal *list, struct error *e)
{
    while (list->text != NULL && !list->given)
        list++;
    return list->text != NULL ? error_set(e, ERROR_USAGE, list->text, list->word[0], list->word[1])
                              : 0;
}

/* Returns the working directory with a slash at its end, and with %% for each per cent sign, because the daemon reads
 * %r in folders as the rank. The caller frees it. NULL with *e. */
static char *working_directory(struct error *e)
{
    char *here = getcwd(NULL, 0), *escaped, *p;

    if (here == NULL) {
        error_set(e, ERROR_IO, "cannot find the working directory: %s; give an absolute path",
                  strerror(errno));
        return NULL;
    }
    escaped = p = malloc(2 * strlen(here) + 2);
    if (escaped == NULL)
        error_set(e, ERROR_MEMORY, "out of memory");
    for (const char *q = here; escaped != NULL && *q != '\0'; q++) {
        if (*q == '%')
            *p++ = '%';
        *p++ = *q;
    }
    if (escaped != NULL)
        strcpy(p, strcmp(here, "/") == 0 ? "" : "/");
    free(here);
    return escaped;
}

int parse_folder(const char *text, char **path, struct error *e)
{
    char *here = NULL;
    int n;

    if (text[0] == '\0')
        return error_set(e, ERROR_USAGE, "the name of the folder is empty");
    if (text[0] != '/') {
        here = working_directory(e);
        if (here == NULL)
            return -1;
    }
    n = asprintf(path, "%s%s", here != NULL ? here : "", text);
    free(here);
    return n >= 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory");
}
