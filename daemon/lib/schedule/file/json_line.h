/* A strict reader for the part of JSON that imported.h needs: an object in one line, with strings
 * without escapes, whole numbers, and arrays of these. It allocates nothing, because neighbours
 * send such texts, and the values of a JSON library would take tens of times the size of the text.
 * Every function returns 0, or -1 with *e (ERROR_REFUSED), which names line and column, unless it
 * says otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct json_line {
    const char *begin, *at, *end;
    uint32_t number; /* from 1 */
};

/* A key of an object, and the function that reads its value. */
struct json_key {
    const char *name;
    int (*read)(struct json_line *line, void *into, struct error *e);
};

/* Skips spaces. Returns whether the line ends there. */
bool json_line_is_empty(struct json_line *line);

/* Reads an object with some of these keys, at most 32, each at most once; the line must end after
 * the object. Sets bit i of *seen if keys[i] was there. `into` is for the read functions. */
int json_line_object(struct json_line *line, const struct json_key *keys, unsigned count,
                     void *into, uint32_t *seen, struct error *e);

/* Reads a whole number from `least` to `most`; errors call it `what`. */
int json_line_number(struct json_line *line, const char *what, int64_t least, int64_t most,
                     int64_t *number, struct error *e);

/* Reads a string of less than `size` bytes; errors call it `what`. */
int json_line_string(struct json_line *line, const char *what, char *text, size_t size,
                     struct error *e);

/* Reads a mark, such as `[`, `,` or `]`. json_line_need() fails if something else comes next,
 * json_line_has() returns whether the mark was there. */
int json_line_need(struct json_line *line, char mark, struct error *e);
bool json_line_has(struct json_line *line, char mark);

/* Sets *e to "line 4, column 7: ..." (ERROR_REFUSED). Returns -1. */
int json_line_error(const struct json_line *line, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
