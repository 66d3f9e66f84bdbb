/* What 'torusctl run' would run: hosts, processes, variables. */
#pragma once

#include "client/cli/running/run.h"
#include "client/cli/running/run_frames.h"

struct run_plan {
    struct run_hosts hosts;
    uint32_t per_host; /* processes on each host */
    uint32_t timeout_ms, grace_ms, silence_ms;
    char *folder;
    bool input; /* the first process reads standard input */
    const char *user;
    char own[4096]; /* path of this program */
    char **program; /* with its arguments, up to a NULL */
    char **given;   /* NAME=VALUE of the user, up to a NULL */
    uint32_t givens;
};

/* Returns 0 with *plan, or -1 with *e. The caller frees it with run_plan_free() in both cases. `socket`: of the daemon,
 * for TORUS_SOCKET; may be NULL. */
int run_plan_make(struct run_plan *plan, const struct run_options *o, char **program,
                  const char *socket, struct error *e);
void run_plan_free(struct run_plan *plan);

/* Fills the order of a host, which is freed with run_plan_order_free(). Returns 0, or -1: memory is short. */
int run_plan_order(const struct run_plan *plan, uint32_t index, struct run_order *order);
void run_plan_order_free(struct run_order *order);

/* Returns the words that start the side of a host; see run_ssh(). */
char **run_plan_ssh(const struct run_plan *plan, uint32_t index);

/* Prints the plan, as text or JSON. Returns the exit code. */
int run_plan_print(const struct run_plan *plan, const struct cli *cli);
