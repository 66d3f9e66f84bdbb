/* The measured costs of exchanges on this torus (schedule/predict.h), which all nodes know. A new
 * calibration is flooded. When a link comes up, each end sends what it knows, so a node that was absent
 * learns it.
 *
 * A calibration (or its reset) gets a random id, and names the ids that it replaces: the id of the calibration that its
 * node knew, and the ids that the known one had replaced. If only one of two calibrations names the other, the named
 * one is older. If neither names the other, or both do, the one with the lower version is older. So no version is
 * final: a calibration that is set at a node replaces the one that the node knows, even if the known one has the
 * highest version. Nobody can name an id in advance, because ids are random. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/predict.h"
#include "proto/error.h"

#define CALIBRATION_TIME_MOST (UINT64_C(1) << 40) /* seconds since 1970 */

#define CALIBRATION_REPLACED 16u /* ids that a calibration can name */
#define CALIBRATION_TEXT_SIZE 512u

struct calibration {
    uint64_t id;                /* random, not 0 */
    uint32_t version;           /* 0: there has never been one; UINT32_MAX has no higher one */
    uint64_t measured_at;       /* seconds since 1970; 0: none, or reset */
    struct predict_costs costs; /* all 0 if measured_at is 0 */
    /* ids; those that have decided a comparison come first; a 0 ends the list */
    uint64_t replaced[CALIBRATION_REPLACED];
};

/* Whether a measurement can have these results. Returns 0, or -1 with *e. */
int calibration_check_costs(const struct predict_costs *costs, struct error *e);

/* Checks a whole calibration that a peer or a file brings; its version must not be 0. Returns 0,
 * or -1 with *e. */
int calibration_check(const struct calibration *c, struct error *e);

/* Whether `a` replaces `b`. If two have the same version because they were set at two nodes at the same time,
 * all nodes keep the same one. */
bool calibration_newer(const struct calibration *a, const struct calibration *b);

/* A calibration that replaces `known`, with the id `id` and the next version. The caller fills
 * in the measured costs. */
struct calibration calibration_after(const struct calibration *known, uint64_t id);

enum calibration_news {
    CALIBRATION_SAME,
    CALIBRATION_TAKEN,    /* *theirs has replaced mine: send it to the others */
    CALIBRATION_OUTDATED, /* mine replaces theirs: send mine to them */
};

/* Sets *mine to the newer one of this node's calibration and a neighbour's. The result also names the ids
 * that the other one names. */
enum calibration_news calibration_merge(struct calibration *mine, const struct calibration *theirs);

/* Names one more calibration that *c replaces, while there is room. */
void calibration_replaces(struct calibration *c, uint64_t id);

/* Writes a calibration as text: a name and its value a line. Returns the text's length. */
size_t calibration_format(const struct calibration *c, char text[CALIBRATION_TEXT_SIZE]);
/* Reads such a text. Returns 0, or -1 if it is not exactly what calibration_format() would
 * write. */
int calibration_parse(const char *text, struct calibration *c);
