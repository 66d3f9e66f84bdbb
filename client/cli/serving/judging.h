/* Judges all machines (client/cli/doctor) in another process, because that waits for answers: pages go on meanwhile. */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "client/cli/terminal/cli.h"

#define JUDGING_MOST_BYTES (1u << 20) /* of the findings */
#define JUDGING_MOST_SECONDS 30u

struct judging {
    pid_t pid; /* 0: none is under way */
    int fd;    /* to watch while one is under way */
    char *text;
    size_t length;
};

/* Starts judging, unless that is under way. Returns 0, or -1 if no process can be started. */
int judging_begin(struct judging *j, const struct cli *cli);
/* To be called when the descriptor is readable. Returns whether judging has ended; then *value is set to what
 * doctor_report_value() gave, which the caller owns, or to NULL. */
bool judging_go_on(struct judging *j, json_t **value);
/* Ends the process if there is one. */
void judging_end(struct judging *j);
