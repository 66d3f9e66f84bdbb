/* MPI launchers publish names, by which programs find each other. A process that finds the name of its program is not
 * the first. Otherwise it publishes its rank under that name. If several processes publish at the same time, the
 * launcher returns the first entry (MPICH) or the last one (Open MPI), but the same to all processes once each of
 * them has published. */
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
#define PUBLISH_MS 500 /* by then, every process that has not found a name has published its own */
#define POLL_MS 100    /* interval between look-ups */

static char published[128]; /* the name that first_publish_opened() has published; "": none */

/* Makes a service name from a prefix and the text that identifies the program, because other programs may use the same
 * launcher. Launchers accept letters and digits only. */
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

/* Finds the value that a process has published under a name. Returns whether there is one. */
static bool find_published(const char *service, char *found)
{
    return real.Lookup_name(service, mpi.info_null, found) == MPI_SUCCESS;
}

static bool is_first(const char *service)
{
    char mine[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME] = "";

    if (find_published(service, found))
        return false;
    (void)snprintf(mine, sizeof mine, "rank%u", (unsigned)job.rank);
    (void)real.Publish_name(service, mpi.info_null, mine);
    (void)poll(NULL, 0, PUBLISH_MS);
    return find_published(service, found) ? strcmp(found, mine) == 0 : job.rank == 0;
}

/* ---- Public functions ------------------------------------------------------------------------ */

bool first_of_program(void)
{
    char service[128];

    name_of_service(FIRST, service, sizeof service);
    return is_first(service);
}

void first_publish_opened(void)
{
    name_of_service(OPENED, published, sizeof published);
    /* If several processes publish it, MPICH's launcher keeps the first, and that process unpublishes it. */
    if (real.Publish_name(published, mpi.info_null, "opened") != MPI_SUCCESS)
        published[0] = '\0';
}

bool first_await_opened(uint32_t most_ms)
{
    char opened[128], alone[128], found[MPI_MAX_PORT_NAME];
    bool found_opened;

    name_of_service(OPENED, opened, sizeof opened);
    name_of_service(FIRST, alone, sizeof alone);
    found_opened = find_published(opened, found);
    for (uint32_t waited_ms = 0;
         !found_opened && waited_ms < most_ms && !find_published(alone, found);
         waited_ms += POLL_MS) {
        (void)poll(NULL, 0, POLL_MS);
        found_opened = find_published(opened, found);
    }
    return found_opened;
}

void first_unpublish_opened(void)
{
    if (published[0] == '\0')
        return;
    (void)real.Unpublish_name(published, mpi.info_null, "opened");
    published[0] = '\0';
}
