#include "client/cli/terminal/shell_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";

    if (word[0] != '\0' && word[0] != '=' && word[strspn(word, plain)] == '\0') {
        (void)fputs(word, out);
        return;
    }
    (void)fputc('\'', out);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fputc(*word, out);
    (void)fputc('\'', out);
}

char *shell_line(const char *const *words)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    bool failed;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; words[i] != NULL; i++) {
        if (i > 0)
            (void)fputc(' ', out);
        print_word(out, words[i]);
    }
    failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return line;
    free(line);
    return NULL;
}

char *shell_word(const char *word)
{
    return shell_line((const char *const[]){word, NULL});
}
