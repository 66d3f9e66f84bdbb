#include "topo/guest/bridge/shells.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/guest/bridge/complain.h"

int shell_start(const char *path, pid_t *pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    *pid = fork();
    if (*pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)signal(SIGHUP, SIG_DFL);
        (void)setsid();
        for (int fd = 0; fd < 3; fd++)
            (void)dup2(pair[1], fd);
        (void)execl(path, path, (char *)NULL);
        complain("%s: %s", path, strerror(errno));
        _exit(127);
    }
    (void)close(pair[1]);
    if (*pid > 0)
        return pair[0];
    (void)close(pair[0]);
    return -1;
}

pid_t shell_reap(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    return pid > 0 ? pid : 0;
}
