/* A ring of machines that are all in order, as far as `torusctl doctor` can know; tests put faults into it. */
#pragma once

#include "client/cli/doctor/doctor.h"

#define RING 4u

struct ring {
    struct torus torus;
    struct doctor doctor;
    struct doctor_node node[RING];
    struct torus_status status[RING];
    struct torus_links links[RING];
    struct torus_link link[RING][2];
    const struct torus_link *list[RING][2];
    const char *keys[RING][2];
    struct torus_link_fault fault[RING];
    const struct torus_link_fault *faults[RING][1];
    char facts[RING][4096];
};

/* Sets *r up: hosts alpha, beta, gamma, delta; the interfaces eth0 (+) and eth1 (-). */
void ring_begin(struct ring *r);
/* Removes all facts of a node whose names begin so. */
void ring_hide(struct ring *r, uint32_t node, const char *names);
/* Replaces a fact of a node, or adds it. */
void ring_set(struct ring *r, uint32_t node, const char *name, const char *value);
/* Makes a node report this fault of its port. */
void ring_fault(struct ring *r, uint32_t node, uint32_t port, const char *code, uint32_t found_node,
                uint32_t found_port);
/* Takes a node away. */
void ring_lose(struct ring *r, uint32_t node);

/* Judges, and ends the test unless there is exactly one finding that is not fine, of this severity and check, whose
 * what contains all the texts (ended by NULL), and whose mend contains `mend`. Frees the findings. */
void ring_expect(struct ring *r, enum severity severity, const char *check, const char *mend, ...);
/* Judges; all must be seen, and nothing found. */
void ring_expect_fine(struct ring *r);
/* Judges; the check must say of the node nothing but that it could not be seen, once because of `why`. */
void ring_expect_unseen(struct ring *r, const char *check, uint32_t node, const char *why);
/* Judges; the number of findings of a check that are not fine. */
unsigned ring_count(struct ring *r, const char *check);
