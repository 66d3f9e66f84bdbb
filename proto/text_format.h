/* What a file is that was given in place of another one, judged by how it begins: for errors that name it. */
#ifndef TORUSD_PROTO_TEXT_FORMAT_H
#define TORUSD_PROTO_TEXT_FORMAT_H

#include <stddef.h>

#define TEXT_FORMAT_SIZE 80u
#define TEXT_FORMAT_INI "an INI file"
#define TEXT_FORMAT_MSCCL "a schedule in MSCCL's XML"
#define TEXT_FORMAT_ROUTES "routes without a header"
#define TEXT_FORMAT_SCHEDULE "a schedule in torusd's format"

/* A format that is never text, such as "packed by gzip (unpack it first)"; NULL: none is known. */
const char *text_format_binary(const char *text, size_t length);

/* Formats of text: "a GOAL schedule", "an SVG picture", "XML with <foo> as its outermost element".
 * `room` holds the name where it depends on the text. NULL: none is recognised. */
const char *text_format(const char *text, size_t length, char room[TEXT_FORMAT_SIZE]);

/* The name of the outermost element of XML, which begins behind white space, declarations and comments;
 * "" if it cannot be found. Returns `name`, or NULL: the text does not begin as XML does. */
const char *text_format_xml_root(const char *text, size_t length, char *name, size_t size);

#endif
