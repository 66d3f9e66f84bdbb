/* Whether a firewall drops packets that this host should forward. Only root may read the rules; for others, an
 * interface of Docker, whose daemon sets the policy DROP, is the only sign. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/host/gather.h"

#define RULES_MOST (64u * 1024u)
#define PATIENCE_MS 2000

extern char **environ;

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads until the end, at most `size` - 1 bytes, for PATIENCE_MS. */
static void read_all(int fd, char *text, size_t size)
{
    const int64_t until = now_ms() + PATIENCE_MS;
    size_t length = 0;

    while (length < size - 1) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const int64_t left = until - now_ms();
        if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
            break;
        const ssize_t n = read(fd, text + length, size - 1 - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    text[length] = '\0';
}

/* Runs a program, and reads what it prints. Returns false if it could not be run, or failed. */
static bool run(const char *const *argv, char *text, size_t size)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1, error;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    (void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (error == 0) {
        read_all(ends[0], text, size);
        (void)kill(child, SIGKILL); /* it has ended, unless it hangs or prints too much */
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)close(ends[0]);
    return error == 0 && text[0] != '\0';
}

/* ":FORWARD DROP [0:0]" of iptables-save, or "type filter hook forward ...; policy drop;" of nft. */
static const char *policy_of(const char *rules)
{
    const char *forward = strstr(rules, ":FORWARD ");

    if (forward != NULL)
        return strncmp(forward, ":FORWARD DROP", 13) == 0 ? "drop" : "accept";
    for (forward = strstr(rules, "hook forward"); forward != NULL;
         forward = strstr(forward + 1, "hook forward")) {
        const char *end = strchr(forward, '\n'), *drop = strstr(forward, "policy drop");
        if (drop != NULL && (end == NULL || drop < end))
            return "drop";
    }
    return "accept";
}

void gather_firewall(struct facts *f)
{
    static const char *const programs[][5] = {{"nft", "list", "ruleset", NULL},
                                              {"iptables-save", "-t", "filter", NULL}};
    char *rules = geteuid() == 0 ? malloc(RULES_MOST) : NULL;
    const char *policy = "unknown";

    facts_add(f, "firewall.docker", "%s", if_nametoindex("docker0") != 0 ? "yes" : "no");
    for (size_t i = 0; rules != NULL && i < sizeof programs / sizeof *programs; i++) {
        if (!run(programs[i], rules, RULES_MOST))
            continue;
        policy = policy_of(rules);
        if (strcmp(policy, "drop") == 0)
            break;
    }
    free(rules);
    facts_add(f, "firewall.forward", "%s", policy);
}
