#include "tests/unit/run_cli.h"

#include <sys/wait.h>

#include "tests/support/cmocka.h"

char run_cli_output[RUN_CLI_MOST];

static int run(const char *arguments, const char *redirection)
{
    char command[1024];

    (void)snprintf(command, sizeof command, "'%s' %s %s", TORUSCTL, arguments, redirection);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(run_cli_output, 1, RUN_CLI_MOST - 1, pipe);
    run_cli_output[length] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int run_cli(const char *arguments)
{
    return run(arguments, "2>&1");
}

/* On a machine with much to do, it may say on standard error that it is still working. */
json_t *run_cli_json(const char *arguments)
{
    char with_json[1024];

    (void)snprintf(with_json, sizeof with_json, "--json %s", arguments);
    assert_int_equal(run(with_json, ""), 0);
    json_t *value = json_loads(run_cli_output, 0, NULL);
    assert_non_null(value);
    return value;
}
