/* What each member tells all others between the steps of a copy: a string of bytes, which the members exchange by an
 * allgather. Step reports come from other nodes and may contain anything. */
#pragma once

#include "daemon/torusd/copy/agent.h"
#include "daemon/torusd/copy/plan.h"

enum step_report_kind {
    STEP_REPORT_OPENED, /* what has been opened: sizes of manifests and streams, if told the granularity of times, or errors */
    STEP_REPORT_COMPARED, /* which digests are wanted, or errors */
    STEP_REPORT_DIGESTED, /* sizes of the digests, or errors */
    STEP_REPORT_MISSING,  /* what is missing, or errors */
    STEP_REPORT_CHECKED, /* whether the trees have stayed unchanged, and if told: which files have not, and are left out */
    STEP_REPORT_FINISHED, /* reports, or errors */
};

#define STEP_REPORT_MOST (4u * 1024u * 1024u)   /* bytes of one member's step report */
#define STEP_REPORTS_MOST (64u * 1024u * 1024u) /* bytes of all members' step reports together */
#define STEP_REPORT_ERROR_TEXT 300u             /* bytes of the text of an error */

/* What a node tells only of itself; with STEP_REPORT_OPENED. */
struct step_report_of_node {
    uint32_t call_bytes;
    uint64_t left_out;
    const char *first_left_out; /* printable, or "" */
    uint64_t links_out;         /* only if told, as the next */
    const char *first_link_out;
};

struct step_report_bytes {
    uint8_t *data;
    size_t length, room;
    bool failed; /* no memory, or too long */
};

/* Most spans, or bytes of wanted digests, that an end may report, so that all step reports together are small. */
uint32_t step_reports_spans_most(const struct copy_plan *p);
size_t step_reports_wanted_most(const struct copy_plan *p);
/* Most bytes of paths that would be removed that an end may report. */
size_t step_reports_going_most(const struct copy_plan *p);
/* Most files of a tree that can be reported as left out. */
uint32_t step_reports_changes_most(const struct copy_plan *p);

/* Makes the step report of `node`. Returns 0 with *out, whose data the caller frees, or -1 with *e and nothing to
 * free. */
int step_reports_write(const struct copy_plan *p, enum step_report_kind kind, uint32_t node,
                       const struct step_report_of_node *self, struct step_report_bytes *out,
                       struct error *e);

/* Takes the facts of `node`'s step report into the plan. To be called for all members, in the same order at all
 * members, also for this one. Returns 0, or -1 with *e: malformed (ERROR_PROTOCOL), no memory. */
int step_reports_read(struct copy_plan *p, enum step_report_kind kind, uint32_t node,
                      const uint8_t *bytes, size_t length, struct error *e);

/* --- exchanging them between all members --- */

#define GATHERING_CALL UINT64_C(1000) /* the name of its calls */

/* Begins to tell this node's step report. Returns 0, or -1: the agent has failed. */
int step_report_gathering_begin(struct agent *a, enum step_report_kind kind);
/* A call has ended: continues. Returns 1 if all step reports are in the plan; 0; or -1: the agent has failed. */
int step_report_gathering_called(struct agent *a, enum step_report_kind kind);
void step_report_gathering_end(struct agent *a);
