/* Recognises a file by its beginning, so that errors can name what was given in place of another
 * file. */
#pragma once

#include <stddef.h>

#define TEXT_FORMAT_SIZE 80u
#define TEXT_FORMAT_FORESTCOLL "trees of ForestColl"
#define TEXT_FORMAT_INI "an INI file"
#define TEXT_FORMAT_MSCCL "a schedule in MSCCL's XML"
#define TEXT_FORMAT_ROUTES "routes without a header"
#define TEXT_FORMAT_SCHEDULE "a schedule in torusd's format"
#define TEXT_FORMAT_TECCL "a schedule of TE-CCL"

/* Names a format that is never text, such as "packed by gzip (unpack it first)"; NULL: none is
 * recognised. */
const char *text_format_binary(const char *text, size_t length);

/* Names a format of text: "a GOAL schedule", "an SVG picture", "XML with <foo> as its outermost
 * element". `room` holds the name if it depends on the text. NULL: none is recognised. */
const char *text_format(const char *text, size_t length, char room[TEXT_FORMAT_SIZE]);

/* Finds the name of the outermost element of XML, behind white space, declarations and comments;
 * "" if there is none. Returns `name`, or NULL if the text does not begin like XML. */
const char *text_format_xml_root(const char *text, size_t length, char *name, size_t size);
