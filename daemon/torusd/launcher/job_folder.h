/* The folder of a daemon that runs for the time of a job, /tmp/torusd-UID/JOB/HOST. It is not in XDG_RUNTIME_DIR: that
 * ends with the login session in which a launcher starts its servers, while the job goes on. */
#pragma once

#include <limits.h>

#include "proto/error.h"

struct job_folder {
    char path[PATH_MAX];
    char data[PATH_MAX];    /* a folder in it */
    char state[PATH_MAX];   /* a folder in it, which is not made here */
    char control[PATH_MAX]; /* a socket in it, which is not made here */
};

/* Sets the paths. `job` has neither a "/" nor a "." at its beginning. Returns 0, or -1 with *e. */
int job_folder_name(struct job_folder *f, const char *job, struct error *e);

/* Makes the folder and the data folder if they do not exist. Only this user may enter them. Returns 0, or -1 with *e,
 * also if /tmp/torusd-UID belongs to somebody else. */
int job_folder_make(const struct job_folder *f, struct error *e);

/* Removes what is empty: data and state that remain are kept. */
void job_folder_remove(const struct job_folder *f);
