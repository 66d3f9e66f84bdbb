/* Runs other programs: several at once, each with a text at its standard input, and collects what they print. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/error.h"

#define CHILD_OUTPUT_MOST (256u << 10) /* bytes of standard output, and of standard error */
#define CHILD_MOST_AT_ONCE 16u

struct child {
    /* Set by the caller; borrowed. */
    const char *const *arguments; /* ended by NULL; the first is the program, looked up in PATH */
    const char *input;            /* NULL: none */
    size_t input_length;
    uid_t
        input_owner; /* who may open the input by a name such as /dev/stdin, if this user is root */

    /* The result. The caller frees both texts. */
    int status;   /* as of waitpid(); only if it was started and not ended by the deadline */
    bool started; /* otherwise errno of the start is in `start_errno` */
    int start_errno;
    bool late;    /* it was killed because of the deadline */
    char *output; /* standard output, and a '\0'; NULL: memory was short */
    size_t output_length;
    char *errors; /* standard error, cut to CHILD_OUTPUT_MOST; may be NULL */
    size_t errors_length;

    /* Private. */
    pid_t pid;
    int in, out, err;
    size_t sent;
    bool too_long;
};

/* Runs `count` programs, at most `at_once` at a time, each for at most `deadline_ms`. `ended` (may be NULL) is called
 * after each end. Returns when all have ended. */
typedef void child_ended_fn(void *context, struct child *child);
void child_run(struct child *children, size_t count, size_t at_once, int deadline_ms,
               child_ended_fn *ended, void *context);

/* Returns the exit status, or -1 if the program did not start, was killed or printed too much. */
int child_exit_status(const struct child *c);

/* Describes why child_exit_status() is -1, or what the program has printed on standard error: its last line. Returns
 * `text`. */
const char *child_problem(const struct child *c, char *text, size_t size);

void child_free(struct child *c);
