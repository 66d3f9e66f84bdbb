#include "daemon/torusd/program/connection/tidying.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/program/connection/ending.h"
#include "daemon/torusd/program/shared/memories.h"
#include "proto/elapsed.h"

#define STRANGER_MS 10000u /* how long a program may take to say which group it opens */
#define TIDY_MS 1000

/* Closes connections that have been silent too long, and releases memory that programs do not use. */
static void on_tidying(uv_timer_t *timer)
{
    struct programs *programs = timer->data;
    uint64_t now = uv_now(timer->loop);
    bool more = false;

    for (struct program *p = programs->first; p != NULL; p = p->next) {
        if (p->state == PROGRAM_STRANGER && elapsed(p->connected_at, now) >= STRANGER_MS) {
            log_warning(
                "closing the connection of a program that has not opened a group within %u s",
                STRANGER_MS / 1000);
            program_close(p);
        }
        more |= p->state == PROGRAM_STRANGER;
        more |= program_tidy_memory(p, now);
    }
    if (!more)
        (void)uv_timer_stop(timer);
}

void programs_watch(struct programs *programs)
{
    if (!uv_is_active((uv_handle_t *)&programs->tidying))
        (void)uv_timer_start(&programs->tidying, on_tidying, TIDY_MS, TIDY_MS);
}
