/* What a user of `torusctl top` looks at, and how keys change it. Without I/O. */
#pragma once

#include <time.h>

#include "client/cli/top/model.h"

enum top_page { TOP_PAGE_TORUS, TOP_PAGE_DETAILS, TOP_PAGE_HELP };
enum top_focus { TOP_FOCUS_NODE, TOP_FOCUS_LINK, TOP_FOCUS_RUN, TOP_FOCUSES };

enum top_key {
    TOP_KEY_NONE,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_TAB,
    TOP_KEY_BACK_TAB,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_PAUSE,
    TOP_KEY_HELP,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_QUIT,
};

#define TOP_NOTICE_SIZE 256u

struct top_view {
    bool interactive; /* something is chosen, and keys work */
    enum top_page page;
    enum top_focus focus;
    uint32_t node;
    unsigned port;         /* of `node` */
    char run[RUN_ID_SIZE]; /* "": the first one */
    enum run_kind run_kind;
    bool paused;
    unsigned scroll; /* lines of a page with details or help that are above the screen */
    unsigned from_row, from_column; /* of the torus */
    unsigned rows, columns;         /* for the torus, when it was drawn last; 0: never */
    char notice[TOP_NOTICE_SIZE];   /* about the daemon, for people; "": none */
    char time[16];                  /* of the last survey, for people; "": not shown */
    double age;                     /* of the last survey in seconds, if `time` is known */
    double interval;                /* between surveys in seconds; 0: not known */
};

/* Writes the time of the last survey for people, in local time. */
void top_view_set_time(struct top_view *v, time_t taken);

/* Does what a key means. Returns false if the view shall end: q leaves details and help first. */
bool top_view_key(struct top_view *v, const struct top_model *m, enum top_key key);

/* Chooses something else if what is chosen is not there any more. */
void top_view_check(struct top_view *v, const struct top_model *m);

/* The run that is chosen; NULL if nothing runs. */
const struct run *top_view_run(const struct top_view *v, const struct top_model *m);
