/* Formats JSON values for people. */
#pragma once

#include <jansson.h>
#include <stddef.h>

enum format {
    FORMAT_PLAIN,   /* texts unchanged, numbers in full, yes/no, lists with commas, null as - */
    FORMAT_BYTES,   /* 65536: "64 KiB" */
    FORMAT_SECONDS, /* 0.0123: "12.3 ms"; 83: "1 min 23 s" */
    FORMAT_MICROS,  /* microseconds, printed as FORMAT_SECONDS */
    FORMAT_RATE,    /* bits per second: "940 Mbit/s" */
    FORMAT_MBIT,    /* Mbit/s, printed as FORMAT_RATE */
    FORMAT_PERCENT, /* 0.957: "95.7 %" */
    FORMAT_TORUS,   /* [4, 8]: "4x8", or "4x8m" by the key "wrap" of the same object */
    FORMAT_LINES,   /* a list of texts, one line each (records only) */
};

#define FORMAT_SIZE 512 /* longer texts are cut */

/* Writes the value of `key` in `object` to `out`, which has FORMAT_SIZE bytes. Returns its width in columns. A missing
 * key, an empty text and an empty list give an empty text. */
size_t format_field(char *out, const json_t *object, const char *key, enum format format);

/* Returns the columns of a UTF-8 text on a terminal, if it has no wide characters. */
size_t format_columns(const char *text);

/* Write a number in one format to `out`, which has FORMAT_SIZE bytes. */
void format_bytes(char *out, double bytes);
void format_seconds(char *out, double seconds);
void format_rate(char *out, double bits); /* a second */
