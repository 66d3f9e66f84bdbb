/* Prints results, and nothing else does: the same value as one line of JSON, or as text laid out by
 * a view. A view is a list of sections, each with the fields to show and their formats. */
#ifndef TORUSD_CLI_WRITER_H
#define TORUSD_CLI_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "client/cli/terminal/format.h"

#define MOST_FIELDS 64 /* of a section, including the end */

struct field {
    const char *label; /* what people read; NULL ends a list of fields */
    const char *key;   /* in the JSON object */
    enum format format;
};

enum layout {
    LAYOUT_RECORD, /* one line per field; empty fields are omitted */
    LAYOUT_TABLE,  /* one line per object of an array, one column per field */
};

struct section {
    enum layout layout;
    const char *key;   /* the object or array in the value; NULL = the value itself. A section whose
                        * key is missing, or whose array is empty, is not printed */
    const char *each;  /* tables: each object has under this key an object of objects; a line for
                        * each of these, its own key as the field "name", fields from both */
    const char *title; /* printed above it; may be NULL */
    const struct field *fields;
};

struct view {
    const struct section *sections;
    size_t count;
};

/* Print the value; ferror(out) tells whether it could be written. */
void writer_json(FILE *out, const json_t *value);
void writer_text(FILE *out, const json_t *value, const struct view *view);

#endif
