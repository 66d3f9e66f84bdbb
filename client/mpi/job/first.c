/* MPI lets launchers publish names, with which programs find each other. A process that finds
 * the name of its program is not the first. Otherwise it publishes its rank under that name.
 * Several processes may do so at the same time; then the launcher keeps the first (MPICH) or
 * finds the last (Open MPI), but the same one for all processes, once each of them has
 * published. */
#include "client/mpi/job/first.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/settings.h"
#include "client/mpi/library/real.h"

#define FIRST "torus-"
#define OPENED "torusopened-"
#define SETTLED_MS 500 /* by then a process that has not found a name has published its own */
#define LISTENS_MS 100 /* between two looks for what other processes say */

static char said[128]; /* the name that says it; "": nothing was said */

/* The name of a service: launchers take letters and digits only, and other programs may use the
 * same launcher. */
static void name_of_service(const char *prefix, char *name, uint32_t size)
{
    char program[512] = "";
    size_t used = strlen(prefix);

    (void)settings_program(program, sizeof program);
    (void)snprintf(name, size, "%s", prefix);
    for (const char *at = program; *at != '\0' && used + 1 < size; at++)
        if (isalnum((unsigned char)*at))
            name[used++] = *at;
    name[used] = '\0';
}

/* Finds what a process has published; false: nothing. */
static bool look_up(const char *service, char *found)
{
    return real.Lookup_name(service, mpi.info_null, found) == MPI_SUCCESS;
}

static bool is_first(const char *service)
{
    char mine[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME] = "";

    if (look_up(service, found))
        return false;
    (void)snprintf(mine, sizeof mine, "rank%u", (unsigned)job.rank);
    (void)real.Publish_name(service, mpi.info_null, mine);
    (void)poll(NULL, 0, SETTLED_MS);
    return look_up(service, found) ? strcmp(found, mine) == 0 : job.rank == 0;
}

/* ---- What is called -------------------------------------------------------------------------- */

bool first_of_program(void)
{
    char service[128];

    name_of_service(FIRST, service, sizeof service);
    return is_first(service);
}

void first_say_opened(void)
{
    name_of_service(OPENED, said, sizeof said);
    /* If several processes say it, MPICH's launcher keeps the first, which unpublishes it. */
    if (real.Publish_name(said, mpi.info_null, "opened") != MPI_SUCCESS)
        said[0] = '\0';
}

bool first_hear_opened(uint32_t most_ms)
{
    char opened[128], alone[128], found[MPI_MAX_PORT_NAME];
    bool heard;

    name_of_service(OPENED, opened, sizeof opened);
    name_of_service(FIRST, alone, sizeof alone);
    heard = look_up(opened, found);
    for (uint32_t waited = 0; !heard && waited < most_ms && !look_up(alone, found);
         waited += LISTENS_MS) {
        (void)poll(NULL, 0, LISTENS_MS);
        heard = look_up(opened, found);
    }
    return heard;
}

void first_unsay_opened(void)
{
    if (said[0] == '\0')
        return;
    (void)real.Unpublish_name(said, mpi.info_null, "opened");
    said[0] = '\0';
}
