#include "client/cli/terminal/format.h"

#include <stdio.h>
#include <string.h>

/* Writes three significant digits, without an exponent or trailing zeros, and the unit. */
static void significant(char *out, double value, const char *unit)
{
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    int n = snprintf(out, FORMAT_SIZE, "%.*f", decimals, value);

    if (decimals > 0 && n > 0) {
        while (out[n - 1] == '0')
            n--;
        if (out[n - 1] == '.')
            n--;
    }
    (void)snprintf(out + n, FORMAT_SIZE - (size_t)n, " %s", unit);
}

void format_bytes(char *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;

    while (bytes >= 1023.5 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        i++;
    }
    significant(out, bytes, units[i]);
}

void format_seconds(char *out, double seconds)
{
    if (seconds < 0.9995e-3) {
        significant(out, seconds * 1e6, "us");
    } else if (seconds < 0.9995) {
        significant(out, seconds * 1e3, "ms");
    } else if (seconds < 59.95) {
        significant(out, seconds, "s");
    } else {
        unsigned long long s = (unsigned long long)((seconds < 1e15 ? seconds : 1e15) + 0.5);
        if (s < 3600)
            (void)snprintf(out, FORMAT_SIZE, "%llu min %llu s", s / 60, s % 60);
        else if (s < 86400)
            (void)snprintf(out, FORMAT_SIZE, "%llu h %llu min", s / 3600, s % 3600 / 60);
        else
            (void)snprintf(out, FORMAT_SIZE, "%llu d %llu h", s / 86400, s % 86400 / 3600);
    }
}

void format_rate(char *out, double bits)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    size_t i = 0;

    while (bits >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        bits /= 1000;
        i++;
    }
    significant(out, bits, units[i]);
}

static void append(char *out, const char *text)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, FORMAT_SIZE - used, "%s", text);
}

static void plain(char *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        (void)snprintf(out, FORMAT_SIZE, "%s", json_string_value(value));
        break;
    case JSON_INTEGER:
        (void)snprintf(out, FORMAT_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        (void)snprintf(out, FORMAT_SIZE, "%.6g", json_real_value(value));
        break;
    case JSON_TRUE:
        (void)snprintf(out, FORMAT_SIZE, "yes");
        break;
    case JSON_FALSE:
        (void)snprintf(out, FORMAT_SIZE, "no");
        break;
    case JSON_NULL:
        (void)snprintf(out, FORMAT_SIZE, "-");
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        out[0] = '\0';
        break;
    }
}

static void joined(char *out, const json_t *list, const char *between)
{
    size_t i;
    json_t *item;

    out[0] = '\0';
    json_array_foreach(list, i, item)
    {
        char text[FORMAT_SIZE];
        plain(text, item);
        if (i > 0)
            append(out, between);
        append(out, text);
    }
}

static void torus(char *out, const json_t *object, const json_t *dims)
{
    const json_t *wrap = json_object_get(object, "wrap"),
                 *whole = json_object_get(object, "network");
    size_t i;
    json_t *size;

    out[0] = '\0';
    if (json_is_string(whole)) {
        append(out, json_string_value(whole));
        return;
    }
    json_array_foreach(dims, i, size)
    {
        char text[32];
        (void)snprintf(text, sizeof text, "%s%" JSON_INTEGER_FORMAT "%s", i > 0 ? "x" : "",
                       json_integer_value(size), json_is_false(json_array_get(wrap, i)) ? "m" : "");
        append(out, text);
    }
}

static void number(char *out, double value, enum format format)
{
    switch (format) {
    case FORMAT_BYTES:
        format_bytes(out, value);
        break;
    case FORMAT_SECONDS:
        format_seconds(out, value);
        break;
    case FORMAT_MICROS:
        format_seconds(out, value / 1e6);
        break;
    case FORMAT_RATE:
        format_rate(out, value);
        break;
    case FORMAT_MBIT:
        format_rate(out, value * 1e6);
        break;
    case FORMAT_PERCENT:
        (void)snprintf(out, FORMAT_SIZE, "%.1f %%", value * 100);
        break;
    case FORMAT_PLAIN:
    case FORMAT_TORUS:
    case FORMAT_LINES:
        break;
    }
}

size_t format_columns(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

size_t format_field(char *out, const json_t *object, const char *key, enum format format)
{
    const json_t *value = json_object_get(object, key);

    out[0] = '\0';
    if (value == NULL)
        return 0;
    if (json_is_array(value) && format == FORMAT_TORUS)
        torus(out, object, value);
    else if (json_is_array(value))
        joined(out, value, ", ");
    else if (json_is_number(value) && format != FORMAT_PLAIN)
        number(out, json_number_value(value), format);
    else
        plain(out, value);
    return format_columns(out);
}
