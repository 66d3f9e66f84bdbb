/* Plays worlds in processes of their own, and makes them smaller while they still fail. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/swarm/swarm.h"

#define PROCESSOR_SECONDS 60u

/* The last line on its standard error. */
static void read_log(int log, char *text, size_t size)
{
    off_t end = lseek(log, 0, SEEK_END), most = (off_t)size - 1;
    ssize_t n = pread(log, text, size - 1, end > most ? end - most : 0);

    text[n > 0 ? n : 0] = '\0';
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

void swarm_begin(struct swarm_world *w, struct swarm_outcome *o, bool tell, int log, int *pid)
{
    *o = (struct swarm_outcome){0};
    (void)fflush(stdout); /* otherwise both processes would write the buffered output */
    *pid = fork();
    if (*pid < 0) {
        perror("swarm: fork");
        exit(2);
    }
    if (*pid > 0)
        return;
    const struct rlimit limit = {PROCESSOR_SECONDS, PROCESSOR_SECONDS};
    (void)setrlimit(RLIMIT_CPU, &limit);
    if (log >= 0) {
        (void)ftruncate(log, 0);
        (void)lseek(log, 0, SEEK_SET);
        (void)dup2(log, STDERR_FILENO);
    }
    swarm_play(w, o, tell);
    exit(o->end == SWARM_HELD ? 0 : 1); /* exit(), so that a sanitizer looks for leaks */
}

void swarm_ended(struct swarm_outcome *o, int status, int log)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && o->end == SWARM_HELD)
        return;
    if (o->end == SWARM_VIOLATED)
        return;
    o->end = SWARM_VIOLATED;
    (void)snprintf(o->invariant, sizeof o->invariant, "%s",
                   WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "endless" : "crash");
    if (log >= 0)
        read_log(log, o->text, sizeof o->text);
    if (o->text[0] == '\0')
        (void)snprintf(o->text, sizeof o->text, "%s %d", WIFSIGNALED(status) ? "signal" : "exit",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void swarm_run(struct swarm_world *w, struct swarm_outcome *o, bool tell, int log)
{
    int pid, status;

    swarm_begin(w, o, tell, log, &pid);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            exit(2);
    swarm_ended(o, status, log);
}

/* --- smaller --- */

struct shrinking {
    struct swarm_world world; /* the smallest world that is known to fail */
    struct swarm_outcome *outcome;
    char invariant[40];
    unsigned tried;
    int log;
};

/* A new world of the same seed, without the parts that `like` leaves out. */
static void again(struct swarm_world *w, const struct swarm_world *like, const char *dims)
{
    const struct swarm_world without = *like;

    swarm_draw(w, without.seed, dims, without.rated);
    w->no_request = without.no_request;
    w->no_fault = without.no_fault;
    w->no_group = without.no_group;
    w->no_copy = without.no_copy;
    w->find = without.find;
}

/* Returns true if the world still fails in the same way without the parts that `like` leaves out; it is then the
 * smallest one. */
static bool try(struct shrinking *s, const struct swarm_world *like, const char *dims)
{
    static struct swarm_world w; /* large */

    again(&w, like, dims);
    s->tried++;
    swarm_run(&w, s->outcome, false, s->log);
    if (s->outcome->end != SWARM_VIOLATED || strcmp(s->outcome->invariant, s->invariant) != 0)
        return false;
    again(&s->world, &w, dims);
    return true;
}

/* Tries to leave out each of `count` parts, whose bits are at this place in a world. */
static bool without_parts(struct shrinking *s, unsigned count, size_t mask)
{
    static struct swarm_world like;
    bool smaller = false;

    for (unsigned i = 0; i < count; i++) {
        like = s->world;
        uint64_t *left_out = (uint64_t *)(void *)((char *)&like + mask);
        if ((*left_out & UINT64_C(1) << i) != 0)
            continue;
        *left_out |= UINT64_C(1) << i;
        smaller |= try(s, &like, like.dims);
    }
    return smaller;
}

static bool on_a_smaller_torus(struct shrinking *s)
{
    const char *dims;

    for (unsigned i = 0; (dims = swarm_dims(i)) != NULL && strcmp(dims, s->world.dims) != 0; i++)
        if (try(s, &s->world, dims))
            return true;
    return false;
}

void swarm_shrink(struct swarm_world *w, struct swarm_outcome *o)
{
    static struct shrinking s;
    FILE *log = tmpfile();

    s = (struct shrinking){.world = *w, .outcome = o, .log = log != NULL ? fileno(log) : -1};
    (void)snprintf(s.invariant, sizeof s.invariant, "%s", o->invariant);
    bool smaller;
    do {
        smaller = without_parts(&s, s.world.faults, offsetof(struct swarm_world, no_fault));
        smaller |= without_parts(&s, s.world.groups, offsetof(struct swarm_world, no_group));
        smaller |= without_parts(&s, s.world.copies, offsetof(struct swarm_world, no_copy));
        smaller |= without_parts(&s, s.world.requests, offsetof(struct swarm_world, no_request));
        smaller |= on_a_smaller_torus(&s);
        (void)fprintf(stderr, "swarm: seed %" PRIu64 ": %u worlds tried\n", s.world.seed, s.tried);
    } while (smaller);
    again(w, &s.world, s.world.dims);
    swarm_run(w, o, false, s.log);
    if (log != NULL)
        (void)fclose(log);
}

static size_t add_list(char *text, size_t size, const char *option, uint64_t left_out)
{
    size_t used = 0;

    for (unsigned i = 0; i < 64 && used < size; i++)
        if ((left_out & UINT64_C(1) << i) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%u", used == 0 ? option : ",", i);
    return used < size ? used : size;
}

void swarm_options(const struct swarm_world *w, char *text, size_t size)
{
    static struct swarm_world own;
    size_t used = 0;

    text[0] = '\0';
    swarm_draw(&own, w->seed, NULL, false);
    if (strcmp(own.dims, w->dims) != 0)
        used += (size_t)snprintf(
            text, size, strchr(w->dims, ' ') == NULL ? " --dims %s" : " --dims '%s'", w->dims);
    if (own.rated != w->rated)
        used += (size_t)snprintf(text + used, size - used, " --rates");
    used += add_list(text + used, size - used, " --without-requests ", w->no_request);
    used += add_list(text + used, size - used, " --without-faults ", w->no_fault);
    used += add_list(text + used, size - used, " --without-groups ", w->no_group);
    used += add_list(text + used, size - used, " --without-copies ", w->no_copy);
    if (w->find != NULL)
        (void)snprintf(text + used, size - used, " --find '%s'", w->find);
}
