/* Situations of an exchange at the middle node of a line of three, or at its root. */
#pragma once

#include "line_fixture.h"

enum situation {
    /* of node 1; in each only a part of node 2 is missing, if any is */
    OPENING,
    OPENED,
    PREPARING,
    READY,
    FIRST_ROUND,    /* of two; finished here */
    BETWEEN_ROUNDS, /* the first has been finished here and below */
    LAST_ROUND,     /* of one; finished here */
    REPETITION,     /* the first of two; finished here */
    PAUSED,         /* between them */
    DONE,
    COMMITTING,
    COMMITTED,
    FINISHED,
    FAILING,
    FAILED,
    IN_DOUBT,
    ENTERED,
    /* of node 0, the root */
    ROOT_WAITING, /* to retry */
    ROOT_OPENING,
    ROOT_PREPARING,
    ROOT_FIRST_ROUND,
    ROOT_LAST_ROUND,
    ROOT_REPETITION,
    ROOT_DECIDING,
    ROOT_COMMITTING,
    ROOT_COMMITTED,
    ROOT_FAILED,
    SITUATIONS
};

struct node {
    struct exchange_fixture f;
    struct exchange_client_seen client;
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
};

/* Opens the node and brings it into a situation. Discards what it sends. The caller closes n->f. */
void situation_reach(struct node *n, enum situation s);

/* Node 1: the root prepares an exchange of folders or of generated blocks, with so many repetitions. */
void situation_prepare(struct node *n, bool folders, uint32_t repeat);
/* Node 1 and its child are ready. */
void situation_make_ready(struct node *n);
