/* Facts about a machine as text: a line "name value" each. A name has words joined by dots and no blank; the value goes
 * to the end of its line. Of a fact that cannot be read, "unseen.NAME" says why. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FACTS_MOST (56u * 1024u) /* bytes; an answer to a survey holds them */

struct facts {
    size_t length;
    bool full; /* facts were left out */
    char text[FACTS_MOST];
};

void facts_begin(struct facts *f);
/* Adds a line; control characters in the value become '?'. A line for which there is no room is left out. */
void facts_add(struct facts *f, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds lines that were made by these functions, if there is room for all of them. */
void facts_add_lines(struct facts *f, const char *lines);

/* Reads the first line of a small file, such as those of /proc and /sys, without blanks at its end. Returns false if
 * there is none. */
bool facts_read_line(const char *path, char *line, size_t size);
/* Adds "unseen.NAME", which says that a file cannot be read; `error` is an errno. */
void facts_unseen(struct facts *f, const char *name, const char *path, int error);
/* Adds the first line of a file, or says why there is none. */
void facts_add_file(struct facts *f, const char *name, const char *path);
