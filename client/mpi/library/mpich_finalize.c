/* For LD_PRELOAD: keeps MPICH over UCX and TCP from hanging in MPI_Finalize.
 *
 * There MPICH (4.0.2, device ch4:ucx) flushes its connections. With UCX over TCP it asks every rank
 * to which something was sent for an answer, and only ranks that are inside UCX answer. A rank that
 * has its own answers proceeds to a barrier of the process manager, in which it reads from a socket
 * and answers no rank: later ranks that wait for its answer wait for ever. So from the first
 * connection that is closed, this preload lets UCX make progress while the process waits for the
 * process manager. Programs in which no rank has sent to another one are not concerned, nor are
 * programs without UCX.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SLICE_MS 1 /* between two polls of the connections */

/* Functions of UCX, whose headers are not needed for these. */
EXPORT int ucp_worker_create(void *context, const void *parameters, void **worker);
EXPORT void *ucp_disconnect_nb(void *endpoint);
EXPORT void ucp_worker_destroy(void *worker);

static void *the_worker; /* MPICH's, if there is only one */
static unsigned workers;
static bool closing;

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

/* Finds the socket of the process manager; -1: there is none. */
static int manager(void)
{
    const char *text = getenv("PMI_FD");
    return text != NULL ? atoi(text) : -1;
}

typedef ssize_t read_fn(int fd, void *buffer, size_t size);

/* The read() of the C library, in which threads can be cancelled, unlike in a bare system call. */
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

/* Runs before there can be a signal handler that reads: dlsym() must not be called in those. */
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
