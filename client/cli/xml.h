/* A reader of plain XML: elements with attributes, comments and processing instructions, and nothing
 * else. No entities, no text between elements. */
#ifndef TORUSD_CLI_XML_H
#define TORUSD_CLI_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

#define XML_ATTRIBUTES_MOST 32u

struct xml_text {
    const char *at;
    size_t length;
};

struct xml {
    const char *at, *end;
    uint32_t line;

    /* The tag that xml_next() has come to. */
    struct xml_text name;
    bool opens, closes; /* <a>: opens, </a>: closes, <a/>: both */
    unsigned attributes;
    struct {
        struct xml_text name, value;
    } attribute[XML_ATTRIBUTES_MOST];
};

void xml_begin(struct xml *x, const char *text, size_t length);

/* Goes on to the next tag. Returns 1, 0 at the end of the text, or -1 with *e (ERROR_REFUSED), which
 * names the line. Whether tags match is the caller's business. */
int xml_next(struct xml *x, struct error *e);

bool xml_is(const struct xml_text *text, const char *word);

/* An attribute of the tag; NULL: it has none with this name. */
const struct xml_text *xml_find(const struct xml *x, const char *name);

/* The number in an attribute, from `least` to `most`. Returns 0, or -1 with *e naming the line. */
int xml_number(const struct xml *x, const char *name, int64_t least, int64_t most, int64_t *number,
               struct error *e);

/* "line 4: ..." Returns -1. */
int xml_error(const struct xml *x, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
