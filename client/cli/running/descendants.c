#include "client/cli/running/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"

struct process {
    pid_t pid, parent;
    bool ours;
};

void descendants_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Returns the parent of a process, or -1 if it has gone. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    const char *end;
    FILE *file;
    size_t n;
    int parent;

    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return -1;
    n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    end = strrchr(text, ')'); /* the name in front of it may have any characters */
    return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static int compare(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static size_t list_all(struct process **list)
{
    DIR *proc = opendir("/proc");
    size_t count = 0, room = 0;
    const struct dirent *entry;

    *list = NULL;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        if (GROW(*list, count, room) != 0)
            break;
        (*list)[count++] = (struct process){.pid = pid, .parent = parent_of(entry->d_name)};
    }
    if (proc != NULL)
        (void)closedir(proc);
    if (count > 0)
        qsort(*list, count, sizeof **list, compare);
    return count;
}

static bool is_ours(const struct process *list, size_t count, pid_t pid)
{
    const struct process key = {.pid = pid}, *found;

    if (pid == getpid())
        return true;
    found = bsearch(&key, list, count, sizeof *list, compare);
    return found != NULL && found->ours;
}

/* Marks the descendants. */
static void mark(struct process *list, size_t count)
{
    bool more = count > 0;

    while (more) {
        more = false;
        for (size_t i = 0; i < count; i++)
            if (!list[i].ours && is_ours(list, count, list[i].parent))
                list[i].ours = more = true;
    }
}

static bool is_in(pid_t pid, const pid_t *group, size_t groups)
{
    const pid_t own = getpgid(pid);

    for (size_t i = 0; i < groups; i++)
        if (group[i] == own)
            return true;
    return false;
}

int descendants_signal(int number, const pid_t *group, size_t groups)
{
    struct process *list;
    size_t count;
    int sent = 0, refused = 0;

    for (size_t i = 0; i < groups; i++) {
        sent += kill(-group[i], number) == 0;
        (void)kill(-group[i], SIGCONT);
    }
    count = list_all(&list); /* after the groups: a process of them may just have left its group */
    mark(list, count);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].ours || is_in(list[i].pid, group, groups))
            continue;
        if (kill(list[i].pid, number) == 0)
            sent++;
        else
            refused += errno == EPERM;
        (void)kill(list[i].pid, SIGCONT);
    }
    free(list);
    return sent > 0 || refused == 0 ? sent : -1;
}

void descendants_end(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};

    while (descendants_signal(SIGKILL, NULL, 0) >= 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        (void)nanosleep(&moment, NULL);
    }
}
