#include "daemon/lib/schedule/watch.h"

#include <stddef.h>

static _Thread_local struct {
    watch_fn *fn;
    void *context;
} watch;

void watch_set(watch_fn *fn, void *context)
{
    watch.fn = fn;
    watch.context = context;
}

void watch_tell(double done)
{
    if (watch.fn != NULL)
        watch.fn(watch.context, done);
}
