/* Lays out texts for a terminal. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define WRAP_COLUMNS 80u /* columns of help texts, whatever the width of the terminal */

/* Prints a text and a newline, wrapped at words: no line is longer than `columns`, unless a single word is. The cursor
 * is in column `column`; further lines begin in column `indent`. Newlines in the text count as spaces. Columns are
 * characters of UTF-8. */
void wrap_words(FILE *out, const char *text, unsigned column, unsigned indent, unsigned columns);

/* Prints paragraphs, tables and examples, wrapped at WRAP_COLUMNS. Lines without indentation that follow each other are
 * a paragraph. An indented line is a line of its own. If it has a word and, after two spaces or more, an explanation,
 * then the lines below that begin in the column of the explanation continue the explanation. Commands (" torusctl ...")
 * are not wrapped. */
void wrap_text(FILE *out, const char *text);

struct wrap_part {
    const char *text;
    size_t length;  /* in bytes */
    size_t columns; /* on a terminal */
};

/* Returns the words at the beginning of a text that fit into that many columns, at least one, and moves *text to the
 * next word, or to the end. A text that fits is returned unchanged. */
struct wrap_part wrap_next(const char **text, size_t columns);

/* Returns the columns of the longest word. */
size_t wrap_longest(const char *text);

/* Prints a label, spaces up to column `begin`, and a text, wrapped at words; further lines begin in the same column. */
void wrap_labelled(FILE *out, const char *label, size_t begin, const char *text, size_t columns);

/* Returns the columns in which a text for people must fit: those of the terminal, or SIZE_MAX if it is not wrapped, in
 * files and pipes, where programs read it, and on terminals that are too narrow for it. */
size_t wrap_columns(FILE *out);

/* Returns the width of the terminal that a file descriptor is, or 0. */
unsigned wrap_terminal(int fd);
