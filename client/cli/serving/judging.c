#include "client/cli/serving/judging.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/doctor/report.h"

/* The other process: it has no other descriptor of this one, and ends with it. */
static _Noreturn void judge(const struct cli *cli, int out)
{
    struct cli mine = {.socket = cli->socket, .commands = cli->commands, .command = cli->command};
    struct diagnosis d;
    sigset_t none;
    int code = EXIT_FAILED;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(out, STDOUT_FILENO) < 0 || close_range(STDERR_FILENO, ~0u, 0) != 0 ||
        open("/dev/null", O_WRONLY | O_CLOEXEC) != STDERR_FILENO)
        _exit(code);
    (void)alarm(JUDGING_MOST_SECONDS);
    if (diagnosis_make(&mine, &d) == EXIT_DONE) {
        json_t *value = doctor_report_value(&d, false);
        if (value != NULL && json_dumpfd(value, STDOUT_FILENO, JSON_COMPACT) == 0)
            code = EXIT_DONE;
        json_decref(value);
    }
    diagnosis_free(&d);
    torus_client_close(mine.client);
    _exit(code);
}

int judging_begin(struct judging *j, const struct cli *cli)
{
    int ends[2];

    if (j->pid > 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0)
        judge(cli, ends[1]);
    (void)close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        (void)close(ends[0]);
        return -1;
    }
    *j = (struct judging){.pid = pid, .fd = ends[0]};
    return 0;
}

void judging_end(struct judging *j)
{
    if (j->pid <= 0)
        return;
    (void)kill(j->pid, SIGKILL);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)close(j->fd);
    free(j->text);
    *j = (struct judging){0};
}

bool judging_go_on(struct judging *j, json_t **value)
{
    ssize_t n;

    *value = NULL;
    if (j->text == NULL && (j->text = malloc(JUDGING_MOST_BYTES)) == NULL) {
        judging_end(j);
        return true;
    }
    while ((n = read(j->fd, j->text + j->length, JUDGING_MOST_BYTES - j->length)) > 0)
        j->length += (size_t)n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == 0 && j->length < JUDGING_MOST_BYTES)
        *value = json_loadb(j->text, j->length, 0, NULL);
    judging_end(j);
    return true;
}
