/* Prints help texts, for the command `help` and for --help. The man pages are made from the same texts and tables. */
#pragma once

#include <stdio.h>

#include "client/cli/terminal/command.h"

extern const char help_usage[];    /* the text after "torusctl" */
extern const char help_purpose[];  /* one line without a full stop */
extern const char help_examples[]; /* indented lines */

struct exit_meaning {
    enum exit_code code;
    const char *text; /* lines without a full stop at the end */
};
extern const struct exit_meaning exit_meanings[]; /* ended by a row without a text */

/* Print the help of torusctl, or of one command. Return EXIT_DONE. */
int help_overview(FILE *out, const struct command_group *groups);
int help_command(const struct command *command);
