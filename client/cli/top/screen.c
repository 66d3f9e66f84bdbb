#include "client/cli/top/screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE 1024u
#define INDENT 2u /* of lines after the first one */
#define ELLIPSIS 0x2026u

int top_screen_make(struct top_screen *s, unsigned rows, unsigned columns, bool unicode)
{
    rows = rows < 1 ? 1 : rows > TOP_MOST_ROWS ? TOP_MOST_ROWS : rows;
    columns = columns < 1 ? 1 : columns > TOP_MOST_COLUMNS ? TOP_MOST_COLUMNS : columns;
    *s = (struct top_screen){.rows = rows, .columns = columns, .unicode = unicode};
    s->cell = calloc((size_t)rows * columns, sizeof *s->cell);
    for (size_t i = 0; s->cell != NULL && i < (size_t)rows * columns; i++)
        s->cell[i].character = ' ';
    return s->cell != NULL ? 0 : -1;
}

void top_screen_free(struct top_screen *s)
{
    free(s->cell);
    *s = (struct top_screen){0};
}

struct top_window top_window_make(struct top_screen *s, unsigned row, unsigned column,
                                  unsigned rows, unsigned columns)
{
    struct top_window w = {.screen = s, .row = row, .column = column};

    w.rows = row >= s->rows ? 0 : rows < s->rows - row ? rows : s->rows - row;
    w.columns = column >= s->columns            ? 0
                : columns < s->columns - column ? columns
                                                : s->columns - column;
    return w;
}

void top_put_character(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                       bool chosen, uint32_t character)
{
    if (row < w->from_row || row - w->from_row >= w->rows || column < w->from_column ||
        column - w->from_column >= w->columns)
        return;
    const size_t at = (size_t)(w->row + row - w->from_row) * w->screen->columns + w->column +
                      (column - w->from_column);
    w->screen->cell[at] = (struct top_cell){character, (uint8_t)look, chosen};
}

/* Whether a character is one column wide in all terminals: Latin letters, arrows, and what draws lines. */
static bool is_narrow(uint32_t c)
{
    return (c >= ' ' && c < 0x7f) || (c >= 0xa1 && c < 0x250 && c != 0xad) || c == ELLIPSIS ||
           (c >= 0x2190 && c < 0x2194) || (c >= 0x2500 && c < 0x25c4) || c == 0x2573;
}

/* Reads one character of a UTF-8 text, and moves *text after it. A byte that is not UTF-8 is read alone. */
static uint32_t next_character(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    const unsigned more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0;
    uint32_t c = more == 0 ? p[0] : p[0] & (0x3fu >> more);

    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *text += 1;
            return 0;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    *text += 1 + more;
    return more == 0 && c >= 0x80 ? 0 : c;
}

/* Puts a character, or '?' if it may not be one column wide. */
static void put_shown(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                      bool chosen, uint32_t c)
{
    const bool shown = is_narrow(c) && (c < 0x80 || w->screen->unicode);

    top_put_character(w, row, column, look, chosen, shown ? c : '?');
}

unsigned top_put(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                 bool chosen, const char *text)
{
    unsigned n = 0;

    while (*text != '\0' && n < TOP_MOST_COLUMNS) {
        put_shown(w, row, column + n++, look, chosen, next_character(&text));
    }
    return n;
}

unsigned top_print(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                   const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return top_put(w, row, column, look, false, text);
}

