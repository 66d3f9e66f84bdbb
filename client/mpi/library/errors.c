#include "client/mpi/library/errors.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/library/real.h"

/* If two threads replaced the handler of one communicator at the same time, they would restore the wrong one. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void replace_handler(struct errhandlers *h, MPI_Comm comm)
{
    struct errhandler *e = &h->each[h->count];

    e->comm = comm;
    if (real.Comm_get_errhandler(comm, &e->kept) != MPI_SUCCESS)
        return;
    if (real.Comm_set_errhandler(comm, mpi.errors_return) == MPI_SUCCESS)
        h->count++;
    else
        (void)real.Errhandler_free(&e->kept);
}

static void restore_handler(struct errhandler *e)
{
    MPI_Errhandler now;

    if (real.Comm_get_errhandler(e->comm, &now) == MPI_SUCCESS) {
        if (now == mpi.errors_return)
            (void)real.Comm_set_errhandler(e->comm, e->kept);
        (void)real.Errhandler_free(&now);
    }
    (void)real.Errhandler_free(&e->kept);
}

void errhandlers_replace(struct errhandlers *h, MPI_Comm comm)
{
    (void)pthread_mutex_lock(&mutex);
    h->count = 0;
    replace_handler(h, mpi.world);
    replace_handler(h, mpi.self);
    if (comm != mpi.null && comm != mpi.world && comm != mpi.self)
        replace_handler(h, comm);
}

void errhandlers_restore(struct errhandlers *h)
{
    while (h->count > 0)
        restore_handler(&h->each[--h->count]);
    (void)pthread_mutex_unlock(&mutex);
}

#define PREFIX "the torus failed: "

static pthread_once_t class_once = PTHREAD_ONCE_INIT;

static int class_of_torus = MPI_ERR_OTHER;

static void add_class(void)
{
    int added;

    if (real.Add_error_class(&added) != MPI_SUCCESS)
        return;
    class_of_torus = added;
    (void)real.Add_error_string(added, "the torus failed");
}

static int add_code(const char *text)
{
    struct errhandlers errhandlers;
    int added;

    errhandlers_replace(&errhandlers, mpi.null);
    (void)pthread_once(&class_once, add_class);
    if (real.Add_error_code(class_of_torus, &added) == MPI_SUCCESS)
        (void)real.Add_error_string(added, text);
    else
        added = class_of_torus;
    errhandlers_restore(&errhandlers);
    return added;
}

/* Returns the error code for a text. The last code is reused, because codes cannot be freed, and a failed group ends
 * all calls with the same text. */
static int code_of(const char *text)
{
    static pthread_mutex_t codes = PTHREAD_MUTEX_INITIALIZER;
    static char last_text[MPI_MAX_ERROR_STRING];
    static int last = MPI_ERR_OTHER;
    int code;

    (void)pthread_mutex_lock(&codes);
    if (strcmp(text, last_text) != 0) {
        last = add_code(text);
        (void)snprintf(last_text, sizeof last_text, "%s", text);
    }
    code = last;
    (void)pthread_mutex_unlock(&codes);
    return code;
}

int failure_of_torus(const struct torus_error *error)
{
    char text[MPI_MAX_ERROR_STRING];

    (void)snprintf(text, sizeof text, PREFIX "%.*s", (int)(sizeof text - sizeof PREFIX),
                   error->text);
    return code_of(text);
}
