/* INI files: "[section]" and "name = value" lines, of which blanks at both ends mean nothing. Lines that
 * begin with ';' or '#' are comments, and so is what follows a ';' behind a blank. No line goes on in
 * the next one, and a line may be of any length. */
#ifndef TORUSD_PROTO_INI_H
#define TORUSD_PROTO_INI_H

#include <stdint.h>

#include "proto/text_file.h"

/* A section that begins (`name` is NULL), or a setting. The strings are valid until the function that
 * gets them returns. */
struct ini_line {
    uint32_t number;     /* from 1 */
    const char *section; /* ""; the settings above the first section */
    const char *name, *value;
};

/* Returns 0, or -1 with *e. */
typedef int ini_line_fn(void *context, const struct ini_line *line, struct error *e);

/* Reads a file line by line. Returns 0, or -1 with *e, which begins with the path and, where a line is
 * wrong or the function returned -1, its number. The code is that of text_file_read() if the file cannot
 * be read, ERROR_USAGE if it is not an INI file, else what the function has set. */
int ini_read(const char *path, const struct text_kind *kind, ini_line_fn *each, void *context,
             struct error *e);

#endif
