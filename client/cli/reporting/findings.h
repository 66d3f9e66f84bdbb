/* What made a traced run slow, in sentences, the worst first. */
#pragma once

#include "client/cli/reporting/trace_data.h"

enum finding_kind {
    FINDING_ALGORITHM, /* the algorithm itself takes much longer than the bound */
    FINDING_DOWN,      /* a link went down during the run */
    FINDING_LINK,      /* a link carried less while bytes waited for it than others did */
    FINDING_RESENDING, /* TCP sent packets again */
    FINDING_SOURCE,    /* a node waited for its own file or program */
    FINDING_DISK,      /* a node waited until received data was written */
    FINDING_PROGRAM,   /* a program made its calls later than the others */
    FINDING_PROCESSOR, /* a daemon found no processor */
    FINDING_MISSING,   /* a node is not in the trace */
    FINDING_NOTHING,   /* nothing stands out */
};

#define FINDINGS_MOST (3u * FINDING_NOTHING) /* three of each kind */

struct finding {
    enum finding_kind kind;
    uint32_t node;  /* TORUS_NO_NODE: the whole run */
    unsigned port;  /* FINDING_DOWN, FINDING_LINK, FINDING_RESENDING */
    double seconds; /* an estimate of what it has cost; of FINDING_DOWN the whole run */
    char text[480]; /* a sentence */
};

/* Finds what stands out: at most three findings of a kind, the last of which says how many more there are. There is
 * always at least one finding. Nodes that are not in the trace come last, after FINDING_NOTHING. Returns how many. */
unsigned findings_make(const struct trace_data *d, struct finding *list);

/* "link", "resending", "source"... Static. */
const char *finding_name(enum finding_kind kind);
