/* Runs the command for setups: without a shell, one at a time, and with a deadline. */
#pragma once

#include <uv.h>

#include "daemon/lib/discovery/seal.h"

#define COMMAND_WORDS_MOST 32u
#define COMMAND_SIZE 1024u
#define COMMAND_SECONDS 300u /* how long it may run */

struct command {
    uv_loop_t *loop;
    char text[COMMAND_SIZE]; /* the words, each with its own end */
    char *word[COMMAND_WORDS_MOST + 2];
    unsigned words;
    /* Called when a run has ended; everything is borrowed. */
    void (*ended)(void *context, const struct setup_answer *answer);
    void *context;
    struct command_run *run; /* NULL: it does not run */
};

/* Splits a command at its blanks. Returns 0, or -1 with *e: it is empty, too long, or its program is no
 * absolute path to a file that can be executed. */
int command_parse(struct command *c, const char *text, struct error *e);

/* Starts the command with one more word, "apply" or "show", and the bytes (copied) at its standard input.
 * ended() follows. Returns 0, or -1 with *e. */
int command_start(struct command *c, bool apply, const uint8_t *bytes, size_t size,
                  struct error *e);

/* Lets a command that runs go on by itself; ended() is not called. */
void command_abandon(struct command *c);
