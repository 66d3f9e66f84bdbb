/* Judges what is known about all machines, or of this one alone. The checks see only a struct doctor, so that tests can
 * make up what is known; they add findings to it. Each check says of each node that something is wrong (a hint or
 * worse), that it is fine, or that it could not be seen, and why: what was not seen is never fine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <torus/torus.h>

#include "daemon/lib/schedule/torus.h"

enum severity {
    SEVERITY_FINE,    /* seen, and nothing is wrong; shown by --all only */
    SEVERITY_UNSEEN,  /* it could not be seen; `what` says why */
    SEVERITY_HINT,    /* it works, and could be better */
    SEVERITY_WARNING, /* something may fail */
    SEVERITY_ERROR,   /* something fails */
    SEVERITIES
};

/* "fine", "not seen", "hint", "warning", "error". Static. */
const char *severity_name(enum severity severity);

#define FINDING_NOBODY UINT32_MAX /* not about one node */

struct finding {
    enum severity severity;
    const char *check; /* name of the check: "mtu" */
    uint32_t node;     /* rank, or FINDING_NOBODY */
    uint32_t peer;     /* the node at the other end of a cable; or FINDING_NOBODY */
    char what[480];
    /* Static; "" if it is obvious, or nothing is wrong. Findings of one check with one `why` are shown as one. */
    const char *why;
    char mend[320]; /* a command or an instruction; "" if there is none */
};

/* One node, as the survey describes it. */
struct doctor_node {
    const char *host;    /* name for people */
    const char *missing; /* why the node has not answered; "" if it has */
    bool late; /* it can be reached, and has not answered in time: that says nothing about it */
    const struct torus_status *status; /* NULL: not known */
    const struct torus_links *links;   /* NULL: not known */
    const char *facts;                 /* daemon/lib/host/facts.h; "": not known */
    int64_t clock_offset_us;           /* how far the clock is ahead of the initiator's */
    uint64_t clock_error_us;           /* 0: not known */
};

struct doctor {
    const struct torus *torus; /* NULL: only this machine is judged, which is node 0 */
    uint32_t nodes;
    const struct doctor_node *node; /* by rank */
    uint32_t initiator;
    uint64_t facts_ms; /* how long nodes had to tell facts about their machines */
    struct finding *finding;
    size_t findings, room;
    bool no_memory;      /* findings were left out */
    uint64_t usual_mbit; /* the speed that most cables have at least; 0: no speed is known */
    bool usual_known;
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
/* Adds a finding that a check could not see a fact of a node, and why, if the node gave a reason. NULL: a fact of its
 * state. */
void doctor_unseen(struct doctor *d, const char *check, uint32_t node, const char *fact);
/* Reads a number of a node as fact_number() does, or says that the check could not see it. */
bool doctor_number(struct doctor *d, const char *check, uint32_t node, const char *fact,
                   uint64_t *number);
/* Says "fine" of the nodes of which a check has said nothing; `before` is d->findings from before the check. */
void doctor_fine(struct doctor *d, size_t before, const char *check, const char *fine);
/* Sets `mend` of a finding. */
void finding_mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define DOCTOR_SPAN_SIZE 32u
/* Writes "hour", "12 min" or "40 s", for "in the last ...". Returns the text. */
const char *doctor_span(uint64_t ms, char text[DOCTOR_SPAN_SIZE]);

/* Whether a node has answered with its state, or with its facts. */
bool doctor_has_state(const struct doctor *d, uint32_t node);
bool doctor_has_facts(const struct doctor *d, uint32_t node);
/* The link at a port of a node; NULL: not known. */
const struct torus_link *doctor_link(const struct doctor *d, uint32_t node, unsigned port);
/* What a node says is wrong with the cable at one of its ports; NULL: nothing. */
const struct torus_link_fault *doctor_fault(const struct doctor *d, uint32_t node, unsigned port);

/* --- the checks --- */

#define CHECK_SUBJECTS 6u

/* What one file checks. */
struct check {
    void (*node)(struct doctor *d, uint32_t node); /* judges a node */
    void (*all)(struct doctor *d);                 /* judges what concerns several nodes */
    bool alone;                                    /* also judges a machine without a daemon */
    /* The names of its checks, and the sentence about a node on which they have found nothing wrong. */
    struct check_subject {
        const char *name, *fine; /* NULL ends the list */
        bool alone;              /* as above */
    } subject[CHECK_SUBJECTS];
};

extern const struct check check_nodes, /* missing nodes */
    check_versions,                    /* different releases */
    check_links,                       /* links that are down, packets that are sent again */
    check_cables,     /* cables that lead elsewhere, ranks that two machines have */
    check_interfaces, /* MTU, speed, errors, offloads */
    check_clocks, check_keys, check_disks, check_limits, /* files, memory, load */
    check_system,                                        /* settings of the kernel, governors */
    check_routes;                                        /* IP routes, firewall */

/* Runs all checks. The caller gives *d to doctor_free(). */
void doctor_judge(struct doctor *d);

/* --- facts (daemon/lib/host/facts.h); another machine has sent them: values may be anything --- */

#define FACT_SIZE 256u

/* Copies the value of the first fact with this name, cut to FACT_SIZE. Returns false, and an empty text, if there is
 * none. */
bool fact_text(const char *facts, const char *name, char value[FACT_SIZE]);
/* Whether a fact has this value. */
bool fact_is(const char *facts, const char *name, const char *value);
/* Reads a whole number from 0 on. Returns false, and 0, if there is none. */
bool fact_number(const char *facts, const char *name, uint64_t *number);

/* A name for the functions above: fact_name("interface.%s.mtu", ...). Valid until the fourth call from now on. */
const char *fact_name(const char *format, ...) __attribute__((format(printf, 1, 2)));
