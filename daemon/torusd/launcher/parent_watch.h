/* Notices that the process which started this one has ended: a server of a launcher, or a shell. */
#pragma once

#include <sys/types.h>
#include <uv.h>

typedef void parent_ended_fn(void *context);

struct parent_watch {
    uv_timer_t timer;
    pid_t parent;
    parent_ended_fn *ended;
    void *context;
};

/* Calls `ended` once, within a second after the parent has ended. `parent` is what getppid() has returned when this process
 * began: the parent may have ended since. */
void parent_watch_start(struct parent_watch *w, uv_loop_t *loop, pid_t parent,
                        parent_ended_fn *ended, void *context);

/* Ends it. The object must live until the loop has ended. */
void parent_watch_stop(struct parent_watch *w);
