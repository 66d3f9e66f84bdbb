#include "tests/sim/swarm/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/lib/command_line/options.h"
#include "tests/sim/swarm/swarm.h"

static const char usage[] =
    "usage: swarm [option...]\n"
    "\n"
    "Plays random worlds of the real core, in virtual time: tori and networks, clients that ask\n"
    "for exchanges or copies of trees, programs that open groups, and faults. A seed determines\n"
    "a world completely. The exit status is 0 if all invariants held, 1 if one was violated, and\n"
    "2 if the swarm itself could not run.\n"
    "\n";

/* Values of one letter are numbers; those of a LIST become bits. */
static const struct option table[] = {
    {"--seeds", "N", offsetof(struct options, seeds),
     "number of worlds (default 1000; with --seconds, no limit)"},
    {"--seconds", "S", offsetof(struct options, seconds), "begins no more worlds after S seconds"},
    {"--first", "S", offsetof(struct options, first), "the first seed (default 0)"},
    {"--today", NULL, offsetof(struct options, today),
     "the first seed is the date (UTC) times 100000, such as 2026112800000"},
    {"--jobs", "N", offsetof(struct options, jobs), "number of processes (default 2)"},
    {"--progress", "FILE", offsetof(struct options, progress),
     "resumes with the seed in FILE, if it exists, instead of --first, and keeps the next seed "
     "there"},
    {"--most-violations", "N", offsetof(struct options, most_violations),
     "stops after N violations (default 10)"},
    {"--json", NULL, offsetof(struct options, json), "prints a summary in JSON on standard output"},
    {"--twice", NULL, offsetof(struct options, twice),
     "plays each world twice, and compares the traces"},
    {"--hashes", NULL, offsetof(struct options, hashes), "prints the hash of each trace"},
    {"--shrink", "S", offsetof(struct options, first),
     "finds a smaller version of the world of seed S that still fails"},
    {"--list", NULL, offsetof(struct options, list), "lists the kinds of faults"},
    {"--trace", NULL, offsetof(struct options, trace),
     "of one world: prints the events and the daemons' logs (for --seeds 1)"},
    {"--dims", "DIMS", offsetof(struct options, dims),
     "plays it on this torus or network instead of its own; also petersen, and random: a graph of "
     "24 nodes with 4 links each, which depends on the seed"},
    {"--rates", NULL, offsetof(struct options, rates),
     "in every world, links change their rates (otherwise in one of eight)"},
    {"--without-requests", "LIST", offsetof(struct options, no_request),
     "leaves out these requests of one world"},
    {"--without-faults", "LIST", offsetof(struct options, no_fault), "leaves out these faults"},
    {"--without-groups", "LIST", offsetof(struct options, no_group), "leaves out these groups"},
    {"--without-copies", "LIST", offsetof(struct options, no_copy),
     "leaves out these copies of trees"},
    {"--find", "TEXT", offsetof(struct options, find),
     "counts an error that contains TEXT as a violation, to find a (small) world in which a client "
     "gets it"},
    {"--help", NULL, offsetof(struct options, help), "prints this text"},
    {0},
};

void options_fail(const char *format, const char *word)
{
    (void)fprintf(stderr, "swarm: ");
    (void)fprintf(stderr, format, word);
    (void)fprintf(stderr, " (see --help)\n");
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end;

    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        options_fail("%s is not a number", text);
    return value;
}

static uint64_t mask(const char *list)
{
    uint64_t bits = 0;
    char *end;

    for (const char *at = list;; at = end + 1) {
        unsigned long bit = strtoul(at, &end, 10);
        if (end == at || bit > 63 || (*end != ',' && *end != '\0'))
            options_fail("%s is not a list of numbers below 64", list);
        bits |= UINT64_C(1) << bit;
        if (*end == '\0')
            return bits;
    }
}

static void set(struct options *o, const struct option_given *given)
{
    const struct option *option = given->option;
    void *place = (char *)o + option->offset;

    if (option->value == NULL)
        *(bool *)place = true;
    else if (strcmp(option->value, "LIST") == 0)
        *(uint64_t *)place = mask(given->text);
    else if (option->value[1] == '\0')
        *(uint64_t *)place = number(given->text);
    else
        *(const char **)place = given->text;
    o->has_first |= strcmp(option->name, "--first") == 0;
    o->shrink |= strcmp(option->name, "--shrink") == 0;
}

static uint64_t seed_of_today(void)
{
    time_t now = time(NULL);
    struct tm day;

    if (gmtime_r(&now, &day) == NULL)
        options_fail("%s has no date", "the clock");
    return (uint64_t)((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday) * 100000;
}

static void check(const struct options *o)
{
    struct torus torus;

    if (o->today && (o->has_first || o->shrink))
        options_fail("%s and another seed exclude each other", "--today");
    if (o->jobs == 0 || o->jobs > OPTIONS_JOBS_MOST)
        options_fail("%s must be 1 to 64", "--jobs");
    if (o->dims != NULL &&
        (torus_parse(&torus, swarm_network_text(o->dims, o->first), NULL) != 0 || torus.nodes < 2))
        options_fail("%s is not a torus of at least two nodes", o->dims);
}

void options_read(struct options *o, int argc, char **argv)
{
    struct option_given *given = calloc((size_t)argc, sizeof *given);
    struct error e;
    size_t count;
    int used = given != NULL ? options_list(table, argc - 1, argv + 1, given, &count, &e)
                             : error_set(&e, ERROR_MEMORY, "out of memory");

    *o = (struct options){.seeds = UINT64_MAX, .jobs = 2, .most_violations = 10};
    if (used < 0)
        options_fail("%s", e.text);
    for (size_t i = 0; i < count; i++)
        set(o, &given[i]);
    free(given);
    if (o->help) {
        (void)fputs(usage, stdout);
        options_help(stdout, table);
        exit(0);
    }
    if (used < argc - 1)
        options_fail("unexpected argument %s", argv[used + 1]);
    check(o);
    if (o->today)
        o->first = seed_of_today();
    if (o->seeds == UINT64_MAX && o->seconds == 0)
        o->seeds = 1000;
}
