/* Prints all results: a value as one line of JSON, or as text laid out by a view. A view is a list of sections, each
 * with the fields to show and their formats. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "client/cli/terminal/format.h"

#define MOST_FIELDS 64 /* of a section, including the end */

struct field {
    const char *label; /* shown to people; NULL ends a list of fields */
    const char *key;   /* in the JSON object */
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

struct view {
    const struct section *sections;
    size_t count;
};

/* Print the value. The caller checks ferror(out). On a terminal, text is wrapped at words, and a table that is too wide
 * has several lines a row; elsewhere each row and each text is a line, for programs that read it. */
void writer_json(FILE *out, const json_t *value);
void writer_text(FILE *out, const json_t *value, const struct view *view);
