/* Whether programs tell people what they wait for. */
#pragma once

#include <stdbool.h>

/* A program mentions that it waits after the first of these times, and then each time that the
 * second has passed. */
#define NOTICE_FIRST_MS 1000
#define NOTICE_AGAIN_MS 10000

/* Whether a program prints on standard error what it waits for, and how far it is: yes if the
 * environment variable TORUS_PROGRESS is 1, no if it is 0, otherwise if standard error is a
 * terminal. */
bool notices_wanted(void);
