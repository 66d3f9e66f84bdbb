/* swarm: plays random worlds, each in a process of its own, and reports violated invariants. */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "tests/sim/swarm/options.h"
#include "tests/sim/swarm/swarm.h"

struct slot {
    int pid; /* 0: free */
    uint64_t seed;
    bool again;      /* the second time */
    uint64_t before; /* the trace of the first */
    FILE *log;
    struct swarm_outcome *outcome; /* shared */
};

struct swarm_total {
    uint64_t played, violations, asked, succeeded, shrunk, failed, in_doubt, frames, rerouted,
        resumed;
    uint64_t groups, groups_done, groups_failed, calls;
    uint64_t copies, copies_done, copies_failed, copies_retried;
    double virtual_seconds, seconds;
    uint64_t begun[SWARM_NEMESES];
    json_t *list;
};

/* The daemons' logs are printed only with --trace. */
static bool tell_logs;

void __wrap_log_write(enum log_level level, const char *format, ...);

void __wrap_log_write(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    va_list ap;

    if (!tell_logs || level >= LOG_LEVEL_DEBUG)
        return;
    (void)fprintf(stderr, "              %s: ", names[level]);
    va_start(ap, format);
    (void)vfprintf(stderr, format, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
}

static void draw(const struct options *o, struct swarm_world *w, uint64_t seed)
{
    swarm_draw(w, seed, o->dims, o->rates);
    w->no_request = o->no_request;
    w->no_fault = o->no_fault;
    w->no_group = o->no_group;
    w->no_copy = o->no_copy;
    w->find = o->find;
}

/* --- lines about the progress --- */

#define LINE_SECONDS 1.0      /* between two of them on a terminal */
#define PROGRESS_SECONDS 10.0 /* elsewhere, and between two writes of the file */

static bool line_is_open; /* without its end: the next text takes its place */

static double seconds_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool on_terminal(void)
{
    return isatty(STDERR_FILENO) != 0;
}

static void clear_line(void)
{
    if (line_is_open)
        (void)fputs("\r\033[K", stderr);
    line_is_open = false;
}

/* --- many --- */

static void report(const struct options *o, struct swarm_total *t, const struct slot *slot)
{
    const struct swarm_outcome *out = slot->outcome;
    char command[600], options[400];
    static struct swarm_world w;

    draw(o, &w, slot->seed);
    swarm_options(&w, options, sizeof options);
    (void)snprintf(command, sizeof command, "scripts/swarm --first %" PRIu64 " --seeds 1%s --trace",
                   slot->seed, options);
    t->violations++;
    clear_line();
    (void)fprintf(stderr, "seed %" PRIu64 ": %s, at %.6f s: %s\n    %s\n", slot->seed,
                  out->invariant, (double)out->at / 1e9, out->text, command);
    json_array_append_new(t->list,
                          json_pack("{s:I, s:s, s:s, s:s, s:f}", "seed", (json_int_t)slot->seed,
                                    "invariant", out->invariant, "text", out->text, "command",
                                    command, "at", (double)out->at / 1e9));
}

static void add(struct swarm_total *t, const struct swarm_outcome *out)
{
    t->played++;
    t->asked += out->asked;
    t->succeeded += out->succeeded;
    t->shrunk += out->shrunk;
    t->failed += out->failed;
    t->rerouted += out->rerouted;
    t->resumed += out->resumed;
    t->in_doubt += out->in_doubt;
    t->groups += out->groups;
    t->groups_done += out->groups_done;
    t->groups_failed += out->groups_failed;
    t->calls += out->calls;
    t->copies += out->copies;
    t->copies_done += out->copies_done;
    t->copies_failed += out->copies_failed;
    t->copies_retried += out->copies_retried;
    t->frames += out->frames;
    t->virtual_seconds += (double)out->at / 1e9;
    for (unsigned i = 0; i < SWARM_NEMESES; i++)
        t->begun[i] += out->begun[i];
}

static void start(const struct options *o, struct slot *slot, uint64_t seed)
{
    static struct swarm_world w; /* the child has a copy */

    draw(o, &w, seed);
    slot->seed = seed;
    if (o->trace)
        swarm_print(&w);
    swarm_begin(&w, slot->outcome, o->trace, o->trace ? -1 : fileno(slot->log), &slot->pid);
}

/* True if the slot is free for the next seed. */
static bool finish(const struct options *o, struct swarm_total *t, struct slot *slot, int status)
{
    struct swarm_outcome *out = slot->outcome;

    slot->pid = 0;
    swarm_ended(out, status, o->trace ? -1 : fileno(slot->log));
    if (o->twice && !slot->again) {
        slot->again = true;
        slot->before = out->trace;
        start(o, slot, slot->seed);
        return false;
    }
    if (slot->again && slot->before != out->trace) {
        out->end = SWARM_VIOLATED;
        (void)snprintf(out->invariant, sizeof out->invariant, "one seed, one trace");
        (void)snprintf(out->text, sizeof out->text, "%016" PRIx64 ", then %016" PRIx64,
                       slot->before, out->trace);
        report(o, t, slot);
    } else if (out->end == SWARM_VIOLATED && !o->twice) {
        report(o, t, slot);
    }
    slot->again = false;
    if (o->hashes)
        (void)printf("%" PRIu64 " %016" PRIx64 "\n", slot->seed, out->trace);
    add(t, out);
    return true;
}

static struct slot *slot_of(struct slot *slots, uint64_t jobs, int pid)
{
    for (unsigned i = 0; i < jobs; i++)
        if (slots[i].pid == pid)
            return &slots[i];
    return NULL;
}

static uint64_t read_progress(const struct options *o)
{
    uint64_t next = o->first;
    FILE *f = o->progress != NULL ? fopen(o->progress, "r") : NULL;

    if (f != NULL && fscanf(f, "%" SCNu64, &next) != 1)
        options_fail("%s does not contain a seed", o->progress);
    if (f != NULL)
        (void)fclose(f);
    return next;
}

/* All seeds below this one have been played. */
static void keep_progress(const struct options *o, const struct slot *slots, uint64_t next)
{
    char temporary[4096];
    FILE *f;

    if (o->progress == NULL)
        return;
    for (unsigned i = 0; i < o->jobs; i++)
        if (slots[i].pid != 0 && slots[i].seed < next)
            next = slots[i].seed;
    (void)snprintf(temporary, sizeof temporary, "%s.new", o->progress);
    f = fopen(temporary, "w");
    if (f == NULL || fprintf(f, "%" PRIu64 "\n", next) < 0 || fclose(f) != 0 ||
        rename(temporary, o->progress) != 0)
        options_fail("%s cannot be written", o->progress);
}

struct hunt {
    const struct options *o;
    struct swarm_total *t;
    struct slot *slots;
    uint64_t next, end;       /* seeds */
    double began, told, kept; /* seconds: the last line about its progress, and the last file */
};

static bool goes_on(const struct hunt *h)
{
    return h->next < h->end && h->t->violations < h->o->most_violations &&
           (h->o->seconds == 0 || seconds_now() < h->began + (double)h->o->seconds);
}

/* On a terminal, a line that is written again and again. */
static void tell_progress(struct hunt *h)
{
    const struct options *o = h->o;
    const double now = seconds_now(), pause = on_terminal() ? LINE_SECONDS : PROGRESS_SECONDS;

    if (now >= h->kept + PROGRESS_SECONDS) {
        h->kept = now;
        keep_progress(o, h->slots, h->next);
    }
    if (o->trace || now < h->told + pause)
        return;
    h->told = now;
    clear_line();
    (void)fprintf(stderr, "swarm: %" PRIu64 " seeds", h->t->played);
    if (o->seeds < UINT64_MAX)
        (void)fprintf(stderr, " of %" PRIu64, o->seeds);
    (void)fprintf(stderr, ", after %.0f", now - h->began);
    if (o->seconds > 0)
        (void)fprintf(stderr, " of %" PRIu64, o->seconds);
    (void)fprintf(stderr, " s, next %" PRIu64 "%s", h->next, on_terminal() ? "" : "\n");
    line_is_open = on_terminal();
}

static void hunt(const struct options *o, struct swarm_total *t, struct slot *slots)
{
    const uint64_t left = UINT64_MAX - o->first;
    struct hunt h = {.o = o, .t = t, .slots = slots, .next = read_progress(o)};
    unsigned running = 0;

    h.end = o->first + (o->seeds < left ? o->seeds : left);
    h.began = h.told = h.kept = seconds_now();
    for (unsigned i = 0; i < o->jobs && h.next < h.end; i++, running++)
        start(o, &slots[i], h.next++);
    while (running > 0) {
        int status, pid = wait(&status);
        struct slot *slot = pid > 0 ? slot_of(slots, o->jobs, pid) : NULL;
        if (slot == NULL || !finish(o, t, slot, status))
            continue;
        running--;
        if (goes_on(&h)) {
            start(o, slot, h.next++);
            running++;
        }
        tell_progress(&h);
    }
    keep_progress(o, slots, h.next);
    t->seconds = seconds_now() - h.began;
}

static void summarize(const struct options *o, const struct swarm_total *t)
{
    clear_line();
    (void)fprintf(stderr,
                  "%" PRIu64 " seeds from %" PRIu64 " on, %.1f a second, in %.0f s: %" PRIu64
                  " violations; %" PRIu64 " requests: %" PRIu64 " done (%" PRIu64
                  " retried without links, %" PRIu64 " with kept output, %" PRIu64
                  " without some nodes), %" PRIu64 " failed, %" PRIu64 " in doubt; %" PRIu64
                  " groups: %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " calls; %" PRIu64
                  " copies: %" PRIu64 " done (%" PRIu64 " after a retry), %" PRIu64 " failed\n",
                  t->played, o->first, (double)t->played / t->seconds, t->seconds, t->violations,
                  t->asked, t->succeeded, t->rerouted, t->resumed, t->shrunk, t->failed,
                  t->in_doubt, t->groups, t->groups_done, t->groups_failed, t->calls, t->copies,
                  t->copies_done, t->copies_retried, t->copies_failed);
    if (!o->json)
        return;
    json_t *faults = json_object();
    for (unsigned i = 0; swarm_nemesis(i) != NULL; i++)
        json_object_set_new(faults, swarm_nemesis(i)->name, json_integer((json_int_t)t->begun[i]));
    json_t *all = json_pack(
        "{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:I, s:I, s:I, "
        "s:o, "
        "s:O}",
        "first", (json_int_t)o->first, "seeds", (json_int_t)t->played, "violated",
        (json_int_t)t->violations, "seconds", t->seconds, "virtual_seconds", t->virtual_seconds,
        "frames", (json_int_t)t->frames, "requests", (json_int_t)t->asked, "succeeded",
        (json_int_t)t->succeeded, "rerouted", (json_int_t)t->rerouted, "resumed",
        (json_int_t)t->resumed, "shrunk", (json_int_t)t->shrunk, "failed", (json_int_t)t->failed,
        "in_doubt", (json_int_t)t->in_doubt, "groups", (json_int_t)t->groups, "groups_done",
        (json_int_t)t->groups_done, "groups_failed", (json_int_t)t->groups_failed, "calls",
        (json_int_t)t->calls, "copies", (json_int_t)t->copies, "copies_done",
        (json_int_t)t->copies_done, "copies_failed", (json_int_t)t->copies_failed, "copies_retried",
        (json_int_t)t->copies_retried, "faults", faults, "violations", t->list);
    (void)json_dumpf(all, stdout, JSON_INDENT(2));
    (void)putchar('\n');
    json_decref(all);
}

/* --- one --- */

static int shrink(const struct options *o, struct swarm_outcome *outcome)
{
    static struct swarm_world w;
    char options[400];

    draw(o, &w, o->first);
    FILE *log = tmpfile();
    swarm_run(&w, outcome, false, log != NULL ? fileno(log) : -1);
    if (outcome->end != SWARM_VIOLATED) {
        (void)printf("seed %" PRIu64 " does not fail\n", o->first);
        return 0;
    }
    swarm_shrink(&w, outcome);
    swarm_options(&w, options, sizeof options);
    swarm_print(&w);
    (void)printf("%s: %s\nscripts/swarm --first %" PRIu64 " --seeds 1%s --trace\n",
                 outcome->invariant, outcome->text, w.seed, options);
    return 1;
}

int main(int argc, char **argv)
{
    static struct slot slots[OPTIONS_JOBS_MOST];
    struct options o;
    struct swarm_total total = {0};

    options_read(&o, argc, argv);
    tell_logs = o.trace;
    if (o.list) {
        for (unsigned i = 0; swarm_nemesis(i) != NULL; i++)
            (void)printf("%-10s  weight %2u  %s\n", swarm_nemesis(i)->name,
                         swarm_nemesis(i)->weight, swarm_nemesis(i)->does);
        return 0;
    }
    for (unsigned i = 0; i < o.jobs; i++) {
        slots[i].log = tmpfile();
        slots[i].outcome = mmap(NULL, sizeof *slots[i].outcome, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (slots[i].log == NULL || slots[i].outcome == MAP_FAILED) {
            perror("swarm");
            return 2;
        }
    }
    if (o.shrink)
        return shrink(&o, slots[0].outcome);
    total.list = json_array();
    if (o.today)
        (void)fprintf(stderr, "swarm: the first seed of today is %" PRIu64 "\n", o.first);
    hunt(&o, &total, slots);
    summarize(&o, &total);
    json_decref(total.list);
    return total.violations > 0;
}
