/* What a launcher of parallel programs tells a process by variables: its rank, how many processes there are, and the
 * job. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "proto/error.h"

#define LAUNCHER_JOB_SIZE 33u
#define LAUNCHER_RANK_MOST 0x00ffffffu

struct launcher {
    const char
        *rank_variable; /* "SLURM_PROCID"; NULL: only TORUS_JOB is set, and there is no rank */
    const char *size_variable; /* NULL: this launcher does not say the size */
    uint32_t rank;
    bool has_size;
    uint32_t size;               /* number of processes, if has_size */
    uint32_t local_rank;         /* among the processes of this host; 0 if it is not known */
    char job[LAUNCHER_JOB_SIZE]; /* letters, digits and . _ -; never empty */
};

/* Reads the environment. Returns 0 with *l, whose texts are constant; or -1 with *e (ERROR_USAGE): there are no
 * variables of a launcher, and the error names those it looked for; or a value is not a number. */
int launcher_find(struct launcher *l, struct error *e);

/* The folder of a daemon that runs for the time of a job, /tmp/torusd-UID/JOB/HOST. It is not in XDG_RUNTIME_DIR: that
 * ends with the login session in which a launcher starts its servers, while the job goes on. */

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

/* Notices that the process which started this one has ended: a server of a launcher, or a shell. */

typedef void parent_ended_fn(void *context);

struct parent_watch {
    uv_timer_t timer;
    pid_t parent;
    parent_ended_fn *ended;
    void *context;
};

/* Calls `ended` once, within a second after the parent has ended. `parent` is what getppid() has returned when this
 * process began: the parent may have ended since. */
void parent_watch_start(struct parent_watch *w, uv_loop_t *loop, pid_t parent,
                        parent_ended_fn *ended, void *context);

/* Ends it. The object must live until the loop has ended. */
void parent_watch_stop(struct parent_watch *w);
