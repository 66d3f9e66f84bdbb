/* Work that may block or take long (disks, counting schedules) and must not hold up the loop. Under
 * libuv it runs in the thread pool (daemon/workers.h), in the simulator at virtual times. */
#ifndef TORUSD_BASE_WORK_H
#define TORUSD_BASE_WORK_H

/* Embedded in its owner's object, which has to live until done(). */
struct work {
    /* Off the loop: touches only what its owner leaves to it meanwhile. */
    void (*run)(struct work *work);
    /* On the loop: comes exactly once, never from inside submit(). */
    void (*done)(struct work *work);
    void *reserved[20]; /* the implementation's */
};

struct workers {
    void *context;
    /* Returns 0, or -1 if there is no memory: then done() never comes. */
    int (*submit)(void *context, struct work *work);
};

static inline int workers_submit(const struct workers *workers, struct work *work)
{
    return workers->submit(workers->context, work);
}

#endif
