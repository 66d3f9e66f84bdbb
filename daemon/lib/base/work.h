/* Work that may block or take long (disks, counting schedules), and must not delay the loop.
 * Under libuv it runs in the thread pool (daemon/torusd/node.c), in the simulator at virtual times. */
#pragma once

/* Embedded in an object of its owner, which must live until done(). */
struct work {
    /* Runs off the loop; uses only data that its owner does not touch before done(). */
    void (*run)(struct work *work);
    /* Called on the loop exactly once, never from inside submit(). */
    void (*done)(struct work *work);
    void *reserved[20]; /* for the implementation */
};

struct workers {
    void *context;
    /* Starts the work. Returns 0, or -1 if there is no memory: then done() is never called. */
    int (*submit)(void *context, struct work *work);
};

static inline int workers_submit(const struct workers *workers, struct work *work)
{
    return workers->submit(workers->context, work);
}
