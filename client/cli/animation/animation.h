/* torusctl plan --html: a page in which one schedule, or two side by side, play step by step. The page needs no other
 * file and no network. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/verify.h"

#define ANIMATION_MOST_BLOCKS 600000u /* segments of blocks in all messages */

struct measured_steps;

/* A verified schedule, and what a user has called it. */
struct animated {
    const struct algorithm *algorithm;
    const struct schedule_report *report;
    const struct measured_steps *measured; /* when its steps were over in a run; NULL: not known */
};

/* Writes the page for `count` schedules (1 or 2) on a torus to a file ("-": standard output); only with the blocks of
 * `source`, unless it is TORUS_NO_NODE. Returns EXIT_DONE, or another exit code after printing the reason, without a new
 * file. */
int animation_write(const struct cli *cli, const char *file, const struct torus *t,
                    const struct animated *schedules, unsigned count, uint32_t source);
