/* torusctl as a process whose output and exit code a test looks at. The test is built with TORUSCTL. */
#ifndef TORUSD_TEST_CLI_FIXTURE_H
#define TORUSD_TEST_CLI_FIXTURE_H

#include <sys/types.h>

#include <jansson.h>

#define CLI_MOST 65536 /* of output; what pipes hold */

/* What torusctl has written the last time to standard output, and to standard error. */
extern char cli_output[CLI_MOST], cli_problem[CLI_MOST];

/* Reads all that comes from a descriptor, up to CLI_MOST with the end of a text, and closes it. */
void cli_take(int fd, char *text);

/* Starts torusctl with these words (the first one its own name); *o and *e are its output. */
pid_t cli_start(const char *const *words, int *o, int *e);

/* Waits until it has ended. Returns the exit code, or 128 and the number of the signal that has ended it. */
int cli_finish(pid_t pid, int o, int e);

/* Both. CLI_RUN() takes the words behind the name. */
int cli_run(const char *const *words);
#define CLI_RUN(...) cli_run((const char *const[]){"torusctl", __VA_ARGS__, NULL})

/* The output as the one JSON object that it must be; to be released. */
json_t *cli_object(void);

/* The output must be an error with this code, and the id of an exchange, or none if `id` is NULL. */
void cli_check_error(const char *code, const char *id);

#endif
