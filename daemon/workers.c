#include "daemon/workers.h"

_Static_assert(sizeof(uv_work_t) <= sizeof((struct work *)0)->reserved, "room for libuv's request");

static void on_run(uv_work_t *request)
{
    struct work *work = request->data;

    work->run(work);
}

static void on_done(uv_work_t *request, int status)
{
    struct work *work = request->data;

    (void)status; /* nothing is ever cancelled */
    work->done(work);
}

static int submit(void *context, struct work *work)
{
    uv_work_t *request = (uv_work_t *)(void *)work->reserved;

    request->data = work;
    return uv_queue_work(context, request, on_run, on_done) == 0 ? 0 : -1;
}

void workers_on_loop(uv_loop_t *loop, struct workers *workers)
{
    *workers = (struct workers){loop, submit};
}
