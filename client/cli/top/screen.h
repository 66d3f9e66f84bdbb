/* A grid of character cells, on which views are drawn. Without I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TOP_MOST_ROWS 4096u
#define TOP_MOST_COLUMNS 4096u
#define TOP_ALL_LINES TOP_MOST_ROWS

/* What a cell is, from which its colour follows. */
enum top_look {
    TOP_PLAIN,
    TOP_FAINT,
    TOP_TITLE,
    TOP_IDLE, /* links, by load */
    TOP_LOW,
    TOP_MIDDLE,
    TOP_HIGH,
    TOP_BROKEN,
    TOP_LOOKS
};

struct top_cell {
    uint32_t character; /* Unicode; one column wide */
    uint8_t look;       /* enum top_look */
    bool chosen;        /* shown inverted */
};

struct top_screen {
    unsigned rows, columns;
    bool unicode;          /* whether lines and arrows may be drawn, or only ASCII */
    struct top_cell *cell; /* rows * columns */
};

/* A part of a screen that shows a part of a larger drawing. */
struct top_window {
    struct top_screen *screen;
    unsigned row, column, rows, columns; /* on the screen */
    unsigned from_row, from_column;      /* what of the drawing is at its upper left */
};

/* Makes an empty screen; sizes are cut to the largest possible. Returns 0, or -1 if memory is short. The caller passes
 * *s to top_screen_free(). */
int top_screen_make(struct top_screen *s, unsigned rows, unsigned columns, bool unicode);
void top_screen_free(struct top_screen *s);

/* A window without scrolling; cut to the screen. */
struct top_window top_window_make(struct top_screen *s, unsigned row, unsigned column,
                                  unsigned rows, unsigned columns);

/* Writes a UTF-8 text at a place of the drawing; what is outside the window is left out. Characters that cannot be
 * shown, or might be wide, become '?'. Returns the columns of the text. */
unsigned top_put(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                 bool chosen, const char *text);
unsigned top_print(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The columns that a UTF-8 text takes. */
unsigned top_text_columns(const char *text);

/* Writes a text into at most `lines` lines of at most `columns` columns (and of what the window has), without cutting
 * what a reader needs: lines end between words, and never between a number and its unit. If the text is longer than that,
 * it ends in an ellipsis. Lines after the first one are indented. Returns the number of lines, at least 1. */
unsigned top_put_lines(struct top_window *w, unsigned row, unsigned column, unsigned columns,
                       unsigned lines, enum top_look look, bool chosen, const char *text);

/* The lines that a text needs in that many columns. */
unsigned top_count_lines(const char *text, unsigned columns);

/* Writes one character. */
void top_put_character(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                       bool chosen, uint32_t character);

/* Prints the screen as text, without spaces at the ends of lines, and without empty lines at the end. */
void top_screen_print(const struct top_screen *s, FILE *out);
