/* Whether people are told what is waited for. */
#ifndef TORUSD_PROTO_NOTICES_H
#define TORUSD_PROTO_NOTICES_H

#include <stdbool.h>

/* Waiting that is over by then is not mentioned, and what has been said is said again then. */
#define NOTICE_FIRST_MS 1000
#define NOTICE_AGAIN_MS 10000

/* Whether standard error is to say what is waited for, and how far it is: if the environment variable
 * TORUS_PROGRESS is 1; not if it is 0; else if standard error is a terminal. */
bool notices_wanted(void);

#endif
