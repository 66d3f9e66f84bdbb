#define NCURSES_WIDECHAR 1
#include "client/cli/top/terminal.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define ESCAPE 27
#define REDRAW ('l' & 0x1f) /* Ctrl-L */
#define ESCAPE_DELAY_MS 50  /* how long the rest of a key may take to follow its escape character */

static SCREEN *terminal;
static attr_t attribute[TOP_LOOKS];
static short pair[TOP_LOOKS];

bool top_terminal_is_unicode(void)
{
    /* Only characters: numbers stay as they are, with a decimal point. */
    return setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool top_terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Links are told apart by their characters, too, so a terminal without colours misses nothing. */
static void set_colours(void)
{
    static const struct {
        enum top_look look;
        short colour;
        attr_t attribute;
    } rows[] = {
        {TOP_LOW, COLOR_CYAN, A_NORMAL},
        {TOP_MIDDLE, COLOR_GREEN, A_NORMAL},
        {TOP_HIGH, COLOR_MAGENTA, A_BOLD},
        {TOP_BROKEN, COLOR_RED, A_BOLD},
    };
    const char *no_color = getenv("NO_COLOR");
    const bool coloured =
        has_colors() && (no_color == NULL || no_color[0] == '\0') && start_color() == OK;

    memset(pair, 0, sizeof pair);
    memset(attribute, 0, sizeof attribute);
    attribute[TOP_FAINT] = A_DIM;
    attribute[TOP_IDLE] = A_DIM;
    attribute[TOP_TITLE] = A_BOLD;
    if (coloured)
        (void)use_default_colors();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const short number = (short)(i + 1);
        attribute[rows[i].look] = rows[i].attribute;
        if (coloured && init_pair(number, rows[i].colour, -1) == OK)
            pair[rows[i].look] = number;
    }
}

int top_terminal_open(void)
{
    const char *name = getenv("TERM"), *move = NULL;

    if (name == NULL || name[0] == '\0' || strcmp(name, "dumb") == 0)
        return -1;
    terminal = newterm(NULL, stdout, stdin);
    if (terminal != NULL)
        move = tigetstr("cup");
    if (move == NULL || move == (const char *)-1) {
        top_terminal_close();
        return -1;
    }
    (void)set_term(terminal);
    (void)set_escdelay(ESCAPE_DELAY_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    set_colours();
    return 0;
}

void top_terminal_close(void)
{
    if (terminal == NULL)
        return;
    (void)endwin();
    delscreen(terminal);
    terminal = NULL;
}

void top_terminal_size(unsigned *rows, unsigned *columns)
{
    *rows = (unsigned)(LINES > 0 ? LINES : 24);
    *columns = (unsigned)(COLS > 0 ? COLS : 80);
}

void top_terminal_show(const struct top_screen *s)
{
    (void)erase();
    for (unsigned row = 0; row < s->rows; row++)
        for (unsigned column = 0; column < s->columns; column++) {
            const struct top_cell *c = &s->cell[(size_t)row * s->columns + column];
            const wchar_t text[2] = {(wchar_t)c->character, L'\0'};
            cchar_t out;
            if (setcchar(&out, text, attribute[c->look] | (c->chosen ? A_REVERSE : 0),
                         pair[c->look], NULL) == OK)
                (void)mvadd_wch((int)row, (int)column, &out);
        }
    (void)refresh();
}

enum top_key top_terminal_key(bool *resized)
{
    static const struct {
        int code;
        enum top_key key;
    } keys[] = {
        {KEY_UP, TOP_KEY_UP},         {'k', TOP_KEY_UP},
        {KEY_DOWN, TOP_KEY_DOWN},     {'j', TOP_KEY_DOWN},
        {KEY_LEFT, TOP_KEY_LEFT},     {'h', TOP_KEY_LEFT},
        {KEY_RIGHT, TOP_KEY_RIGHT},   {'l', TOP_KEY_RIGHT},
        {'\t', TOP_KEY_TAB},          {KEY_BTAB, TOP_KEY_BACK_TAB},
        {'\r', TOP_KEY_ENTER},        {'\n', TOP_KEY_ENTER},
        {KEY_ENTER, TOP_KEY_ENTER},   {ESCAPE, TOP_KEY_ESCAPE},
        {' ', TOP_KEY_PAUSE},         {'?', TOP_KEY_HELP},
        {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {'q', TOP_KEY_QUIT},          {'Q', TOP_KEY_QUIT},
    };

    for (;;) {
        const int code = getch();
        if (code == ERR)
            return TOP_KEY_NONE;
        if (code == KEY_RESIZE)
            *resized = true;
        if (code == KEY_RESIZE || code == REDRAW) /* the terminal may have moved its lines */
            (void)clearok(stdscr, TRUE);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (keys[i].code == code)
                return keys[i].key;
    }
}
