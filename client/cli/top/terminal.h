/* The terminal of `torusctl top`, by ncurses. There is one at a time. */
#pragma once

#include "client/cli/top/screen.h"
#include "client/cli/top/view.h"

/* Whether the locale has UTF-8, so that lines can be drawn. Reads the locale from the environment. */
bool top_terminal_is_unicode(void);

/* Whether standard input and output are a terminal. */
bool top_terminal_is_there(void);

/* Takes the terminal over until top_terminal_close(). Returns 0, or -1 if the terminal cannot move its cursor
 * (TERM=dumb) or is not known. */
int top_terminal_open(void);
void top_terminal_close(void);

void top_terminal_size(unsigned *rows, unsigned *columns);
void top_terminal_show(const struct top_screen *s);

/* Returns the next key that was pressed; TOP_KEY_NONE if there is none, and *resized if the terminal has another size
 * now. */
enum top_key top_terminal_key(bool *resized);
