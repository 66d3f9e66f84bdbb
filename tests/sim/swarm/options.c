#include "tests/sim/swarm/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/sim/swarm/swarm.h"

static const char usage[] =
    "usage: swarm [option...]\n"
    "\n"
    "Plays random worlds of the real core, in virtual time: tori and networks, clients that ask "
    "for\n"
    "exchanges or copies of trees, programs that open groups, and faults. A seed determines a "
    "world "
    "completely. The "
    "exit status is 0 if all\n"
    "invariants held, 1 if one was violated, and 2 if the swarm itself could not run.\n"
    "\n"
    "  --seeds N            number of worlds (default 1000; with --seconds, no limit)\n"
    "  --seconds S          begins no more worlds after S seconds\n"
    "  --first S            the first seed (default 0)\n"
    "  --today              the first seed is the date (UTC) times 100000, such as 2026112800000\n"
    "  --jobs N             number of processes (default 2)\n"
    "  --progress FILE      resumes with the seed in FILE, if it exists, instead of --first, and\n"
    "                       keeps the next seed there\n"
    "  --most-violations N  stops after N violations (default 10)\n"
    "  --json               prints a summary in JSON on standard output\n"
    "  --twice              plays each world twice, and compares the traces\n"
    "  --hashes             prints the hash of each trace\n"
    "  --shrink S           finds a smaller version of the world of seed S that still fails\n"
    "  --list               lists the kinds of faults\n"
    "\n"
    "One world alone:\n"
    "  --trace              prints the events and the daemons' logs (for --seeds 1)\n"
    "  --dims DIMS          plays it on this torus or network instead of its own; also petersen, "
    "and\n"
    "                       random: a graph of 24 nodes with 4 links each, which depends on the "
    "seed\n"
    "  --without-requests I,I...  leaves out these requests\n"
    "  --without-faults I,I...    leaves out these faults\n"
    "  --without-groups I,I...    leaves out these groups\n"
    "  --without-copies I,I...    leaves out these copies of trees\n"
    "\n"
    "  --find TEXT          counts an error that contains TEXT as a violation, to find a (small)\n"
    "                       world in which a client gets it\n";

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

/* What an option sets, each NULL if it does not. */
struct entry {
    const char *name;
    bool *flag;
    uint64_t *number;  /* from its argument, as the next two: a number, */
    uint64_t *mask;    /* a list of bits, */
    const char **word; /* or any text */
};

static void set(const struct entry *entry, const char *argument)
{
    if (entry->flag != NULL)
        *entry->flag = true;
    if (entry->number != NULL)
        *entry->number = number(argument);
    if (entry->mask != NULL)
        *entry->mask = mask(argument);
    if (entry->word != NULL)
        *entry->word = argument;
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
    const struct entry entries[] = {
        {"seeds", .number = &o->seeds},
        {"seconds", .number = &o->seconds},
        {"first", .flag = &o->has_first, .number = &o->first},
        {"today", .flag = &o->today},
        {"jobs", .number = &o->jobs},
        {"progress", .word = &o->progress},
        {"most-violations", .number = &o->most_violations},
        {"json", .flag = &o->json},
        {"twice", .flag = &o->twice},
        {"hashes", .flag = &o->hashes},
        {"shrink", .flag = &o->shrink, .number = &o->first},
        {"list", .flag = &o->list},
        {"trace", .flag = &o->trace},
        {"dims", .word = &o->dims},
        {"without-requests", .mask = &o->no_request},
        {"without-faults", .mask = &o->no_fault},
        {"without-groups", .mask = &o->no_group},
        {"without-copies", .mask = &o->no_copy},
        {"find", .word = &o->find},
        {"help", .flag = &o->help},
    };
    struct option names[sizeof entries / sizeof entries[0] + 1] = {{0}};
    int c, which;

    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const struct entry *e = &entries[i];
        names[i].name = e->name;
        names[i].has_arg = e->number != NULL || e->mask != NULL || e->word != NULL;
    }
    *o = (struct options){.seeds = UINT64_MAX, .jobs = 2, .most_violations = 10};
    while ((c = getopt_long(argc, argv, "", names, &which)) >= 0) {
        if (c != 0) {
            (void)fputs("swarm: see --help\n", stderr);
            exit(2);
        }
        set(&entries[which], optarg);
        if (o->help) {
            (void)fputs(usage, stdout);
            exit(0);
        }
    }
    if (optind < argc)
        options_fail("unexpected argument %s", argv[optind]);
    check(o);
    if (o->today)
        o->first = seed_of_today();
    if (o->seeds == UINT64_MAX && o->seconds == 0)
        o->seeds = 1000;
}
