/* Asks the daemon and all nodes without waiting, for an event loop; opens the connection again when it was lost. */
#pragma once

#include "client/cli/survey/all_nodes.h"

enum survey_query_result {
    SURVEY_QUERY_UNDER_WAY,
    SURVEY_QUERY_ANSWERED, /* `all` is set */
    SURVEY_QUERY_FAILED,   /* `error` is set */
};

struct survey_query {
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

/* Begins, unless it is under way. Afterwards survey_query_go_on() says how far it is. */
void survey_query_begin(struct survey_query *a);
/* To be called after survey_query_begin(), and whenever the descriptor is readable. The caller may take `all` and leave
 * it zeroed; otherwise it is freed later. */
enum survey_query_result survey_query_go_on(struct survey_query *a);
/* Begins, waits, and returns SURVEY_QUERY_ANSWERED or SURVEY_QUERY_FAILED. */
enum survey_query_result survey_query_wait(struct survey_query *a);
/* The descriptor to watch; -1: none. */
int survey_query_fd(const struct survey_query *a);
void survey_query_free(struct survey_query *a);
