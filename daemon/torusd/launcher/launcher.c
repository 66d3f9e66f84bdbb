#include "daemon/torusd/launcher/launcher.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/number.h"

#define JOB_VARIABLE "TORUS_JOB"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static const struct variables {
    const char *rank, *size, *local_rank;
} all[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"PMIX_RANK", NULL, NULL},
};
enum { OPEN_MPI, MPICH, SLURM, PMIX, LAUNCHERS };

/* In this order: all steps of a Slurm job have the same name, whatever starts their processes. */
static const char *const jobs[] = {JOB_VARIABLE, "SLURM_JOB_ID", "PMIX_NAMESPACE"};

/* Returns the value, or NULL if it is missing or empty. */
static const char *value_of(const char *variable)
{
    const char *value = variable != NULL ? getenv(variable) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Several launchers may have left variables: one that another one has started comes first. */
static const struct variables *find(void)
{
    const char *slurm = value_of(all[SLURM].rank), *pmix = value_of(all[PMIX].rank);

    for (size_t i = 0; i < LAUNCHERS; i++) {
        /* PMIx' own launcher runs its servers, and with them this process, below srun. */
        bool is_of_server = i == SLURM && slurm != NULL && pmix != NULL && strcmp(slurm, pmix) != 0;
        if (value_of(all[i].rank) != NULL && !is_of_server)
            return &all[i];
    }
    return NULL;
}

static int read_number(const char *variable, uint32_t *number, bool *found, struct error *e)
{
    const char *value = value_of(variable);

    *found = value != NULL;
    if (value == NULL || number_parse(value, LAUNCHER_RANK_MOST, number, e) == 0)
        return 0;
    return error_wrap(e, "variable %s", variable);
}

static void set_job(struct launcher *l)
{
    const char *value = NULL;

    for (size_t i = 0; value == NULL && i < sizeof jobs / sizeof jobs[0]; i++)
        value = value_of(jobs[i]);
    if (value != NULL)
        (void)snprintf(l->job, sizeof l->job, "%s", value);
    else /* MPICH names no job; all processes of a host have the same parent */
        (void)snprintf(l->job, sizeof l->job, "pid-%ld", (long)getppid());
    for (char *c = l->job; *c != '\0'; c++)
        if (strchr(LETTERS, *c) == NULL || (c == l->job && *c == '.'))
            *c = '_';
}

int launcher_find(struct launcher *l, struct error *e)
{
    const struct variables *v = find();
    bool found;

    *l = (struct launcher){0};
    if (v == NULL && value_of(JOB_VARIABLE) == NULL)
        return error_set(e, ERROR_USAGE,
                         "--from-env finds no variables of a launcher: neither %s (Open MPI), %s "
                         "(MPICH), %s (Slurm) nor %s is set. Start torusd by mpiexec or srun; or "
                         "set " JOB_VARIABLE
                         " to a name of the job, if something else starts it on each host",
                         all[OPEN_MPI].rank, all[MPICH].rank, all[SLURM].rank, all[PMIX].rank);
    set_job(l);
    if (v == NULL)
        return 0;
    l->rank_variable = v->rank;
    l->size_variable = v->size;
    if (read_number(v->rank, &l->rank, &found, e) != 0 ||
        read_number(v->size, &l->size, &l->has_size, e) != 0)
        return -1;
    return read_number(v->local_rank, &l->local_rank, &found, e);
}
