/* MPI has launchers publish names, for programs that want to find each other. A process that finds the name of
 * its program has been preceded. If not, it publishes its rank under that name. Several may do so at the
 * same time; then the launcher keeps the first (MPICH), or finds the last (Open MPI), but the same one for
 * all, once each of them is through. */
#include "client/mpi/first.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/job.h"
#include "client/mpi/real.h"
#include "client/mpi/settings.h"

#define PREFIX "torus-"
#define SETTLED_MS 500 /* in which a process that has not found a name has published its own */

/* Launchers take letters and digits, and other programs may use the same one. */
static void name_of_service(char *name, uint32_t size)
{
    char program[512] = "";
    size_t used = strlen(PREFIX);

    (void)settings_program(program, sizeof program);
    (void)snprintf(name, size, PREFIX);
    for (const char *at = program; *at != '\0' && used + 1 < size; at++)
        if (isalnum((unsigned char)*at))
            name[used++] = *at;
    name[used] = '\0';
}

/* What a process has published; false: nothing. */
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

/* With the communicators' error handlers set aside: a name that is unknown or refused ends nobody. */
bool first_of_program(void)
{
    const MPI_Comm comms[] = {mpi.world, mpi.self};
    MPI_Errhandler kept[2];
    char service[128];
    bool first, replaced[2];

    for (int i = 0; i < 2; i++)
        replaced[i] = real.Comm_get_errhandler(comms[i], &kept[i]) == MPI_SUCCESS &&
                      real.Comm_set_errhandler(comms[i], mpi.errors_return) == MPI_SUCCESS;
    name_of_service(service, sizeof service);
    first = is_first(service);
    for (int i = 0; i < 2; i++)
        if (replaced[i]) {
            (void)real.Comm_set_errhandler(comms[i], kept[i]);
            (void)real.Errhandler_free(&kept[i]);
        }
    return first;
}
