/* For LD_PRELOAD beside a preload of MPI programs: at this rank, the torus is lost while it is set up.
 * $LOST_SETUP is "open": the group opens everywhere, and this rank is told that it could not;
 * "barrier": the last barrier ends everywhere, and this rank is told that it has failed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <torus/group.h>

#define REAL(function) __typeof__(function) *const real = (__typeof__(real))find(#function)

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int loses(const char *what, struct torus_error *error)
{
    const char *which = getenv("LOST_SETUP");

    if (which == NULL || strcmp(which, what) != 0)
        return 0;
    error->code = TORUS_ERROR_LINK;
    (void)snprintf(error->text, sizeof error->text, "lost: %s", what);
    return -1;
}

int torus_group_open(const struct torus_group_options *options, struct torus_group **group,
                     struct torus_error *error)
{
    REAL(torus_group_open);
    int result = real(options, group, error);

    if (result == 0 && loses("open", error) != 0) {
        torus_group_close(*group);
        *group = NULL;
        result = -1;
    }
    return result;
}

int torus_barrier(struct torus_group *group, struct torus_error *error)
{
    REAL(torus_barrier);
    int result = real(group, error);

    return result == 0 ? loses("barrier", error) : result;
}