unsigned top_text_columns(const char *text)
{
    unsigned n = 0;

    while (*text != '\0') {
        (void)next_character(&text);
        n++;
    }
    return n;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* A text of characters. */
struct characters {
    uint32_t c[TEXT_SIZE];
    unsigned n;
};

static struct characters decode(const char *text)
{
    struct characters t = {.n = 0};

    while (*text != '\0' && t.n < TEXT_SIZE)
        t.c[t.n++] = next_character(&text);
    return t;
}

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

/* Whether the word that ends before `at` is a number, or a unit of a time that goes on after it: "1 min 23 s". */
static bool belongs_to_next(const struct characters *t, unsigned from, unsigned at)
{
    static const char *const parts_of_times[] = {"d", "h", "min"};
    unsigned begin = at;
    bool number = false;
    char word[8] = "";

    while (begin > from && t->c[begin - 1] != ' ')
        begin--;
    for (unsigned i = begin; i < at; i++) {
        if (i - begin < sizeof word - 1)
            word[i - begin] = t->c[i] < 0x80 ? (char)t->c[i] : '?';
        if (!is_digit(t->c[i]) && t->c[i] != '.' && t->c[i] != ',')
            number = false;
        else if (i == begin)
            number = is_digit(t->c[i]);
    }
    for (size_t i = 0; i < sizeof parts_of_times / sizeof parts_of_times[0]; i++)
        if (at + 1 < t->n && is_digit(t->c[at + 1]) && begin > from + 1 &&
            is_digit(t->c[begin - 2]) && strcmp(word, parts_of_times[i]) == 0)
            return true;
    return number;
}

/* Where a line of at most `columns` ends that begins at `from`: at a space, or at the end. Returns `from` if there is no
 * such place: a word is longer than the line. */
static unsigned line_end(const struct characters *t, unsigned from, unsigned columns)
{
    if (t->n - from <= columns)
        return t->n;
    for (unsigned at = from + columns; at > from; at--)
        if (t->c[at] == ' ' && !belongs_to_next(t, from, at))
            return at;
    return from;
}

static void put_characters(struct top_window *w, unsigned row, unsigned column, enum top_look look,
                           bool chosen, const struct characters *t, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to && w->rows > 0; i++)
        put_shown(w, row, column + i - from, look, chosen, t->c[i]);
}

/* Writes the last line, whose text is too long for it: whole words, or a part of one long word, but no part of a number;
 * then an ellipsis. */
static void put_cut(struct top_window *w, unsigned row, unsigned column, unsigned columns,
                    enum top_look look, bool chosen, const struct characters *t, unsigned from)
{
    const char *ellipsis = w->screen->unicode ? "\u2026" : "...";
    const unsigned dots = top_text_columns(ellipsis);
    unsigned end = columns > dots ? line_end(t, from, columns - dots - 1) : from;

    if (end > from)
        end++; /* the space */
    else if (columns > dots && !is_digit(t->c[from]))
        end = from + columns - dots;
    put_characters(w, row, column, look, chosen, t, from, end);
    column += end - from;
    if (columns >= dots)
        (void)top_put(w, row, column, look, chosen, ellipsis);
}

unsigned top_put_lines(struct top_window *w, unsigned row, unsigned column, unsigned columns,
                       unsigned lines, enum top_look look, bool chosen, const char *text)
{
    const struct characters t = decode(text);
    const unsigned edge = w->from_column + w->columns;
    const unsigned room = column < edge ? edge - column : 0;
    unsigned from = 0, line = 0;

    columns = columns < room ? columns : room;
    while (columns > 0) {
        unsigned end = line_end(&t, from, columns);
        if (line + 1 >= lines && end < t.n) {
            put_cut(w, row + line, column, columns, look, chosen, &t, from);
            break;
        }
        if (end == from && end < t.n)
            end = from + columns;
        put_characters(w, row + line, column, look, chosen, &t, from, end);
        for (from = end; from < t.n && t.c[from] == ' ';)
            from++;
        if (from >= t.n)
            break;
        if (line++ == 0 && columns > 8 * INDENT) {
            column += INDENT;
            columns -= INDENT;
        }
    }
    return line + 1;
}

unsigned top_count_lines(const char *text, unsigned columns)
{
    struct top_window nothing = {.columns = columns};

    return top_put_lines(&nothing, 0, 0, columns, TOP_ALL_LINES, TOP_PLAIN, false, text);
}

/* Writes a character in UTF-8, ended by a 0, to `out`. */
static void put_utf8(char out[5], uint32_t c)
{
    size_t n = 0;

    if (c >= 0x800) {
        out[n++] = (char)(0xe0 | (c >> 12 & 0x0f));
        out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else if (c >= 0x80) {
        out[n++] = (char)(0xc0 | (c >> 6 & 0x1f));
    }
    out[n++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    out[n] = '\0';
}

void top_screen_print(const struct top_screen *s, FILE *out)
{
    unsigned empty = 0;

    for (unsigned row = 0; row < s->rows; row++) {
        const struct top_cell *line = &s->cell[(size_t)row * s->columns];
        unsigned columns = s->columns;
        while (columns > 0 && line[columns - 1].character == ' ')
            columns--;
        if (columns == 0) {
            empty++;
            continue;
        }
        for (; empty > 0; empty--)
            (void)fputc('\n', out);
        for (unsigned column = 0; column < columns; column++) {
            char text[5];
            put_utf8(text, line[column].character);
            (void)fputs(text, out);
        }
        (void)fputc('\n', out);
    }
}
