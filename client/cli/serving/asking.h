/* Asks the daemon and all nodes without waiting, for an event loop; opens the connection again when it was lost. */
#pragma once

#include "client/cli/survey/all_nodes.h"

enum asking_result {
    ASKING_UNDER_WAY,
    ASKING_ANSWERED, /* `status` and `all` are set */
    ASKING_FAILED,   /* `error` is set */
};

struct asking {
    const char *socket; /* set by the caller; NULL: torus_default_socket() */
    struct torus_client *client;
    bool under_way;
    struct torus_status *status; /* of the node that is asked */
    struct all_nodes all;
    struct torus_error error;

    /* Private. */
    struct torus_survey *survey;
    bool ended;
};

/* Begins, unless it is under way. Afterwards asking_go_on() says how far it is. */
void asking_begin(struct asking *a);
/* To be called after asking_begin(), and whenever the descriptor is readable. The caller may take `status` and `all` by
 * setting them to NULL and zeros; otherwise they are freed later. */
enum asking_result asking_go_on(struct asking *a);
/* The descriptor to watch; -1: none. */
int asking_fd(const struct asking *a);
void asking_free(struct asking *a);
