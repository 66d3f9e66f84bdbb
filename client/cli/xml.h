/* Reading XML made of elements with attributes, by libexpat: what lies between them is ignored. */
#ifndef TORUSD_CLI_XML_H
#define TORUSD_CLI_XML_H

#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

/* The start of an element. Its strings are valid until the function that gets it returns. */
struct xml_element {
    const char *name;
    const char *const *attributes; /* name, value, name, value, ..., NULL */
    unsigned depth;                /* 0: the outermost */
    uint32_t line;
};

/* Called for every element, an outer one before those in it. Returns 0, or -1 with *e. */
typedef int (*xml_element_fn)(void *context, const struct xml_element *element, struct error *e);

/* Returns 0, or -1 with *e: it is not well-formed XML (ERROR_REFUSED, naming the line), out of
 * memory, or what the function has set. */
int xml_read(const char *text, size_t length, xml_element_fn element, void *context,
             struct error *e);

/* The value of an attribute; NULL: there is none with this name. */
const char *xml_find(const struct xml_element *x, const char *name);

/* The number in an attribute, from `least` to `most`. Returns 0, or -1 with *e naming the line. */
int xml_number(const struct xml_element *x, const char *name, int64_t least, int64_t most,
               int64_t *number, struct error *e);

/* "line 4: ..." Returns -1. */
int xml_error(const struct xml_element *x, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
