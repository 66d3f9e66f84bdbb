/* What the environment and the launcher of a program tell. */
#include "client/mpi/job/launcher.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/mpi/job/job.h"
#include "client/mpi/library/real.h"

#define TIMEOUT_S 30
#define LATE_S 60
#define MOST_S 86400

/* Returns the value of an environment variable, or NULL if it is not set or empty. */
static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && *value != '\0' ? value : NULL;
}

/* Reads a variable with a number of seconds. Returns milliseconds. If the value is invalid, returns the default
 * `usual` and sets *wrong. */
static uint32_t milliseconds(const char *variable, unsigned long least, unsigned long usual,
                             const char **wrong)
{
    const char *value = value_of(variable);
    unsigned long seconds = usual;
    char *end;

    if (value != NULL) {
        seconds = strtoul(value, &end, 10);
        if (*end != '\0' || seconds < least || seconds > MOST_S) {
            *wrong = variable;
            seconds = usual;
        }
    }
    return (uint32_t)seconds * 1000;
}

/* Reads a word of TORUS_MPI. Returns whether it is valid. */
static bool read_word(struct settings *s, const char *word, size_t length)
{
    const struct {
        const char *word;
        bool *set;
    } words[] = {{"off", &s->off},
                 {"on", NULL},
                 {"stats", &s->statistics},
                 {"torus", &s->torus},
                 {"verbose", &s->verbose}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0) {
            if (words[i].set != NULL)
                *words[i].set = true;
            return true;
        }
    return false;
}

struct settings settings_read(void)
{
    const char *words = value_of("TORUS_MPI");
    struct settings s = {.table = value_of("TORUS_MPI_TABLE")};

    for (size_t length; words != NULL && *words != '\0';
         words += length + (words[length] != '\0')) {
        length = strcspn(words, ",");
        if (!read_word(&s, words, length))
            s.wrong = "TORUS_MPI";
    }
    s.timeout_ms = milliseconds("TORUS_MPI_TIMEOUT", 1, TIMEOUT_S, &s.wrong);
    s.late_ms = milliseconds("TORUS_MPI_LATE", 0, LATE_S, &s.wrong);
    return s;
}

/* ---- Programs -------------------------------------------------------------------------------- */

/* Returns the parent of a process, or 0 if it is unknown. */
static unsigned parent_of(unsigned pid)
{
    char path[64], text[512], *name_end;
    unsigned parent = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%u/stat", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof text, file) != NULL && (name_end = strrchr(text, ')')) != NULL &&
        sscanf(name_end, ") %*c %u", &parent) != 1)
        parent = 0;
    (void)fclose(file);
    return parent;
}

/* Appends the value of an option to `out`. Returns whether the arguments have the option. */
static bool append_option(const char *arguments, size_t length, const char *option, char *out,
                          uint32_t size)
{
    for (const char *at = arguments; at < arguments + length; at += strlen(at) + 1)
        if (strcmp(at, option) == 0 && at + strlen(option) + 1 < arguments + length) {
            size_t used = strlen(out);
            (void)snprintf(out + used, size - used, "%s ", at + strlen(option) + 1);
            return true;
        }
    return false;
}

/* MPICH's launcher gives processes no name of their program. But each process has an ancestor on its node,
 * hydra_pmi_proxy, whose arguments have the port of this mpiexec and the number of the program among the programs of
 * this mpiexec. */
static bool find_hydra(char *out, uint32_t size)
{
    for (unsigned pid = (unsigned)getppid(); pid > 1; pid = parent_of(pid)) {
        char path[64], text[4096];
        size_t length;
        FILE *file;
        (void)snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
        file = fopen(path, "re");
        if (file == NULL)
            return false;
        length = fread(text, 1, sizeof text - 1, file);
        (void)fclose(file);
        text[length] = '\0';
        out[0] = '\0';
        if (strstr(text, "hydra") != NULL &&
            append_option(text, length, "--control-port", out, size)) {
            (void)append_option(text, length, "--pgid", out, size);
            return true;
        }
    }
    return false;
}

bool settings_program(char *out, uint32_t size)
{
    static const char *const variables[][2] = {
        {"TORUS_MPI_JOB", NULL},  {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"},
        {"PMIX_NAMESPACE", NULL}, {"SLURM_JOB_ID", "SLURM_STEP_ID"},
        {"FLUX_JOB_ID", NULL},    {"PALS_APID", NULL},
    };

    for (unsigned i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *first = value_of(variables[i][0]);
        const char *second = variables[i][1] != NULL ? value_of(variables[i][1]) : "";
        if (first != NULL && second != NULL) {
            (void)snprintf(out, size, "%s %s", first, second);
            return true;
        }
    }
    return find_hydra(out, size);
}

/* MPI launchers publish names, by which programs find each other. A process that finds the name of its program is not
 * the first. Otherwise it publishes its rank under that name. If several processes publish at the same time, the
 * launcher returns the first entry (MPICH) or the last one (Open MPI), but the same to all processes once each of
 * them has published. */

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
