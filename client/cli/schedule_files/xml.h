/* Reads XML that consists of elements with attributes, with libexpat. A grammar says which element may be inside
 * which. Everything else is an error: other elements, text, and document types, which could expand a short file to a
 * long one. Comments and processing instructions are skipped. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

/* The start of an element. Its strings are valid until xml_element_fn returns. */
struct xml_element {
    const char *name;
    const char *const *attributes; /* name, value, name, value, ..., NULL */
    uint32_t line;
};

/* Called for every element, before the elements inside it. Returns 0, or -1 with *e. */
typedef int (*xml_element_fn)(void *context, const struct xml_element *element, struct error *e);

/* An element of the grammar. The grammar is an array of rules. */
struct xml_rule {
    const char *name;
    int inside;          /* index of the rule of the enclosing element, or XML_OUTERMOST */
    xml_element_fn read; /* NULL: its attributes are ignored */
};
#define XML_OUTERMOST (-1)

/* Limit of the memory of libexpat, which it needs for an element with its attributes, or a comment, and the enclosing
 * elements. */
#define XML_MEMORY_MOST (1u << 20)

/* Reads a text in any encoding that libexpat detects, in time linear in its length. Returns 0, or -1 with *e:
 * ERROR_REFUSED, naming the line, if the text is not well-formed, does not follow the grammar or takes more than
 * XML_MEMORY_MOST; ERROR_MEMORY; or the error of a function of the grammar. */
int xml_read(const char *text, size_t length, const struct xml_rule *rules, unsigned count,
             void *context, struct error *e);

/* Returns the value of an attribute, or NULL if there is none with this name. */
const char *xml_find(const struct xml_element *x, const char *name);

/* Reads a number from `least` to `most` in an attribute. Returns 0, or -1 with *e, which names the line. */
int xml_number(const struct xml_element *x, const char *name, int64_t least, int64_t most,
               int64_t *number, struct error *e);

/* Sets *e to "line 4: ..." without control characters. Returns -1. */
int xml_error(uint32_t line, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
