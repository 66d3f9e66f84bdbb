/* INI files: "[section]" and "name = value" lines; blanks at both ends have no meaning. A line
 * that begins with ';' or '#' is a comment, and so is the rest of a line from a ';' behind a
 * blank. Lines cannot be continued, and may have any length. */
#pragma once

#include <stdint.h>

#include "proto/text_file.h"

/* The beginning of a section (`name` is NULL), or a setting. The strings are valid until the
 * function that gets them returns. */
struct ini_line {
    uint32_t number;     /* from 1 */
    const char *section; /* "" for settings above the first section */
    const char *name, *value;
};

/* Handles a line. Returns 0, or -1 with *e. */
typedef int ini_line_fn(void *context, const struct ini_line *line, struct error *e);

/* Reads a file and calls `each` for every line. Returns 0, or -1 with *e, whose text begins with
 * the path and, where a line is wrong or the function returned -1, its number. The code is that
 * of text_file_read() if the file cannot be read, ERROR_USAGE if it is not an INI file,
 * otherwise what the function has set. */
int ini_read(const char *path, const struct text_kind *kind, ini_line_fn *each, void *context,
             struct error *e);

/* The same for a text that is in memory: `length` bytes with a '\0' at text[length], which the call changes.
 * `name` stands for the path in errors. The text must have passed text_check(). */
int ini_read_text(const char *name, const struct text_kind *kind, char *text, size_t length,
                  ini_line_fn *each, void *context, struct error *e);
