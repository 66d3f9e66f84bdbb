/* Asks for surveys, again and again, without waiting, and connects again to a daemon that went away. */
#pragma once

#include "client/cli/survey/all_nodes.h"

enum top_ask_state {
    TOP_ASK_IDLE,
    TOP_ASK_STATUS, /* waits for the state of the daemon */
    TOP_ASK_SURVEY, /* waits for all nodes */
    TOP_ASK_DONE,   /* top_ask_take() has something */
    TOP_ASK_FAILED, /* `error` says why */
};

struct top_ask {
    const char *socket;
    struct torus_client *client;
    enum top_ask_state state;
    struct torus_status *status;
    struct torus_survey *survey;
    struct torus_error error;
};

/* Begins to ask; connects first if that is necessary. The state must be TOP_ASK_IDLE. */
void top_ask_start(struct top_ask *a);

/* The descriptor that is readable when there is work; -1: none. */
int top_ask_fd(const struct top_ask *a);

/* Does the work that is possible without waiting. */
void top_ask_work(struct top_ask *a);

/* After TOP_ASK_DONE or TOP_ASK_FAILED: returns 0 with the survey, or -1 with *e. The state becomes TOP_ASK_IDLE. The
 * caller gives *c to all_nodes_free() in any case. */
int top_ask_take(struct top_ask *a, struct all_nodes *c, struct torus_error *e);

/* Asks, waits and takes. */
int top_ask_now(struct top_ask *a, struct all_nodes *c, struct torus_error *e);

void top_ask_end(struct top_ask *a);
