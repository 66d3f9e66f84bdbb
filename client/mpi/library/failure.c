#include "client/mpi/library/failure.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/library/errhandlers.h"
#include "client/mpi/library/real.h"

#define PREFIX "the torus failed: "

static pthread_once_t once = PTHREAD_ONCE_INIT;
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
    (void)pthread_once(&once, add_class);
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
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char last_text[MPI_MAX_ERROR_STRING];
    static int last = MPI_ERR_OTHER;
    int code;

    (void)pthread_mutex_lock(&mutex);
    if (strcmp(text, last_text) != 0) {
        last = add_code(text);
        (void)snprintf(last_text, sizeof last_text, "%s", text);
    }
    code = last;
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

int failure_of_torus(const struct torus_error *error)
{
    char text[MPI_MAX_ERROR_STRING];

    (void)snprintf(text, sizeof text, PREFIX "%.*s", (int)(sizeof text - sizeof PREFIX),
                   error->text);
    return code_of(text);
}
