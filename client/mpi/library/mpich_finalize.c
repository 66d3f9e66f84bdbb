/* Prevents MPICH over UCX and TCP from hanging in MPI_Finalize.
 *
 * In MPI_Finalize, MPICH (4.0.2, device ch4:ucx) flushes its connections. With UCX over TCP, a rank asks every rank
 * to which it has sent something for an answer, and only ranks that are inside UCX answer. A rank that has received
 * its answers goes on to a barrier of the process manager, in which it reads from a socket and answers nobody. Slower
 * ranks that wait for its answer wait for ever. So once the first connection is closed, this preload lets UCX make
 * progress while the process waits for the process manager. Programs without UCX, and programs in which no rank has
 * sent anything, are not affected. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SLICE_MS 1 /* interval between polls of the connections */

/* Functions of UCX, declared here so that its headers are not needed. */
EXPORT int ucp_worker_create(void *context, const void *parameters, void **worker);
EXPORT void *ucp_disconnect_nb(void *endpoint);
EXPORT void ucp_worker_destroy(void *worker);

/* UCX has a thread of its own, which calls read(), too. */
static void *_Atomic the_worker; /* the worker of MPICH, if `workers` is 1 */
static atomic_uint workers;
static atomic_bool closing;

int ucp_worker_create(void *context, const void *parameters, void **worker)
{
    int (*real)(void *, const void *, void **) = dlsym(RTLD_NEXT, "ucp_worker_create");
    int status = real(context, parameters, worker);

    if (status == 0) {
        workers++;
        the_worker = *worker;
    }
    return status;
}

void *ucp_disconnect_nb(void *endpoint)
{
    void *(*real)(void *) = dlsym(RTLD_NEXT, "ucp_disconnect_nb");

    closing = workers == 1;
    return real(endpoint);
}

void ucp_worker_destroy(void *worker)
{
    void (*real)(void *) = dlsym(RTLD_NEXT, "ucp_worker_destroy");

    closing = false;
    workers--;
    real(worker);
}

/* Returns the socket of the process manager, or -1 if there is none. */
static int manager(void)
{
    const char *text = getenv("PMI_FD");
    return text != NULL ? atoi(text) : -1;
}

typedef ssize_t read_fn(int fd, void *buffer, size_t size);

/* Returns the read() of the C library. Unlike a bare system call, it is a cancellation point. */
static read_fn *real_read(void)
{
    static _Atomic(read_fn *) found;
    read_fn *real = atomic_load_explicit(&found, memory_order_relaxed);

    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "read");
        atomic_store_explicit(&found, real, memory_order_relaxed);
    }
    return real;
}

/* Finds read() before a signal handler can call it, because dlsym() must not be called in signal handlers. */
__attribute__((constructor)) static void find_read(void)
{
    (void)real_read();
}

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    if (closing && fd == manager()) {
        unsigned (*progress)(void *) = dlsym(RTLD_DEFAULT, "ucp_worker_progress");
        struct pollfd answer = {.fd = fd, .events = POLLIN};
        int saved = errno;
        while (progress != NULL && poll(&answer, 1, SLICE_MS) == 0)
            (void)progress(the_worker);
        errno = saved;
    }
    return real_read()(fd, buffer, size);
}
