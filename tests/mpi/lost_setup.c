/* For LD_PRELOAD, together with a preload of MPI programs: this rank loses the torus while the preload sets it up.
 * With $LOST_SETUP "open", the group opens on all ranks, but this rank is told that it did not. With "unseen", the
 * others also hear of that later. With "barrier", the last barrier of the setup ends on all ranks, but this rank
 * is told that it failed. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <torus/group.h>

#define REAL(function) __typeof__(function) *const real = (__typeof__(real))find(#function)

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define UNSEEN_MS 3000

static int loses(const char *what, enum torus_error_code code, struct torus_error *error)
{
    const char *which = getenv("LOST_SETUP");

    if (which == NULL || strcmp(which, what) != 0)
        return 0;
    error->code = code;
    (void)snprintf(error->text, sizeof error->text, "lost: %s", what);
    return -1;
}

/* As if the node were cut off: the others notice that after a while. */
static void *close_later(void *group)
{
    (void)poll(NULL, 0, UNSEEN_MS);
    torus_group_close(group);
    return NULL;
}

int torus_group_open(const struct torus_group_options *options, struct torus_group **group,
                     struct torus_error *error)
{
    REAL(torus_group_open);
    int result = real(options, group, error);

    if (result == 0 && loses("open", TORUS_ERROR_IN_DOUBT, error) != 0) {
        torus_group_close(*group);
        result = -1;
    }
    if (result == 0 && loses("unseen", TORUS_ERROR_IN_DOUBT, error) != 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, close_later, *group) != 0)
            abort();
        result = -1;
    }
    if (result != 0)
        *group = NULL;
    return result;
}

int torus_barrier(struct torus_group *group, struct torus_error *error)
{
    REAL(torus_barrier);
    int result = real(group, error);

    return result == 0 ? loses("barrier", TORUS_ERROR_LINK, error) : result;
}
