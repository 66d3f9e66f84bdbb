#include "tests/unit/cli_fixture.h"

#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"
#include "tests/unit/test_client_fake.h"

char cli_output[CLI_MOST], cli_problem[CLI_MOST];

void cli_take(int fd, char *text)
{
    size_t length = 0;
    ssize_t n;
    while (length < CLI_MOST - 1 && (n = read(fd, text + length, CLI_MOST - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    (void)close(fd);
}

pid_t cli_start(const char *const *words, int *o, int *e)
{
    int first[2], second[2];
    pid_t pid;

    if (pipe2(first, O_CLOEXEC) != 0 || pipe2(second, O_CLOEXEC) != 0)
        err(1, "pipe");
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        (void)signal(SIGINT,
                     SIG_DFL); /* a shell's background job would pass on that it is ignored */
        (void)dup2(first[1], STDOUT_FILENO);
        (void)dup2(second[1], STDERR_FILENO);
        (void)execv(TORUSCTL, (char *const *)(uintptr_t)words);
        _exit(99);
    }
    (void)close(first[1]);
    (void)close(second[1]);
    *o = first[0];
    *e = second[0];
    return pid;
}

int cli_finish(pid_t pid, int o, int e)
{
    int status;
    cli_take(o, cli_output);
    cli_take(e, cli_problem);
    if (waitpid(pid, &status, 0) != pid)
        err(1, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int cli_run(const char *const *words)
{
    int o, e;
    pid_t pid = cli_start(words, &o, &e);
    return cli_finish(pid, o, e);
}

int cli_served(void (*serve)(int fd), const char *const *words)
{
    const char *all[32] = {"torusctl", "--socket"};
    size_t count = 3;
    struct fake f;

    while (words[count - 3] != NULL && count < 31) {
        all[count] = words[count - 3];
        count++;
    }
    fake_start(&f, serve);
    all[2] = f.path;
    int code = cli_run(all);
    fake_stop(&f);
    return code;
}

json_t *cli_object(void)
{
    json_t *value = json_loads(cli_output, 0, NULL);
    assert_true(json_is_object(value));
    assert_non_null(strchr(cli_output, '\n'));
    assert_ptr_equal(strchr(cli_output, '\n'), cli_output + strlen(cli_output) - 1);
    return value;
}

void cli_expect(const char *wanted)
{
    json_t *value = cli_object();

    json_expect(value, wanted);
    json_decref(value);
}

void cli_check_error(const char *code, const char *id)
{
    json_t *value = cli_object(), *error = json_object_get(value, "error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    assert_non_null(json_string_value(json_object_get(error, "text")));
    if (id != NULL)
        assert_string_equal(json_string_value(json_object_get(value, "id")), id);
    else
        assert_null(json_object_get(value, "id"));
    json_decref(value);
}
