/* A daemon's socket for programs, with a stand-in for its groups, in a thread of its own. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

#include "daemon/torusd/program/server.h"
#include "tests/unit/standin_group.h"

struct programs_fixture {
    char folder[32];
    char control[64], path[80]; /* of the unserved control socket; of programs */
    struct groups groups;
    struct shares *shares;
    uv_loop_t loop;
    uv_prepare_t before_sleep;
    uv_async_t order;
    struct programs *programs;
    pthread_t thread;
    sem_t done;
    void (*doing)(struct programs_fixture *f, void *argument);
    void *argument;
};

void programs_start(struct programs_fixture *f, const char *dims, uint32_t rank);
void programs_stop(struct programs_fixture *f);

/* Calls a function in the daemon's thread, and waits until it returns. */
void programs_do(struct programs_fixture *f, void (*doing)(struct programs_fixture *, void *),
                 void *argument);

/* Waits until `groups` are open at the daemon. */
void programs_await_groups(struct programs_fixture *f, unsigned groups);

/* Sets groups.holds. */
void programs_hold(struct programs_fixture *f, bool holds);
/* Sets groups.holds_messages. */
void programs_hold_messages(struct programs_fixture *f, bool holds);

/* Descriptors that this process has open. */
unsigned programs_descriptors(void);
