/* What exchanges cost on this torus (schedule/predict/predict.h), as it was measured: known to all nodes.
 * A new calibration is flooded; a link that comes up begins with what each end knows, so a node
 * that was not there is told.
 *
 * Whoever sets a calibration (or takes it back) gives it a random id and names the ids that it
 * replaces: the one that its node knew, and those that this one had replaced. Of two calibrations
 * the one that is named by the other is the older. Only if neither names the other, or both do, the
 * higher version is the newer. So no version is final: even one that carries the highest is
 * replaced by what is set at any node that knows it, since nobody can foresee that id. */
#ifndef TORUSD_PLANNING_CALIBRATION_H
#define TORUSD_PLANNING_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/schedule/predict/predict.h"
#include "proto/error.h"

#define CALIBRATION_TIME_MOST (UINT64_C(1) << 40) /* seconds since 1970 */

#define CALIBRATION_REPLACED 16u /* ids that a calibration names */
#define CALIBRATION_TEXT_SIZE 512u

struct calibration {
    uint64_t id;                /* random, not 0 */
    uint32_t version;           /* 0: there has never been one; UINT32_MAX has no higher one */
    uint64_t measured_at;       /* seconds since 1970; 0: none, or taken back */
    struct predict_costs costs; /* all 0 where measured_at is */
    uint64_t replaced[CALIBRATION_REPLACED]; /* ids, those that have mattered first; 0: no more */
};

/* Whether these are numbers that a measurement can give. Returns 0, or -1 with *e. */
int calibration_check_costs(const struct predict_costs *costs, struct error *e);

/* The same for a whole calibration that a peer or a file brings; its version is not 0. */
int calibration_check(const struct calibration *c, struct error *e);

/* Whether `a` takes the place of `b`. Of two with one version, set at the same time on two nodes,
 * every node keeps the same one. */
bool calibration_newer(const struct calibration *a, const struct calibration *b);

/* A calibration that replaces `known`: its id is `id`, its version the next one. The caller fills
 * in what was measured. */
struct calibration calibration_after(const struct calibration *known, uint64_t id);

enum calibration_news {
    CALIBRATION_SAME,
    CALIBRATION_TAKEN,    /* *mine is theirs now: tell the others */
    CALIBRATION_OUTDATED, /* theirs is older: tell them */
};

/* What remains of what we know and what a neighbour knows; *mine is that afterwards, and names also
 * what the other one names. */
enum calibration_news calibration_merge(struct calibration *mine, const struct calibration *theirs);

/* Names one more calibration that *c replaces, while there is room. */
void calibration_replaces(struct calibration *c, uint64_t id);

/* As text: a name and its value a line. Returns its length. */
size_t calibration_format(const struct calibration *c, char text[CALIBRATION_TEXT_SIZE]);
/* Returns 0, or -1 if it is not exactly what calibration_format() would write. */
int calibration_parse(const char *text, struct calibration *c);

#endif
