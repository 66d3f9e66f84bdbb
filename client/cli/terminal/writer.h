/* Prints all results: a value as one line of JSON, or as text laid out by a view. A view is a list of sections, each
 * with the fields to show and their formats. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

#define MOST_FIELDS 64 /* of a section, including the end */

struct field {
    const char *label; /* shown to people; NULL ends a list of fields */
    const char *key;   /* in the JSON object; NULL: the label */
    enum format format;
};

enum layout {
    LAYOUT_RECORD, /* one line per field; empty fields are omitted */
    LAYOUT_TABLE,  /* one line per object of an array, one column per field */
};

struct section {
    enum layout layout;
    /* Key of the object or array in the value; NULL: the value itself. The section is not printed if the key is missing
     * or the array is empty. */
    const char *key;
    /* For tables, or NULL: each object has an object of objects under this key. The table has a line for each inner
     * object, with fields of both objects, and the key of the inner object as field "name". */
    const char *each;
    const char *title; /* printed above the section; may be NULL */
    const struct field *fields;
};

/* The fields of a section, and the most usual sections: RECORD("memory", FIELD("in use", "used_bytes", FORMAT_BYTES), ...)
 * shows an object, or the value itself if the key is NULL; TABLE() shows an array of objects. FIELD("state") has its label
 * as key, and is plain. */
/* clang-format off */
#define FIELD(label_, ...) {.label = (label_), ##__VA_ARGS__}
#define FIELDS(...) .fields = (const struct field[]){__VA_ARGS__, {0}}
#define RECORD(key_, ...) {.layout = LAYOUT_RECORD, .key = (key_), FIELDS(__VA_ARGS__)}
#define TABLE(key_, ...) {.layout = LAYOUT_TABLE, .key = (key_), FIELDS(__VA_ARGS__)}
/* clang-format on */

struct view {
    const struct section *sections;
    size_t count;
};

/* The view that an array of sections is. */
#define VIEW(sections) (&(const struct view){(sections), sizeof(sections) / sizeof((sections)[0])})

/* Prints a text, a number or a boolean as an entry of CSV; null, or NULL, as an empty one. */
void writer_csv(FILE *out, const json_t *value);

/* Print the value. The caller checks ferror(out). On a terminal, text is wrapped at words, and a table that is too wide
 * has several lines a row; elsewhere each row and each text is a line, for programs that read it. */
void writer_json(FILE *out, const json_t *value);
void writer_text(FILE *out, const json_t *value, const struct view *view);
