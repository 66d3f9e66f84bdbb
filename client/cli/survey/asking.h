/* Asks the daemon and all nodes without waiting, for an event loop; opens the connection again when it was lost. */
#pragma once

#include "client/cli/survey/all_nodes.h"

enum asking_result {
    ASKING_UNDER_WAY,
    ASKING_ANSWERED, /* `all` is set */
    ASKING_FAILED,   /* `error` is set */
};

struct asking {
    /* Set by the caller. */
    const char *socket; /* NULL: torus_default_socket() */
    unsigned
        patience_ms; /* for the daemon of this machine; 0: until it answers, or the connection ends */

    struct torus_client *client;
    bool under_way;
    struct all_nodes all;
    struct torus_error error;

    /* Private. */
    struct torus_status *status;
    struct torus_survey *survey;
    bool ended;
};

/* Begins, unless it is under way. Afterwards asking_go_on() says how far it is. */
void asking_begin(struct asking *a);
/* To be called after asking_begin(), and whenever the descriptor is readable. The caller may take `all` and leave it
 * zeroed; otherwise it is freed later. */
enum asking_result asking_go_on(struct asking *a);
/* Begins, waits, and returns ASKING_ANSWERED or ASKING_FAILED. */
enum asking_result asking_wait(struct asking *a);
/* The descriptor to watch; -1: none. */
int asking_fd(const struct asking *a);
void asking_free(struct asking *a);
