/* A JSON value as a person reads it. */
#ifndef TORUSD_CLI_FORMAT_H
#define TORUSD_CLI_FORMAT_H

#include <jansson.h>
#include <stddef.h>

enum format {
    FORMAT_PLAIN,   /* texts unchanged, numbers in full, yes/no, lists with commas, null as - */
    FORMAT_BYTES,   /* 65536: "64 KiB" */
    FORMAT_SECONDS, /* 0.0123: "12.3 ms"; 83: "1 min 23 s" */
    FORMAT_MICROS,  /* microseconds, as FORMAT_SECONDS */
    FORMAT_RATE,    /* bits per second: "940 Mbit/s" */
    FORMAT_MBIT,    /* the same from Mbit/s */
    FORMAT_PERCENT, /* 0.957: "95.7 %" */
    FORMAT_TORUS,   /* [4, 8]: "4x8", with "wrap" beside it "4x8m" */
    FORMAT_LINES,   /* a list with a line for each of its texts (records only) */
};

#define FORMAT_SIZE 512 /* room that holds all but long texts, which are cut */

/* Writes the value of `key` in `object` to out (of FORMAT_SIZE). Returns its width in columns. A
 * missing key and an empty text or list give the empty text. */
size_t format_field(char *out, const json_t *object, const char *key, enum format format);

/* Columns that a UTF-8 text takes up on a terminal, except for wide characters. */
size_t format_columns(const char *text);

/* Two of the formats by themselves; out has FORMAT_SIZE. */
void format_bytes(char *out, double bytes);
void format_seconds(char *out, double seconds);

#endif
