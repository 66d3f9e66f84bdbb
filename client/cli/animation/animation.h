/* torusctl plan --html: a page in which one schedule, or two side by side, play step by step. The page needs no other
 * file and no network. */
#pragma once

#include <jansson.h>

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/verify.h"

#define ANIMATION_MOST_BLOCKS 600000u /* segments of blocks in all messages */

struct measured_steps;

/* A verified schedule, and what a user has called it. */
struct animated {
    const struct algorithm *algorithm;
    const struct damage *rates; /* of the channels; NULL: all have the full rate */
    const struct schedule_report *report;
    const struct measured_steps *measured; /* when its steps were over in a run; NULL: not known */
};

/* Returns the messages of a schedule, step by step, as a page plays them (player.js), as an object, which the caller owns:
 *
 *     name, summary, paper, operation, ports, segments, streaming     of the algorithm
 *     startups, transmission, bound, contended                        of the report, in blocks
 *     gather           true: a block is for all nodes, and known by its source alone
 *     measured, run    how many seconds each step took in a run, and the run's id; only if it is known
 *     steps            of each step: {name, why, messages}; a message is [node, port, hops, block ...], where a block is
 *                      (segment * nodes + source) * nodes + destination, or with `gather` segment * nodes + source
 *
 * *blocks counts the blocks in all messages, and must not become more than ANIMATION_MOST_BLOCKS. Returns NULL with *e. */
json_t *schedule_json(const struct torus *t, const struct animated *a, uint32_t source,
                      uint64_t *blocks, struct error *e);

/* The options of torusctl plan that make a page, as the user has given them; NULL: not given. */
struct animation_arguments {
    const char *file; /* "-": standard output */
    const char *compare;
    const char *trace;
};

/* Whether the page replaces the output of the command. */
bool plan_animation_is_output(const struct animation_arguments *a);

/* Writes the page of a verified schedule, if a file was given, beside that of --compare; `source` is the argument of
 * --source, or NULL. Returns EXIT_DONE, or another exit code after printing the reason. */
int plan_animation(const struct cli *cli, const struct animation_arguments *a, const char *source,
                   const struct torus *t, const struct animated *schedule);
