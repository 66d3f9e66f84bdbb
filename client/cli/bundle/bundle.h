/* Collects texts as files of one archive. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"

struct bundle {
    char folder[64];    /* temporary; "": none */
    char name[96];      /* of the folder in the archive */
    json_t *parts;      /* [{"name": ..., "bytes": ..., "about": ...}] */
    int64_t bytes;      /* of the archive, once it is written */
    struct error error; /* of the first part that could not be written */
};

/* Makes a temporary folder. Returns 0, or -1 with *e. The caller gives *b to bundle_free() in any case. */
int bundle_begin(struct bundle *b, const char *name, struct error *e);
/* Adds a file, whose name may have one folder. What looks like a key in the text is left out (bundle_mask()). An empty
 * text is not added. Errors show in bundle_write(). */
void bundle_add(struct bundle *b, const char *name, const char *about, const char *text);
/* The same for a JSON value, which is taken over; NULL: no memory. */
void bundle_add_json(struct bundle *b, const char *name, const char *about, json_t *value);
/* The same for what a program prints. Not added if it prints nothing. */
void bundle_add_output(struct bundle *b, const char *name, const char *about,
                       const char *const *argv);
/* Adds README.txt, which lists the parts, and writes the archive (tar, gzip): a file with mode 0600, or to a device or
 * a pipe, or to standard output ("-"). Returns 0 with b->bytes, or -1 with *e. */
int bundle_write(struct bundle *b, const char *path, struct error *e);
/* Removes the temporary folder. */
void bundle_free(struct bundle *b);

/* Replaces what may be a key in a text: 32 or more hexadecimal digits, or 43 or more of base64, in a row. */
void bundle_mask(char *text);
