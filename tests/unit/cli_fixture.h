/* torusctl as a process whose output and exit code a test looks at. The test is built with TORUSCTL. */
#pragma once

#include <sys/types.h>

#include <jansson.h>

#define CLI_MOST 65536 /* bytes of output; a pipe holds as many */

/* What torusctl wrote to standard output and standard error the last time. */
extern char cli_output[CLI_MOST], cli_problem[CLI_MOST];

/* Reads a descriptor to its end, at most CLI_MOST bytes with the terminating 0, and closes it. */
void cli_take(int fd, char *text);

/* Starts torusctl with these words (the first is its own name). *o and *e are its standard output and error. */
pid_t cli_start(const char *const *words, int *o, int *e);

/* Waits until it has ended. Returns the exit code, or 128 plus the number of the signal that ended it. */
int cli_finish(pid_t pid, int o, int e);

/* Starts torusctl and waits for it. CLI_RUN() takes the words after the name. */
int cli_run(const char *const *words);
#define CLI_RUN(...) cli_run((const char *const[]){"torusctl", __VA_ARGS__, NULL})

/* The same with a fake daemon, which serves it. The words do not name its socket. */
int cli_served(void (*serve)(int fd), const char *const *words);
#define CLI_SERVED(serve, ...) cli_served(serve, (const char *const[]){__VA_ARGS__, NULL})

/* The output, which must be one JSON object. The caller releases it. */
json_t *cli_object(void);

/* Fails the test unless the output is an object that has this: see json_expect(). */
void cli_expect(const char *wanted);

/* Fails the test unless the output is an error with this code, and with the id of an exchange (NULL: without). */
void cli_check_error(const char *code, const char *id);
