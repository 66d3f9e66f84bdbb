/* Judges what is known of all machines, or of this one alone. The checks see only a struct doctor, so that tests can
 * make up what is known; they add findings to it. */
#ifndef TORUSD_CLI_DOCTOR_H
#define TORUSD_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <torus/torus.h>

#include "daemon/schedule/torus.h"

enum severity {
    SEVERITY_FINE,    /* checked, and nothing is wrong; shown by --all only */
    SEVERITY_HINT,    /* it works, and could be better */
    SEVERITY_WARNING, /* something may fail */
    SEVERITY_ERROR,   /* something fails */
    SEVERITIES
};

/* "fine", "hint", "warning", "error". Static. */
const char *severity_name(enum severity severity);

#define FINDING_NOBODY UINT32_MAX /* not about one node */

struct finding {
    enum severity severity;
    const char *check; /* name of the check: "mtu" */
    uint32_t node;     /* rank, or FINDING_NOBODY */
    char what[480];
    const char *why; /* static; "" if it is obvious, or nothing is wrong */
    char mend[320];  /* a command or an instruction; "" if there is none */
};

/* One node, as the survey describes it. */
struct doctor_node {
    const char *host;                  /* name for people */
    const char *missing;               /* why the node has not answered; "" if it has */
    const struct torus_status *status; /* NULL: not known */
    const struct torus_links *links;   /* NULL: not known */
    const char *facts;                 /* daemon/host/facts.h; "": not known */
    int64_t clock_offset_us;           /* how far the clock is ahead of the asker's */
    uint64_t clock_error_us;           /* 0: not known */
};

struct doctor {
    const struct torus *torus; /* NULL: only this machine is judged, which is node 0 */
    uint32_t nodes;
    const struct doctor_node *node; /* by rank */
    uint32_t asker;
    struct finding *finding;
    size_t findings, room;
    bool no_memory; /* findings were left out */
};

/* Frees the findings. */
void doctor_free(struct doctor *d);
/* The worst severity of all findings. */
enum severity doctor_worst(const struct doctor *d);

/* --- for checks --- */

/* Adds a finding, and returns it with its `what`; never NULL. */
struct finding *doctor_find(struct doctor *d, enum severity severity, const char *check,
                            uint32_t node, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/* Sets `mend` of a finding. */
void finding_mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether a node has answered with its state, or with its facts. */
bool doctor_has_state(const struct doctor *d, uint32_t node);
bool doctor_has_facts(const struct doctor *d, uint32_t node);
/* The link at a port of a node; NULL: not known. */
const struct torus_link *doctor_link(const struct doctor *d, uint32_t node, unsigned port);

#endif
