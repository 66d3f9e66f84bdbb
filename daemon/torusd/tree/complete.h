/* The marker of a staging in which everything is here and on the disk. What remains to be done is to put it in place, with
 * the rules that the marker has; it is done again until it succeeds, whatever crashes. */
#pragma once

#include "daemon/torusd/tree/staging.h"

#define COMPLETE_NAME "complete"
#define COMPLETE_MOST (64u * 1024u) /* bytes of patterns */

struct complete {
    bool into, delete, as_it_comes;
    char **pattern;
    uint32_t patterns;
};

/* Writes the marker, durably. Returns 0, or -1 with *e. */
int complete_write(const struct staging *s, const struct complete *c, struct error *e);
/* Reads the marker. Returns 1 with *c, which the caller gives to complete_free(); 0 if there is none or it is damaged; or
 * -1 with *e. */
int complete_read(const struct staging *s, struct complete *c, struct error *e);
/* Removes the marker: the staging becomes that of an interrupted copy. */
int complete_withdraw(const struct staging *s, struct error *e);
void complete_free(struct complete *c);
