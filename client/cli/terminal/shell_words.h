/* Words of a command line for a shell. */
#pragma once

#include <stddef.h>

/* Returns a word as shells read it, in quotes if it has special characters: other shells than sh understand them, too. The
 * caller frees it; NULL if memory is short. */
char *shell_word(const char *word);

/* Returns words, up to a NULL, as a command line. The caller frees it; NULL if memory is short. */
char *shell_line(const char *const *words);
