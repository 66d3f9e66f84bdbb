#include "daemon/lib/command_line/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_COLUMNS 20u /* on narrower terminals nothing is wrapped */

/* Text that is printed word by word. */
struct line {
    FILE *out;
    unsigned column, indent, columns;
    bool fresh; /* no word has been printed in this line, and no space is needed */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n';
}

/* Returns the length of the word at the beginning of a text in bytes. */
static size_t word_length(const char *text)
{
    return strcspn(text, " \n");
}

static unsigned width(const char *word, size_t length)
{
    unsigned columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

static void print_word(struct line *l, const char *word, size_t length)
{
    const unsigned needs = width(word, length);

    if (l->column > l->indent && l->column + !l->fresh + needs > l->columns) {
        (void)fprintf(l->out, "\n%*s", (int)l->indent, "");
        l->column = l->indent;
        l->fresh = true;
    }
    if (!l->fresh) {
        (void)fputc(' ', l->out);
        l->column++;
    }
    (void)fwrite(word, 1, length, l->out);
    l->column += needs;
    l->fresh = false;
}

static void print_words(struct line *l, const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        const char *word = text;
        while (text < end && !is_space(*text))
            text++;
        if (text > word)
            print_word(l, word, (size_t)(text - word));
        else
            text++;
    }
}

void wrap_words(FILE *out, const char *text, unsigned column, unsigned indent, unsigned columns)
{
    struct line l = {
        .out = out, .column = column, .indent = indent, .columns = columns, .fresh = true};

    print_words(&l, text, strlen(text));
    (void)fputc('\n', out);
}

static size_t length_of(const char *line)
{
    return strcspn(line, "\n");
}

static size_t indentation(const char *line)
{
    return strspn(line, " ");
}

/* Where the explanation of an indented line begins: behind its first two spaces; or the indentation, if it has none. */
static size_t explanation(const char *line)
{
    const size_t length = length_of(line), first = indentation(line);

    for (size_t i = first; i + 2 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return i + strspn(line + i, " ");
    return first;
}

/* The next line, or NULL at the end. */
static const char *next(const char *line)
{
    line += length_of(line);
    return line[0] == '\n' && line[1] != '\0' ? line + 1 : NULL;
}

/* Prints a line and those that continue it. Returns the line after them. */
static const char *print_item(FILE *out, const char *line)
{
    const size_t first = indentation(line), begin = explanation(line);
    struct line l = {.out = out, .columns = WRAP_COLUMNS, .indent = (unsigned)begin, .fresh = true};
    const bool is_item = first > 0 && begin == first;

    (void)fwrite(line, 1, begin, out);
    l.column = (unsigned)begin;
    do {
        print_words(&l, line + begin, length_of(line) - begin);
        line = next(line);
    } while (line != NULL && !is_item && indentation(line) == begin && length_of(line) > begin);
    (void)fputc('\n', out);
    return line;
}

void wrap_text(FILE *out, const char *text)
{
    const char *line = text[0] != '\0' ? text : NULL;

    while (line != NULL) {
        const size_t length = length_of(line);
        if (length == 0 ||
            strncmp(line + indentation(line), "torusctl ", sizeof "torusctl " - 1) == 0) {
            (void)fwrite(line, 1, length, out);
            (void)fputc('\n', out);
            line = next(line);
        } else {
            line = print_item(out, line);
        }
    }
}

struct wrap_part wrap_next(const char **text, size_t columns)
{
    const char *const begin = *text, *end = begin;
    size_t used = width(begin, strlen(begin));
    struct wrap_part part = {begin, strlen(begin), used};

    if (used <= columns) {
        *text += part.length;
        return part;
    }
    do { /* another word, with the spaces before it */
        part.length = (size_t)(end - begin);
        end += strspn(end, " \n");
        end += word_length(end);
        used = width(begin, (size_t)(end - begin));
    } while (used <= columns);
    if (part.length == 0)
        part.length = (size_t)(end - begin);
    part.columns = width(begin, part.length);
    *text = begin + part.length;
    *text += strspn(*text, " \n");
    return part;
}

size_t wrap_longest(const char *text)
{
    size_t longest = 0;

    while (*text != '\0') {
        const size_t length = word_length(text), columns = width(text, length);
        longest = columns > longest ? columns : longest;
        text += length;
        text += strspn(text, " \n");
    }
    return longest;
}

static void spaces(FILE *out, size_t count)
{
    while (count-- > 0)
        (void)fputc(' ', out);
}

void wrap_labelled(FILE *out, const char *label, size_t begin, const char *text, size_t columns)
{
    const size_t room = columns > begin ? columns - begin : 1, used = width(label, strlen(label));

    (void)fputs(label, out);
    spaces(out, begin > used ? begin - used : 0);
    for (;;) {
        const struct wrap_part part = wrap_next(&text, room);
        (void)fwrite(part.text, 1, part.length, out);
        (void)fputc('\n', out);
        if (*text == '\0')
            break;
        spaces(out, begin);
    }
}

size_t wrap_columns(FILE *out)
{
    const unsigned terminal = wrap_terminal(fileno(out));

    return terminal >= LEAST_COLUMNS ? terminal : SIZE_MAX;
}

unsigned wrap_terminal(int fd)
{
    struct winsize size;

    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
