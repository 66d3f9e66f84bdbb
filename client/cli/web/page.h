/* Writes a page for a browser as one file: its text, styles, scripts and data. */
#pragma once

#include <jansson.h>
#include <stdio.h>

struct page {
    const char *
        body; /* a complete document with the lines "<!--style-->", "<!--data-->" and "<!--scripts-->" */
    const char *style, *more_style;
    const char *const *scripts; /* ends with NULL */
    json_t *data;               /* for the scripts: the object DATA; NULL: none */
};

/* Writes the page. The caller checks the stream. Whatever text the data holds, it cannot end the script. */
void page_write(FILE *out, const struct page *p);
