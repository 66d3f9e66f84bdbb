#include "daemon/torusd/launcher/parent_watch.h"

#include <unistd.h>

#define INTERVAL_MS 1000

/* A signal by PR_SET_PDEATHSIG would also come when the thread ends that started this process. */
static void on_timer(uv_timer_t *timer)
{
    struct parent_watch *w = timer->data;

    if (getppid() == w->parent)
        return;
    (void)uv_timer_stop(timer);
    w->ended(w->context);
}

void parent_watch_start(struct parent_watch *w, uv_loop_t *loop, pid_t parent,
                        parent_ended_fn *ended, void *context)
{
    *w = (struct parent_watch){.parent = parent, .ended = ended, .context = context};
    (void)uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    (void)uv_timer_start(&w->timer, on_timer, INTERVAL_MS, INTERVAL_MS);
}

void parent_watch_stop(struct parent_watch *w)
{
    uv_close((uv_handle_t *)&w->timer, NULL);
}
