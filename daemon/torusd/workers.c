#include "daemon/torusd/workers.h"

#include <stdlib.h>

#define THREADS 4 /* libuv's number, unless UV_THREADPOOL_SIZE sets another one */
#define THREADS_MOST 1024

_Static_assert(sizeof(uv_work_t) <= sizeof((struct work *)0)->reserved, "room for libuv's request");

static void on_run(uv_work_t *request)
{
    struct work *work = request->data;

    work->run(work);
}

static void on_done(uv_work_t *request, int status)
{
    struct work *work = request->data;

    (void)status; /* work is never cancelled */
    work->done(work);
}

static int submit(void *context, struct work *work)
{
    uv_work_t *request = (uv_work_t *)(void *)work->reserved;

    request->data = work;
    return uv_queue_work(context, request, on_run, on_done) == 0 ? 0 : -1;
}

static void await(void *lock)
{
    uv_mutex_lock(lock);
    uv_mutex_unlock(lock);
}

/* Starts so many threads that run at the same time. Returns 0, or an error of libuv. */
static int try_threads(int count)
{
    uv_thread_t thread[THREADS_MOST];
    int started = 0, result;
    uv_mutex_t lock;

    result = uv_mutex_init(&lock);
    if (result != 0)
        return result;
    uv_mutex_lock(&lock);
    while (started < count && (result = uv_thread_create(&thread[started], await, &lock)) == 0)
        started++;
    uv_mutex_unlock(&lock);
    while (started > 0)
        (void)uv_thread_join(&thread[--started]);
    uv_mutex_destroy(&lock);
    return result;
}

static void do_nothing(uv_work_t *request)
{
    (void)request;
}

static void nothing_done(uv_work_t *request, int status)
{
    (void)request, (void)status;
}

/* libuv starts its threads with the first work, and ends the process if it cannot: so the
 * threads are tried before. */
int workers_on_loop(uv_loop_t *loop, struct workers *workers, struct error *e)
{
    static uv_work_t first;
    const char *wanted = getenv("UV_THREADPOOL_SIZE");
    int count = wanted != NULL ? atoi(wanted) : THREADS;
    int result = try_threads(count < 1 ? 1 : count > THREADS_MOST ? THREADS_MOST : count);

    *workers = (struct workers){loop, submit};
    if (result == 0)
        result = uv_queue_work(loop, &first, do_nothing, nothing_done);
    if (result == 0)
        return 0;
    return error_set(e, ERROR_MEMORY,
                     "cannot start threads for file operations: %s (see ulimit -u, ulimit -v)",
                     uv_strerror(result));
}
